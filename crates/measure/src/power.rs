//! What links used over time, by tier: totals at each sample, told apart when the series is read. So
//! folding a series is leaving samples out, and no sum depends on how often that was done.

use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// What links have used, and for how long they were in each state, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Joules.
    pub joules: f64,
    /// Joules they would have used awake all the time.
    pub always_on_j: f64,
    /// Joules they would have used asleep whenever they had nothing to send, without transitions.
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
    /// Applies `f` to each field of both.
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

    /// What was used since; rounding does not make it negative.
    fn sub(self, before: Used) -> Used {
        self.zip(before, |now, then| (now - then).max(0.0))
    }
}

/// Totals of each tier at samples; empty where nobody asked.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PowerSeries {
    tiers: usize,
    totals: Vec<Used>,
}

impl PowerSeries {
    /// Takes the totals of all tiers at a sample.
    pub fn take(&mut self, totals: &[Used]) {
        self.tiers = totals.len();
        self.totals.extend_from_slice(totals);
    }

    /// Keeps every second sample, the second first; an odd last one goes.
    pub fn halve(&mut self) {
        let tiers = self.tiers.max(1);
        self.totals =
            self.totals.chunks_exact(2 * tiers).flat_map(|two| &two[tiers..]).copied().collect();
    }

    /// (number of the sample, tier, what was used since the sample before) of every sample.
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
