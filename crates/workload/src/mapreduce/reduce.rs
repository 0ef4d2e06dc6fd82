//! A reduce task after its shuffle: merge, compute and write.
//!
//! When the last output has arrived, running merges end and what is left is merged ([`super::memory`]).
//! Then the files, as far as they have left the page cache, are read while the function runs at
//! `reduce_rate` and its output is written ([`super::output`]).

use super::MapReduce;
use super::task::Stage;
use crate::Action;
use eastwest_types::Time;

impl MapReduce {
    /// All partitions are there.
    pub(super) fn shuffle_done(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        t.input_done = now;
        t.stage = Stage::Merging;
        self.merge_rest(now, task, out);
    }

    /// The input is merged: the reduce function runs.
    pub(super) fn reduce_start(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let (files, cold) = self.left_on_disk(task);
        let rate = self.config.costs.reduce_rate;
        let t = self.tasks.get(task);
        t.merged = now;
        t.fetching = None;
        t.counters.file_read += files;
        let work = t.bytes_in;
        self.produce(now, task, (work, rate), if cold { files } else { 0 }, out);
    }
}
