//! Fast path of ports with RED: arrivals that need no decision.
//!
//! RED's average moves with every packet, but slowly: from below `min` it takes many packets to reach `min`.
//! While fewer than `max_held` packets are held, an arrival raises the average by less than `weight ·
//! max_held`, so the distance to `min` gives a number of arrivals that need no decision. These arrivals are
//! only logged, and RED replays all of them at once, with the same steps on the same numbers as if it had been
//! asked each time. With `weight = 1` the average is the present queue, and nothing has to be logged.
//!
//! While the fast path is active, a port does not count which packets have started
//! ([`started`](super::started)) either; the log tells the queue that each arrival found. Before a decision the
//! port counts again from its ring.

use crate::queue::{Average, Discipline, Queue};
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Number of logged arrivals after which RED replays them: few enough to stay in the cache.
const MAX_LOGGED: u32 = 32;
/// Fewer arrivals than this are not worth the fast path.
const MIN_BUDGET: u32 = 8;

/// An arrival that RED has not been asked about.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrival {
    now: Time,
    /// Time at which the port had sent all packets before this one.
    clear_at: Time,
}

impl Arrival {
    /// Returns the start of its transmission.
    fn start(self) -> Time {
        self.now.max(self.clear_at)
    }
}

/// State of the RED fast path of a port.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RedFastPath {
    pub(super) is_active: bool,
    /// Whether arrivals have to be logged, for RED to replay.
    pub(super) logs_arrivals: bool,
    /// Number of arrivals that need no decision.
    budget: u32,
    /// The fast path admits a packet while fewer packets than this are held.
    pub(super) max_held: u32,
    /// Number of logged arrivals that RED has replayed; their packets may still be queued.
    replayed: u32,
    arrivals: Vec<Arrival>,
}

impl RedFastPath {
    /// Returns the state for a port with this discipline; `None` if the port can never use the fast
    /// path.
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

    /// Whether an arrival that finds `held` packets needs no decision; if so, logs it.
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

    /// Has RED replay the arrivals that it has not. Removes those whose packets have started.
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

    /// Lets RED replay all logged arrivals. Returns whether the fast path stays active, with `held`
    /// packets; if not, clears the log.
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

    /// Returns the number of arrivals that need no decision; `None` if they are too few to start
    /// the fast path.
    pub fn budget_to_start(&self, average: &Average) -> Option<u32> {
        Some(average.arrivals_below_min(self.max_held)).filter(|budget| *budget >= MIN_BUDGET)
    }

    /// Starts the fast path: the next `budget` arrivals need no decision.
    pub fn start(&mut self, budget: u32) {
        self.is_active = true;
        self.budget = if self.logs_arrivals { budget.min(MAX_LOGGED) } else { budget };
    }

    /// Logs a queued packet that RED has been asked about.
    pub fn log_known(&mut self, start: Time) {
        self.arrivals.push(Arrival { now: start, clear_at: start });
        self.replayed += 1;
    }
}
