//! Numbers with units, read exactly: decimal digits times a power of ten or two, in integer
//! arithmetic.
//!
//! Sizes follow IEC 80000-13: `KB`, `MB`, `GB`, `TB` are powers of 1000, `KiB` to `TiB` powers of
//! 1024. Rates are powers of 1000 bits per second (bytes per second for disks). Floating point is
//! not used, so that `"12.5 ns"` is exactly 12,500 ps. A value that is not a whole number of the
//! smallest unit is refused.

use crate::narrow::at_most;

/// The units of one quantity, such as time or size.
pub struct Units {
    /// Name of the quantity in messages, such as `a length of time`.
    pub called: &'static str,
    /// Example of a value with its unit for messages, such as `200 ms`.
    pub example: &'static str,
    /// Unit with which zero is printed.
    pub base: &'static str,
    /// Whether printed values may have decimals.
    pub decimals: bool,
    /// Smallest unit, of which values are integer multiples, such as `1 ps`.
    pub smallest: &'static str,
    /// Units that messages list and printed values use, from large to small: name, and size as a
    /// number of smallest units.
    pub units: &'static [(&'static str, u64)],
    /// Further names of units that are read but never printed: name, and size as a number of
    /// smallest units.
    pub also: &'static [(&'static str, u64)],
}

/// Units of time; the smallest is the picosecond.
pub const SPAN: Units = Units {
    called: "a length of time",
    example: "200 ms",
    base: "s",
    decimals: true,
    smallest: "1 ps",
    units: &[
        ("s", 1_000_000_000_000),
        ("ms", 1_000_000_000),
        ("us", 1_000_000),
        ("ns", 1_000),
        ("ps", 1),
    ],
    also: &[
        ("h", 3_600_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("sec", 1_000_000_000_000),
        ("µs", 1_000_000),
        ("μs", 1_000_000),
    ],
};

/// Units of link rates; the smallest is the bit per second.
pub const RATE: Units = Units {
    called: "a rate",
    example: "10 Gbit/s",
    base: "bit/s",
    decimals: true,
    smallest: "1 bit/s",
    units: &[
        ("Tbit/s", 1_000_000_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Mbit/s", 1_000_000),
        ("kbit/s", 1_000),
        ("bit/s", 1),
    ],
    also: &[
        ("Tbps", 1_000_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("kbps", 1_000),
        ("bps", 1),
        ("Tb/s", 1_000_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("Mb/s", 1_000_000),
        ("kb/s", 1_000),
        ("b/s", 1),
        ("GB/s", 8_000_000_000),
        ("MB/s", 8_000_000),
        ("KB/s", 8_000),
        ("B/s", 8),
    ],
};

/// Units of the rates of disks and of computations: written in bytes per second, stored in bits per
/// second.
pub const BYTE_RATE: Units = Units {
    called: "a rate",
    example: "100 MB/s",
    base: "B/s",
    decimals: true,
    smallest: "1 bit/s",
    units: &[
        ("GB/s", 8_000_000_000),
        ("MB/s", 8_000_000),
        ("KB/s", 8_000),
        ("B/s", 8),
        ("bit/s", 1),
    ],
    also: &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000)],
};

/// Units of sizes; the smallest is the byte. Powers of 1000 are printed if the size is a multiple
/// of them, otherwise powers of 1024.
pub const SIZE: Units = Units {
    called: "a size",
    example: "64 MB",
    base: "B",
    decimals: false,
    smallest: "1 B",
    units: &[
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("B", 1),
    ],
    also: &[("kB", 1_000), ("byte", 1), ("bytes", 1)],
};

impl Units {
    /// Returns the value of a text such as `200 ms` as a number of smallest units, or a message
    /// that says what is wrong.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let split = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(text.len());
        let (number, unit) = (&text[..split], text[split..].trim());
        if number.is_empty() {
            if unit.starts_with('-') {
                return Err(format!("must not be negative; write {}", self.form()));
            }
            return Err(format!("is not {}; write {}", self.called, self.form()));
        }
        if unit.is_empty() {
            return Err(format!("has no unit; write {}", self.form()));
        }
        let Some(&(_, scale)) = self.units.iter().chain(self.also).find(|(name, _)| *name == unit)
        else {
            return Err(format!("has an unknown unit for {}; write {}", self.called, self.form()));
        };
        scaled(number, scale).map_err(|wrong| match wrong {
            Wrong::Number => format!("is not {}; write {}", self.called, self.form()),
            Wrong::TooLarge => {
                format!("is too large: at most {} times {} is allowed", u64::MAX, self.smallest)
            }
            Wrong::TooFine => format!(
                "has more decimals than can be represented; the smallest step is {}",
                self.smallest
            ),
        })
    }

    /// Returns a phrase for messages that says how a value with a unit is written.
    pub fn form(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|u| u.0).collect();
        format!("a number and one of {}, such as \"{}\"", names.join(", "), self.example)
    }

    /// Returns a value, `n` times the smallest unit, as text with the unit that makes the text
    /// short. Reading the text gives `n` again. Sizes stay whole numbers; times and rates may have
    /// up to three decimals.
    pub fn show(&self, n: u64) -> String {
        if n == 0 {
            return format!("0 {}", self.base);
        }
        for &(name, size) in self.units {
            let scaled = u128::from(n) * 1000;
            let short = scaled % u128::from(size) == 0 && n >= size;
            if n % size == 0 {
                return format!("{} {name}", n / size);
            }
            if self.decimals && short {
                let thousandths = scaled / u128::from(size) % 1000;
                let decimals = format!("{thousandths:03}");
                return format!("{}.{} {name}", n / size, decimals.trim_end_matches('0'));
            }
        }
        unreachable!("the last unit is one")
    }
}

enum Wrong {
    Number,
    TooLarge,
    TooFine,
}

/// Returns the decimal number in the text `number` (such as `12.5`) times `scale`; an error if the
/// product is not a whole number or does not fit into 64 bits.
fn scaled(number: &str, scale: u64) -> Result<u64, Wrong> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let (whole, part) = (digits(whole)?, fraction.trim_end_matches('0'));
    let (part, places) = if part.is_empty() {
        (digits(fraction)?, 0)
    } else {
        (digits(part)?, at_most(part.bytes().filter(u8::is_ascii_digit).count()))
    };
    // The product is below 10¹⁹ · 4 · 10¹⁵, which fits into 128 bits.
    let ten = 10u128.checked_pow(places).filter(|_| places <= 19).ok_or(Wrong::TooFine)?;
    let part = u128::from(part) * u128::from(scale);
    if part % ten != 0 {
        return Err(Wrong::TooFine);
    }
    let value = u128::from(whole) * u128::from(scale) + part / ten;
    u64::try_from(value).map_err(|_| Wrong::TooLarge)
}

/// Reads a whole number in decimal digits, which may be grouped with `_`.
fn digits(text: &str) -> Result<u64, Wrong> {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::Number);
    }
    plain.parse().map_err(|_| Wrong::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_exact() {
        assert_eq!(SPAN.parse("12.5 ns"), Ok(12_500));
        assert_eq!(SPAN.parse("0.1 us"), Ok(100_000));
        assert_eq!(SPAN.parse("4 h"), Ok(14_400_000_000_000_000));
        assert_eq!(RATE.parse("10 Gbit/s"), Ok(10_000_000_000));
        assert_eq!(RATE.parse("2.5Gbps"), Ok(2_500_000_000));
        assert_eq!(RATE.parse("80 MB/s"), Ok(640_000_000));
        assert_eq!(SIZE.parse("64 KiB"), Ok(65_536));
        assert_eq!(SIZE.parse("1.5 KiB"), Ok(1_536));
        assert_eq!(SIZE.parse("4_000_000 B"), Ok(4_000_000));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_units_that_can() {
        assert_eq!(
            SPAN.parse("0.5 ps"),
            Err("has more decimals than can be represented; the smallest step is 1 ps".to_owned())
        );
        assert_eq!(
            SIZE.parse("0.3 KiB"),
            Err("has more decimals than can be represented; the smallest step is 1 B".to_owned())
        );
        assert!(SPAN.parse("99999999999999999999 s").unwrap_err().contains("too large"));
        assert!(SPAN.parse("18446744073709551615 s").unwrap_err().contains("too large"));
        let wrong = SPAN.parse("200 packets").unwrap_err();
        assert!(wrong.contains("s, ms, us, ns, ps") && wrong.contains("length of time"), "{wrong}");
        assert!(RATE.parse("10").unwrap_err().starts_with("has no unit"));
        assert!(RATE.parse("-1 Gbit/s").unwrap_err().contains("negative"));
        for text in ["", ".", "1.2.3 s", "1e3 s", "s", "._ s", "_ s", "5. s", ".5 s"] {
            assert!(SPAN.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_values_read_back() {
        for n in [0, 1, 999, 1000, 1024, 1500, 65_536, 64_000_000, 1 << 40, u64::MAX] {
            for units in [&SPAN, &RATE, &BYTE_RATE, &SIZE] {
                assert_eq!(units.parse(&units.show(n)), Ok(n), "{n}");
            }
        }
        assert_eq!(SIZE.show(65_536), "64 KiB");
        assert_eq!(SPAN.show(200_000_000_000), "200 ms");
        assert_eq!(SPAN.show(12_304_000), "12.304 us");
        assert_eq!(BYTE_RATE.show(800_000_000), "100 MB/s");
        assert_eq!(RATE.show(2_500_000_000), "2.5 Gbit/s");
        assert_eq!(SPAN.show(0), "0 s");
    }
}
