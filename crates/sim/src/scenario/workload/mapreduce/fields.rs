//! Functions that read keys of the tables of a MapReduce workload. The argument `usual` is the
//! default of the key.

use eastwest_settings::quantity::{Bytes, Fraction, Octets, Quantity};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;

/// Range of a setting: least and greatest allowed value, as text.
pub type Range = (&'static str, &'static str);

/// Range of a size: from one byte to 1 TB.
pub const ANY_BYTES: Range = ("1 B", "1 TB");

fn field<T: Quantity>(
    s: &mut Section,
    (name, doc): (&'static str, &'static str),
    usual: T,
    (low, high): Range,
) -> T {
    s.get(key(name, doc).value(usual).range(low, high))
}

/// Reads the key `name`, an integer; `usual` is the default.
pub fn count(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    usual: u32,
    range: Range,
) -> u32 {
    field(s, (name, doc), usual, range)
}

/// Reads the key `name`, a time; `usual` is the default.
pub fn span(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    usual: Span,
    range: Range,
) -> Span {
    field(s, (name, doc), usual, range)
}

/// Reads the key `name`, a number of bytes; `usual` is the default.
pub fn bytes(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    usual: u64,
    range: Range,
) -> u64 {
    field(s, (name, doc), Bytes(usual), range).0
}

/// Reads the key `name`, the size of a small message: 1 to 1,000,000 bytes; `usual` is the default.
pub fn small(s: &mut Section, name: &'static str, doc: &'static str, usual: u32) -> u32 {
    field(s, (name, doc), Octets(usual), ("1", "1000000")).0
}

/// Reads the key `name`, a fraction from 0 to 1; `usual` is the default.
pub fn share(s: &mut Section, name: &'static str, doc: &'static str, usual: f64) -> f64 {
    field(s, (name, doc), Fraction(usual), ("0", "1")).0
}

/// Reads the key `name`, which is true or false; `usual` is the default.
pub fn flag(s: &mut Section, name: &'static str, doc: &'static str, usual: bool) -> bool {
    s.get(key(name, doc).value(usual))
}
