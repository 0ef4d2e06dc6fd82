//! A reduce task after its shuffle: merge, compute, write.
//!
//! The merge reads or writes every byte once, b / disk_rate; the reduce function follows at
//! b / reduce_rate. Departures: Hadoop merges part of the data during the shuffle and in memory if
//! it fits, and needs several passes if there are more files than `io.sort.factor`; the reduce
//! function overlaps with reading the last merge.

use super::task::Stage;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::Time;

impl MapReduce {
    /// All partitions are there.
    pub(super) fn shuffle_done(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        t.input_done = now;
        t.fetching = None;
        t.stage = Stage::Reducing;
        let costs = &self.config.costs;
        let merge = self.config.node.read_rate.time_for(t.bytes_in);
        out.push(Timer::Task(task).at(now + merge + costs.reduce_rate.time_for(t.bytes_in)));
    }

    /// The reduce function is through.
    pub(super) fn reduced(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.write_output(now, task, out);
    }
}
