//! Progress of a run, and errors that end it.

use eastwest_types::Time;
use std::fmt;

/// Error that ends a run without results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The caller asked to stop.
    Interrupted,
    /// A workload can no longer finish.
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

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Latest end of the run.
    pub until: Time,
    /// Work done and total work, over all workloads with an end.
    pub done: (u64, u64),
    /// Packet transmissions so far.
    pub packet_hops: u64,
    /// Events so far.
    pub events: u64,
}
