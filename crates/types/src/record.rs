//! Records of jobs and tasks.

use crate::counters::JobCounters;
use crate::ids::{ClassId, HostId};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Purpose of a transfer, a column of the flow table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// Flow of an open-loop workload.
    Flow,
    /// Block of one sender in a synchronized read.
    Incast,
    /// Request to a service.
    Request,
    /// Response of a service.
    Response,
    /// Map output fetched by a reduce.
    Shuffle,
    /// Remote split read by a map.
    MapInput,
    /// Job output sent to a further replica.
    Replica,
    /// Heartbeats, assignments, fetch requests and other small messages of a framework.
    Control,
    /// Block copied between datanodes after the loss of replicas.
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
    /// Name from the trace or scenario: untrusted text.
    pub name: String,
    /// Kind of job: `terasort`, `search`, `index`, `trace` …
    #[serde(with = "crate::name")]
    pub kind: crate::name::Name,
    /// Traffic class of the data of the job.
    pub class: ClassId,
    /// Time at which the job was submitted.
    pub submitted: Time,
    /// Start time of the first task.
    pub started: Time,
    /// Time at which the last task had finished and the output was written.
    pub finished: Time,
    /// Number of map tasks.
    pub maps: u32,
    /// Number of reduce tasks.
    pub reduces: u32,
    /// Bytes that the maps of the job read.
    pub input_bytes: u64,
    /// Bytes moved from maps to reduces (the shuffle), including bytes that stay on their node.
    pub shuffle_bytes: u64,
    /// Part of the shuffle bytes that stayed on their node.
    pub shuffle_local_bytes: u64,
    /// Output bytes of the job, without further replicas.
    pub output_bytes: u64,
    /// Cause of failure; `None` for a successful job.
    #[serde(with = "crate::name")]
    pub failed: Option<crate::name::Name>,
    /// Counters of the job with Hadoop's meaning.
    pub counters: JobCounters,
}

/// Kind of task: map or reduce.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TaskKind {
    /// Map: reads a split, computes, sorts and spills.
    Map,
    /// Reduce: fetches, merges, computes and writes.
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

/// Distance between a map's split and the node that ran the map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Locality {
    /// A replica of the split was on the node that ran the map.
    Node,
    /// A replica of the split was in the rack of the node that ran the map, but not on the node.
    Rack,
    /// All replicas of the split were in other racks.
    Remote,
    /// No split: reduces and maps without input.
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
    /// Number of the task within its job and kind.
    pub task: u32,
    /// Kind of task.
    pub kind: TaskKind,
    /// Host that ran the task.
    pub host: HostId,
    /// Time at which the task was assigned to its node.
    pub assigned: Time,
    /// Time at which the task started to read (map) or fetch (reduce).
    pub started: Time,
    /// Time at which the input of the task was complete: split read, or shuffle done.
    pub input_done: Time,
    /// Time at which the task finished.
    pub finished: Time,
    /// Distance to the split of a map.
    pub locality: Locality,
    /// Bytes that the task read (map) or fetched (reduce).
    pub bytes_in: u64,
    /// Bytes that the task spilled (map) or wrote as job output (reduce).
    pub bytes_out: u64,
    /// End of the map or reduce function (`mapFinishTime` of a job history).
    pub computed: Time,
    /// End of the merge: of the input of a reduce (`sortFinishTime`), or of the spills of a map.
    pub merged: Time,
    /// Number of spills of a map, or of merges of a reduce to a file.
    pub spills: u32,
    /// Bytes read back from local disks or page caches (`FILE_BYTES_READ`).
    pub file_bytes_read: u64,
    /// Bytes written to local disks by spills and merges (`FILE_BYTES_WRITTEN`; divided by the size
    /// of a record, `SPILLED_RECORDS`).
    pub file_bytes_written: u64,
    /// CPU time (`CPU_MILLISECONDS`), including the start of the Java virtual machine.
    pub cpu: Span,
}
