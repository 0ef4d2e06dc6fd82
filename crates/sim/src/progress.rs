//! Progress of a run, and errors that end it.

use eastwest_types::Time;
use std::fmt;

/// Error that ends a run without results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The caller of the simulation has requested its end.
    Interrupted,
    /// A workload can no longer finish; the text is the reason.
    Stuck(String),
    /// A workload ends the run with an error: name of the workload, and the reason.
    Workload(String, String),
    /// A limit of the simulator was reached, or the run could not be built; the text is the reason.
    Limit(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Interrupted => write!(f, "interrupted"),
            RunError::Stuck(what) => write!(f, "the simulation can no longer finish: {what}"),
            RunError::Workload(name, why) => write!(f, "{name}: {why}"),
            RunError::Limit(what) => write!(f, "{what}"),
        }
    }
}

impl RunError {
    /// Returns the error of a run that cannot start a thread.
    pub(crate) fn without_thread(e: &std::io::Error) -> RunError {
        RunError::Limit(format!("a thread could not be started: {e}"))
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Current simulated time.
    pub now: Time,
    /// Simulated time at which the run ends at the latest; [`Time::NEVER`] if there is no limit, and
    /// in link mode.
    pub until: Time,
    /// Finished and total amount of work (flows, requests, jobs …), summed over the workloads that
    /// have an end; in link mode, simulated and chosen cables (0 of 0 until the cables are chosen).
    pub done: (u64, u64),
    /// Number of packet transmissions on all links so far: each packet counts once per link.
    pub packet_hops: u64,
    /// Number of events executed so far.
    pub events: u64,
}
