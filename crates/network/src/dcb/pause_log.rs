//! Log of the PFC pauses of a port, if the scenario requests the log: start and end of each pause,
//! and the cause of its end.

use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Cause of the end of a PFC pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// A PAUSE frame with 0 quanta (XON) ended the pause.
    Released,
    /// The pause expired without a further PAUSE frame.
    RanOut,
    /// The pause had not ended at the end of the run.
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

/// A PFC pause of one priority at a port.
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

/// Log of the PFC pauses of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseLog {
    /// Pauses in the log, in the order of their ends.
    pub pauses: Vec<Pause>,
    /// Largest number of pauses that the log can hold.
    most: usize,
    /// Number of pauses that did not fit into the log.
    pub left_out: u64,
}

impl PauseLog {
    /// Returns an empty log for at most `most` pauses.
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
