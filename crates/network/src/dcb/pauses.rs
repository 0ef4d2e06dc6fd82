//! A log of the pauses of a port, kept where it is asked for: from when to when each priority was paused,
//! and what ended it.

use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// What ends a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// A frame that lets the priority go on.
    Released,
    /// Its time has run out.
    RanOut,
    /// Nothing before the end of the run.
    NotYet,
}

impl Ended {
    /// All of them, in order.
    pub const ALL: [Ended; 3] = [Ended::Released, Ended::RanOut, Ended::NotYet];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Released => "released",
            Ended::RanOut => "ran-out",
            Ended::NotYet => "not-yet",
        }
    }
}

/// A pause of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The priority.
    pub priority: u8,
    /// When the port has obeyed.
    pub began: Time,
    /// When it may send again, or the run has ended.
    pub until: Time,
    /// What ended it.
    pub ended: Ended,
}

/// Pauses of a port, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseLog {
    /// The first of them.
    pub pauses: Vec<Pause>,
    /// How many are kept.
    most: usize,
    /// Those that found no room.
    pub left_out: u64,
}

impl PauseLog {
    /// No pauses yet; at most so many.
    pub fn new(most: usize) -> PauseLog {
        PauseLog { most, ..PauseLog::default() }
    }

    /// A pause is over.
    pub(crate) fn note(&mut self, pause: Pause) {
        if self.pauses.len() < self.most {
            self.pauses.push(pause);
        } else {
            self.left_out += 1;
        }
    }
}
