//! Counters of jobs, as in Hadoop's JobCounter, TaskCounter and FileSystemCounter.
//!
//! Launches, failures and kills are counted when they happen; bytes read, written and spilled at
//! the successful end of an attempt, since Hadoop adds up successful attempts only. Records have
//! the size `sort.record_bytes`. A map that runs again because its output is lost counts again.

use super::context::Context;
use super::job::JobTable;
use super::task::{Stage, Task};
use eastwest_types::{Counter, Locality, TaskKind};

/// Returns the first of two counters for a map, the second for a reduce.
fn of(kind: TaskKind, counters: [Counter; 2]) -> Counter {
    match kind {
        TaskKind::Map => counters[0],
        TaskKind::Reduce => counters[1],
    }
}

impl JobTable {
    fn count(&mut self, job: u32, counter: Counter, more: u64) {
        if let Some(state) = &mut self.table[job as usize] {
            state.counters.add(counter, more);
        }
    }

    /// Counts the launch of an attempt in the counters of its job.
    pub fn count_launched(&mut self, t: &Task) {
        let (job, kind, locality) = (t.job, t.kind, t.locality);
        let launched = [Counter::TotalLaunchedMaps, Counter::TotalLaunchedReduces];
        self.count(job, of(kind, launched), 1);
        match (kind, locality) {
            (TaskKind::Map, Locality::Node) => self.count(job, Counter::DataLocalMaps, 1),
            (TaskKind::Map, Locality::Rack) => self.count(job, Counter::RackLocalMaps, 1),
            (TaskKind::Map, Locality::Remote) => self.count(job, Counter::OtherLocalMaps, 1),
            _ => {}
        }
    }

    /// Counts a failed attempt of a map or reduce in the counters of its job.
    pub fn count_failed(&mut self, job: u32, kind: TaskKind) {
        self.count(job, of(kind, [Counter::NumFailedMaps, Counter::NumFailedReduces]), 1);
    }

    /// Counts a killed attempt in the counters of its job, if it was launched.
    pub fn count_killed(&mut self, t: &Task) {
        if !matches!(t.stage, Stage::Assigned) {
            let killed = [Counter::NumKilledMaps, Counter::NumKilledReduces];
            self.count(t.job, of(t.kind, killed), 1);
        }
    }

    /// Counts a successful attempt, with its bytes and records, in the counters of its job.
    pub fn count_done(&mut self, cx: &Context, t: &Task) {
        let spec = cx.spec(t.job);
        let (maps, reduces) = (spec.maps, spec.reduces);
        let done = &t.counters;
        let records = done.file_written / u64::from(cx.config.sort.record_bytes.max(1));
        let milliseconds = done.cpu.0 / eastwest_types::Span::from_ms(1).0;
        let mut counted = vec![
            (Counter::FileBytesRead, done.file_read),
            (Counter::FileBytesWritten, done.file_written),
            (Counter::SpilledRecords, records),
            (Counter::CpuMilliseconds, milliseconds),
        ];
        match t.kind {
            TaskKind::Map => counted.push((Counter::HdfsBytesRead, t.bytes_in)),
            TaskKind::Reduce => counted.extend([
                (Counter::ReduceShuffleBytes, t.bytes_in),
                (Counter::ShuffledMaps, u64::from(maps)),
                (Counter::FailedShuffle, u64::from(done.failed_fetches)),
            ]),
        }
        if t.kind == TaskKind::Map && reduces > 0 {
            counted.push((Counter::MapOutputBytes, done.collected));
            counted.push((Counter::MapOutputMaterializedBytes, t.bytes_out));
        } else {
            counted.push((Counter::HdfsBytesWritten, t.bytes_out));
        }
        for (counter, more) in counted {
            self.count(t.job, counter, more);
        }
    }

    /// Adds the bytes of a finished stand-alone HDFS client to the counters of its job.
    pub fn count_client(&mut self, job: u32, read: u64, written: u64) {
        self.count(job, Counter::HdfsBytesRead, read);
        self.count(job, Counter::HdfsBytesWritten, written);
    }
}
