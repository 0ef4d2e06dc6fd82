//! Delay scheduling (Zaharia et al., EuroSys 2010, algorithm 3): a job is passed over for a while
//! if it has no split on the worker with the free slot, so that other jobs run near their data.
//!
//! ```text
//! at every heartbeat      wait += time since the last heartbeat   of jobs passed over at that one
//! for each job in order   split on the worker                     wait = 0, level = 0, assign it
//!                         in its rack, level ≥ 1 or wait ≥ W1     wait = 0, level = 1, assign it
//!                         level 2, level 1 and wait ≥ W2, or
//!                         level 0 and wait ≥ W1 + W2              wait = 0, level = 2, assign any
//!                         else                                    pass over
//! ```
//!
//! The jobs are examined in the order of the scheduler's policy. Jobs are examined until one
//! accepts the slot, and waits are updated only for jobs passed over at the last heartbeat. With r
//! replicas, m maps in a job and n workers, about n / (m · r) jobs are examined until one has a
//! split on the worker, independent of the length of the queue.

use super::config::DelayConfig;
use eastwest_types::{Locality, Span, Time};
use serde::{Deserialize, Serialize};

/// Waiting time of a job in delay scheduling, and the locality that it accepts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Wait {
    level: u8,
    waited: Span,
    passed: bool,
}

/// Waits of all jobs for delay scheduling.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delay {
    node: Span,
    rack: Span,
    waits: Vec<Wait>,
    /// Jobs that were passed over at the last heartbeat.
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

    /// Whether a job accepts the free slot of a worker; `near` is the locality of its waiting map
    /// nearest to the worker. If not, the job is passed over and its wait continues.
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
