//! Differentiated services codepoints (DSCP, RFC 2474) and their names.
//!
//! Names come from the RFCs that define per-hop behaviours: class selectors CS0 to CS7 (RFC 2474,
//! 4.2.2), DF for CS0, assured forwarding AF11 to AF43 (RFC 2597), EF (RFC 3246), VA (voice-admit,
//! RFC 5865) and LE (lower effort, RFC 8622). The upper three bits of a class selector are the IP
//! precedence, or the priority of IEEE 802.1Q. RFC 4594 recommends uses of the codepoints.

use crate::problem::{nearest, quote};
use crate::quantity::Quantity;
use toml::Value;

/// A differentiated services codepoint (DSCP, RFC 2474), 0 to 63.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Dscp(pub u8);

/// All names of codepoints, each with its codepoint.
const NAMES: [(&str, u8); 24] = [
    ("CS0", 0),
    ("DF", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

impl Dscp {
    /// Returns the class selector codepoint (CS0 to CS7, RFC 2474) of a priority from 0 to 7.
    pub fn of_priority(priority: u8) -> Dscp {
        Dscp((priority & 7) << 3)
    }

    /// Returns the default priority of the codepoint, 0 to 7: its upper three bits.
    pub fn priority(self) -> u8 {
        self.0 >> 3
    }

    /// Whether the codepoint is a class selector (CS0 to CS7): its lower three bits are zero.
    pub fn is_selector(self) -> bool {
        self.0 & 7 == 0
    }

    /// Returns the name of the codepoint, or its number where it has no name.
    pub fn name(self) -> String {
        let known = NAMES.iter().find(|(_, number)| *number == self.0);
        known.map_or_else(|| self.0.to_string(), |(name, _)| (*name).to_owned())
    }
}

impl Quantity for Dscp {
    const TYPE: &'static str = "DSCP";
    const LIST: &'static str = "list of DSCPs";
    fn parse(value: &Value) -> Result<Dscp, String> {
        const ALLOWED: &str =
            "write a name such as \"AF21\", \"EF\" or \"CS5\", or a number 0 to 63";
        match value {
            Value::Integer(number) => match u8::try_from(*number) {
                Ok(number) if number < 64 => Ok(Dscp(number)),
                _ => Err(format!("is not a codepoint; {ALLOWED}")),
            },
            Value::String(text) => {
                let wanted = text.trim();
                let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
                known.map(|(_, number)| Dscp(*number)).ok_or_else(|| {
                    let near = nearest(wanted, NAMES.iter().map(|(name, _)| *name));
                    let hint =
                        near.map_or_else(String::new, |name| format!("; did you mean {name}?"));
                    format!("is not a codepoint; {ALLOWED}{hint}")
                })
            }
            other => Err(format!("is {}; {ALLOWED}", quote(other))),
        }
    }
    fn show(&self) -> String {
        match self.name() {
            number if number.starts_with(|c: char| c.is_ascii_digit()) => number,
            name => format!("\"{name}\""),
        }
    }
    fn placeholder() -> Dscp {
        Dscp(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_of_their_rfcs() {
        // The codepoint of AFxy is 8x + 2y (RFC 2597, 6), that of CSx is 8x.
        for (name, number) in NAMES {
            let digits: Vec<u8> =
                name.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
            match (&name[..2], digits.as_slice()) {
                ("AF", [class, drop]) => assert_eq!(number, 8 * class + 2 * drop, "{name}"),
                ("CS", [class]) => assert_eq!(number, 8 * class, "{name}"),
                _ => assert!(
                    [("DF", 0), ("LE", 1), ("VA", 44), ("EF", 46)].contains(&(name, number))
                ),
            }
            assert_eq!(Dscp::parse(&Value::String(name.to_lowercase())), Ok(Dscp(number)));
        }
    }

    #[test]
    fn what_is_shown_reads_back_and_nonsense_does_not() {
        for number in 0..64 {
            let shown = crate::quantity::literal(&Dscp(number).show());
            assert_eq!(Dscp::parse(&shown), Ok(Dscp(number)));
        }
        assert!(
            Dscp::parse(&Value::Integer(64)).is_err() && Dscp::parse(&Value::Integer(-1)).is_err()
        );
        let wrong = Dscp::parse(&Value::String("AF51".to_owned())).unwrap_err();
        assert!(wrong.contains("did you mean AF"), "{wrong}");
    }
}
