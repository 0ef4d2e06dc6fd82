//! Records of a replayed MPI program: ranks, their activities over time, and messages.

use crate::ids::HostId;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Activity of an MPI rank in an interval of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Activity {
    /// Computation.
    Compute,
    /// Sleep.
    Sleep,
    /// Wait in a blocking send.
    Send,
    /// Wait in a blocking receive.
    Receive,
    /// Wait for the completion of requests.
    Wait,
    /// Collective call.
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
    /// Number of the rank.
    pub rank: u32,
    /// Activity of the rank in the interval.
    pub activity: Activity,
    /// MPI call by its name in traces, or `compute` or `sleep` outside MPI calls.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Start of the interval.
    pub began: Time,
    /// End of the interval, later than `began`.
    pub ended: Time,
}

/// A received message between two MPI ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiMessage {
    /// Number of the sending rank.
    pub from: u32,
    /// Number of the receiving rank; may be the sending one.
    pub to: u32,
    /// Tag of the message; 0 for messages of collectives.
    pub tag: i64,
    /// Sending MPI call by its name in traces.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Payload of the message in bytes, without envelope.
    pub bytes: u64,
    /// Whether the data was sent only after the receive was posted (rendezvous protocol).
    pub rendezvous: bool,
    /// Whether the message crossed the network; false between ranks of one host.
    pub network: bool,
    /// Time of the send call.
    pub sent: Time,
    /// Arrival time of the last byte.
    pub arrived: Time,
    /// Time at which the message was matched with a receive.
    pub matched: Time,
    /// Completion time of the receive: the later of `arrived` and `matched`.
    pub received: Time,
}

/// Summary of an MPI rank over the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiRank {
    /// Number of the rank.
    pub rank: u32,
    /// Host that runs the rank.
    pub host: HostId,
    /// Time at which the rank finished.
    pub finished: Time,
    /// Time spent in each [`Activity`], in the order of [`Activity::ALL`].
    pub spent: [Span; Activity::ALL.len()],
    /// Number and payload bytes of the messages that the rank sent with send calls.
    pub sent: (u64, u64),
    /// Number and payload bytes of the messages that the rank sent within collective calls.
    pub sent_in_collectives: (u64, u64),
    /// Number of collective calls of the rank.
    pub collectives: u64,
}
