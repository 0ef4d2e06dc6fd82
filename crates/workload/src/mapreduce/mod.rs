//! Hadoop MapReduce: jobs whose traffic between nodes goes through the simulated network.
//!
//! A master assigns map and reduce tasks to the slots of workers in its answers to their
//! heartbeats. Maps read splits of HDFS, compute and spill; reduces fetch their partitions from
//! every map, merge, compute and write replicated output. The model follows Hadoop 1 (Dean and
//! Ghemawat 2004 for the principle; JobTracker, TaskTracker and ReduceTask for the protocol);
//! `docs/mechanisms/mapreduce.md` describes its equations, parameters and limits.
//!
//! The model has parts, each with its own state. From the lowest to the highest:
//! - `context`: settings, racks, connections with the contents of messages (`content`), machines
//!   (`hardware`), and the event that is being handled, with its host;
//! - `hdfs`: files being written, with `namenode` and `replication`; stand-alone `clients`;
//! - `tasks`: jobs and running attempts (`map`, `reduce`, `output`; `shuffle` for one reduce);
//! - `control`: the master, with `scheduler`, `workers`, `yarn` and speculative copies
//!   (`speculate`);
//! - `model`: dispatches events. A part calls the parts below, and writes notes for the parts
//!   above.

mod applications;
mod assign;
mod blocks;
mod check;
mod clients;
mod coarse_heartbeats;
mod config;
mod connections;
mod containers;
mod content;
mod context;
mod control;
mod counters;
mod dedicated;
mod failure;
mod file;
mod hardware;
mod hdfs;
mod here;
mod job;
mod job_counters;
mod map;
mod mapping;
mod memory;
mod merge;
mod model;
mod namenode;
mod nodes;
mod note;
mod output;
mod owners;
mod producing;
pub mod racks;
mod read_timeouts;
mod reduce;
mod replication;
mod report;
mod resource;
pub mod scheduler;
mod shares;
mod shuffle;
mod slab;
mod speculate;
mod task;
mod tasks;
#[cfg(test)]
mod tests;
mod timer;
pub mod waiting;
mod work;
mod workers;
mod yarn;

pub use config::{
    Clients, CoarseConfig, ControlConfig, CostConfig, FailingTask, FailureConfig, Framework,
    HdfsConfig, JobBytes, JobSpec, MAX_ALL_TASKS, MAX_TASKS, MapReduceConfig, NodeConfig,
    RecoveryConfig, ReplaceDatanode, ShuffleConfig, SizeRule, SlowNode, SortConfig,
    SpeculationConfig, YarnConfig,
};
pub use model::MapReduce;
pub use scheduler::{
    DelayConfig, PoolConfig, PoolOrder, QueueConfig, QuincyConfig, SchedulerKind, Scheduling, WHOLE,
};
