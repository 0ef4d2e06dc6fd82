//! Counters of a job, by the names Hadoop has for them.

use serde::{Deserialize, Serialize};

/// What Hadoop would count of a job. Tasks count what their successful attempts have done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobCounters {
    /// By number of the counter.
    values: [u64; Counter::COUNT],
}

/// A counter. Hadoop's groups: file systems, the job, the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Bytes read from local disks by merges and the reduce.
    FileBytesRead,
    /// Bytes written to local disks by spills and merges.
    FileBytesWritten,
    /// Bytes read from HDFS.
    HdfsBytesRead,
    /// Bytes written to HDFS, whatever the replication.
    HdfsBytesWritten,
    /// Attempts at maps that were launched.
    TotalLaunchedMaps,
    /// Attempts at reduces that were launched.
    TotalLaunchedReduces,
    /// Attempts at maps that failed.
    NumFailedMaps,
    /// Attempts at reduces that failed.
    NumFailedReduces,
    /// Attempts at maps that were killed.
    NumKilledMaps,
    /// Attempts at reduces that were killed.
    NumKilledReduces,
    /// Launched maps with their split on the node.
    DataLocalMaps,
    /// Launched maps with their split in the rack.
    RackLocalMaps,
    /// Launched maps with their split elsewhere.
    OtherLocalMaps,
    /// Bytes that map functions put out, before a combiner.
    MapOutputBytes,
    /// Bytes of map outputs as they lie on disks.
    MapOutputMaterializedBytes,
    /// Records written by spills and merges, of maps and reduces.
    SpilledRecords,
    /// Bytes that reduces fetched, the local share included.
    ReduceShuffleBytes,
    /// Map outputs that reduces fetched.
    ShuffledMaps,
    /// Map outputs that could not be fetched, each time.
    FailedShuffle,
    /// Core time of tasks in milliseconds.
    CpuMilliseconds,
}

impl Counter {
    /// How many there are.
    const COUNT: usize = Counter::CpuMilliseconds as usize + 1;
}

impl JobCounters {
    /// Counts so many more; no counter goes beyond 64 bits.
    pub fn add(&mut self, counter: Counter, more: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_add(more);
    }

    /// What was counted.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}
