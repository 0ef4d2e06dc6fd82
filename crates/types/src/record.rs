//! Rows that workloads leave behind about jobs and tasks.

use crate::counters::JobCounters;
use crate::ids::{ClassId, HostId};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Why bytes travel: names a row in the flow table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// A transfer of an open-loop workload.
    Flow,
    /// One sender's part of a synchronized read.
    Incast,
    /// A question of a request–response service.
    Request,
    /// Its answer.
    Response,
    /// Map output fetched by a reducer.
    Shuffle,
    /// A remote map split.
    MapInput,
    /// Job output on its way to a replica.
    Replica,
    /// Heartbeats, assignments, fetch requests and other small messages of a framework.
    Control,
    /// A block that a datanode copies to another because replicas were lost.
    Rereplication,
    /// A message between ranks of an MPI program.
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

    /// The name used in tables and JSON.
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

/// A finished job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobRecord {
    /// Number of the job within its workload, from 0 in order of submission.
    pub job: u32,
    /// Name given by the trace or scenario: untrusted text.
    pub name: String,
    /// Kind of job: `terasort`, `search`, `index`, `trace` …
    #[serde(with = "crate::name")]
    pub kind: crate::name::Name,
    /// Traffic class its data travels in.
    pub class: ClassId,
    /// When it was submitted.
    pub submitted: Time,
    /// When its first task started.
    pub started: Time,
    /// When its last task had finished and its output was written.
    pub finished: Time,
    /// Number of map tasks.
    pub maps: u32,
    /// Number of reduce tasks.
    pub reduces: u32,
    /// Bytes read by the maps.
    pub input_bytes: u64,
    /// Bytes moved from maps to reduces, the local share included.
    pub shuffle_bytes: u64,
    /// The part of `shuffle_bytes` that stayed on its node.
    pub shuffle_local_bytes: u64,
    /// Bytes written by the job, counted once whatever the replication.
    pub output_bytes: u64,
    /// Why it has failed, if it has.
    #[serde(with = "crate::name")]
    pub failed: Option<crate::name::Name>,
    /// What Hadoop would count of it.
    pub counters: JobCounters,
}

/// Map or reduce.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TaskKind {
    /// Reads a split, computes, sorts, spills.
    Map,
    /// Fetches, merges, computes, writes.
    Reduce,
}

impl TaskKind {
    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Map => "map",
            TaskKind::Reduce => "reduce",
        }
    }
}

/// How far a map's split was from the node that ran it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Locality {
    /// A replica on the same node.
    Node,
    /// A replica in the same rack.
    Rack,
    /// Only replicas in other racks.
    Remote,
    /// Reduce tasks and maps without input.
    None,
}

impl Locality {
    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Locality::Node => "node",
            Locality::Rack => "rack",
            Locality::Remote => "remote",
            Locality::None => "none",
        }
    }
}

/// A finished task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The job it belongs to.
    pub job: u32,
    /// Number of the task within its job and kind.
    pub task: u32,
    /// Map or reduce.
    pub kind: TaskKind,
    /// Where it ran.
    pub host: HostId,
    /// When it was given to its node.
    pub assigned: Time,
    /// When it started to read (map) or fetch (reduce).
    pub started: Time,
    /// When its input was complete: split read, or shuffle done.
    pub input_done: Time,
    /// When it had finished.
    pub finished: Time,
    /// Where a map's split was.
    pub locality: Locality,
    /// Bytes it read or fetched.
    pub bytes_in: u64,
    /// Bytes it spilled or wrote.
    pub bytes_out: u64,
    /// When the map or reduce function was through (`mapFinishTime` of a job history).
    pub computed: Time,
    /// When its input (reduce, `sortFinishTime`) or its spills (map) were merged.
    pub merged: Time,
    /// Spills of a map; merges of a reduce that wrote a file.
    pub spills: u32,
    /// Bytes read back from local disks or page caches (`FILE_BYTES_READ`).
    pub file_bytes_read: u64,
    /// Bytes written to local disks by spills and merges (`FILE_BYTES_WRITTEN`; divided by the size
    /// of a record, `SPILLED_RECORDS`).
    pub file_bytes_written: u64,
    /// Core time it used (`CPU_MILLISECONDS`), the start of its virtual machine included.
    pub cpu: Span,
}
