//! Settings of the MapReduce model: the cluster, HDFS, the control plane, the shuffle, the costs of
//! computing and the jobs.
//!
//! Where a default is a default of Hadoop its property is named. "Measured" means the TeraSort runs
//! on Hadoop 3.4.2 that Eastwest keeps as reference (one master, four workers, 64 MiB splits).
//! "Estimate" means that no published number is known: such sizes are small beside the data.

use eastwest_types::{ClassId, HostId, Rate, Span, Time};

/// Tasks of one kind a job may have; what is above is refused rather than left to fill the memory.
pub const MAX_TASKS: u32 = 1_000_000;

/// Tasks all jobs together may have: bounds the memory of a run whatever its trace says.
pub const MAX_ALL_TASKS: u64 = 20_000_000;

/// A MapReduce cluster and the jobs it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MapReduceConfig {
    /// Namenode and jobtracker; runs no task unless `workers` names it, which is refused. Default:
    /// the last host of the cluster.
    pub master: Option<HostId>,
    /// Hosts that store data and run tasks. Default: every host but the master.
    pub workers: Option<Vec<HostId>>,
    /// Map tasks a worker runs at once (`mapred.tasktracker.map.tasks.maximum`: 2; E-EON: 2).
    pub map_slots: u32,
    /// Reduce tasks a worker runs at once (`mapred.tasktracker.reduce.tasks.maximum`: 2; E-EON: 2).
    pub reduce_slots: u32,
    /// Which job the next task is taken from.
    pub scheduler: SchedulerKind,
    /// Traffic class of shuffle, remote splits and replicas.
    pub class: ClassId,
    /// Traffic class of heartbeats and assignments.
    pub control_class: ClassId,
    /// The distributed file system.
    pub hdfs: HdfsConfig,
    /// Heartbeats and assignment.
    pub control: ControlConfig,
    /// From map outputs to reducers.
    pub shuffle: ShuffleConfig,
    /// What computing and local disks cost.
    pub costs: CostConfig,
    /// The jobs, in any order: they are numbered by time of submission, then by place in this list.
    pub jobs: Vec<JobSpec>,
}

impl Default for MapReduceConfig {
    fn default() -> Self {
        MapReduceConfig {
            master: None,
            workers: None,
            map_slots: 2,
            reduce_slots: 2,
            scheduler: SchedulerKind::Fifo,
            class: ClassId(0),
            control_class: ClassId(0),
            hdfs: HdfsConfig::default(),
            control: ControlConfig::default(),
            shuffle: ShuffleConfig::default(),
            costs: CostConfig::default(),
            jobs: Vec::new(),
        }
    }
}

/// Which job the next task is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerKind {
    /// The job submitted first (Hadoop's default until version 1).
    Fifo,
    /// The pool with the fewest running tasks, in it the job with the fewest.
    Fair,
}

/// The distributed file system.
#[derive(Clone, Debug, PartialEq)]
pub struct HdfsConfig {
    /// Copies of every input split (`dfs.replication`: 3).
    pub replication: u32,
    /// Copies of job output, the local one included (`dfs.replication`: 3). A job may ask for
    /// another number, as TeraSort does.
    pub output_replication: u32,
    /// Largest block of job output in bytes (`dfs.block.size` of Hadoop 1 and E-EON: 64 MB, here
    /// 64 · 10⁶).
    pub block_bytes: u64,
    /// Bytes a replica must have received before it passes them on. Hadoop passes on packets of
    /// 64 KiB; 1 MiB has sixteen times fewer events and delays the last replica by 8 ms per hop at
    /// 1 Gbit/s.
    pub write_chunk_bytes: u64,
    /// Chunks a writer may have unacknowledged. 5 · 1 MiB is Hadoop's 80 packets of 64 KiB
    /// (`dfs.client.write.max-packets-in-flight`).
    pub write_window: u32,
    /// Application bytes of an acknowledgement in a pipeline (estimate).
    pub ack_bytes: u32,
    /// Application bytes of a request for a remote split (estimate).
    pub read_request_bytes: u32,
}

impl Default for HdfsConfig {
    fn default() -> Self {
        HdfsConfig {
            replication: 3,
            output_replication: 3,
            block_bytes: 64_000_000,
            write_chunk_bytes: 1 << 20,
            write_window: 5,
            ack_bytes: 32,
            read_request_bytes: 200,
        }
    }
}

/// Heartbeats and assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// Time between two heartbeats of a worker (lower bound of Hadoop's jobtracker: 3 s).
    pub heartbeat: Span,
    /// Send a heartbeat at once when a task has finished
    /// (`mapreduce.tasktracker.outofband.heartbeat`: false).
    pub out_of_band_heartbeat: bool,
    /// Application bytes of a heartbeat (estimate: status of a node and four tasks).
    pub heartbeat_bytes: u32,
    /// Application bytes of an answer without task (estimate).
    pub answer_bytes: u32,
    /// Application bytes of each task in an answer (estimate: task, split and paths).
    pub assignment_bytes: u32,
    /// Application bytes by which an answer tells one reducer of one finished map (estimate:
    /// an attempt's name and the address of its node).
    pub map_event_bytes: u32,
    /// Maps given out in one answer at most. Hadoop's FIFO scheduler fills all free slots: no limit.
    pub maps_per_heartbeat: u32,
    /// Reduces given out in one answer at most (Hadoop's FIFO scheduler: 1).
    pub reduces_per_heartbeat: u32,
    /// Fill only as many slots of a worker as it needs if the waiting and running tasks were spread
    /// evenly over the cluster, as Hadoop's FIFO and Fair schedulers do.
    pub spread: bool,
    /// Part of a job's maps that must have finished before its reduces are given out
    /// (`mapreduce.job.reduce.slowstart.completedmaps`: 0.05).
    pub slowstart: f64,
    /// From submission until a job's maps can be given out. Measured: 4–5 s from submission to the
    /// first map, of which `task_start` and the wait for a heartbeat are accounted elsewhere.
    pub job_setup: Span,
    /// From the report of the last task until the job has finished (measured: 40–60 ms).
    pub job_cleanup: Span,
}

impl Default for ControlConfig {
    fn default() -> Self {
        ControlConfig {
            heartbeat: Span::from_secs(3),
            out_of_band_heartbeat: false,
            heartbeat_bytes: 600,
            answer_bytes: 200,
            assignment_bytes: 1000,
            map_event_bytes: 100,
            maps_per_heartbeat: u32::MAX,
            reduces_per_heartbeat: 1,
            spread: true,
            slowstart: 0.05,
            job_setup: Span::from_secs(3),
            job_cleanup: Span::from_ms(50),
        }
    }
}

/// From map outputs to reducers.
#[derive(Clone, Debug, PartialEq)]
pub struct ShuffleConfig {
    /// Hosts a reducer fetches from at once (`mapreduce.reduce.shuffle.parallelcopies`: 5).
    pub parallel_copies: u32,
    /// Map outputs of one host asked for in one request (`MAX_MAPS_AT_ONCE` of Hadoop's shuffle
    /// scheduler: 20).
    pub max_maps_per_fetch: u32,
    /// Application bytes of a request (estimate: an HTTP GET with map names, token and hash).
    pub fetch_request_bytes: u32,
    /// Application bytes of a response before the map outputs (estimate: an HTTP header).
    pub fetch_header_bytes: u32,
}

impl Default for ShuffleConfig {
    fn default() -> Self {
        ShuffleConfig {
            parallel_copies: 5,
            max_maps_per_fetch: 20,
            fetch_request_bytes: 300,
            fetch_header_bytes: 200,
        }
    }
}

/// What computing and local disks cost. Every task has these rates for itself: tasks on one worker
/// do not slow each other down.
#[derive(Clone, Debug, PartialEq)]
pub struct CostConfig {
    /// From the arrival of an assignment until the task starts to read or fetch (start of a Java
    /// virtual machine: about 1 s on an idle core; measured 2–4 s on shared ones).
    pub task_start: Span,
    /// Map function with sort (measured: 31 ms of CPU per MB, sort and spill included).
    pub map_rate: Rate,
    /// Reduce function (measured: 140 MB in 1.7–2.6 s, output included).
    pub reduce_rate: Rate,
    /// Reading local splits, spilling, merging, copying map output on the same worker, writing the
    /// local replica (sequential transfer of one 7200 rpm disk: 100–150 MB/s; measured merge of
    /// 140 MB: 0.8–2 s).
    pub disk_rate: Rate,
}

impl Default for CostConfig {
    fn default() -> Self {
        CostConfig {
            task_start: Span::from_secs(1),
            map_rate: Rate::megabytes(32),
            reduce_rate: Rate::megabytes(64),
            disk_rate: Rate::megabytes(100),
        }
    }
}

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Name for tables: untrusted text.
    pub name: String,
    /// Kind of job: `terasort`, `search`, `index`, `trace` …
    pub kind: &'static str,
    /// When it is submitted to the master.
    pub submit: Time,
    /// What it reads, moves and writes.
    pub bytes: JobBytes,
    /// Map tasks, at least 1.
    pub maps: u32,
    /// Reduce tasks; 0 means that maps write the output.
    pub reduces: u32,
    /// Pool of the Fair scheduler. Default: a pool of its own.
    pub pool: Option<String>,
    /// Copies of its output. Default: the file system's.
    pub output_replication: Option<u32>,
}

/// What a job reads, moves and writes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JobBytes {
    /// Read by maps.
    pub input: u64,
    /// From maps to reduces, the local share included.
    pub shuffle: u64,
    /// Written, counted once whatever the replication.
    pub output: u64,
}

impl JobBytes {
    /// Sort: all that is read is moved and written (E-EON, table 4.2: 640 / 640 / 640 MB).
    pub fn terasort(input: u64) -> JobBytes {
        JobBytes { input, shuffle: input, output: input }
    }
    /// Search for a rare word (E-EON, table 4.2: 640 / 0.033 / 0.033 MB).
    pub fn search(input: u64) -> JobBytes {
        JobBytes::by_ratio(input, (33, 640_000), (1, 1))
    }
    /// Build an inverted index (E-EON, table 4.2: 640 / 114 / 114 MB).
    pub fn index(input: u64) -> JobBytes {
        JobBytes::by_ratio(input, (114, 640), (1, 1))
    }
    /// Any ratios, as fractions rounded down: shuffle to input and output to shuffle. Denominators
    /// must not be zero; what exceeds 64 bits saturates.
    pub fn by_ratio(input: u64, shuffle: (u64, u64), output: (u64, u64)) -> JobBytes {
        let part = |of: u64, (n, d): (u64, u64)| {
            u64::try_from(u128::from(of) * u128::from(n) / u128::from(d)).unwrap_or(u64::MAX)
        };
        let shuffle = part(input, shuffle);
        JobBytes { input, shuffle, output: part(shuffle, output) }
    }
}

/// The rule that turns a job's bytes into numbers of tasks.
///
/// ```text
/// maps    = max(1, ⌈b / split_bytes⌉)   b = input, or shuffle if there is no input, or output
/// reduces = 0                           if nothing is shuffled
///           clamp(⌈shuffle / bytes_per_reducer⌉, 1, max(1, ⌊fill · workers · reduce_slots⌋))
/// ```
///
/// One map per block is Hadoop's rule for input; bytes per reducer is Hive's; the upper bound, with
/// which all reduces run at once and some slots stay free for failures, is the advice of Hadoop's
/// MapReduce tutorial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRule {
    /// Bytes of an input split (block size of Hadoop 1 and E-EON: 64 MB, here 64 · 10⁶).
    pub split_bytes: u64,
    /// Shuffle bytes of a reduce task (`hive.exec.reducers.bytes.per.reducer`: 256 · 10⁶).
    pub bytes_per_reducer: u64,
    /// Part of all reduce slots one job may fill, in percent (Hadoop's tutorial: 95).
    pub reduce_fill_percent: u32,
}

impl Default for SizeRule {
    fn default() -> Self {
        SizeRule {
            split_bytes: 64_000_000,
            bytes_per_reducer: 256_000_000,
            reduce_fill_percent: 95,
        }
    }
}

impl SizeRule {
    /// Numbers of maps and reduces of a job of these sizes on a cluster with so many reduce slots
    /// in total. Saturates at `u32::MAX`, which [`MAX_TASKS`] then refuses.
    pub fn tasks(&self, bytes: JobBytes, reduce_slots: u64) -> (u32, u32) {
        let count =
            |bytes: u64, part: u64| u32::try_from(bytes.div_ceil(part.max(1))).unwrap_or(u32::MAX);
        let read = [bytes.input, bytes.shuffle, bytes.output];
        let read = read.into_iter().find(|&b| b > 0).unwrap_or(0);
        let maps = count(read, self.split_bytes).max(1);
        if bytes.shuffle == 0 {
            return (maps, 0);
        }
        let most = reduce_slots.saturating_mul(u64::from(self.reduce_fill_percent)) / 100;
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        (maps, count(bytes.shuffle, self.bytes_per_reducer).clamp(1, most))
    }
}

impl JobSpec {
    /// A job whose numbers of tasks follow from its bytes.
    pub fn sized(
        name: impl Into<String>,
        kind: &'static str,
        submit: Time,
        bytes: JobBytes,
        rule: &SizeRule,
        reduce_slots: u64,
    ) -> JobSpec {
        let (maps, reduces) = rule.tasks(bytes, reduce_slots);
        JobSpec::fixed(name, kind, submit, bytes, maps, reduces)
    }

    /// A job with given numbers of tasks. The kind `terasort` writes one replica, as TeraSort does
    /// (`mapreduce.terasort.output.replication`: 1).
    pub fn fixed(
        name: impl Into<String>,
        kind: &'static str,
        submit: Time,
        bytes: JobBytes,
        maps: u32,
        reduces: u32,
    ) -> JobSpec {
        JobSpec {
            name: name.into(),
            kind,
            submit,
            bytes,
            maps,
            reduces,
            pool: None,
            output_replication: (kind == "terasort").then_some(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ratios_give_the_published_bytes() {
        let search = JobBytes::search(640_000_000);
        assert_eq!((search.shuffle, search.output), (33_000, 33_000));
        let index = JobBytes::index(640_000_000);
        assert_eq!((index.shuffle, index.output), (114_000_000, 114_000_000));
        assert_eq!(JobBytes::terasort(5), JobBytes { input: 5, shuffle: 5, output: 5 });
        assert_eq!(JobBytes::by_ratio(u64::MAX, (3, 1), (1, 2)).shuffle, u64::MAX);
    }

    #[test]
    fn tasks_follow_from_bytes() {
        let rule = SizeRule::default();
        let tasks = |input, shuffle, output| rule.tasks(JobBytes { input, shuffle, output }, 40);
        assert_eq!(tasks(640_000_000, 640_000_000, 0), (10, 3));
        assert_eq!(tasks(640_000_001, 1, 0), (11, 1));
        assert_eq!(tasks(0, 0, 0), (1, 0));
        assert_eq!(tasks(0, 128_000_001, 0), (3, 1));
        assert_eq!(tasks(0, 0, 65_000_000), (2, 0));
        assert_eq!(tasks(1, u64::MAX, 0), (1, 38));
        assert_eq!(rule.tasks(JobBytes::terasort(u64::MAX), 0), (u32::MAX, 1));
    }
}
