//! Failed fetches: penalties, reports to the master, and when a reduce gives up.
//!
//! As in Hadoop's ShuffleSchedulerImpl (copyFailed, checkReducerHealth). A failed fetch is repeated
//! after a penalty that grows with the failures of an output: `penalty` · `penalty_growth`ⁿ⁻¹, at
//! most `penalty_max` (Hadoop 3: 10 s · 1.3ⁿ; Hadoop 1: 4 s, doubled each time). A failure is
//! reported at once with `notify_read_error`, otherwise each `failures_reported`-th failure of an
//! output. A reduce fails when an output has failed max(30, maps / 10) times, or when
//! - min(5, maps) outputs, or all that are missing, have failed,
//! - at least half of its fetches have failed, and
//! - it has less than half of the outputs, or no output has arrived for half of the longer of: the
//!   time from its start to the last arrival, the longest run time of a map.
//!
//! Differences from Hadoop: the reduce knows the longest run time of all finished maps.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of failed outputs from which on a reduce may give up (`maxFailedUniqueFetches`).
const UNIQUE: usize = 5;
/// Least number of failures of one output at which a reduce gives up (`abortFailureLimit`).
pub const ABORT: u32 = 30;

/// Failed fetches of a reduce, and its progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FetchFailures {
    /// Failures of every output that has failed and not arrived since, by worker and number there.
    counts: BTreeMap<(u32, u32), u32>,
    /// Total number of failures.
    failed: u32,
    began: Time,
    /// Time of the last arrival of an output.
    progress: Time,
}

impl FetchFailures {
    /// Notes that the reduce begins to fetch.
    pub fn begin(&mut self, now: Time) {
        (self.began, self.progress) = (now, now);
    }

    /// Notes the arrival of outputs of a worker.
    pub fn fetched(&mut self, now: Time, from: u32, outputs: &[u32]) {
        self.progress = now;
        if !self.counts.is_empty() {
            for &number in outputs {
                self.counts.remove(&(from, number));
            }
        }
    }

    /// Counts a failed fetch of an output, named by worker and number there. Returns the number of
    /// failures of this output.
    pub fn failed(&mut self, from: u32, number: u32) -> u32 {
        self.failed += 1;
        let count = self.counts.entry((from, number)).or_default();
        *count += 1;
        *count
    }

    /// Whether the reduce must fail, after it has fetched the outputs of `done` of the job's `maps`
    /// maps.
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
