//! What schedulers know of jobs: whose they are, and how many tasks wait and run.

use crate::mapreduce::waiting::WaitingMaps;
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};

/// Index of a kind of task into pairs.
pub fn index(kind: TaskKind) -> usize {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

/// Whose a job is, as schedulers know it: numbers for names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Pool of the Fair scheduler, queue of the Capacity scheduler.
    pub pool: u32,
    /// User within a queue.
    pub user: u32,
}

/// Tasks of one kind of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// May be given out and were not.
    pub waiting: u32,
    /// Given out and not reported to have ended.
    pub running: u32,
}

/// Waiting maps of jobs, by the numbers of the jobs.
pub trait Jobs {
    /// Those of a job that has some.
    fn maps(&mut self, job: u32) -> &mut WaitingMaps;
}

impl Jobs for Vec<WaitingMaps> {
    fn maps(&mut self, job: u32) -> &mut WaitingMaps {
        &mut self[job as usize]
    }
}
