//! Types of the values in a scenario: how a value of each type is read, printed and described.

use crate::narrow::at_most;
use crate::problem::{quote, shorten};
use crate::units::{BYTE_RATE, RATE, SIZE, SPAN, Units};
use eastwest_types::{Limit, Rate, Span};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A type of the values in a scenario: how a value is read, printed and checked.
pub trait Quantity: Clone {
    /// Name of the type in the documentation of keys, for example `time` or `rate`.
    const TYPE: &'static str;
    /// Name, in the documentation of keys, of the type of a list of these values.
    const LIST: &'static str = "list";
    /// Reads a TOML value of this type, or returns a message that says what is wrong with it.
    fn parse(value: &Value) -> Result<Self, String>;
    /// Returns the value as TOML text, which [`Quantity::parse`] reads as an equal value.
    fn show(&self) -> String;
    /// Returns any valid value of the type. It replaces an unreadable value until the problem is
    /// reported.
    fn placeholder() -> Self;
    /// Whether the value is at least the first and at most the second argument; always `true` for
    /// types whose values have no order.
    fn within(&self, _low: &Self, _high: &Self) -> bool {
        true
    }
}

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

/// Rate of a disk or of a computation, written in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ByteRate(pub Rate);

/// Length of a packet in bytes, written as a plain number or as a size with its unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Octets(pub u32);

/// A fraction of one, written `0.4` or `"40 %"`. Its range is declared by the key that has it.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Fraction(pub f64);

/// A finite number, written with or without decimals. Its range is declared by the key that has it.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Ratio(pub f64);

/// A name: letters, digits, `-`, `_` and `.`, at most 64 characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name(pub String);

/// Path of a file, relative to the directory of the scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileName(pub String);

/// Properties (name and value as text), as in configuration files of Hadoop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Properties(pub BTreeMap<String, String>);

/// Returns a phrase for messages that names the type of a value, such as `is text`. The messages
/// report that the value should have another type.
pub fn instead(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "is text",
        Value::Integer(_) => "is a whole number",
        Value::Float(_) => "is a number with decimals",
        Value::Boolean(_) => "is true or false",
        Value::Datetime(_) => "is a date",
        Value::Array(_) => "is a list",
        Value::Table(_) => "is a table",
    }
}

/// Reads a value with a unit, such as `10 ms`. Returns it as a number of the smallest unit of
/// `units`, or an error message.
fn with_unit(value: &Value, units: &Units) -> Result<u64, String> {
    match value {
        Value::String(text) => units.parse(text),
        Value::Integer(_) | Value::Float(_) => Err(format!("has no unit; write {}", units.form())),
        other => Err(format!("{}; write {}", instead(other), units.form())),
    }
}

/// Reads a whole number from 0 to `max`, or returns a message about what is wrong.
fn whole(value: &Value, max: u64) -> Result<u64, String> {
    match value {
        Value::Integer(n) => match u64::try_from(*n) {
            Ok(n) if n <= max => Ok(n),
            Ok(_) => Err(format!("is too large: at most {max}")),
            Err(_) => Err("must not be negative".to_owned()),
        },
        // An override of a setting with a number that is too large for TOML.
        Value::String(text) if text.len() > 18 && text.bytes().all(|b| b.is_ascii_digit()) => {
            Err(format!("is too large: at most {max}"))
        }
        other => Err(format!("{}; write a whole number", instead(other))),
    }
}

/// Reads any finite number, or returns an error message. The message ends with `form`, a text that
/// says how to write the number.
fn number(value: &Value, form: &str) -> Result<f64, String> {
    let n = match value {
        Value::Integer(n) => *n as f64,
        Value::Float(x) => *x,
        other => return Err(format!("{}; write {form}", instead(other))),
    };
    if n.is_finite() { Ok(n) } else { Err(format!("is not finite; write {form}")) }
}

/// Returns `text` in quotes, as a TOML string.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

macro_rules! ordered {
    () => {
        fn within(&self, low: &Self, high: &Self) -> bool {
            low <= self && self <= high
        }
    };
}

/// Longest time that a scenario may contain: 20 days. The event list can express times up to 26
/// days.
const LONGEST: Span = Span::from_secs(20 * 86_400);

impl Quantity for Span {
    const TYPE: &'static str = "time";
    fn parse(value: &Value) -> Result<Span, String> {
        let span = Span(with_unit(value, &SPAN)?);
        if span > LONGEST { Err("is too long: at most 20 days".to_owned()) } else { Ok(span) }
    }
    fn show(&self) -> String {
        quoted(&SPAN.show(self.0))
    }
    fn placeholder() -> Span {
        Span::from_secs(1)
    }
    ordered!();
}

impl Quantity for Rate {
    const TYPE: &'static str = "rate";
    fn parse(value: &Value) -> Result<Rate, String> {
        Ok(Rate(with_unit(value, &RATE)?))
    }
    fn show(&self) -> String {
        quoted(&RATE.show(self.0))
    }
    fn placeholder() -> Rate {
        Rate::gbit(1)
    }
    ordered!();
}

impl Quantity for ByteRate {
    const TYPE: &'static str = "byte rate";
    fn parse(value: &Value) -> Result<ByteRate, String> {
        Ok(ByteRate(Rate(with_unit(value, &BYTE_RATE)?)))
    }
    fn show(&self) -> String {
        quoted(&BYTE_RATE.show(self.0.0))
    }
    fn placeholder() -> ByteRate {
        ByteRate(Rate::megabytes(1))
    }
    ordered!();
}

impl Quantity for Bytes {
    const TYPE: &'static str = "size";
    fn parse(value: &Value) -> Result<Bytes, String> {
        with_unit(value, &SIZE).map(Bytes)
    }
    fn show(&self) -> String {
        quoted(&SIZE.show(self.0))
    }
    fn placeholder() -> Bytes {
        Bytes(1)
    }
    ordered!();
}

impl Quantity for Octets {
    const TYPE: &'static str = "bytes";
    fn parse(value: &Value) -> Result<Octets, String> {
        let n = match value {
            Value::String(text) => SIZE.parse(text)?,
            other => whole(other, u64::from(u32::MAX))?,
        };
        u32::try_from(n)
            .map(Octets)
            .map_err(|_| "is too large: a packet has at most 4294967295 bytes".to_owned())
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
    fn placeholder() -> Octets {
        Octets(1)
    }
    ordered!();
}

impl Quantity for u32 {
    const TYPE: &'static str = "count";
    const LIST: &'static str = "list of counts";
    fn parse(value: &Value) -> Result<u32, String> {
        whole(value, u64::from(u32::MAX)).map(at_most)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn placeholder() -> u32 {
        1
    }
    ordered!();
}

impl Quantity for u64 {
    const TYPE: &'static str = "whole number";
    fn parse(value: &Value) -> Result<u64, String> {
        whole(value, i64::MAX as u64)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn placeholder() -> u64 {
        1
    }
    ordered!();
}

impl Quantity for bool {
    const TYPE: &'static str = "true or false";
    fn parse(value: &Value) -> Result<bool, String> {
        value.as_bool().ok_or_else(|| format!("{}; write true or false", instead(value)))
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn placeholder() -> bool {
        false
    }
}

impl Quantity for Fraction {
    const TYPE: &'static str = "share";
    fn parse(value: &Value) -> Result<Fraction, String> {
        const FORM: &str = "a number such as 0.4, or a percentage such as \"40 %\"";
        let share = match value {
            Value::String(text) => text
                .trim()
                .strip_suffix('%')
                .and_then(|digits| digits.trim().parse::<f64>().ok())
                .filter(|x| x.is_finite())
                .map(|x| x / 100.0)
                .ok_or_else(|| format!("is not a share; write {FORM}"))?,
            other => number(other, FORM)?,
        };
        // Adding zero turns −0.0 into 0.0, so that both have one printed form.
        Ok(Fraction(share + 0.0))
    }
    fn show(&self) -> String {
        format!("{:?}", self.0)
    }
    fn placeholder() -> Fraction {
        Fraction(0.5)
    }
    ordered!();
}

impl Quantity for Ratio {
    const TYPE: &'static str = "number";
    fn parse(value: &Value) -> Result<Ratio, String> {
        number(value, "a number such as 1.5").map(|x| Ratio(x + 0.0))
    }
    fn show(&self) -> String {
        format!("{:?}", self.0)
    }
    fn placeholder() -> Ratio {
        Ratio(1.0)
    }
    ordered!();
}

/// Largest limit of a queue, if the limit is a number of packets.
const QUEUE_PACKETS: u32 = 10_000_000;
/// Largest limit of a queue in bytes (100 GB), if the limit is a size.
const QUEUE_BYTES: u64 = 100_000_000_000;

impl Quantity for Limit {
    const TYPE: &'static str = "packets or size";
    fn parse(value: &Value) -> Result<Limit, String> {
        const FORM: &str = "a number of packets (\"200 packets\") or a size (\"64 KB\")";
        let text = match value {
            Value::String(text) => text.trim(),
            Value::Integer(_) | Value::Float(_) => {
                return Err(format!("has no unit; write {FORM}"));
            }
            other => return Err(format!("{}; write {FORM}", instead(other))),
        };
        let packets = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        if let Some(digits) = packets {
            return match digits.trim().replace('_', "").parse() {
                Ok(0) => Err("must be above 0: it leaves no room for a single packet".to_owned()),
                Ok(n) if n <= QUEUE_PACKETS => Ok(Limit::Packets(n)),
                Ok(_) => Err(format!("is too large: at most {QUEUE_PACKETS} packets")),
                Err(_) => Err(format!("is not a queue limit; write {FORM}")),
            };
        }
        let ends_as_size = text.ends_with('B') || text.ends_with("byte") || text.ends_with("bytes");
        if !ends_as_size {
            return Err(format!("is not a queue limit; write {FORM}"));
        }
        match SIZE.parse(text)? {
            0 => Err("must be above 0: it leaves no room for a single packet".to_owned()),
            n if n <= QUEUE_BYTES => Ok(Limit::Bytes(n)),
            _ => Err("is too large: at most 100 GB".to_owned()),
        }
    }
    fn show(&self) -> String {
        match self {
            Limit::Packets(1) => quoted("1 packet"),
            Limit::Packets(n) => quoted(&format!("{n} packets")),
            Limit::Bytes(n) => Bytes(*n).show(),
        }
    }
    fn placeholder() -> Limit {
        Limit::Packets(1)
    }
}

/// Largest number of characters of a name.
const NAME: usize = 64;

impl Quantity for Name {
    const TYPE: &'static str = "name";
    const LIST: &'static str = "list of names";
    fn parse(value: &Value) -> Result<Name, String> {
        let Value::String(text) = value else {
            return Err(format!("{}; write a name in quotes", instead(value)));
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() {
            Err("is empty; write a name".to_owned())
        } else if text.len() > NAME {
            Err(format!("is too long: a name has at most {NAME} characters"))
        } else if let Some(c) = text.chars().find(|&c| !fits(c)) {
            Err(format!("contains {c:?}: names may have only letters, digits, '-', '_' and '.'"))
        } else {
            Ok(Name(text.clone()))
        }
    }
    fn show(&self) -> String {
        quoted(&self.0)
    }
    fn placeholder() -> Name {
        Name("unnamed".to_owned())
    }
}

impl Quantity for FileName {
    const TYPE: &'static str = "file";
    const LIST: &'static str = "list of files";
    fn parse(value: &Value) -> Result<FileName, String> {
        let Value::String(text) = value else {
            return Err(format!("{}; write a file name in quotes", instead(value)));
        };
        let inside = |part: &str| !part.is_empty() && part != "." && part != "..";
        if text.len() > 255 || text.chars().any(char::is_control) || text.contains(['\\', ':']) {
            Err("is not a file name: it must have at most 255 bytes and must not contain '\\', \
                 ':' or control characters"
                .to_owned())
        } else if !text.split('/').all(inside) {
            Err("must be a path below the directory of the scenario, without a leading '/' and \
                 without empty parts, '.' or '..'"
                .to_owned())
        } else {
            Ok(FileName(text.clone()))
        }
    }
    fn show(&self) -> String {
        quoted(&self.0)
    }
    fn placeholder() -> FileName {
        FileName("missing".to_owned())
    }
}

/// Maximum number of properties (name and value) that one key can have.
const PROPERTIES: usize = 10_000;
/// Maximum number of bytes in the name of a property.
const PROPERTY_NAME: usize = 256;
/// Maximum number of bytes in the value of a property.
const PROPERTY_VALUE: usize = 4096;

impl Properties {
    /// Adds the properties of a table, with `before` in front of their names. The names of nested
    /// tables are joined by dots.
    fn collect(&mut self, table: &Table, before: &str) -> Result<(), String> {
        for (name, value) in table {
            let name = format!("{before}{name}");
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => value.to_string(),
                Value::Table(inner) => {
                    self.collect(inner, &format!("{name}."))?;
                    continue;
                }
                other => {
                    return Err(format!("{} {}; write text", shorten(&name), instead(other)));
                }
            };
            if name.trim().is_empty() || name.len() > PROPERTY_NAME || text.len() > PROPERTY_VALUE {
                return Err(format!(
                    "has the property '{}': a name must have 1 to {PROPERTY_NAME} bytes, and a \
                     value at most {PROPERTY_VALUE} bytes",
                    shorten(&name)
                ));
            }
            if self.0.len() >= PROPERTIES {
                return Err(format!("has too many properties: at most {PROPERTIES} are allowed"));
            }
            if self.0.insert(name.clone(), text).is_some() {
                return Err(format!("has the property {} twice", shorten(&name)));
            }
        }
        Ok(())
    }
}

impl Quantity for Properties {
    const TYPE: &'static str = "properties";
    fn parse(value: &Value) -> Result<Properties, String> {
        const FORM: &str = "write { \"name\" = value, … }";
        let table = value.as_table().ok_or_else(|| format!("{}; {FORM}", instead(value)))?;
        let mut found = Properties(BTreeMap::new());
        found.collect(table, "").map(|()| found)
    }
    fn show(&self) -> String {
        let entries =
            self.0.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)));
        format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
    }
    fn placeholder() -> Properties {
        Properties(BTreeMap::new())
    }
}

impl<T: Quantity> Quantity for Vec<T> {
    const TYPE: &'static str = T::LIST;
    fn parse(value: &Value) -> Result<Vec<T>, String> {
        let Value::Array(items) = value else {
            return Err(format!("{}; write a list in brackets", instead(value)));
        };
        let parse = |(i, item)| {
            T::parse(item).map_err(|e| {
                format!("entry {i} of the list, counted from 0, ({}) {e}", quote(item))
            })
        };
        items.iter().enumerate().map(parse).collect()
    }
    fn show(&self) -> String {
        let items: Vec<String> = self.iter().map(T::show).collect();
        format!("[{}]", items.join(", "))
    }
    fn placeholder() -> Vec<T> {
        Vec::new()
    }
}

/// Returns the TOML value of `text`, which is written without quotes, as in `--set`. Text that is
/// not valid TOML becomes a string.
pub fn literal(text: &str) -> Value {
    let document = format!("v = {text}");
    // Text with a line break could add further keys to the TOML document, so it is a string.
    let parsed =
        if text.contains(['\n', '\r']) { None } else { document.parse::<toml::Table>().ok() };
    match parsed.and_then(|mut table| table.remove("v")) {
        Some(value) => value,
        None => Value::String(text.to_owned()),
    }
}

/// Returns the value that `text` describes: a default, or the end of a range, as written in the
/// code.
///
/// # Panics
///
/// Panics if the text is not a value of the type. A test reads the texts of all declared keys.
pub fn constant<T: Quantity>(text: &'static str) -> T {
    let value = if let Ok(n) = text.parse() {
        Value::Integer(n)
    } else if let Ok(b) = text.parse() {
        Value::Boolean(b)
    } else if let Ok(x) = text.parse() {
        Value::Float(x)
    } else {
        Value::String(text.to_owned())
    };
    T::parse(&value).unwrap_or_else(|e| panic!("{} {e}", shorten(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again<T: Quantity>(text: &str) -> String {
        let first = T::parse(&literal(text)).expect(text);
        let shown = first.show();
        let second = T::parse(&literal(&shown)).expect(&shown);
        assert_eq!(second.show(), shown);
        shown
    }

    #[test]
    fn every_type_prints_what_it_reads() {
        assert_eq!(again::<Span>("200 ms"), "\"200 ms\"");
        assert_eq!(again::<Rate>("10Gbps"), "\"10 Gbit/s\"");
        assert_eq!(again::<Bytes>("64 KiB"), "\"64 KiB\"");
        assert_eq!(again::<Octets>("1500 B"), "1500");
        assert_eq!(again::<Limit>("200 packets"), "\"200 packets\"");
        assert_eq!(again::<Limit>("64 KB"), "\"64 KB\"");
        assert_eq!(again::<Fraction>("40 %"), "0.4");
        assert_eq!(again::<Fraction>("1"), "1.0");
        assert_eq!(again::<Vec<Name>>("[\"a\", \"b-1\"]"), "[\"a\", \"b-1\"]");
        assert_eq!(again::<bool>("true"), "true");
    }

    #[test]
    fn wrong_types_are_told_what_is_expected() {
        let say = |value: &str| Span::parse(&literal(value)).unwrap_err();
        assert!(say("5").starts_with("has no unit"));
        assert!(say("true").starts_with("is true or false"));
        assert!(say("[1]").starts_with("is a list"));
        assert!(say("500 h").contains("20 days"));
        assert!(Limit::parse(&literal("0 packets")).unwrap_err().contains("no room"));
        assert!(Limit::parse(&literal("5 ms")).unwrap_err().contains("packets"));
        assert!(u32::parse(&literal("-1")).unwrap_err().contains("negative"));
        assert!(u32::parse(&literal("4294967296")).unwrap_err().contains("too large"));
        assert!(Fraction::parse(&literal("nan")).is_err());
        assert!(Name::parse(&literal("a b")).unwrap_err().contains("' '"));
    }

    #[test]
    fn files_stay_below_the_scenario() {
        for bad in ["/etc/passwd", "../x", "a/../x", "a//b", "", "C:\\x", "a\nb"] {
            assert!(FileName::parse(&Value::String(bad.to_owned())).is_err(), "{bad}");
        }
        assert!(FileName::parse(&Value::String("traces/x.tsv".to_owned())).is_ok());
    }

    #[test]
    fn a_literal_is_toml_or_text() {
        assert_eq!(literal("4"), Value::Integer(4));
        assert_eq!(literal("4 MB"), Value::String("4 MB".to_owned()));
        assert_eq!(literal("1\nw = 2"), Value::String("1\nw = 2".to_owned()));
    }
}
