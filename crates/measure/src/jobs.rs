//! Finished jobs and tasks, and Hadoop's counters of them.

use crate::table;
use crate::table::Names;
use eastwest_types::{Counter, JobRecord, TaskRecord};

table! {
    /// One row per finished job, in the order they finished.
    pub Jobs = "jobs"
    of (workload, job) in &'a (u16, JobRecord), names: &'a Names;

    /// number within the workload, from 0 in order of submission
    job: u32 = job.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// name in the trace or scenario; untrusted text
    name: str = job.name.clone();

    /// `terasort`, `search`, `index`, `custom`, or `trace`
    kind: few = job.kind;

    /// traffic class of its data
    class: label(&names.classes) = job.class.0;

    /// when it was submitted
    submitted_s: seconds = job.submitted;

    /// when its first task started to read
    started_s: seconds = job.started;

    /// when the last task had reported and clean-up was over
    finished_s: seconds = job.finished;

    /// `finished_s` − `submitted_s`: set-up and waiting included
    runtime_s: seconds = job.finished.since(job.submitted);

    /// map tasks
    maps: u32 = job.maps;

    /// reduce tasks
    reduces: u32 = job.reduces;

    /// payload its maps read
    input_bytes: u64 = job.input_bytes;

    /// payload from maps to reduces, local share included
    shuffle_bytes: u64 = job.shuffle_bytes;

    /// the part of it that stayed on its host; the rest is in `flows`, exactly
    shuffle_local_bytes: u64 = job.shuffle_local_bytes;

    /// payload written, counted once whatever the replication
    output_bytes: u64 = job.output_bytes;

    /// why the job has failed; empty if it has not
    failed since 4: few = job.failed.unwrap_or("");
}

table! {
    /// One row per finished task, in the order they finished.
    pub Tasks = "tasks"
    of (workload, task) in &'a (u16, TaskRecord), names: &'a Names;

    /// its job's number
    job: u32 = task.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number within its job and kind
    task: u32 = task.task;

    /// `map` or `reduce`
    kind: few = task.kind.name();

    /// number of the host it ran on
    host: u32 = task.host.0;

    /// when the order to run it reached its host (`startTime` of a job history)
    assigned_s: seconds = task.assigned;

    /// when it began to read (map) or fetch (reduce)
    started_s: seconds = task.started;

    /// when the split was read, or the shuffle was over (`shuffleFinishTime`)
    input_done_s: seconds = task.input_done;

    /// when it had spilled, or written its output to all replicas
    finished_s: seconds = task.finished;

    /// where a map's split was: `node`, `rack`, `remote`; `none` for reduces and maps without input
    locality: few = task.locality.name();

    /// payload read or fetched
    bytes_in: u64 = task.bytes_in;

    /// payload spilled or written
    bytes_out: u64 = task.bytes_out;

    /// when the map or reduce function was through (`mapFinishTime` of a job history)
    computed_s since 3: seconds = task.computed;

    /// when the input of a reduce (`sortFinishTime`) or the spills of a map were merged
    merged_s since 3: seconds = task.merged;

    /// spills of a map; merges of a reduce that wrote a file
    spills since 3: u32 = task.spills;

    /// read back from local disks or page caches (`FILE_BYTES_READ`)
    file_bytes_read since 3: u64 = task.file_bytes_read;

    /// written to local disks by spills and merges (`FILE_BYTES_WRITTEN`; divided by the size of a
    /// record, `SPILLED_RECORDS`)
    file_bytes_written since 3: u64 = task.file_bytes_written;

    /// core time, the start of the virtual machine included (`CPU_MILLISECONDS`)
    cpu_s since 3: seconds = task.cpu;
}

table! {
    /// One row per finished job, in the order of `jobs`: what Hadoop would count, by its own names.
    /// Launched, failed and killed are attempts; what tasks read, write and spill counts for
    /// successful attempts, as in Hadoop. Records have the size of `sort.record_bytes`.
    pub Counters = "counters" since 5
    of (workload, job) in &'a (u16, JobRecord), names: &'a Names;

    /// number within the workload
    job: u32 = job.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// read from local disks or page caches by merges and reduces
    FILE_BYTES_READ: u64 = job.counters.get(Counter::FileBytesRead);

    /// written to local disks by spills and merges
    FILE_BYTES_WRITTEN: u64 = job.counters.get(Counter::FileBytesWritten);

    /// read from HDFS
    HDFS_BYTES_READ: u64 = job.counters.get(Counter::HdfsBytesRead);

    /// written to HDFS, counted once whatever the replication
    HDFS_BYTES_WRITTEN: u64 = job.counters.get(Counter::HdfsBytesWritten);

    /// attempts at maps that were launched
    TOTAL_LAUNCHED_MAPS: u64 = job.counters.get(Counter::TotalLaunchedMaps);

    /// attempts at reduces that were launched
    TOTAL_LAUNCHED_REDUCES: u64 = job.counters.get(Counter::TotalLaunchedReduces);

    /// attempts at maps that failed
    NUM_FAILED_MAPS: u64 = job.counters.get(Counter::NumFailedMaps);

    /// attempts at reduces that failed
    NUM_FAILED_REDUCES: u64 = job.counters.get(Counter::NumFailedReduces);

    /// attempts at maps that were killed: lost workers, beaten copies, failed jobs
    NUM_KILLED_MAPS: u64 = job.counters.get(Counter::NumKilledMaps);

    /// attempts at reduces that were killed
    NUM_KILLED_REDUCES: u64 = job.counters.get(Counter::NumKilledReduces);

    /// launched maps with their split on the node
    DATA_LOCAL_MAPS: u64 = job.counters.get(Counter::DataLocalMaps);

    /// launched maps with their split in the rack
    RACK_LOCAL_MAPS: u64 = job.counters.get(Counter::RackLocalMaps);

    /// launched maps with their split elsewhere
    OTHER_LOCAL_MAPS: u64 = job.counters.get(Counter::OtherLocalMaps);

    /// put out by map functions, before a combiner
    MAP_OUTPUT_BYTES: u64 = job.counters.get(Counter::MapOutputBytes);

    /// map outputs as they lie on disks
    MAP_OUTPUT_MATERIALIZED_BYTES: u64 = job.counters.get(Counter::MapOutputMaterializedBytes);

    /// records written by spills and merges, of maps and reduces
    SPILLED_RECORDS: u64 = job.counters.get(Counter::SpilledRecords);

    /// fetched by reduces, the local share included
    REDUCE_SHUFFLE_BYTES: u64 = job.counters.get(Counter::ReduceShuffleBytes);

    /// map outputs fetched
    SHUFFLED_MAPS: u64 = job.counters.get(Counter::ShuffledMaps);

    /// fetches of map outputs that failed
    FAILED_SHUFFLE: u64 = job.counters.get(Counter::FailedShuffle);

    /// core time of tasks
    CPU_MILLISECONDS: u64 = job.counters.get(Counter::CpuMilliseconds);
}
