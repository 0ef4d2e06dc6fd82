//! Rates of links and disks.

use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Rate(pub u64);

impl Rate {
    /// Returns a rate of `n` Mbit/s (10⁶).
    pub const fn mbit(n: u64) -> Rate {
        Rate(n * 1_000_000)
    }
    /// Returns a rate of `n` Gbit/s (10⁹).
    pub const fn gbit(n: u64) -> Rate {
        Rate(n * 1_000_000_000)
    }
    /// Returns a rate of `n` MB/s (10⁶ bytes), the unit of disks.
    pub const fn megabytes(n: u64) -> Rate {
        Rate(n * 8_000_000)
    }
    /// Returns the transmission time of `bytes` bytes at this rate, rounded up to a picosecond. The
    /// rate must not be zero.
    pub fn time_for(self, bytes: u64) -> Span {
        if let Some(ps) = bytes.checked_mul(8_000_000_000_000) {
            return Span(ps.div_ceil(self.0).min(Span::MAX.0)); // no 128-bit division
        }
        let ps = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(self.0));
        Span(u64::try_from(ps).unwrap_or(Span::MAX.0).min(Span::MAX.0))
    }
    /// Returns the transmission time of one byte in picoseconds times 2¹⁶, rounded down. The rate
    /// must not be zero.
    pub fn ps_per_byte_q16(self) -> u64 {
        ((8_000_000_000_000u128 << 16) / u128::from(self.0)) as u64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.0 {
            n if n >= 1_000_000_000 => (1e9, "Gbit/s"),
            n if n >= 1_000_000 => (1e6, "Mbit/s"),
            n if n >= 1_000 => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        write!(f, "{} {unit}", self.0 as f64 / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_at_one_gigabit_lasts_12_microseconds() {
        assert_eq!(Rate::gbit(1).time_for(1500), Span::from_us(12));
        assert_eq!(Rate(3).time_for(1), Span(2_666_666_666_667));
    }

    #[test]
    fn rates_print_with_units() {
        assert_eq!(Rate::gbit(10).to_string(), "10 Gbit/s");
        assert_eq!(Rate(1_500_000).to_string(), "1.5 Mbit/s");
    }
}
