//! Counters of a job, by the names Hadoop has for them.

use serde::{Deserialize, Serialize};

/// What Hadoop would count of a job. Tasks count what their successful attempts have done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobCounters {
    /// By number, see [`Counter::ALL`].
    values: [u64; Counter::ALL.len()],
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
    /// All counters in the order of their numbers.
    pub const ALL: [Counter; 20] = [
        Counter::FileBytesRead,
        Counter::FileBytesWritten,
        Counter::HdfsBytesRead,
        Counter::HdfsBytesWritten,
        Counter::TotalLaunchedMaps,
        Counter::TotalLaunchedReduces,
        Counter::NumFailedMaps,
        Counter::NumFailedReduces,
        Counter::NumKilledMaps,
        Counter::NumKilledReduces,
        Counter::DataLocalMaps,
        Counter::RackLocalMaps,
        Counter::OtherLocalMaps,
        Counter::MapOutputBytes,
        Counter::MapOutputMaterializedBytes,
        Counter::SpilledRecords,
        Counter::ReduceShuffleBytes,
        Counter::ShuffledMaps,
        Counter::FailedShuffle,
        Counter::CpuMilliseconds,
    ];

    /// Its name in Hadoop.
    pub fn name(self) -> &'static str {
        match self {
            Counter::FileBytesRead => "FILE_BYTES_READ",
            Counter::FileBytesWritten => "FILE_BYTES_WRITTEN",
            Counter::HdfsBytesRead => "HDFS_BYTES_READ",
            Counter::HdfsBytesWritten => "HDFS_BYTES_WRITTEN",
            Counter::TotalLaunchedMaps => "TOTAL_LAUNCHED_MAPS",
            Counter::TotalLaunchedReduces => "TOTAL_LAUNCHED_REDUCES",
            Counter::NumFailedMaps => "NUM_FAILED_MAPS",
            Counter::NumFailedReduces => "NUM_FAILED_REDUCES",
            Counter::NumKilledMaps => "NUM_KILLED_MAPS",
            Counter::NumKilledReduces => "NUM_KILLED_REDUCES",
            Counter::DataLocalMaps => "DATA_LOCAL_MAPS",
            Counter::RackLocalMaps => "RACK_LOCAL_MAPS",
            Counter::OtherLocalMaps => "OTHER_LOCAL_MAPS",
            Counter::MapOutputBytes => "MAP_OUTPUT_BYTES",
            Counter::MapOutputMaterializedBytes => "MAP_OUTPUT_MATERIALIZED_BYTES",
            Counter::SpilledRecords => "SPILLED_RECORDS",
            Counter::ReduceShuffleBytes => "REDUCE_SHUFFLE_BYTES",
            Counter::ShuffledMaps => "SHUFFLED_MAPS",
            Counter::FailedShuffle => "FAILED_SHUFFLE",
            Counter::CpuMilliseconds => "CPU_MILLISECONDS",
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_distinct() {
        let mut counters = JobCounters::default();
        for (number, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, number);
            counters.add(counter, number as u64);
        }
        let mut names = Counter::ALL.map(Counter::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Counter::ALL.len());
        assert_eq!(counters.get(Counter::CpuMilliseconds), 19);
        counters.add(Counter::CpuMilliseconds, u64::MAX);
        assert_eq!(counters.get(Counter::CpuMilliseconds), u64::MAX);
    }
}
