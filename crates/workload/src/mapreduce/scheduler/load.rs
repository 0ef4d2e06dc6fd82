//! State of jobs for schedulers: owners, waiting and running tasks.

use crate::mapreduce::waiting::WaitingMaps;
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};

/// Returns the index of a kind of task in arrays with an entry for each kind: 0 for maps, 1 for
/// reduces.
pub fn index(kind: TaskKind) -> usize {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

/// Owner of a job for the schedulers: its pool or queue, and its user, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Number of the pool (Fair scheduler) or of the queue (Capacity scheduler).
    pub pool: u32,
    /// Number of the user within a queue.
    pub user: u32,
}

/// Numbers of tasks of one kind of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Number of tasks that may be assigned and are not.
    pub waiting: u32,
    /// Number of tasks that are assigned and not reported to have ended.
    pub running: u32,
}

/// Waiting maps of jobs, by job number.
pub trait Jobs {
    /// Returns the waiting maps of a job, which must be running.
    fn maps(&mut self, job: u32) -> &mut WaitingMaps;
}

impl Jobs for Vec<WaitingMaps> {
    fn maps(&mut self, job: u32) -> &mut WaitingMaps {
        &mut self[job as usize]
    }
}
