//! First in, first out: all slots go to the first submitted job with waiting tasks (Hadoop 1's
//! JobQueueTaskScheduler, with all jobs of one priority).

use super::load::{Load, index};
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Numbers of the jobs with waiting tasks: for maps, for reduces. Job numbers follow the order of
/// submission.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Fifo {
    waiting: [BTreeSet<u32>; 2],
}

impl Fifo {
    pub(super) fn update(&mut self, kind: TaskKind, job: u32, now: Load) {
        let waiting = &mut self.waiting[index(kind)];
        match now.waiting {
            0 => waiting.remove(&job),
            _ => waiting.insert(job),
        };
    }

    pub(super) fn find(&self, kind: TaskKind, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        self.waiting[index(kind)].iter().copied().find(|&job| accept(job))
    }
}
