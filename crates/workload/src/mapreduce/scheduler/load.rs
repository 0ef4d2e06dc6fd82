//! State of jobs that schedulers need: owners, numbers of waiting and running tasks.

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

/// Owner of a job for the schedulers: number of its pool or queue, and number of its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Number of the pool (Fair scheduler) or of the queue (Capacity scheduler).
    pub pool: u32,
    /// Number of the user, for the user limits of the Capacity scheduler.
    pub user: u32,
}

/// Numbers of waiting and running tasks of a job, of one kind (map or reduce).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Number of tasks that may be assigned and are not assigned yet.
    pub waiting: u32,
    /// Number of tasks that are assigned and whose end is not reported yet.
    pub running: u32,
}

/// Access to the waiting maps of each job, by job number.
pub trait Jobs {
    /// Returns the waiting maps of a running job.
    fn maps(&mut self, job: u32) -> &mut WaitingMaps;
}

impl Jobs for Vec<WaitingMaps> {
    fn maps(&mut self, job: u32) -> &mut WaitingMaps {
        &mut self[job as usize]
    }
}
