//! Wake-ups of workloads.

use eastwest_engine::order::{Class, Key};
use eastwest_engine::timers::Timers;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Pending wake-ups of all workloads.
#[derive(Serialize, Deserialize)]
pub struct Wakes {
    timers: Timers,
    /// (workload, token) of each wake-up; free places are in a list.
    tokens: Vec<(u16, u64)>,
    free: Vec<u32>,
}

impl Wakes {
    /// Returns an empty list of wake-ups. The seed decides the order of wake-ups at the same time.
    pub fn new(seed: u64) -> Wakes {
        Wakes { timers: Timers::new(Class::Wake, seed), tokens: Vec::new(), free: Vec::new() }
    }

    /// Schedules a wake-up of a workload at time `at`, which gets back `token`. Returns whether it
    /// is the earliest wake-up.
    pub fn push(&mut self, workload: u16, at: Time, token: u64) -> bool {
        let place = match self.free.pop() {
            Some(place) => {
                self.tokens[place as usize] = (workload, token);
                place
            }
            None => {
                self.tokens.push((workload, token));
                (self.tokens.len() - 1) as u32
            }
        };
        let source = u64::from(workload) << 48 ^ token;
        self.timers.push(at, source, u64::from(place))
    }

    /// Returns the event key (time and class) of the earliest wake-up, or [`Key::NEVER`] without
    /// wake-ups.
    pub fn first(&self) -> Key {
        self.timers.first()
    }

    /// Removes the earliest wake-up. Returns its workload and token; `None` without wake-ups.
    pub fn pop(&mut self) -> Option<(u16, u64)> {
        let place = self.timers.pop()? as u32;
        self.free.push(place);
        Some(self.tokens[place as usize])
    }
}
