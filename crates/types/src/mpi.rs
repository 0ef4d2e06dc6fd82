//! Rows that replayed MPI programs leave behind: their ranks, what these did when, and messages.

use crate::ids::HostId;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// What a rank does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Activity {
    /// It computes.
    Compute,
    /// It sleeps.
    Sleep,
    /// It waits in a blocking send.
    Send,
    /// It waits in a blocking receive.
    Receive,
    /// It waits for requests.
    Wait,
    /// It is in a collective call.
    Collective,
}

impl Activity {
    /// All of them in the order of their numbers.
    pub const ALL: [Activity; 6] = [
        Activity::Compute,
        Activity::Sleep,
        Activity::Send,
        Activity::Receive,
        Activity::Wait,
        Activity::Collective,
    ];

    /// The name used in tables.
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

/// A stretch of time in which a rank did one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiState {
    /// The rank.
    pub rank: u32,
    /// What it did.
    pub activity: Activity,
    /// The MPI call it was in, by its name in traces; `compute` and `sleep` where it was in none.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// From when.
    pub began: Time,
    /// Until when; later than `began`.
    pub ended: Time,
}

/// A message that has been received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiMessage {
    /// Rank that sent it.
    pub from: u32,
    /// Rank that received it; may be the same.
    pub to: u32,
    /// Its tag; 0 for those of collectives.
    pub tag: i64,
    /// The call that sent it, by its name in traces.
    #[serde(with = "crate::name")]
    pub call: crate::name::Name,
    /// Its size in bytes, without envelope.
    pub bytes: u64,
    /// Whether it waited for its receive to be posted before its data went.
    pub rendezvous: bool,
    /// Whether it went over the network, and not within a host.
    pub network: bool,
    /// When the send was called.
    pub sent: Time,
    /// When its last byte had arrived.
    pub arrived: Time,
    /// When it met its receive.
    pub matched: Time,
    /// When the receive was complete: the later of both.
    pub received: Time,
}

/// What became of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MpiRank {
    /// The rank.
    pub rank: u32,
    /// Where it ran.
    pub host: HostId,
    /// When it was through.
    pub finished: Time,
    /// Time spent in each [`Activity`].
    pub spent: [Span; Activity::ALL.len()],
    /// Messages it sent with sends of its own, and their bytes.
    pub sent: (u64, u64),
    /// Messages it sent within collectives, and their bytes.
    pub sent_in_collectives: (u64, u64),
    /// Collective calls.
    pub collectives: u64,
}
