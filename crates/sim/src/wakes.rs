//! Scheduled wake-ups of workloads.

use eastwest_engine::order::{Class, Key};
use eastwest_engine::timers::Timers;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Scheduled wake-ups of all workloads.
#[derive(Serialize, Deserialize)]
pub struct Wakes {
    timers: Timers,
    /// Workload and token of each wake-up, by index; unused indices are listed in `free`.
    tokens: Vec<(u16, u64)>,
    free: Vec<u32>,
}

impl Wakes {
    /// Returns an empty list of wake-ups. The seed determines the order of wake-ups at the same
    /// time.
    pub fn new(seed: u64) -> Wakes {
        Wakes { timers: Timers::new(Class::Wake, seed), tokens: Vec::new(), free: Vec::new() }
    }

    /// Schedules a wake-up of a workload at time `at`; [`Wakes::pop`] returns `token` with this
    /// wake-up. Returns whether this wake-up is the earliest one.
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

    /// Returns the event key (time and order) of the earliest wake-up; [`Key::NEVER`] if there is
    /// none.
    pub fn first(&self) -> Key {
        self.timers.first()
    }

    /// Removes the earliest wake-up. Returns its workload and token; `None` if there is none.
    pub fn pop(&mut self) -> Option<(u16, u64)> {
        let place = self.timers.pop()? as u32;
        self.free.push(place);
        Some(self.tokens[place as usize])
    }
}
