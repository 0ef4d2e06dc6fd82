//! Settings of the MapReduce model: the cluster and its control plane; HDFS, tasks, hardware, YARN
//! and jobs each have a file.
//!
//! Where a default is a default of Hadoop its property is named. Two sets of defaults: those of
//! Hadoop 1, `default()`, and those of Hadoop 3 on YARN, `hadoop3()`. "Measured" means the TeraSort runs
//! on Hadoop 3.4.2 that Eastwest keeps as reference (one master, four workers, 64 MiB splits).
//! "Estimate" means that no published number is known: such sizes are small beside the data.

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

/// Tasks of one kind a job may have; what is above is refused rather than left to fill the memory.
pub const MAX_TASKS: u32 = 1_000_000;

/// Tasks all jobs together may have: bounds the memory of a run whatever its trace says.
pub const MAX_ALL_TASKS: u64 = 20_000_000;

/// A MapReduce cluster and the jobs it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapReduceConfig {
    /// Namenode and jobtracker; runs no task unless `workers` names it, which is refused. Default:
    /// the last host of the cluster.
    pub master: Option<HostId>,
    /// Hosts that store data and run tasks. Default: every host but the master.
    pub workers: Option<Vec<HostId>>,
    /// Who gives out tasks (`mapreduce.framework.name`).
    pub framework: Framework,
    /// Map tasks a worker runs at once (`mapred.tasktracker.map.tasks.maximum`: 2; E-EON: 2). Not
    /// looked at on YARN.
    pub map_slots: u32,
    /// Reduce tasks a worker runs at once (`mapred.tasktracker.reduce.tasks.maximum`: 2; E-EON: 2).
    pub reduce_slots: u32,
    /// Which job the next task is taken from.
    pub scheduler: SchedulerKind,
    /// Pools, queues, waits and costs of the scheduler.
    pub scheduling: Scheduling,
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
    /// Sort buffer, spills and merges.
    pub sort: SortConfig,
    /// What computing costs.
    pub costs: CostConfig,
    /// Cores, disks and page cache of workers.
    pub node: NodeConfig,
    /// Workers with a speed of their own. A machine of several workers has that of its slowest.
    pub slow_nodes: Vec<SlowNode>,
    /// Containers and application masters.
    pub yarn: YarnConfig,
    /// What fails by itself, and when Hadoop believes it.
    pub failures: FailureConfig,
    /// Second attempts at slow tasks.
    pub speculation: SpeculationConfig,
    /// What is left out for the sake of size.
    pub coarse: CoarseConfig,
    /// The jobs, in any order: they are numbered by time of submission, then by place in this list.
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
    /// Hadoop 3 on YARN: its defaults, and workers whose tasks share eight cores and four disks.
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

/// Who gives out tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Framework {
    /// Hadoop 1: a jobtracker fills map and reduce slots in its answers to heartbeats.
    Mr1,
    /// Hadoop 2 and 3: an application master per job asks the resource manager for containers.
    Yarn,
}

/// Heartbeats and assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlConfig {
    /// Time between two heartbeats of a worker (lower bound of Hadoop's jobtracker: 3 s;
    /// `yarn.resourcemanager.nodemanagers.heartbeat-interval-ms`: 1000).
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

impl ControlConfig {
    /// Hadoop 3: heartbeats of node managers every second; what is left of the set-up after the
    /// application master's start is the client's part.
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
