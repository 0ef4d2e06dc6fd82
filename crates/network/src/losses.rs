//! Causes of packet loss, and a list of lost packets that have not been read yet.

use eastwest_engine::order::{Class, Key, tie_rank};
use eastwest_types::{HostId, Packet, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Cause of the loss of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Cause {
    /// The queue of the port was full.
    QueueFull = 0,
    /// A fault of the link destroyed the packet at random.
    Loss = 1,
    /// The link was down.
    LinkDown = 2,
    /// The switch had no route to the receiver.
    NoRoute = 3,
    /// The queue discipline dropped the packet at enqueue, while there was room.
    Early = 4,
    /// The shared buffer of the switch had no room for the packet; with PFC, the ingress buffer had
    /// no room.
    SharedBuffer = 5,
    /// The queue discipline dropped the packet at dequeue, since it had waited too long. Drops by
    /// the PFC watchdog also have this cause.
    Sojourn = 6,
}

impl Cause {
    /// All causes in the order of their numbers.
    pub const ALL: [Cause; 7] = [
        Cause::QueueFull,
        Cause::Loss,
        Cause::LinkDown,
        Cause::NoRoute,
        Cause::Early,
        Cause::SharedBuffer,
        Cause::Sojourn,
    ];

    /// Returns the name of the cause in result tables.
    pub fn name(self) -> &'static str {
        match self {
            Cause::QueueFull => "queue-full",
            Cause::Loss => "loss",
            Cause::LinkDown => "link-down",
            Cause::NoRoute => "no-route",
            Cause::Early => "early",
            Cause::SharedBuffer => "shared-buffer",
            Cause::Sojourn => "sojourn",
        }
    }
}

/// Position of an event in the order of all events of a run in several parts (threads): sort key of
/// the event, then position among the events of one source.
pub type EventOrder = ((Key, u64), u64);

/// Record of a lost packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Lost {
    /// Time of the loss.
    pub at: Time,
    /// Number of the link whose port or cable lost the packet.
    pub link: u32,
    /// Cause of the loss.
    pub cause: Cause,
    /// Host that should have received the packet.
    pub dst: HostId,
    /// Position, in the order of all events, of the event in which the packet was lost. Used only
    /// if the fabric is simulated in several parts (threads).
    pub order: EventOrder,
    /// The packet as [`PacketPool::remove`](crate::pool::PacketPool::remove) returns it: stream
    /// positions have 32 bits, and the receiving host is missing.
    pub packet: Packet,
}

impl Lost {
    /// Returns the position, in the order of all events, of the drops of a link at dequeue.
    pub(crate) fn order_at_dequeue(at: Time, link: u32) -> EventOrder {
        let key = Key::new(at, Class::Departure);
        ((key, tie_rank(key, link, 0)), 0)
    }
}

/// Lost packets that have not been read yet, in order of time.
#[derive(Default, Serialize, Deserialize)]
pub struct Losses {
    /// Whether losses are recorded.
    pub kept: bool,
    list: VecDeque<Lost>,
}

impl Losses {
    /// Adds a loss, if losses are recorded. Drops at dequeue may be added later than other losses;
    /// they are inserted in order of time, before other losses at the same time.
    pub fn note(&mut self, lost: Lost) {
        if !self.kept {
            return;
        }
        if lost.cause != Cause::Sojourn {
            return self.list.push_back(lost);
        }
        let order =
            |l: &Lost| (l.at, l.cause != Cause::Sojourn, Lost::order_at_dequeue(l.at, l.link));
        let place = self.list.partition_point(|other| order(other) <= order(&lost));
        self.list.insert(place, lost);
    }

    /// Removes and returns the first loss if it happened before `time`, otherwise `None`.
    pub fn take_before(&mut self, time: Time) -> Option<Lost> {
        match self.list.front() {
            Some(first) if first.at < time => self.list.pop_front(),
            _ => None,
        }
    }
}
