//! Settings of tasks: the sort buffer, the shuffle and its memory, what computing costs.

use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Sorting and merging on local disks, by maps and by reduces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortConfig {
    /// Buffer a map collects its output in (`mapreduce.task.io.sort.mb`, before `io.sort.mb`:
    /// 100 MiB).
    pub buffer_bytes: u64,
    /// Part of the buffer that is filled when a spill begins (`mapreduce.map.sort.spill.percent`,
    /// before `io.sort.spill.percent`: 0.80).
    pub spill_fraction: f64,
    /// Files merged at once (`mapreduce.task.io.sort.factor`, before `io.sort.factor`: 10).
    pub factor: u32,
    /// Bytes of a record of map output (TeraGen: 100). Sets the counted records, and the buffer's
    /// room for them.
    pub record_bytes: u32,
    /// Bytes of the buffer a record takes beside its own (`METASIZE` of Hadoop's MapTask: 16).
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

/// From map outputs to reducers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShuffleConfig {
    /// Hosts a reducer fetches from at once (`mapreduce.reduce.shuffle.parallelcopies`, before
    /// `mapred.reduce.parallel.copies`: 5).
    pub parallel_copies: u32,
    /// Map outputs of one host asked for in one request (`MAX_MAPS_AT_ONCE` of Hadoop's shuffle
    /// scheduler: 20).
    pub max_maps_per_fetch: u32,
    /// Application bytes of a request (estimate: an HTTP GET with map names, token and hash;
    /// measured: 335 B for two outputs).
    pub fetch_request_bytes: u32,
    /// Application bytes of a response before the map outputs (estimate: an HTTP header).
    pub fetch_header_bytes: u32,
    /// Keep the connection to a host for further requests
    /// (`mapreduce.shuffle.connection-keep-alive.enabled`: false in Hadoop 3).
    pub keep_alive: bool,
    /// Heap of a reduce (`mapreduce.reduce.java.opts`, before `mapred.child.java.opts`: -Xmx200m;
    /// Hadoop 3: 0.8 of the container's memory, `mapreduce.job.heap.memory-mb.ratio`).
    pub heap_bytes: u64,
    /// Part of the heap for fetched outputs (`mapreduce.reduce.shuffle.input.buffer.percent`, before
    /// `mapred.job.shuffle.input.buffer.percent`: 0.70). When it is used up, fetches wait.
    pub input_buffer_fraction: f64,
    /// Part of that one output may take; larger ones go to the disk
    /// (`mapreduce.reduce.shuffle.memory.limit.percent`: 0.25).
    pub memory_limit_fraction: f64,
    /// Part of that which, once fetched, is merged to the disk
    /// (`mapreduce.reduce.shuffle.merge.percent`, before `mapred.job.shuffle.merge.percent`: 0.66).
    pub merge_fraction: f64,
    /// Part of the heap in which outputs may stay during the reduce
    /// (`mapreduce.reduce.input.buffer.percent`, before `mapred.job.reduce.input.buffer.percent`: 0).
    pub reduce_buffer_fraction: f64,
    /// First penalty of a host that could not be reached (Hadoop 1, `BACKOFF_INIT` of ReduceTask:
    /// 4 s; Hadoop 3, `INITIAL_PENALTY` of its shuffle scheduler times its growth: 13 s).
    pub penalty: Span,
    /// Growth of the penalty with each further failure of an output (Hadoop 1: 2; Hadoop 3,
    /// `PENALTY_GROWTH_RATE`: 1.3).
    pub penalty_growth: f64,
    /// Longest penalty (Hadoop 1, half of `mapred.reduce.copy.backoff`: 150 s; Hadoop 3,
    /// `mapreduce.reduce.shuffle.retry-delay.max.ms`: 60 s).
    pub penalty_max: Span,
    /// Report each failed fetch at once (`mapreduce.reduce.shuffle.notify.readerror`: true).
    pub notify_read_error: bool,
    /// Else report each so-many-th failure of an output
    /// (`mapreduce.reduce.shuffle.maxfetchfailures`: 10).
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
    /// Hadoop 3: a connection per request, a heap of 0.8 of 1024 MiB, its penalties.
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

/// What computing costs: core time, shared with the other tasks of the worker where
/// [`NodeConfig::cores`](super::NodeConfig::cores) says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostConfig {
    /// From the arrival of an assignment until the task starts to read or fetch (start of a Java
    /// virtual machine: about 1 s on an idle core; measured 2–4 s on shared ones).
    pub task_start: Span,
    /// Width of the uniform time a task's start takes beyond `task_start`, drawn for each task. Real
    /// starts differ: with none, tasks of one heartbeat begin to fetch within a millisecond.
    pub task_start_jitter: Span,
    /// Map function with sort (measured: 31 ms of CPU per MB, sort and spill included).
    pub map_rate: Rate,
    /// Sorting and serializing a spill; `None`: inside `map_rate`. Measured: 56 % of a map's time
    /// is its function, the rest sort and spill: 57 and 73 MB/s.
    pub sort_rate: Option<Rate>,
    /// Merging, per byte of each pass; `None`: inside `reduce_rate` and `map_rate`.
    pub merge_rate: Option<Rate>,
    /// Reduce function (measured: 140 MB in 1.7–2.6 s, output included).
    pub reduce_rate: Rate,
    /// From a task's last byte of output until its commit is done (in Hadoop the call for leave to
    /// commit, and a rename on the namenode). Zero: at once.
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
    /// Hadoop 3 as measured: function and sort apart, merges cost, commits take a while.
    pub fn hadoop3() -> CostConfig {
        CostConfig {
            map_rate: Rate::megabytes(57),
            sort_rate: Some(Rate::megabytes(73)),
            merge_rate: Some(Rate::megabytes(140)),
            task_commit: Span::from_ms(100),
            // measured: maps' core times up to the end of their function spread over 0.4 to 1.0 s
            task_start_jitter: Span::from_ms(700),
            ..CostConfig::default()
        }
    }
}
