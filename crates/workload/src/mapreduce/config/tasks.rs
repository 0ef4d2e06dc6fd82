//! Settings of tasks: sort buffer, shuffle and its memory, CPU costs.

use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of sorting and merging on local disks, by maps and by reduces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortConfig {
    /// Bytes of the sort buffer for a map's output (`mapreduce.task.io.sort.mb`, formerly
    /// `io.sort.mb`: 100 MiB).
    pub buffer_bytes: u64,
    /// Filled fraction of the sort buffer at which a spill to disk begins
    /// (`mapreduce.map.sort.spill.percent`, formerly `io.sort.spill.percent`: 0.80).
    pub spill_fraction: f64,
    /// Largest number of files that one merge combines (`mapreduce.task.io.sort.factor`, formerly
    /// `io.sort.factor`: 10).
    pub factor: u32,
    /// Bytes of a record of map output (TeraGen: 100); used for counters of records and for the
    /// metadata in the sort buffer.
    pub record_bytes: u32,
    /// Bytes of metadata in the sort buffer for each record (`METASIZE` of Hadoop's MapTask: 16).
    pub record_meta_bytes: u32,
}

impl Default for SortConfig {
    fn default() -> Self {
        SortConfig {
            buffer_bytes: 100 << 20,
            spill_fraction: 0.80,
            factor: 10,
            record_bytes: 100,
            record_meta_bytes: 16,
        }
    }
}

/// Settings of the shuffle, the transfer of map outputs to reduces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShuffleConfig {
    /// Largest number of hosts from which a reduce fetches at one time
    /// (`mapreduce.reduce.shuffle.parallelcopies`, formerly `mapred.reduce.parallel.copies`: 5).
    pub parallel_copies: u32,
    /// Largest number of map outputs in one request of a reduce (`MAX_MAPS_AT_ONCE` of Hadoop's
    /// shuffle scheduler: 20).
    pub max_maps_per_fetch: u32,
    /// Application bytes of a reduce's request for map outputs (estimate: an HTTP GET with map
    /// names, token and hash; measured: 335 B for two outputs).
    pub fetch_request_bytes: u32,
    /// Application bytes of a shuffle response before the map outputs (estimate: an HTTP header).
    pub fetch_header_bytes: u32,
    /// Whether a reduce uses its connection to a host again for further requests
    /// (`mapreduce.shuffle.connection-keep-alive.enabled`: false in Hadoop 3).
    pub keep_alive: bool,
    /// Heap of a reduce in bytes (`mapreduce.reduce.java.opts`, formerly `mapred.child.java.opts`:
    /// -Xmx200m; Hadoop 3: 0.8 of the container's memory, `mapreduce.job.heap.memory-mb.ratio`).
    pub heap_bytes: u64,
    /// Fraction of a reduce's heap for fetched map outputs
    /// (`mapreduce.reduce.shuffle.input.buffer.percent`, formerly
    /// `mapred.job.shuffle.input.buffer.percent`: 0.70). When this memory is full, fetches wait.
    pub input_buffer_fraction: f64,
    /// Size of the largest map output that a reduce stores in memory, as a fraction of its memory
    /// for fetched outputs; larger outputs are written to disk
    /// (`mapreduce.reduce.shuffle.memory.limit.percent`: 0.25).
    pub memory_limit_fraction: f64,
    /// Filled fraction of a reduce's memory for fetched outputs at which the outputs are merged to
    /// disk (`mapreduce.reduce.shuffle.merge.percent`, formerly `mapred.job.shuffle.merge.percent`:
    /// 0.66).
    pub merge_fraction: f64,
    /// Fraction of a reduce's heap in which fetched outputs may stay while the reduce function runs
    /// (`mapreduce.reduce.input.buffer.percent`, formerly `mapred.job.reduce.input.buffer.percent`:
    /// 0).
    pub reduce_buffer_fraction: f64,
    /// Time for which a reduce does not fetch from a host after a first failed fetch (Hadoop 1,
    /// `BACKOFF_INIT` of ReduceTask: 4 s; Hadoop 3, `INITIAL_PENALTY` of its shuffle scheduler
    /// times its growth: 13 s).
    pub penalty: Span,
    /// Factor by which the time without fetches from a host grows with each further failed fetch of
    /// an output (Hadoop 1: 2; Hadoop 3, `PENALTY_GROWTH_RATE`: 1.3).
    pub penalty_growth: f64,
    /// Longest time for which a reduce does not fetch from a host after a failed fetch (Hadoop 1,
    /// half of `mapred.reduce.copy.backoff`: 150 s; Hadoop 3,
    /// `mapreduce.reduce.shuffle.retry-delay.max.ms`: 60 s).
    pub penalty_max: Span,
    /// Whether a reduce reports each failed fetch at once
    /// (`mapreduce.reduce.shuffle.notify.readerror`: true).
    pub notify_read_error: bool,
    /// Number of failed fetches of an output after which a reduce sends a report, if
    /// `notify_read_error` is false (`mapreduce.reduce.shuffle.maxfetchfailures`: 10).
    pub failures_reported: u32,
}

impl Default for ShuffleConfig {
    fn default() -> Self {
        ShuffleConfig {
            parallel_copies: 5,
            max_maps_per_fetch: 20,
            fetch_request_bytes: 300,
            fetch_header_bytes: 200,
            keep_alive: true,
            heap_bytes: 200 << 20,
            input_buffer_fraction: 0.70,
            memory_limit_fraction: 0.25,
            merge_fraction: 0.66,
            reduce_buffer_fraction: 0.0,
            penalty: Span::from_secs(4),
            penalty_growth: 2.0,
            penalty_max: Span::from_secs(150),
            notify_read_error: true,
            failures_reported: 10,
        }
    }
}

impl ShuffleConfig {
    /// Returns the shuffle settings of Hadoop 3: one connection for each request, a heap of 0.8 of
    /// 1024 MiB, and the penalties of Hadoop 3 after failed fetches.
    pub fn hadoop3() -> ShuffleConfig {
        ShuffleConfig {
            keep_alive: false,
            heap_bytes: 820 << 20,
            penalty: Span::from_secs(13),
            penalty_growth: 1.3,
            penalty_max: Span::from_secs(60),
            ..ShuffleConfig::default()
        }
    }
}

/// CPU costs of tasks: times and rates on one core; the tasks of a worker compete for cores if
/// [`NodeConfig::cores`](super::NodeConfig::cores) is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostConfig {
    /// CPU time from the arrival of a task's assignment until the task starts to read or fetch
    /// (start of a Java virtual machine: about 1 s on an idle core; measured 2–4 s on shared
    /// cores).
    pub task_start: Span,
    /// Width of the uniform distribution of a task's start time beyond `task_start`, drawn for each
    /// task. Without it, all tasks assigned in one heartbeat would begin to fetch within a
    /// millisecond, unlike real tasks.
    pub task_start_jitter: Span,
    /// Input bytes that the map function processes per second of CPU time. Includes sorting unless
    /// `sort_rate` is set (measured: 31 ms of CPU per MB, sort and spill included).
    pub map_rate: Rate,
    /// Bytes sorted and serialized per second of CPU time when a map spills; `None`: included in
    /// `map_rate`. Measured: 56 % of a map's CPU time is its function at 57 MB/s, the rest is sort
    /// and spill at 73 MB/s.
    pub sort_rate: Option<Rate>,
    /// Bytes merged per second of CPU time, counted in each merge pass; `None`: included in
    /// `reduce_rate` and `map_rate`.
    pub merge_rate: Option<Rate>,
    /// Input bytes that the reduce function processes per second of CPU time (measured: 140 MB in
    /// 1.7–2.6 s, output included).
    pub reduce_rate: Rate,
    /// Time from a task's last output byte to the end of its commit (in Hadoop a permission from
    /// the master, and a rename on the namenode). Zero: the commit takes no time.
    pub task_commit: Span,
}

impl Default for CostConfig {
    fn default() -> Self {
        CostConfig {
            task_start: Span::from_secs(1),
            task_start_jitter: Span::ZERO,
            map_rate: Rate::megabytes(32),
            sort_rate: None,
            merge_rate: None,
            reduce_rate: Rate::megabytes(64),
            task_commit: Span::ZERO,
        }
    }
}

impl CostConfig {
    /// Returns the measured CPU costs of Hadoop 3: separate rates of map function and sort, and
    /// costs of merges and commits.
    pub fn hadoop3() -> CostConfig {
        CostConfig {
            map_rate: Rate::megabytes(57),
            sort_rate: Some(Rate::megabytes(73)),
            merge_rate: Some(Rate::megabytes(140)),
            task_commit: Span::from_ms(100),
            // measured: CPU times from the start of a map to the end of its function vary from 0.4
            // to 1.0 s
            task_start_jitter: Span::from_ms(700),
            ..CostConfig::default()
        }
    }
}
