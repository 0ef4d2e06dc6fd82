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

    /// time of the job's submission
    submitted_s: seconds = job.submitted;

    /// time at which the first task of the job started to read
    started_s: seconds = job.started;

    /// time at which the last task had reported and the clean-up was complete
    finished_s: seconds = job.finished;

    /// `finished_s` − `submitted_s`, including set-up and waiting
    runtime_s: seconds = job.finished.since(job.submitted);

    /// map tasks
    maps: u32 = job.maps;

    /// reduce tasks
    reduces: u32 = job.reduces;

    /// payload that the maps of the job read
    input_bytes: u64 = job.input_bytes;

    /// payload from maps to reduces, including the local part
    shuffle_bytes: u64 = job.shuffle_bytes;

    /// part of `shuffle_bytes` that stayed on its host; the rest is exactly the shuffle in the
    /// table `flows`
    shuffle_local_bytes: u64 = job.shuffle_local_bytes;

    /// payload written to HDFS, counted once for all replicas
    output_bytes: u64 = job.output_bytes;

    /// reason of the job's failure; empty if it has not failed
    failed since 4: few = job.failed.unwrap_or("");
}

table! {
    /// One row per finished task, in the order they finished.
    pub Tasks = "tasks"
    of (workload, task) in &'a (u16, TaskRecord), names: &'a Names;

    /// number of the job
    job: u32 = task.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number within its job and kind
    task: u32 = task.task;

    /// `map` or `reduce`
    kind: few = task.kind.name();

    /// number of the host on which the task ran
    host: u32 = task.host.0;

    /// time at which the assignment of the task reached its host (`startTime` of a job history)
    assigned_s: seconds = task.assigned;

    /// time at which the task began to read (map) or to fetch (reduce)
    started_s: seconds = task.started;

    /// time at which the split was read, or the shuffle was complete (`shuffleFinishTime`)
    input_done_s: seconds = task.input_done;

    /// time at which the task had spilled its output, or had written it to all replicas
    finished_s: seconds = task.finished;

    /// place of a map's split: `node`, `rack` or `remote`; `none` for reduces and maps without
    /// input
    locality: few = task.locality.name();

    /// payload read or fetched
    bytes_in: u64 = task.bytes_in;

    /// payload spilled or written
    bytes_out: u64 = task.bytes_out;

    /// time at which the map or reduce function had finished (`mapFinishTime` of a job history)
    computed_s since 3: seconds = task.computed;

    /// time at which the input of a reduce (`sortFinishTime`) or the spills of a map had been
    /// merged
    merged_s since 3: seconds = task.merged;

    /// spills of a map; merges of a reduce that wrote a file
    spills since 3: u32 = task.spills;

    /// bytes read from local disks or page caches (`FILE_BYTES_READ`)
    file_bytes_read since 3: u64 = task.file_bytes_read;

    /// bytes written to local disks by spills and merges (`FILE_BYTES_WRITTEN`; divided by the size
    /// of a record it is `SPILLED_RECORDS`)
    file_bytes_written since 3: u64 = task.file_bytes_written;

    /// core time, including the start of the virtual machine (`CPU_MILLISECONDS`)
    cpu_s since 3: seconds = task.cpu;
}

table! {
    /// One row per finished job, in the order of the table `jobs`: the counters of Hadoop, with
    /// Hadoop's names. Launched, failed and killed count attempts; bytes that tasks read, write and
    /// spill are counted for successful attempts only, as in Hadoop. Records have the size of
    /// `sort.record_bytes`.
    pub Counters = "counters" since 5
    of (workload, job) in &'a (u16, JobRecord), names: &'a Names;

    /// number within the workload
    job: u32 = job.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// bytes read from local disks or page caches by merges and reduces
    FILE_BYTES_READ: u64 = job.counters.get(Counter::FileBytesRead);

    /// bytes written to local disks by spills and merges
    FILE_BYTES_WRITTEN: u64 = job.counters.get(Counter::FileBytesWritten);

    /// bytes read from HDFS
    HDFS_BYTES_READ: u64 = job.counters.get(Counter::HdfsBytesRead);

    /// bytes written to HDFS, counted once for all replicas
    HDFS_BYTES_WRITTEN: u64 = job.counters.get(Counter::HdfsBytesWritten);

    /// launched attempts of maps
    TOTAL_LAUNCHED_MAPS: u64 = job.counters.get(Counter::TotalLaunchedMaps);

    /// launched attempts of reduces
    TOTAL_LAUNCHED_REDUCES: u64 = job.counters.get(Counter::TotalLaunchedReduces);

    /// failed attempts of maps
    NUM_FAILED_MAPS: u64 = job.counters.get(Counter::NumFailedMaps);

    /// failed attempts of reduces
    NUM_FAILED_REDUCES: u64 = job.counters.get(Counter::NumFailedReduces);

    /// killed attempts of maps: on lost workers, slower duplicates, in failed jobs
    NUM_KILLED_MAPS: u64 = job.counters.get(Counter::NumKilledMaps);

    /// killed attempts of reduces
    NUM_KILLED_REDUCES: u64 = job.counters.get(Counter::NumKilledReduces);

    /// launched maps with their split on the node
    DATA_LOCAL_MAPS: u64 = job.counters.get(Counter::DataLocalMaps);

    /// launched maps with their split in the rack
    RACK_LOCAL_MAPS: u64 = job.counters.get(Counter::RackLocalMaps);

    /// launched maps with their split elsewhere
    OTHER_LOCAL_MAPS: u64 = job.counters.get(Counter::OtherLocalMaps);

    /// output bytes of map functions, before a combiner
    MAP_OUTPUT_BYTES: u64 = job.counters.get(Counter::MapOutputBytes);

    /// bytes of map outputs on disks
    MAP_OUTPUT_MATERIALIZED_BYTES: u64 = job.counters.get(Counter::MapOutputMaterializedBytes);

    /// records written by spills and merges, of maps and reduces
    SPILLED_RECORDS: u64 = job.counters.get(Counter::SpilledRecords);

    /// bytes fetched by reduces, including the local part
    REDUCE_SHUFFLE_BYTES: u64 = job.counters.get(Counter::ReduceShuffleBytes);

    /// fetched map outputs
    SHUFFLED_MAPS: u64 = job.counters.get(Counter::ShuffledMaps);

    /// failed fetches of map outputs
    FAILED_SHUFFLE: u64 = job.counters.get(Counter::FailedShuffle);

    /// core time of tasks
    CPU_MILLISECONDS: u64 = job.counters.get(Counter::CpuMilliseconds);
}
