//! Records of a replayed MPI program: ranks with their activities over time, and messages.

use crate::ids::HostId;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Activity of an MPI rank during an interval of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Activity {
    /// The rank computes.
    Compute,
    /// The rank sleeps.
    Sleep,
    /// The rank waits in a blocking send.
    Send,
    /// The rank waits in a blocking receive.
    Receive,
    /// The rank waits for the completion of non-blocking requests.
    Wait,
    /// The rank is in a collective call.
    Collective,
}

impl Activity {
    /// All activities in the order of their numbers.
    pub const ALL: [Activity; 6] = [
        Activity::Compute,
        Activity::Sleep,
        Activity::Send,
        Activity::Receive,
        Activity::Wait,
        Activity::Collective,
    ];

    /// Returns the name of the activity in result tables.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Compute => "compute",
            Activity::Sleep => "sleep",
            Activity::Send => "send",
            Activity::Receive => "receive",
            Activity::Wait => "wait",
            Activity::Collective => "collective",
        }
    }
}

/// Interval of time in which an MPI rank has one activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiState {
    /// Number of the MPI rank.
    pub rank: u32,
    /// Activity of the rank in the interval.
    pub activity: Activity,
    /// Name of the MPI call as in traces; outside MPI calls `compute` or `sleep`.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Start of the interval.
    pub began: Time,
    /// End of the interval, later than `began`.
    pub ended: Time,
}

/// Record of a message that one MPI rank has received from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiMessage {
    /// Number of the sending rank.
    pub from: u32,
    /// Number of the receiving rank, which may be the sending rank.
    pub to: u32,
    /// Tag of the message; 0 for messages of collectives.
    pub tag: i64,
    /// Name of the MPI call that sent the message, as in traces.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Payload of the message in bytes, without envelope.
    pub bytes: u64,
    /// Whether the data was sent only after the receive was posted (rendezvous protocol); otherwise
    /// it was sent at once (eager protocol).
    pub rendezvous: bool,
    /// Whether the message crossed the network; false if both ranks are on one host.
    pub network: bool,
    /// Time of the send call.
    pub sent: Time,
    /// Arrival time of the last byte at the receiving rank.
    pub arrived: Time,
    /// Time at which the message was matched with a receive.
    pub matched: Time,
    /// Completion time of the receive: the later of `arrived` and `matched`.
    pub received: Time,
}

/// Summary of the activities of an MPI rank over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiRank {
    /// Number of the MPI rank.
    pub rank: u32,
    /// Host that runs the rank.
    pub host: HostId,
    /// Time at which the rank finished.
    pub finished: Time,
    /// Time spent in each [`Activity`], in the order of [`Activity::ALL`].
    pub spent: [Span; Activity::ALL.len()],
    /// Number and payload bytes of the messages that the rank sent with point-to-point send calls.
    pub sent: (u64, u64),
    /// Number and payload bytes of the messages that the rank sent as parts of collective calls.
    pub sent_in_collectives: (u64, u64),
    /// Number of collective calls of the rank.
    pub collectives: u64,
}

/// Record of a collective call that all ranks of its group have left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiCollective {
    /// Number of the group in the program; 0: all ranks.
    pub group: u32,
    /// Number of the call among the calls in its group, from 1.
    pub number: u32,
    /// Name of the call as in traces.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Number of ranks of the group.
    pub ranks: u32,
    /// Bytes of the call for its bus bandwidth: its size, multiplied by the factor for the call and
    /// the number of ranks; `None` if no bus bandwidth is defined for the call.
    pub bus_bytes: Option<u64>,
    /// Time at which the first rank entered the call.
    pub entered: Time,
    /// Time at which the last rank entered the call.
    pub complete: Time,
    /// Rank in the program that entered the call last.
    pub last: u32,
    /// Time at which the last rank left the call.
    pub ended: Time,
}

/// Report that a rank has entered a collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiEntry {
    /// Number of the group in the program; 0: all ranks.
    pub group: u32,
    /// Number of the call among the calls in its group, from 1.
    pub number: u32,
    /// Number of the rank in the program.
    pub rank: u32,
    /// Name of the call as in traces.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Root rank of the call in its group; 0 if the call has no root.
    pub root: u32,
    /// Number of lanes of the call.
    pub lanes: u32,
    /// Bytes for the bus bandwidth, from the arguments of the rank.
    pub bus_bytes: Option<u64>,
}

/// Record of an iteration of a rank with a graph: the nodes between two `waitall`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiIteration {
    /// Number of the MPI rank.
    pub rank: u32,
    /// Number of the iteration, from 0.
    pub number: u32,
    /// Start of the iteration: the end of the one before.
    pub began: Time,
    /// End of its last node.
    pub ended: Time,
    /// Time in which at least one node of the rank computed.
    pub computed: Span,
    /// Time in which the rank was in collective calls, and no node computed.
    pub exposed: Span,
}
