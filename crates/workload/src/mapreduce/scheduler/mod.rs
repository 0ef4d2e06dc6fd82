//! Which job the next free slot goes to. A scheduler sees jobs as numbers with tasks to give out
//! and tasks running; which task of the job it is, and whether its data is near, is not its business.

mod fair;
mod fifo;

use super::config::SchedulerKind;
use eastwest_types::TaskKind;

use fair::Fair;
use fifo::Fifo;

/// Index of a kind of task into pairs.
pub fn index(kind: TaskKind) -> usize {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

/// A scheduler of any kind.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// First in, first out.
    Fifo(Fifo),
    /// Equal shares for pools.
    Fair(Fair),
}

impl Scheduler {
    /// A scheduler that knows of no job. `pool_of` gives the pool of every job by number.
    pub fn new(kind: SchedulerKind, pool_of: Vec<u32>) -> Scheduler {
        match kind {
            SchedulerKind::Fifo => Scheduler::Fifo(Fifo::default()),
            SchedulerKind::Fair => Scheduler::Fair(Fair::new(pool_of)),
        }
    }

    /// The job has tasks of this kind to give out.
    pub fn offer(&mut self, kind: TaskKind, job: u32) {
        match self {
            Scheduler::Fifo(s) => s.offer(kind, job),
            Scheduler::Fair(s) => s.offer(kind, job),
        }
    }

    /// The job has no more tasks of this kind to give out.
    pub fn withdraw(&mut self, kind: TaskKind, job: u32) {
        match self {
            Scheduler::Fifo(s) => s.withdraw(kind, job),
            Scheduler::Fair(s) => s.withdraw(kind, job),
        }
    }

    /// A task of the job was given out.
    pub fn started(&mut self, kind: TaskKind, job: u32) {
        match self {
            Scheduler::Fifo(_) => {}
            Scheduler::Fair(s) => s.started(kind, job),
        }
    }

    /// A task of the job was reported to have finished.
    pub fn finished(&mut self, kind: TaskKind, job: u32) {
        match self {
            Scheduler::Fifo(_) => {}
            Scheduler::Fair(s) => s.finished(kind, job),
        }
    }

    /// The job the next slot goes to.
    pub fn pick(&self, kind: TaskKind) -> Option<u32> {
        match self {
            Scheduler::Fifo(s) => s.pick(kind),
            Scheduler::Fair(s) => s.pick(kind),
        }
    }
}
