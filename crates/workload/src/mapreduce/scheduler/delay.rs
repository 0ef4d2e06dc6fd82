//! Delay scheduling (Zaharia et al., EuroSys 2010, algorithm 3): the next job is passed over for a
//! while if it has no split on the asking worker, so that other jobs run near their data.
//!
//! ```text
//! at every heartbeat      wait += time since the last heartbeat   of jobs passed over at that one
//! for each job in order   split on the worker                     wait = 0, level = 0, take it
//!                         in its rack, level ≥ 1 or wait ≥ W1     wait = 0, level = 1, take it
//!                         level 2, level 1 and wait ≥ W2, or
//!                         level 0 and wait ≥ W1 + W2              wait = 0, level = 2, take any
//!                         else                                    pass over
//! ```
//!
//! The order is that of the policy. Jobs are examined until one takes the slot, and waits are updated
//! only for jobs passed over at the last heartbeat: with r replicas, m maps in a job and n workers,
//! about n / (m · r) jobs until one has a split on the worker, independent of the length of the queue.

use super::config::DelayConfig;
use eastwest_types::{Locality, Span, Time};
use serde::{Deserialize, Serialize};

/// Waiting time of a job, and the locality it still waits for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Wait {
    level: u8,
    waited: Span,
    passed: bool,
}

/// Waits of all jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delay {
    node: Span,
    rack: Span,
    waits: Vec<Wait>,
    /// Jobs passed over at the last heartbeat.
    passed: Vec<u32>,
    last: Time,
}

impl Delay {
    pub(super) fn new(config: &DelayConfig, jobs: usize) -> Delay {
        Delay {
            node: config.node,
            rack: config.rack,
            waits: vec![Wait::default(); jobs],
            passed: Vec::new(),
            last: Time::ZERO,
        }
    }

    /// Adds the time since the last heartbeat to the waits of the jobs that were passed over at
    /// that heartbeat.
    pub(super) fn heartbeat(&mut self, now: Time) {
        let since = now.since(self.last);
        self.last = now;
        for job in self.passed.drain(..) {
            let wait = &mut self.waits[job as usize];
            if std::mem::take(&mut wait.passed) {
                wait.waited += since;
            }
        }
    }

    /// Whether the job takes the free slot, given the locality of its waiting map nearest to the
    /// worker.
    pub(super) fn accepts(&mut self, job: u32, near: Locality) -> bool {
        let wait = &mut self.waits[job as usize];
        let (w1, w2) = (self.node, self.rack);
        let any = match wait.level {
            0 => wait.waited >= w1 + w2,
            1 => wait.waited >= w2,
            _ => true,
        };
        let level = match near {
            Locality::Node | Locality::None => 0,
            Locality::Rack if wait.level >= 1 || wait.waited >= w1 => 1,
            _ if any => 2,
            _ => {
                if !std::mem::replace(&mut wait.passed, true) {
                    self.passed.push(job);
                }
                return false;
            }
        };
        *wait = Wait { level, waited: Span::ZERO, passed: false };
        true
    }
}
