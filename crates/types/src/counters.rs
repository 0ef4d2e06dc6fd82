//! Counters of a MapReduce job, with the names of Hadoop.

use serde::{Deserialize, Serialize};

/// Counters of a MapReduce job with Hadoop's names and meaning. Sums over tasks, such as bytes
/// read, include only the values of successful attempts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobCounters {
    /// Value of each counter, indexed by the number of the [`Counter`].
    values: [u64; Counter::COUNT],
}

/// A counter of a MapReduce job. Counters are in the order of Hadoop's groups: file systems, job,
/// tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Bytes read from local disks by merges and by the reduce function.
    FileBytesRead,
    /// Bytes written to local disks by spills and merges.
    FileBytesWritten,
    /// Bytes read from HDFS.
    HdfsBytesRead,
    /// Bytes written to HDFS, counting each block once, without its further replicas.
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
    /// Number of launched maps that ran on a node with a replica of their split.
    DataLocalMaps,
    /// Number of launched maps that ran in a rack with a replica of their split, but not on a node
    /// with a replica.
    RackLocalMaps,
    /// Number of launched maps whose split had replicas only in other racks.
    OtherLocalMaps,
    /// Output bytes of map functions, before any combiner.
    MapOutputBytes,
    /// Bytes of map outputs as written to disk.
    MapOutputMaterializedBytes,
    /// Number of records written to disk by spills and merges, in maps and reduces.
    SpilledRecords,
    /// Bytes of map outputs fetched by reduces, including outputs on their own node.
    ReduceShuffleBytes,
    /// Number of map outputs fetched by reduces.
    ShuffledMaps,
    /// Number of failed fetches of map outputs.
    FailedShuffle,
    /// CPU time of tasks in milliseconds.
    CpuMilliseconds,
}

impl Counter {
    /// Number of different counters.
    const COUNT: usize = Counter::CpuMilliseconds as usize + 1;
}

impl JobCounters {
    /// Adds `more` to a counter. The value saturates at the largest 64-bit number.
    pub fn add(&mut self, counter: Counter, more: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_add(more);
    }

    /// Returns the value of a counter. The unit depends on the [`Counter`]: bytes, milliseconds, or
    /// a number.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}
