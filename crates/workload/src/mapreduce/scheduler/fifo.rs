//! First in, first out: all slots go to the job submitted first as long as it has tasks to give out
//! (Hadoop 1's JobQueueTaskScheduler, with all jobs of one priority).

use super::index;
use eastwest_types::TaskKind;
use std::collections::BTreeSet;

/// Jobs with tasks to give out; job numbers follow the order of submission.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    waiting: [BTreeSet<u32>; 2],
}

impl Fifo {
    pub(super) fn offer(&mut self, kind: TaskKind, job: u32) {
        self.waiting[index(kind)].insert(job);
    }
    pub(super) fn withdraw(&mut self, kind: TaskKind, job: u32) {
        self.waiting[index(kind)].remove(&job);
    }
    pub(super) fn pick(&self, kind: TaskKind) -> Option<u32> {
        self.waiting[index(kind)].first().copied()
    }
}
