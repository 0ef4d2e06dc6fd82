//! How far a run is, and why one ends without result.

use eastwest_types::Time;
use std::fmt;

/// Why a run ended without result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The caller asked to stop.
    Interrupted,
    /// Something can no longer finish.
    Stuck(String),
    /// A limit of the program was reached.
    Limit(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Interrupted => write!(f, "interrupted"),
            RunError::Stuck(what) => write!(f, "the simulation can no longer finish: {what}"),
            RunError::Limit(what) => write!(f, "{what}"),
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Where it ends at the latest.
    pub until: Time,
    /// Work done and in all, over workloads with an end.
    pub done: (u64, u64),
    /// Packet transmissions so far.
    pub packet_hops: u64,
    /// Events so far.
    pub events: u64,
}
