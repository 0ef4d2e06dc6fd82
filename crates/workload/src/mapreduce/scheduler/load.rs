//! State of jobs for schedulers: owners, waiting and running tasks.

use crate::mapreduce::waiting::WaitingMaps;
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};

/// Returns the index of a kind of task into pairs.
pub fn index(kind: TaskKind) -> usize {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

/// Owner of a job for schedulers, with numbers instead of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Pool of the Fair scheduler, queue of the Capacity scheduler.
    pub pool: u32,
    /// User within a queue.
    pub user: u32,
}

/// Numbers of tasks of one kind of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Tasks that may be assigned and are not.
    pub waiting: u32,
    /// Tasks that are assigned and not reported to have ended.
    pub running: u32,
}

/// Waiting maps of jobs, by job number.
pub trait Jobs {
    /// Returns the waiting maps of a job that has some.
    fn maps(&mut self, job: u32) -> &mut WaitingMaps;
}

impl Jobs for Vec<WaitingMaps> {
    fn maps(&mut self, job: u32) -> &mut WaitingMaps {
        &mut self[job as usize]
    }
}
