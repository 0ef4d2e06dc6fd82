//! Settings of the MapReduce model. This file has the cluster and the control plane; HDFS, tasks,
//! hardware, YARN and jobs have their own files.
//!
//! A default of Hadoop is given with the name of its property. There are two sets of defaults:
//! `default()` for Hadoop 1 and `hadoop3()` for Hadoop 3 on YARN. "Measured" refers to the TeraSort
//! runs on Hadoop 3.4.2 that Eastwest keeps as reference (one master, four workers, 64 MiB splits).
//! "Estimate" means that no published number is known: these sizes are small compared with the
//! data.

mod coarse;
mod failures;
mod hdfs;
mod jobs;
mod node;
mod recovery;
mod speculation;
mod tasks;
mod yarn;

pub use coarse::CoarseConfig;
pub use failures::{FailingTask, FailureConfig};
pub use hdfs::HdfsConfig;
pub use jobs::{Clients, JobBytes, JobSpec, SizeRule};
pub use node::{NodeConfig, SlowNode};
pub use recovery::{RecoveryConfig, ReplaceDatanode};
use serde::{Deserialize, Serialize};
pub use speculation::SpeculationConfig;
pub use tasks::{CostConfig, ShuffleConfig, SortConfig};
pub use yarn::YarnConfig;

use super::scheduler::{SchedulerKind, Scheduling};
use eastwest_types::{ClassId, HostId, Span};

/// Largest number of maps, or of reduces, of a job; larger jobs are refused because of their
/// memory.
pub const MAX_TASKS: u32 = 1_000_000;

/// Largest number of tasks of all jobs together; limits the memory of a run with any trace.
pub const MAX_ALL_TASKS: u64 = 20_000_000;

/// Settings of a MapReduce cluster, and the jobs that it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapReduceConfig {
    /// Host of the namenode and of the jobtracker (on YARN, resource manager). It runs no tasks and
    /// must not be in `workers`. Default: the last host of the cluster.
    pub master: Option<HostId>,
    /// Hosts that store data and run tasks. Default: every host except the master.
    pub workers: Option<Vec<HostId>>,
    /// Framework that assigns tasks to workers (`mapreduce.framework.name`).
    pub framework: Framework,
    /// Number of map slots of each worker (`mapred.tasktracker.map.tasks.maximum`: 2; E-EON: 2).
    /// Not used on YARN.
    pub map_slots: u32,
    /// Number of reduce slots of each worker (`mapred.tasktracker.reduce.tasks.maximum`: 2; E-EON:
    /// 2). Not used on YARN.
    pub reduce_slots: u32,
    /// Scheduler, which chooses the job whose task is assigned next.
    pub scheduler: SchedulerKind,
    /// Settings of the scheduler: pools, queues, waits of delay scheduling, costs of Quincy.
    pub scheduling: Scheduling,
    /// Traffic class of shuffle, remote input splits and HDFS replicas.
    pub class: ClassId,
    /// Traffic class of control messages such as heartbeats and assignments of tasks.
    pub control_class: ClassId,
    /// Settings of HDFS, the distributed file system.
    pub hdfs: HdfsConfig,
    /// Settings of heartbeats and of the assignment of tasks.
    pub control: ControlConfig,
    /// Settings of the shuffle, the transfer of map outputs to reduces.
    pub shuffle: ShuffleConfig,
    /// Settings of the sort buffer, and of spills and merges on local disks.
    pub sort: SortConfig,
    /// Settings of CPU costs: rates of the map and reduce functions, of sort and merge, and the
    /// times of task start and commit.
    pub costs: CostConfig,
    /// Settings of the cores, disks and page cache of workers.
    pub node: NodeConfig,
    /// Workers whose cores and disks have a different speed. A machine with several workers has the
    /// speed of its slowest worker.
    pub slow_nodes: Vec<SlowNode>,
    /// Settings of YARN containers and application masters.
    pub yarn: YarnConfig,
    /// Settings of failing attempts, and of the timeouts that detect failures.
    pub failures: FailureConfig,
    /// Settings of speculative execution.
    pub speculation: SpeculationConfig,
    /// Approximations for runs with large clusters; all off by default.
    pub coarse: CoarseConfig,
    /// Jobs in any order; they are numbered by time of submission, then by index in this list.
    pub jobs: Vec<JobSpec>,
}

impl Default for MapReduceConfig {
    fn default() -> Self {
        MapReduceConfig {
            master: None,
            workers: None,
            framework: Framework::Mr1,
            map_slots: 2,
            reduce_slots: 2,
            scheduler: SchedulerKind::Fifo,
            scheduling: Scheduling::default(),
            class: ClassId(0),
            control_class: ClassId(0),
            hdfs: HdfsConfig::default(),
            control: ControlConfig::default(),
            shuffle: ShuffleConfig::default(),
            sort: SortConfig::default(),
            costs: CostConfig::default(),
            node: NodeConfig::default(),
            slow_nodes: Vec::new(),
            yarn: YarnConfig::default(),
            failures: FailureConfig::default(),
            speculation: SpeculationConfig::default(),
            coarse: CoarseConfig::default(),
            jobs: Vec::new(),
        }
    }
}

impl MapReduceConfig {
    /// Returns the settings of Hadoop 3 on YARN: its defaults, and workers whose tasks share eight
    /// cores and four disks.
    pub fn hadoop3() -> MapReduceConfig {
        MapReduceConfig {
            framework: Framework::Yarn,
            hdfs: HdfsConfig::hadoop3(),
            control: ControlConfig::hadoop3(),
            shuffle: ShuffleConfig::hadoop3(),
            costs: CostConfig::hadoop3(),
            node: NodeConfig::hdd(),
            ..MapReduceConfig::default()
        }
    }
}

/// Framework that assigns tasks to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Framework {
    /// Hadoop 1: the jobtracker assigns tasks to the map and reduce slots of a worker in its answer
    /// to the worker's heartbeat.
    Mr1,
    /// Hadoop 2 and 3: an application master for each job requests containers from the resource
    /// manager.
    Yarn,
}

/// Settings of heartbeats and of the assignment of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlConfig {
    /// Time between two heartbeats of a worker (lower bound of Hadoop's jobtracker: 3 s;
    /// `yarn.resourcemanager.nodemanagers.heartbeat-interval-ms`: 1000).
    pub heartbeat: Span,
    /// Whether a worker sends an additional heartbeat at once when a task has finished
    /// (`mapreduce.tasktracker.outofband.heartbeat`: false).
    pub out_of_band_heartbeat: bool,
    /// Application bytes of a worker's heartbeat (estimate: status of a node and four tasks).
    pub heartbeat_bytes: u32,
    /// Application bytes of an answer to a heartbeat that assigns no tasks (estimate).
    pub answer_bytes: u32,
    /// Application bytes of each task in an answer to a heartbeat (estimate: task, split and
    /// paths).
    pub assignment_bytes: u32,
    /// Application bytes in an answer for each finished map, counted once for each reduce that
    /// learns of it (estimate: an attempt's name and the address of its node).
    pub map_event_bytes: u32,
    /// Largest number of maps that one answer to a heartbeat assigns. Default: no limit, since
    /// Hadoop's FIFO scheduler fills all free slots.
    pub maps_per_heartbeat: u32,
    /// Largest number of reduces that one answer to a heartbeat assigns (Hadoop's FIFO scheduler:
    /// 1).
    pub reduces_per_heartbeat: u32,
    /// Whether a worker gets at most its even share of all waiting and running tasks of the
    /// cluster, as with Hadoop's FIFO and Fair schedulers.
    pub spread: bool,
    /// Fraction of a job's maps that must have finished before its reduces are assigned
    /// (`mapreduce.job.reduce.slowstart.completedmaps`: 0.05).
    pub slowstart: f64,
    /// Time from submission until a job's maps can be assigned. Measured: 4–5 s from submission to
    /// the first map, including `task_start` and the wait for a heartbeat, which are modelled
    /// separately.
    pub job_setup: Span,
    /// Time from the report of the last task to the end of the job (measured: 40–60 ms).
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

impl ControlConfig {
    /// Returns the control settings of Hadoop 3: heartbeats of node managers every second;
    /// `job_setup` covers only the client, because the start of the application master is modelled
    /// separately.
    pub fn hadoop3() -> ControlConfig {
        ControlConfig {
            heartbeat: Span::from_secs(1),
            job_setup: Span::from_ms(500),
            spread: false,
            reduces_per_heartbeat: u32::MAX,
            ..ControlConfig::default()
        }
    }
}
