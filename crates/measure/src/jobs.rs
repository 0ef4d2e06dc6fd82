//! Tables of finished Hadoop jobs and tasks, and of Hadoop's counters for them.

use crate::table;
use crate::table::Names;
use eastwest_types::{Counter, JobRecord, TaskRecord};

table! {
    /// One row for each finished job, in the order in which they finished.
    pub Jobs = "jobs"
    of (workload, job) in &'a (u16, JobRecord), names: &'a Names;

    /// number of the job within the workload, from 0 in order of submission
    job: u32 = job.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// name of the job in the trace or scenario; untrusted text
    name: str = job.name.clone();

    /// kind of the job as in the scenario (`terasort`, `sort`, …), or `trace` for a job of a trace
    kind: few = job.kind;

    /// traffic class of the job's data
    class: label(&names.classes) = job.class.0;

    /// time of the job's submission
    submitted_s: seconds = job.submitted;

    /// time at which the first task of the job began to read
    started_s: seconds = job.started;

    /// time at which the last task of the job had reported and the clean-up was complete
    finished_s: seconds = job.finished;

    /// `finished_s` − `submitted_s`, including set-up and waiting
    runtime_s: seconds = job.finished.since(job.submitted);

    /// number of map tasks
    maps: u32 = job.maps;

    /// number of reduce tasks
    reduces: u32 = job.reduces;

    /// payload bytes that the map tasks of the job read
    input_bytes: u64 = job.input_bytes;

    /// payload bytes from map tasks to reduce tasks, including those that stay on their host
    shuffle_bytes: u64 = job.shuffle_bytes;

    /// part of `shuffle_bytes` that stayed on its host; the rest is exactly the shuffle in the
    /// table `flows`
    shuffle_local_bytes: u64 = job.shuffle_local_bytes;

    /// payload bytes written to HDFS, counted once for all replicas
    output_bytes: u64 = job.output_bytes;

    /// reason of the job's failure; empty if it has not failed
    failed since 4: few = job.failed.unwrap_or("");
}

table! {
    /// One row for each finished task, in the order in which they finished.
    pub Tasks = "tasks"
    of (workload, task) in &'a (u16, TaskRecord), names: &'a Names;

    /// number of the job to which the task belongs
    job: u32 = task.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the task within its job and kind
    task: u32 = task.task;

    /// kind of the task: `map` or `reduce`
    kind: few = task.kind.name();

    /// number of the host on which the task ran
    host: u32 = task.host.0;

    /// time at which the assignment of the task reached its host (`startTime` of a job history)
    assigned_s: seconds = task.assigned;

    /// time at which the task began to read (map) or to fetch (reduce)
    started_s: seconds = task.started;

    /// time at which the input was read (map), or the shuffle was complete (reduce;
    /// `shuffleFinishTime`)
    input_done_s: seconds = task.input_done;

    /// time at which the task had written its output: spilled to disk (map), or stored at all
    /// replicas (reduce)
    finished_s: seconds = task.finished;

    /// location of a map task's input split: `node`, `rack` or `remote`; `none` for reduce tasks
    /// and map tasks without input
    locality: few = task.locality.name();

    /// payload bytes that the task read or fetched
    bytes_in: u64 = task.bytes_in;

    /// payload bytes that the task spilled or wrote
    bytes_out: u64 = task.bytes_out;

    /// time at which the map or reduce function had finished (`mapFinishTime` of a job history)
    computed_s since 3: seconds = task.computed;

    /// time at which the input of a reduce task (`sortFinishTime`) or the spills of a map task had
    /// been merged
    merged_s since 3: seconds = task.merged;

    /// number of spills of a map task, or of merges of a reduce task that wrote a file
    spills since 3: u32 = task.spills;

    /// bytes that the task read from local disks or page caches (`FILE_BYTES_READ`)
    file_bytes_read since 3: u64 = task.file_bytes_read;

    /// bytes that the task wrote to local disks by spills and merges (`FILE_BYTES_WRITTEN`; divided
    /// by the size of a record it is `SPILLED_RECORDS`)
    file_bytes_written since 3: u64 = task.file_bytes_written;

    /// CPU time of the task, including the start of the virtual machine (`CPU_MILLISECONDS`)
    cpu_s since 3: seconds = task.cpu;
}

table! {
    /// One row for each finished job, in the order of the table `jobs`: the counters of Hadoop,
    /// with Hadoop's names. The counters of launched, failed and killed tasks count attempts. Bytes
    /// that tasks read, write and spill are counted for successful attempts only, as in Hadoop.
    /// Records have the size of `sort.record_bytes`.
    pub Counters = "counters" since 5
    of (workload, job) in &'a (u16, JobRecord), names: &'a Names;

    /// number of the job within the workload
    job: u32 = job.job;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// bytes that merges and reduce tasks read from local disks or page caches
    FILE_BYTES_READ: u64 = job.counters.get(Counter::FileBytesRead);

    /// bytes that spills and merges wrote to local disks
    FILE_BYTES_WRITTEN: u64 = job.counters.get(Counter::FileBytesWritten);

    /// bytes that the job read from HDFS
    HDFS_BYTES_READ: u64 = job.counters.get(Counter::HdfsBytesRead);

    /// bytes that the job wrote to HDFS, counted once for all replicas
    HDFS_BYTES_WRITTEN: u64 = job.counters.get(Counter::HdfsBytesWritten);

    /// number of launched attempts of map tasks
    TOTAL_LAUNCHED_MAPS: u64 = job.counters.get(Counter::TotalLaunchedMaps);

    /// number of launched attempts of reduce tasks
    TOTAL_LAUNCHED_REDUCES: u64 = job.counters.get(Counter::TotalLaunchedReduces);

    /// number of failed attempts of map tasks
    NUM_FAILED_MAPS: u64 = job.counters.get(Counter::NumFailedMaps);

    /// number of failed attempts of reduce tasks
    NUM_FAILED_REDUCES: u64 = job.counters.get(Counter::NumFailedReduces);

    /// number of killed attempts of map tasks: on lost workers, slower second attempts, in failed
    /// jobs
    NUM_KILLED_MAPS: u64 = job.counters.get(Counter::NumKilledMaps);

    /// number of killed attempts of reduce tasks
    NUM_KILLED_REDUCES: u64 = job.counters.get(Counter::NumKilledReduces);

    /// number of launched map tasks whose input split was on their node
    DATA_LOCAL_MAPS: u64 = job.counters.get(Counter::DataLocalMaps);

    /// number of launched map tasks whose input split was in their rack
    RACK_LOCAL_MAPS: u64 = job.counters.get(Counter::RackLocalMaps);

    /// number of launched map tasks whose input split was neither on their node nor in their rack
    OTHER_LOCAL_MAPS: u64 = job.counters.get(Counter::OtherLocalMaps);

    /// output bytes of the map functions, before a combiner
    MAP_OUTPUT_BYTES: u64 = job.counters.get(Counter::MapOutputBytes);

    /// bytes of map outputs stored on disks
    MAP_OUTPUT_MATERIALIZED_BYTES: u64 = job.counters.get(Counter::MapOutputMaterializedBytes);

    /// number of records that spills and merges of map and reduce tasks wrote
    SPILLED_RECORDS: u64 = job.counters.get(Counter::SpilledRecords);

    /// bytes that reduce tasks fetched, including those from their own host
    REDUCE_SHUFFLE_BYTES: u64 = job.counters.get(Counter::ReduceShuffleBytes);

    /// number of map outputs that reduce tasks fetched
    SHUFFLED_MAPS: u64 = job.counters.get(Counter::ShuffledMaps);

    /// number of failed fetches of map outputs
    FAILED_SHUFFLE: u64 = job.counters.get(Counter::FailedShuffle);

    /// CPU time of the tasks of the job, in ms
    CPU_MILLISECONDS: u64 = job.counters.get(Counter::CpuMilliseconds);
}
