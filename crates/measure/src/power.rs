//! Energy of links over time, by tier. Each sample stores totals since the start of the run; the
//! values of an interval are the difference of two samples. Halving a series therefore only removes
//! samples, and totals do not depend on how often it was halved.

use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// Energy of a set of links in joules, and the time that they spent in each power state in seconds,
/// summed over the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Energy that the links used, in joules.
    pub joules: f64,
    /// Energy in joules that the links would have used if they had been awake all the time.
    pub always_on_j: f64,
    /// Energy in joules that the links would have used if they had slept whenever they had nothing
    /// to send, with transitions that take no time.
    pub ideal_j: f64,
    /// Time that the links spent awake in seconds, summed over the links.
    pub awake_s: f64,
    /// Time that the links spent in transition to sleep in seconds, summed over the links.
    pub falling_s: f64,
    /// Time that the links spent asleep in seconds, summed over the links.
    pub asleep_s: f64,
    /// Time that the links spent in transition from sleep in seconds, summed over the links.
    pub waking_s: f64,
}

impl Used {
    /// Returns a value whose fields are the results of `f` for the pairs of equal fields of `self`
    /// and `other`.
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

    /// Returns the total `self` minus the earlier total `before`; a difference below 0 due to
    /// rounding becomes 0.
    fn sub(self, before: Used) -> Used {
        self.zip(before, |now, then| (now - then).max(0.0))
    }
}

/// For each sample and each tier of links: energy of the links of the tier and their times in the
/// power states, since the start of the run. Empty if energy is not recorded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PowerSeries {
    tiers: usize,
    totals: Vec<Used>,
}

impl PowerSeries {
    /// Adds a sample: for each tier, the energy of its links and their times in the power states,
    /// since the start of the run.
    pub fn take(&mut self, totals: &[Used]) {
        self.tiers = totals.len();
        self.totals.extend_from_slice(totals);
    }

    /// Halves the number of samples: removes the first, third, fifth … sample.
    pub fn halve(&mut self) {
        let tiers = self.tiers.max(1);
        self.totals =
            self.totals.chunks_exact(2 * tiers).flat_map(|two| &two[tiers..]).copied().collect();
    }

    /// Returns, for every sample and tier, the index of the sample, the index of the tier, and the
    /// energy and the times in power states since the previous sample.
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
