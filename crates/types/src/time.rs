//! Simulated time in integer picoseconds.
//!
//! A byte at 100 Gbit/s takes 80 ps, so that picoseconds represent all usual link rates exactly.
//! Event keys have three more bits for the event class, which leaves 61 bits for time: 26 days of
//! simulated time.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Point in time, in ps since the start of the simulation.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct Time(pub u64);

/// Duration in ps.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct Span(pub u64);

/// Picoseconds in a second.
const PS_PER_S: u64 = 1_000_000_000_000;

impl Time {
    /// Start of the simulation.
    pub const ZERO: Time = Time(0);
    /// Time later than every event; the largest time that an event key can hold.
    pub const NEVER: Time = Time((1 << 61) - 1);

    /// Returns the time in seconds since the start of the simulation, for display and tables. The
    /// number is inexact, so that no decision may depend on it.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns the time one picosecond later.
    #[inline]
    pub fn next(self) -> Time {
        Time(self.0 + 1)
    }

    /// Returns the time that is earlier by `span`; zero if `span` is larger than this time.
    pub fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    /// Returns the time that is later by `span`, at most [`Time::NEVER`]; `span` must be at most
    /// [`Span::MAX`]. The operator `+` accepts every span, but takes two instructions more.
    #[inline]
    pub fn after(self, span: Span) -> Time {
        debug_assert!(self <= Time::NEVER && span <= Span::MAX);
        Time(self.0.wrapping_add(span.0).min(Time::NEVER.0))
    }

    /// Returns the duration from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Duration of zero ps.
    pub const ZERO: Span = Span(0);
    /// Longest duration, which no simulation reaches.
    pub const MAX: Span = Span((1 << 61) - 1);

    /// Returns a duration of `n` picoseconds.
    pub const fn from_ps(n: u64) -> Span {
        Span(n)
    }
    /// Returns a duration of `n` nanoseconds.
    pub const fn from_ns(n: u64) -> Span {
        Span(n * 1_000)
    }
    /// Returns a duration of `n` microseconds.
    pub const fn from_us(n: u64) -> Span {
        Span(n * 1_000_000)
    }
    /// Returns a duration of `n` milliseconds.
    pub const fn from_ms(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }
    /// Returns a duration of `n` seconds.
    pub const fn from_secs(n: u64) -> Span {
        Span(n * PS_PER_S)
    }
    /// Returns a duration of `s` seconds, rounded to the nearest picosecond. Negative values and
    /// NaN become zero; values that are too large become [`Span::MAX`].
    pub fn from_secs_f64_nearest(s: f64) -> Span {
        // The cast with `as` saturates, and turns NaN and negative numbers into zero.
        Span(((s * PS_PER_S as f64 + 0.5) as u64).min(Span::MAX.0))
    }
    /// Returns the duration in seconds, for display and tables.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// Returns the duration in microseconds, for display and tables.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Returns the time later by `s`; the result saturates at [`Time::NEVER`].
    fn add(self, s: Span) -> Time {
        Time(self.0.saturating_add(s.0).min(Time::NEVER.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, s: Span) -> Span {
        Span(self.0.saturating_add(s.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}

impl Sub for Span {
    type Output = Span;
    /// Returns the difference of two durations; the result saturates at zero.
    fn sub(self, s: Span) -> Span {
        Span(self.0.saturating_sub(s.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// Writes the exact duration in the largest unit that is not longer than the duration, such as
    /// `200 ms` or `12.304 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] =
            [(PS_PER_S, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
        for (size, unit) in UNITS {
            if self.0 >= size || size == 1 {
                let whole = self.0 / size;
                let rest = self.0 % size;
                if rest == 0 {
                    return write!(f, "{whole} {unit}");
                }
                let digits = size.ilog10() as usize;
                let frac = format!("{rest:0digits$}");
                return write!(f, "{whole}.{} {unit}", frac.trim_end_matches('0'));
            }
        }
        unreachable!("the last unit is one picosecond")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_in_their_natural_unit() {
        assert_eq!(Span::from_ms(200).to_string(), "200 ms");
        assert_eq!(Span(12_304_000).to_string(), "12.304 us");
        assert_eq!(Span(0).to_string(), "0 ps");
        assert_eq!(Span(1_500_000_000_000).to_string(), "1.5 s");
    }

    #[test]
    fn seconds_round_to_the_nearest_picosecond() {
        assert_eq!(Span::from_secs_f64_nearest(1e-12), Span(1));
        assert_eq!(Span::from_secs_f64_nearest(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64_nearest(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64_nearest(1e30), Span::MAX);
    }

    #[test]
    fn adding_past_the_end_of_time_stays_at_never() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
    }
}
