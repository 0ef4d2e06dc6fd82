//! Log of the pauses of a port, if the scenario asks for one: start, end and cause of the end of each pause.

use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Cause of the end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// A PAUSE frame with 0 quanta (XON).
    Released,
    /// The pause expired.
    RanOut,
    /// The pause lasted until the end of the run.
    NotYet,
}

impl Ended {
    /// All causes, in the order of their numbers.
    pub const ALL: [Ended; 3] = [Ended::Released, Ended::RanOut, Ended::NotYet];

    /// Returns the name of the cause in result tables.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Released => "released",
            Ended::RanOut => "ran-out",
            Ended::NotYet => "not-yet",
        }
    }
}

/// A pause (PFC) of one priority at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Paused priority.
    pub priority: u8,
    /// Time at which the port stopped sending the priority.
    pub began: Time,
    /// Time at which the port may send the priority again, or the end of the run.
    pub until: Time,
    /// Cause of the end of the pause.
    pub ended: Ended,
}

/// Pauses of a port, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseLog {
    /// Pauses in the log, in the order of their ends.
    pub pauses: Vec<Pause>,
    /// Largest number of pauses in the log.
    most: usize,
    /// Number of pauses for which there was no room in the log.
    pub left_out: u64,
}

impl PauseLog {
    /// Returns a log for at most `most` pauses.
    pub fn new(most: usize) -> PauseLog {
        PauseLog { most, ..PauseLog::default() }
    }

    /// Adds a pause that has ended, or counts it as left out if the log is full.
    pub(crate) fn note(&mut self, pause: Pause) {
        if self.pauses.len() < self.most {
            self.pauses.push(pause);
        } else {
            self.left_out += 1;
        }
    }
}
