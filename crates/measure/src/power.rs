//! Energy of links over time, by tier. Totals are stored at each sample and subtracted when the series is read.
//! So halving a series only removes samples, and no total depends on how often that was done.

use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// Energy of links, and the time that they spent in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Joules.
    pub joules: f64,
    /// Joules if all links were always awake.
    pub always_on_j: f64,
    /// Joules if links slept whenever they had nothing to send, without transitions.
    pub ideal_j: f64,
    /// Seconds awake.
    pub awake_s: f64,
    /// Seconds falling asleep.
    pub falling_s: f64,
    /// Seconds asleep.
    pub asleep_s: f64,
    /// Seconds waking.
    pub waking_s: f64,
}

impl Used {
    /// Returns `f` of each field of both.
    fn zip(self, other: Used, f: impl Fn(f64, f64) -> f64) -> Used {
        Used {
            joules: f(self.joules, other.joules),
            always_on_j: f(self.always_on_j, other.always_on_j),
            ideal_j: f(self.ideal_j, other.ideal_j),
            awake_s: f(self.awake_s, other.awake_s),
            falling_s: f(self.falling_s, other.falling_s),
            asleep_s: f(self.asleep_s, other.asleep_s),
            waking_s: f(self.waking_s, other.waking_s),
        }
    }
}

impl AddAssign for Used {
    fn add_assign(&mut self, more: Used) {
        *self = self.zip(more, |a, b| a + b);
    }
}

impl Sub for Used {
    type Output = Used;

    /// Returns the difference of two totals; rounding does not make it negative.
    fn sub(self, before: Used) -> Used {
        self.zip(before, |now, then| (now - then).max(0.0))
    }
}

/// Totals of each tier at each sample; empty if they are not recorded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PowerSeries {
    tiers: usize,
    totals: Vec<Used>,
}

impl PowerSeries {
    /// Records the totals of all tiers at a sample.
    pub fn take(&mut self, totals: &[Used]) {
        self.tiers = totals.len();
        self.totals.extend_from_slice(totals);
    }

    /// Removes every other sample, beginning with the first; an odd last one is removed, too.
    pub fn halve(&mut self) {
        let tiers = self.tiers.max(1);
        self.totals =
            self.totals.chunks_exact(2 * tiers).flat_map(|two| &two[tiers..]).copied().collect();
    }

    /// Returns (number of the sample, tier, use since the previous sample) for every sample.
    pub fn rows(&self) -> impl Iterator<Item = (usize, u32, Used)> + '_ {
        let tiers = self.tiers;
        self.totals.iter().enumerate().map(move |(place, &now)| {
            let before = place.checked_sub(tiers).map_or(Used::default(), |b| self.totals[b]);
            (place / tiers, (place % tiers) as u32, now - before)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_samples_keep_what_was_used() {
        let mut series = PowerSeries::default();
        for n in 1..=5 {
            let used =
                Used { joules: f64::from(n), asleep_s: 0.5 * f64::from(n), ..Used::default() };
            series.take(&[used, Used { joules: 10.0, ..Used::default() }]);
        }
        let first = |s: &PowerSeries| -> Vec<(usize, f64)> {
            s.rows().filter(|r| r.1 == 0).map(|r| (r.0, r.2.joules)).collect()
        };
        assert_eq!(first(&series), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]);
        series.halve();
        assert_eq!(first(&series), [(0, 2.0), (1, 2.0)]);
        assert_eq!(series.rows().nth(1).map(|r| r.2.joules), Some(10.0), "the other tier, once");
        assert_eq!(series.rows().nth(2).map(|r| r.2.asleep_s), Some(1.0));
        assert_eq!(PowerSeries::default().rows().count(), 0);
    }
}
