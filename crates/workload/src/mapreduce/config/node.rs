//! Settings of a worker's hardware: cores, disks, page cache.
//!
//! By default tasks share no hardware: every task has its own core and every stream of data its own
//! disk, as in the coarse models of Hadoop 1 in the literature. [`NodeConfig::hdd`] and
//! [`NodeConfig::ssd`] are machines whose tasks compete for cores and disks. Kernel settings are
//! given where a field corresponds to one.

use eastwest_types::{HostId, Rate, Span};
use serde::{Deserialize, Serialize};

/// A worker whose cores and disks are faster or slower than the cores and disks in [`NodeConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowNode {
    /// Host of the worker with a different speed.
    pub host: HostId,
    /// Factor by which the rates of the worker's cores and disks are multiplied: above 1 is faster.
    pub speed: f64,
}

/// Hardware that the tasks of a worker share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// Number of processor cores of a machine; each of n runnable tasks gets min(1, cores / n) of a
    /// core. `None`: each task has its own core.
    pub cores: Option<u32>,
    /// Number of disks of a machine, shared evenly by the streams of data that are read or written.
    /// `None`: each stream has its own disk.
    pub disks: Option<u32>,
    /// Sequential read rate of one disk.
    pub read_rate: Rate,
    /// Sequential write rate of one disk.
    pub write_rate: Rate,
    /// Time in which a shared disk changes from one stream to another: average seek and half a
    /// rotation. Zero for flash.
    pub seek: Span,
    /// Bytes that a disk transfers for one stream of data before it seeks to the next stream
    /// (`dfs.datanode.readahead.bytes` and `mapreduce.ifile.readahead.bytes`: 4 MiB).
    pub run_bytes: u64,
    /// Bytes of page cache: map outputs, spills and merges are read from memory until `cache_bytes`
    /// bytes more have been written on the machine. `None`: always read from memory.
    pub cache_bytes: Option<u64>,
    /// Largest number of dirty bytes (in the page cache and not yet on disk) before writers must
    /// wait (`vm.dirty_ratio`). 0: every writer waits for the disk.
    pub dirty_bytes: u64,
    /// Number of workers that are processes of one machine and share its cores and disks (default
    /// 1; in the reference measurements 4 workers share 2 cores). Consecutive workers of the list
    /// share a machine.
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
    /// Returns the hardware of a common worker: eight cores, four 7200 rpm disks, 16 GB of memory.
    /// A disk has 150 MB/s at its outer and 100 MB/s at its inner tracks, here 130 MB/s; 8.5 ms of
    /// seek and 4.2 ms of rotation.
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

    /// Returns the hardware of a worker with eight cores and one SATA flash disk: 550 MB/s reading,
    /// 500 MB/s writing, no seeks.
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
