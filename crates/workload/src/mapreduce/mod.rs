//! Hadoop MapReduce: jobs whose every byte between nodes goes through the network.
//!
//! A master gives map and reduce tasks to the slots of workers in its answers to their heartbeats.
//! Maps read splits of HDFS, compute and spill; reduces fetch their partitions from every map, merge,
//! compute and write replicated output. The model follows Hadoop 1 (Dean and Ghemawat 2004 for the
//! principle; JobTracker, TaskTracker and ReduceTask for the protocol) and is described with its
//! equations, parameters and limits in `docs/mechanisms/mapreduce.md`.
//!
//! Parts, each with state of its own, from below:
//! - `context`: settings, racks, connections and the machines (`hardware`), and the event at hand;
//! - `hdfs`: files being written, over `namenode` and `replication`; `clients` that stand alone;
//! - `tasks`: jobs and the attempts that run (`map`, `reduce`, `output`); `shuffle` is one reduce's;
//! - `control`: the master, with its `scheduler`, `workers`, `yarn` and second attempts (`speculate`);
//! - `model`: hands events to parts. A part calls those below it, and tells those above it by notes.

mod applications;
mod assign;
mod blocks;
mod check;
mod clients;
mod coarse_heartbeats;
mod config;
mod connections;
mod containers;
mod context;
mod control;
mod counters;
mod dedicated;
mod failure;
mod file;
mod hardware;
mod hdfs;
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
