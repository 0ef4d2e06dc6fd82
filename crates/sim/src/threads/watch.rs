//! Interface between a partitioned run and its caller: progress, and requests to stop or to write a
//! checkpoint.

use crate::progress::Progress;
use crate::world::World;
use eastwest_types::{Span, Time};
use serde::Serialize;

/// All parts of a partitioned run between two windows, to be saved in a checkpoint.
#[derive(Serialize)]
pub struct PartsSnapshot<'a> {
    /// State of each part of the run.
    pub(super) worlds: Vec<&'a World>,
    /// Simulated time by which a part can run ahead of other parts (lookahead): the smallest delay
    /// of all cables.
    pub(super) lookahead: Span,
    /// Simulated time at which the run ends at the latest.
    pub(super) until: Time,
    /// Number of flows in the run, over all workloads.
    pub(super) total: u64,
    /// Least number of unfinished flows from which on the rest of the run is executed in step.
    pub(super) last_flows: u64,
    /// For each workload: true if the run may end before this workload has finished.
    pub(super) background: &'a [bool],
}

impl PartsSnapshot<'_> {
    /// Returns the simulated time of the part that has advanced furthest.
    pub fn now(&self) -> Time {
        self.worlds.iter().map(|world| world.site.network.now).max().unwrap_or(Time::ZERO)
    }
}

/// Observer of a partitioned run: receives the progress and can stop the run.
pub trait Watcher {
    /// Receives the progress of the run; called regularly. Returns whether the run continues, and
    /// whether a checkpoint is to be written.
    fn on_progress(&mut self, progress: &Progress) -> Request;

    /// Writes a checkpoint of all parts, after [`Watcher::on_progress`] has requested one.
    fn checkpoint(&mut self, parts: &PartsSnapshot);
}

/// Request of the observer of a partitioned run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether the run continues; false stops it.
    pub proceed: bool,
    /// Whether a checkpoint is to be written before the run continues or stops.
    pub checkpoint: bool,
}

impl<F: FnMut(&Progress) -> bool> Watcher for F {
    fn on_progress(&mut self, progress: &Progress) -> Request {
        Request { proceed: self(progress), checkpoint: false }
    }

    fn checkpoint(&mut self, _: &PartsSnapshot) {}
}
