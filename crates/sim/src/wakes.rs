//! Scheduled wake-ups of workloads.

use eastwest_engine::order::{Class, Key};
use eastwest_engine::timers::Timers;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Parts of a partitioned run (one run on several threads) that execute an event.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Executed {
    /// Every part executes the event, as also an undivided run does.
    #[default]
    Everywhere,
    /// Only this part executes the event, or another part executes a copy of it.
    Here,
    /// This part executes a copy of an event of another part, because it has the other end of a
    /// connection.
    Copy,
}

/// A scheduled wake-up of a workload.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct WakeUp {
    /// Number of the workload.
    pub workload: u16,
    /// Number by which the workload recognizes the wake-up.
    pub token: u64,
    /// Parts of a partitioned run that execute the wake-up.
    pub executed: Executed,
}

impl WakeUp {
    fn source(self) -> u64 {
        u64::from(self.workload) << 48 ^ self.token
    }
}

/// Scheduled wake-ups of all workloads.
#[derive(Serialize, Deserialize)]
pub struct Wakes {
    timers: Timers,
    /// Wake-ups by index; unused indices are listed in `free`.
    wake_ups: Vec<WakeUp>,
    free: Vec<u32>,
}

impl Wakes {
    /// Returns an empty list of wake-ups. The seed determines the order of wake-ups at the same
    /// time.
    pub fn new(seed: u64) -> Wakes {
        Wakes { timers: Timers::new(Class::Wake, seed), wake_ups: Vec::new(), free: Vec::new() }
    }

    /// Reserves memory for this number of further wake-ups.
    pub fn reserve(&mut self, wake_ups: usize) {
        self.wake_ups.reserve(wake_ups);
        self.timers.reserve(wake_ups);
    }

    /// Schedules a wake-up at time `at`. Returns whether it is the earliest one.
    pub fn push(&mut self, at: Time, wake_up: WakeUp) -> bool {
        let place = match self.free.pop() {
            Some(place) => {
                self.wake_ups[place as usize] = wake_up;
                place
            }
            None => {
                self.wake_ups.push(wake_up);
                (self.wake_ups.len() - 1) as u32
            }
        };
        self.timers.push(at, wake_up.source(), u64::from(place))
    }

    /// Makes this part of a partitioned run execute only the scheduled wake-ups for which `is_own`
    /// returns true.
    pub fn keep_own(&mut self, is_own: impl Fn(WakeUp) -> bool) {
        let Wakes { timers, wake_ups, free } = self;
        timers.retain(|place| {
            let wake_up = &mut wake_ups[place as usize];
            wake_up.executed = Executed::Here;
            let is_own = is_own(*wake_up);
            if !is_own {
                free.push(place as u32);
            }
            is_own
        });
    }

    /// Returns the rank of a wake-up among all wake-ups at the time `at`.
    pub fn rank(&self, at: Time, wake_up: WakeUp) -> u64 {
        self.timers.rank(at, wake_up.source())
    }

    /// Returns the event key (time and order) of the earliest wake-up; [`Key::NEVER`] if there is
    /// none.
    pub fn first(&self) -> Key {
        self.timers.first()
    }

    /// Returns the earliest wake-up and its rank among wake-ups at the same time; `None` if there is
    /// none.
    pub fn peek(&self) -> Option<(WakeUp, u64)> {
        let place = self.timers.first_token()?;
        Some((self.wake_ups[place as usize], self.timers.first_rank()))
    }

    /// Removes and returns the earliest wake-up; `None` if there is none.
    pub fn pop(&mut self) -> Option<WakeUp> {
        let place = self.timers.pop()? as u32;
        self.free.push(place);
        Some(self.wake_ups[place as usize])
    }
}
