//! Fast path of ports with RED: arrivals that need no decision.
//!
//! The average queue length of RED changes with every packet, but slowly: from below `min` it needs
//! many packets to reach `min`. While the port holds fewer than `max_held` packets, an arrival
//! raises the average by less than `weight · max_held`. From the distance to `min` follows the
//! number of arrivals that need no decision. These arrivals are only logged. Later RED replays all
//! of them, with exactly the computations of separate decisions. With `weight = 1` the average is
//! the current queue length, and nothing needs to be logged.
//!
//! While the fast path is active, the port does not count the packets whose transmission has
//! started ([`started`](super::started)); the queue length at each arrival follows from the log.
//! Before the next decision, the port counts them again in its ring of packets in flight.

use crate::queue::{Average, Discipline, Queue};
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Number of logged arrivals after which RED replays them; small enough for the log to stay in the
/// cache.
const MAX_LOGGED: u32 = 32;
/// Smallest number of arrivals without decision for which the fast path is worth its cost.
const MIN_BUDGET: u32 = 8;

/// An arrival on the fast path of RED, as it is logged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrival {
    now: Time,
    /// Time at which the port had sent all packets before this one.
    clear_at: Time,
}

impl Arrival {
    /// Returns the time at which the transmission of the packet starts.
    fn start(self) -> Time {
        self.now.max(self.clear_at)
    }
}

/// State of the RED fast path of a port.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RedFastPath {
    pub(super) is_active: bool,
    /// Whether arrivals must be logged, so that RED can replay them.
    pub(super) logs_arrivals: bool,
    /// Number of further arrivals that need no decision of RED.
    budget: u32,
    /// Number of held packets (queued, in transmission or on the wire) from which the fast path
    /// does not admit a packet.
    pub(super) max_held: u32,
    /// Number of arrivals in the log that RED has already replayed; their packets may still be
    /// queued.
    replayed: u32,
    arrivals: Vec<Arrival>,
}

impl RedFastPath {
    /// Returns the state of the fast path for a port with the queue `queue`; `None` if its
    /// discipline never allows the fast path.
    pub fn new(queue: &mut Queue, mtu: u32) -> Option<Box<RedFastPath>> {
        let average = queue.steady_average()?;
        let (logs_arrivals, max_held) = (average.follows(), average.fast_path_limit(mtu));
        let (budget, replayed, arrivals) = (0, 0, Vec::new());
        (max_held > 1).then(|| {
            Box::new(RedFastPath {
                is_active: false,
                logs_arrivals,
                budget,
                max_held,
                replayed,
                arrivals,
            })
        })
    }

    /// Whether an arrival that finds `held` packets at the port needs no decision of RED; if so,
    /// logs the arrival.
    #[inline(always)]
    pub fn admits(&mut self, held: usize, now: Time, clear_at: Time) -> bool {
        if self.budget == 0 || held >= self.max_held as usize {
            return false;
        }
        self.budget -= 1;
        if self.logs_arrivals {
            self.arrivals.push(Arrival { now, clear_at });
        }
        true
    }

    /// Updates the average of RED with the logged arrivals that it does not include yet, and
    /// removes arrivals from the log whose transmission has started.
    fn replay(&mut self, average: &mut Average) {
        let mut started = 0;
        for place in self.replayed as usize..self.arrivals.len() {
            let Arrival { now, clear_at } = self.arrivals[place];
            while started < place && self.arrivals[started].start() <= now {
                started += 1;
            }
            let idle = (clear_at <= now).then(|| now.since(clear_at));
            average.follow((place - started) as f64, idle);
        }
        self.arrivals.drain(..started);
        self.replayed = self.arrivals.len() as u32;
    }

    /// Updates the average of RED with all logged arrivals. Returns whether the fast path stays
    /// active with `held` packets at the port; if not, clears the log.
    pub fn renew(&mut self, average: &mut Average, held: usize) -> bool {
        self.replay(average);
        self.budget = average.arrivals_below_min(self.max_held).min(MAX_LOGGED);
        if self.budget >= MIN_BUDGET && held < self.max_held as usize {
            return true;
        }
        (self.is_active, self.budget, self.replayed) = (false, 0, 0);
        self.arrivals.clear();
        false
    }

    /// Returns the number of arrivals that need no decision of RED; `None` if they are too few to
    /// start the fast path.
    pub fn budget_to_start(&self, average: &Average) -> Option<u32> {
        Some(average.arrivals_below_min(self.max_held)).filter(|budget| *budget >= MIN_BUDGET)
    }

    /// Starts the fast path: the next `budget` arrivals need no decision of RED.
    pub fn start(&mut self, budget: u32) {
        self.is_active = true;
        self.budget = if self.logs_arrivals { budget.min(MAX_LOGGED) } else { budget };
    }

    /// Logs a queued packet that the average of RED already includes; its transmission starts at
    /// `start`.
    pub fn log_known(&mut self, start: Time) {
        self.arrivals.push(Arrival { now: start, clear_at: start });
        self.replayed += 1;
    }
}
