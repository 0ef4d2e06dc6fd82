//! Ports with RED at which nothing can be signalled for a while.
//!
//! RED's average moves with every packet, but slowly: from below `min` it takes many packets to get
//! there. While fewer than `max_held` packets are held, an arrival raises it by less than `weight · max_held`,
//! so that as many arrivals as fit into what is left to `min` need no decision. They are only noted,
//! and RED follows all of them at once, with the same steps on the same numbers as if it had been asked
//! each time. With `weight = 1` the average is the queue of the moment, and nothing needs to be noted.
//!
//! A calm port does not know what has begun to be sent either ([`begun`](super::begun)); what waited
//! before an arrival follows from the notes. It learns it again from its ring where it must decide.

use crate::queue::{Average, Discipline, Queue};
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Arrivals noted before RED is told at the latest: few enough to stay in the cache.
const MAX_LOGGED: u32 = 32;
/// For fewer it is not worth becoming calm.
const MIN_BUDGET: u32 = 8;

/// An arrival.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrival {
    now: Time,
    /// When the port had sent all that came before.
    clear_at: Time,
}

impl Arrival {
    /// When it began to be sent.
    fn start(self) -> Time {
        self.now.max(self.clear_at)
    }
}

/// What a port keeps for its calm times.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RedFastPath {
    pub(super) is_active: bool,
    /// Whether RED has to follow arrivals.
    pub(super) logs_arrivals: bool,
    /// Arrivals that surely need no decision.
    budget: u32,
    /// As long as fewer packets than this are held.
    pub(super) max_held: u32,
    /// How many notes RED has been told; their packets may still wait.
    replayed: u32,
    arrivals: Vec<Arrival>,
}

impl RedFastPath {
    /// For a port with this discipline, if it can ever be calm.
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

    /// An arrival that finds `held` packets, if it needs no decision.
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

    /// Tells RED what it has not been told. Notes of packets that wait no more are dropped.
    fn replay(&mut self, average: &mut Average) {
        let mut begun = 0;
        for place in self.replayed as usize..self.arrivals.len() {
            let Arrival { now, clear_at } = self.arrivals[place];
            while begun < place && self.arrivals[begun].start() <= now {
                begun += 1;
            }
            let idle = (clear_at <= now).then(|| now.since(clear_at));
            average.follow((place - begun) as f64, idle);
        }
        self.arrivals.drain(..begun);
        self.replayed = self.arrivals.len() as u32;
    }

    /// Tells RED what it missed. Returns whether no decision is needed for a while still, with `held`
    /// packets; else the notes are gone.
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

    /// The number of arrivals that need no decision, if they are enough to become calm.
    pub fn budget_to_start(&self, average: &Average) -> Option<u32> {
        Some(average.arrivals_below_min(self.max_held)).filter(|budget| *budget >= MIN_BUDGET)
    }

    /// The next `budget` arrivals need no decision.
    pub fn start(&mut self, budget: u32) {
        self.is_active = true;
        self.budget = if self.logs_arrivals { budget.min(MAX_LOGGED) } else { budget };
    }

    /// Notes a packet that waits, of which RED knows.
    pub fn log_known(&mut self, start: Time) {
        self.arrivals.push(Arrival { now: start, clear_at: start });
        self.replayed += 1;
    }
}
