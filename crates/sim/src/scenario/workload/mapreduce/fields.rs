//! Settings of Hadoop: keys whose default is the usual value of the model.

use eastwest_settings::quantity::{Bytes, Fraction, Octets, Quantity};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;

/// Least and greatest value, as text.
pub type Range = (&'static str, &'static str);

/// Range from one byte to a TB.
pub const ANY_BYTES: Range = ("1 B", "1 TB");

fn field<T: Quantity>(
    s: &mut Section,
    (name, doc): (&'static str, &'static str),
    usual: T,
    (low, high): Range,
) -> T {
    s.get(key(name, doc).value(usual).range(low, high))
}

/// Reads a number.
pub fn count(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    usual: u32,
    range: Range,
) -> u32 {
    field(s, (name, doc), usual, range)
}

/// Reads a time.
pub fn span(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    usual: Span,
    range: Range,
) -> Span {
    field(s, (name, doc), usual, range)
}

/// Reads a number of bytes.
pub fn bytes(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    usual: u64,
    range: Range,
) -> u64 {
    field(s, (name, doc), Bytes(usual), range).0
}

/// Reads the bytes of a small message.
pub fn small(s: &mut Section, name: &'static str, doc: &'static str, usual: u32) -> u32 {
    field(s, (name, doc), Octets(usual), ("1", "1000000")).0
}

/// Reads a fraction.
pub fn share(s: &mut Section, name: &'static str, doc: &'static str, usual: f64) -> f64 {
    field(s, (name, doc), Fraction(usual), ("0", "1")).0
}

/// Reads a boolean.
pub fn flag(s: &mut Section, name: &'static str, doc: &'static str, usual: bool) -> bool {
    s.get(key(name, doc).value(usual))
}
