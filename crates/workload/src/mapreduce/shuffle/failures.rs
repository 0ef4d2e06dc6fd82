//! Failed fetches of map outputs by a reduce: penalties, reports to the master, and the rule by
//! which the reduce fails.
//!
//! As in Hadoop's ShuffleSchedulerImpl (copyFailed, checkReducerHealth). A failed fetch is repeated
//! after a penalty that grows with the number n of failures of an output: `penalty` ·
//! `penalty_growth`ⁿ⁻¹, at most `penalty_max` (Hadoop 3: 10 s · 1.3ⁿ; Hadoop 1: 4 s, doubled each
//! time). A failure is reported at once with `notify_read_error`, otherwise each
//! `failures_reported`-th failure of an output. A reduce fails when an output has failed max(30,
//! maps / 10) times, or when
//! - fetches of min(5, maps) outputs, or of all missing outputs, have failed,
//! - at least half of its fetches have failed, and
//! - it has less than half of the outputs, or no output has arrived for half of the longer of: the
//!   time from its start to the last arrival, the longest run time of a map.
//!
//! Differences from Hadoop: the reduce knows the longest run time of all finished maps.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of outputs with failed fetches that is enough for a reduce to give up
/// (`maxFailedUniqueFetches`).
const UNIQUE: usize = 5;
/// Number of failed fetches of one output at which a reduce gives up, unless a tenth of the number
/// of maps is larger (`abortFailureLimit`).
pub const ABORT: u32 = 30;

/// Failed fetches of a reduce, and the time of its last progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FetchFailures {
    /// Number of failed fetches of each output that has not arrived since, by (worker, index of the
    /// output in the worker's list).
    counts: BTreeMap<(u32, u32), u32>,
    /// Total number of failed fetches of the reduce.
    failed: u32,
    began: Time,
    /// Time at which the reduce last received an output.
    progress: Time,
}

impl FetchFailures {
    /// Records the time at which the reduce begins to fetch.
    pub fn begin(&mut self, now: Time) {
        (self.began, self.progress) = (now, now);
    }

    /// Records the arrival of outputs from the worker `from`, and removes their counts of failures.
    pub fn fetched(&mut self, now: Time, from: u32, outputs: &[u32]) {
        self.progress = now;
        if !self.counts.is_empty() {
            for &number in outputs {
                self.counts.remove(&(from, number));
            }
        }
    }

    /// Counts a failed fetch of the output with index `number` on the worker `from`. Returns the
    /// number of failures of this output.
    pub fn failed(&mut self, from: u32, number: u32) -> u32 {
        self.failed += 1;
        let count = self.counts.entry((from, number)).or_default();
        *count += 1;
        *count
    }

    /// Whether the reduce must fail, when it has fetched the outputs of `done` of the job's `maps`
    /// maps; `longest_map` is the longest run time of the job's finished maps.
    pub fn must_give_up(&self, now: Time, (done, maps): (u32, u32), longest_map: Span) -> bool {
        let failed = self.counts.len();
        let enough = failed >= UNIQUE.min(maps as usize) || failed == (maps - done) as usize;
        let unhealthy = self.failed >= done;
        let early = 2 * u64::from(done) < u64::from(maps);
        let ran = self.progress.since(self.began).max(longest_map);
        let stalled = u128::from(now.since(self.progress).0) * 2 >= u128::from(ran.0);
        enough && unhealthy && (early || stalled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_reduce_gives_up_by_hadoop_s_rule() {
        let mut failures = FetchFailures::default();
        failures.begin(at(0));
        failures.fetched(at(100), 0, &[0, 1, 2]);
        for number in 0..4 {
            failures.failed(1, number);
        }
        let ten = Span::from_secs(10);
        assert!(!failures.must_give_up(at(200), (3, 20), ten), "four outputs are not five");
        failures.failed(1, 4);
        assert!(failures.must_give_up(at(101), (3, 20), ten), "too little has arrived");
        assert!(!failures.must_give_up(at(101), (5, 10), ten), "half has, and it goes on");
        assert!(failures.must_give_up(at(150), (5, 10), ten), "half has, and it is stalled");
        assert!(!failures.must_give_up(at(150), (5, 10), Span::from_secs(101)), "maps run longer");
        assert!(!failures.must_give_up(at(900), (6, 20), ten), "most of what it tried has arrived");
        failures.fetched(at(101), 1, &[0]);
        assert!(!failures.must_give_up(at(900), (4, 20), ten));
        assert!(failures.must_give_up(at(900), (4, 8), ten), "all that are missing have failed");
    }
}
