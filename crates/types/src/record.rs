//! Records of finished MapReduce jobs and their tasks.

use crate::counters::JobCounters;
use crate::ids::{ClassId, HostId};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Purpose of a data transfer; a column of the flow table in the results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// Flow of an open-loop workload, which starts flows independently of their completion.
    Flow,
    /// Block that one of several senders transmits in a synchronized read.
    Incast,
    /// Request that a client sends to a service.
    Request,
    /// Response that a service sends to a client.
    Response,
    /// Map output that a reduce fetches.
    Shuffle,
    /// Split that a map reads from another node.
    MapInput,
    /// Job output that is written to a further replica.
    Replica,
    /// Small messages of a framework: heartbeats, assignments, fetch requests and others.
    Control,
    /// Block that is copied between datanodes after replicas were lost.
    Rereplication,
    /// Message between ranks of an MPI program.
    Message,
}

impl Purpose {
    /// All purposes in the order of their numbers.
    pub const ALL: [Purpose; 10] = [
        Purpose::Flow,
        Purpose::Incast,
        Purpose::Request,
        Purpose::Response,
        Purpose::Shuffle,
        Purpose::MapInput,
        Purpose::Replica,
        Purpose::Control,
        Purpose::Rereplication,
        Purpose::Message,
    ];

    /// Returns the name of the purpose in result tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Flow => "flow",
            Purpose::Incast => "incast",
            Purpose::Request => "request",
            Purpose::Response => "response",
            Purpose::Shuffle => "shuffle",
            Purpose::MapInput => "map-input",
            Purpose::Replica => "replica",
            Purpose::Control => "control",
            Purpose::Rereplication => "re-replication",
            Purpose::Message => "message",
        }
    }
}

/// Record of a finished MapReduce job, successful or failed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobRecord {
    /// Number of the job within its workload, from 0 in order of submission.
    pub job: u32,
    /// Name of the job in the trace or scenario; untrusted text.
    pub name: String,
    /// Kind of the job, such as `terasort`, `search`, `index` or `trace`.
    #[serde(with = "crate::name")]
    pub kind: crate::name::Name,
    /// Traffic class of the data of the job.
    pub class: ClassId,
    /// Time at which the job was submitted.
    pub submitted: Time,
    /// Start time of the first task.
    pub started: Time,
    /// Time at which the last task had finished and the output had been written.
    pub finished: Time,
    /// Number of map tasks.
    pub maps: u32,
    /// Number of reduce tasks.
    pub reduces: u32,
    /// Bytes that the maps of the job read.
    pub input_bytes: u64,
    /// Bytes transferred from maps to reduces (the shuffle), including bytes that stayed on their
    /// node.
    pub shuffle_bytes: u64,
    /// Part of `shuffle_bytes` that stayed on its node.
    pub shuffle_local_bytes: u64,
    /// Output bytes of the job, counting each block once, without further replicas.
    pub output_bytes: u64,
    /// Cause of the failure of the job; `None` for a successful job.
    #[serde(with = "crate::name")]
    pub failed: Option<crate::name::Name>,
    /// Counters of the job with Hadoop's meaning.
    pub counters: JobCounters,
}

/// Kind of task: map or reduce.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TaskKind {
    /// Map task: reads a split, computes, sorts and spills.
    Map,
    /// Reduce task: fetches map outputs, merges, computes and writes.
    Reduce,
}

impl TaskKind {
    /// Returns the name of the task kind in result tables.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Map => "map",
            TaskKind::Reduce => "reduce",
        }
    }
}

/// Distance between the split of a map and the node that ran the map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Locality {
    /// A replica of the split was on the node that ran the map.
    Node,
    /// A replica of the split was in the rack of the node that ran the map, but not on the node.
    Rack,
    /// All replicas of the split were in other racks.
    Remote,
    /// The task has no split: it is a reduce, or a map without input.
    None,
}

impl Locality {
    /// Returns the name of the distance in result tables.
    pub fn name(self) -> &'static str {
        match self {
            Locality::Node => "node",
            Locality::Rack => "rack",
            Locality::Remote => "remote",
            Locality::None => "none",
        }
    }
}

/// Record of a finished task of a MapReduce job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Number of the job of the task, see [`JobRecord::job`].
    pub job: u32,
    /// Number of the task among the tasks of its job and kind.
    pub task: u32,
    /// Kind of the task: map or reduce.
    pub kind: TaskKind,
    /// Host that ran the task.
    pub host: HostId,
    /// Time at which the task was assigned to its node.
    pub assigned: Time,
    /// Time at which the task started to read its split (map) or to fetch map outputs (reduce).
    pub started: Time,
    /// Time at which the input of the task was complete: split read (map), or shuffle done
    /// (reduce).
    pub input_done: Time,
    /// Time at which the task finished.
    pub finished: Time,
    /// Distance between the split of a map and the node that ran the map.
    pub locality: Locality,
    /// Bytes that the task read from its split (map) or fetched (reduce).
    pub bytes_in: u64,
    /// Bytes that the task wrote in spills (map) or as job output (reduce).
    pub bytes_out: u64,
    /// Time at which the map or reduce function ended (`mapFinishTime` of a job history).
    pub computed: Time,
    /// Time at which merging ended: of the input of a reduce (`sortFinishTime`), or of the spills
    /// of a map.
    pub merged: Time,
    /// Number of spills of a map, or of merges of a reduce to disk.
    pub spills: u32,
    /// Bytes that the task read back from local disks or page caches (`FILE_BYTES_READ`).
    pub file_bytes_read: u64,
    /// Bytes that the task wrote to local disks in spills and merges (`FILE_BYTES_WRITTEN`). These
    /// bytes, divided by the size of a record, give `SPILLED_RECORDS`.
    pub file_bytes_written: u64,
    /// CPU time of the task (`CPU_MILLISECONDS`), including the start of the Java virtual machine.
    pub cpu: Span,
}
