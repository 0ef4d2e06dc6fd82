//! Settings of a worker's hardware: cores, disks, page cache.
//!
//! By default nothing is shared: every task has a core and every stream a disk of its own, as in the
//! literature's coarse models of Hadoop 1. [`NodeConfig::hdd`] and [`NodeConfig::ssd`] are machines
//! whose tasks slow each other down. Names of kernel settings are given where one is meant.

use eastwest_types::{HostId, Rate, Span};
use serde::{Deserialize, Serialize};

/// A worker that computes, reads and writes more slowly, or faster, than the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowNode {
    /// Which.
    pub host: HostId,
    /// Its speed as a factor on the rates of cores and disks.
    pub speed: f64,
}

/// What a worker's tasks share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// Processor cores; n runnable tasks get min(1, cores / n) of one each. `None`: each its own.
    pub cores: Option<u32>,
    /// Disks; streams share them evenly. `None`: each stream has one of its own.
    pub disks: Option<u32>,
    /// Sequential reading of one disk.
    pub read_rate: Rate,
    /// Sequential writing of one disk.
    pub write_rate: Rate,
    /// From one stream to the next where streams share a disk: average seek and half a turn. Zero
    /// for flash.
    pub seek: Span,
    /// Bytes moved for a stream between two seeks (`dfs.datanode.readahead.bytes` and
    /// `mapreduce.ifile.readahead.bytes`: 4 MiB).
    pub run_bytes: u64,
    /// Page cache for what was written last: map outputs, spills and merges that are younger than
    /// so many written bytes are read without the disk. `None`: all of them are.
    pub cache_bytes: Option<u64>,
    /// Written bytes that may wait in memory for the disk (`vm.dirty_ratio`) before writers wait
    /// too. 0: every writer waits for the disk.
    pub dirty_bytes: u64,
    /// Workers that are processes of one machine and share its cores and disks (1; the reference
    /// measurements: 4 on 2 cores). Consecutive ones of the list of workers.
    pub workers_per_machine: u32,
}

impl Default for NodeConfig {
    fn default() -> Self {
        NodeConfig {
            cores: None,
            disks: None,
            read_rate: Rate::megabytes(100),
            write_rate: Rate::megabytes(100),
            seek: Span::ZERO,
            run_bytes: 4 << 20,
            cache_bytes: None,
            dirty_bytes: 0,
            workers_per_machine: 1,
        }
    }
}

impl NodeConfig {
    /// Eight cores and four 7200 rpm disks with 16 GB of memory, a common worker: 150 MB/s at the
    /// outer and 100 at the inner tracks, here 130; 8.5 ms of seek and 4.2 ms of turn.
    pub fn hdd() -> NodeConfig {
        NodeConfig {
            cores: Some(8),
            disks: Some(4),
            read_rate: Rate::megabytes(130),
            write_rate: Rate::megabytes(130),
            seek: Span::from_us(12_700),
            cache_bytes: Some(4 << 30),
            dirty_bytes: 2 << 30,
            ..NodeConfig::default()
        }
    }

    /// Eight cores and one SATA flash disk: 550 MB/s reading, 500 writing, nothing to seek.
    pub fn ssd() -> NodeConfig {
        NodeConfig {
            disks: Some(1),
            read_rate: Rate::megabytes(550),
            write_rate: Rate::megabytes(500),
            seek: Span::ZERO,
            ..NodeConfig::hdd()
        }
    }
}
