//! Counters of a MapReduce job, with the names that Hadoop gives them.

use serde::{Deserialize, Serialize};

/// Counters of a MapReduce job with Hadoop's meaning: only successful attempts add to the counters
/// of tasks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobCounters {
    /// Value of each counter, indexed by its number.
    values: [u64; Counter::COUNT],
}

/// A counter of a MapReduce job, in the order of Hadoop's groups: file systems, job, tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Bytes read from local disks by merges and the reduce.
    FileBytesRead,
    /// Bytes written to local disks by spills and merges.
    FileBytesWritten,
    /// Bytes read from HDFS.
    HdfsBytesRead,
    /// Bytes written to HDFS, without further replicas.
    HdfsBytesWritten,
    /// Number of launched map attempts.
    TotalLaunchedMaps,
    /// Number of launched reduce attempts.
    TotalLaunchedReduces,
    /// Number of failed map attempts.
    NumFailedMaps,
    /// Number of failed reduce attempts.
    NumFailedReduces,
    /// Number of killed map attempts.
    NumKilledMaps,
    /// Number of killed reduce attempts.
    NumKilledReduces,
    /// Number of launched maps with a replica of their split on the node.
    DataLocalMaps,
    /// Number of launched maps with a replica of their split in the rack, but not on the node.
    RackLocalMaps,
    /// Number of launched maps whose split has replicas in other racks only.
    OtherLocalMaps,
    /// Output bytes of map functions, before a combiner.
    MapOutputBytes,
    /// Bytes of map outputs on disk.
    MapOutputMaterializedBytes,
    /// Number of records written by spills and merges, of maps and reduces.
    SpilledRecords,
    /// Bytes fetched by reduces, including outputs on their own node.
    ReduceShuffleBytes,
    /// Number of map outputs fetched by reduces.
    ShuffledMaps,
    /// Number of failed fetches of map outputs.
    FailedShuffle,
    /// CPU time of tasks in milliseconds.
    CpuMilliseconds,
}

impl Counter {
    /// Number of counters.
    const COUNT: usize = Counter::CpuMilliseconds as usize + 1;
}

impl JobCounters {
    /// Adds `more` to a counter, which saturates at the largest 64-bit number.
    pub fn add(&mut self, counter: Counter, more: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_add(more);
    }

    /// Returns the value of a counter: bytes, milliseconds or a number, as the [`Counter`] says.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}
