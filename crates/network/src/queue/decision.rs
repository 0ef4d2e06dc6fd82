//! Input and output of a discipline: the packet and its port, and the possible answers.

use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::{PacketPool, Stored};
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Largest packet without payload, which even a very small MTU allows: an ACK of 40 B with timestamps and three
/// SACK blocks.
const LARGEST_BARE_PACKET: u32 = 80;

/// Number and bytes of the queued packets at a port, without the packet that is being sent.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Backlog {
    /// Number of packets.
    pub packets: usize,
    /// IP bytes of the packets.
    pub bytes: u64,
}

impl Backlog {
    /// Returns the sum of two backlogs.
    pub fn and(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    /// Returns the difference to `other`, which is part of this backlog.
    pub fn without(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }

    /// Whether a packet of `ip_len` IP bytes fits into the limit behind this backlog.
    #[inline]
    pub fn has_room_for(self, ip_len: u32, limit: Limit) -> bool {
        match limit {
            Limit::Packets(n) => self.packets < n as usize,
            Limit::Bytes(b) => self.bytes + u64::from(ip_len) <= b,
        }
    }

    /// Whether the backlog is at or above a threshold.
    #[inline]
    pub fn reaches(self, threshold: Limit) -> bool {
        match threshold {
            Limit::Packets(n) => self.packets >= n as usize,
            Limit::Bytes(n) => self.bytes >= n,
        }
    }
}

/// A queue length, in packets or bytes. It may be a mean, so it need not be an integer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Level {
    /// A number of packets.
    Packets(f64),
    /// A number of IP bytes.
    Bytes(f64),
}

impl Level {
    /// Returns the number without its unit.
    pub fn value(self) -> f64 {
        match self {
            Level::Packets(n) | Level::Bytes(n) => n,
        }
    }
}

impl From<Limit> for Level {
    fn from(limit: Limit) -> Level {
        match limit {
            Limit::Packets(n) => Level::Packets(f64::from(n)),
            Limit::Bytes(n) => Level::Bytes(n as f64),
        }
    }
}

/// Ports for which the settings of queues are read.
#[derive(Debug)]
pub struct Ports {
    /// Largest packet in IP bytes; `None` if that is not known.
    pub mtu: Option<u32>,
    /// Bytes on the link of each packet beyond its IP length.
    pub framing: u32,
    /// Rates of links, each once.
    pub rates: Vec<Rate>,
}

/// Properties of an arriving packet and its port that a discipline may use.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'p> {
    /// Time of the arrival.
    pub now: Time,
    /// IP bytes of the packet.
    pub ip_len: u32,
    /// Duration of the packet's transmission at this port, framing included; zero if the packet
    /// does not wait because its link sleeps.
    pub send_time: Span,
    /// Number and IP bytes of the packets queued before this one.
    pub backlog: Backlog,
    /// Time at which the port will have sent all packets before this one; in the past if the port
    /// is idle.
    pub clear_at: Time,
    /// The arriving packet.
    pub packet: &'p Stored,
    /// Handle of the packet.
    pub(crate) handle: PacketHandle,
    /// Pool of the packet.
    pub(crate) pool: &'p PacketPool,
}

impl Arrival<'_> {
    /// Returns the payload bytes that the sender of the packet had left when it sent it: those that its
    /// application has written to the connection and the receiver has not acknowledged, the ones in the packet
    /// included. 0 for a packet without payload. `None` if no queue of the scenario
    /// [reads them](super::QueueModel::reads_remaining).
    pub fn remaining(&self) -> Option<u64> {
        self.pool.remaining(self.handle.slot())
    }

    /// Returns a number that is equal for all packets of a connection in this direction, see
    /// [`Stored::flow`].
    pub fn flow(&self) -> u64 {
        self.packet.flow(&self.handle)
    }

    /// Returns the host that receives the packet.
    pub fn dst(&self) -> HostId {
        self.handle.dst()
    }

    /// Whether the receiver uses the header of the packet if its payload is cut: then [`Verdict::Trim`] is
    /// possible. Data packets of RoCEv2 are trimmable.
    pub fn trimmable(&self) -> bool {
        self.packet.is_trimmable()
    }

    /// Whether the port is idle: the packet is sent at once and needs no room.
    #[inline]
    pub fn idle(&self) -> bool {
        self.clear_at <= self.now
    }

    /// Returns the verdict of a drop-tail queue with this limit.
    #[inline]
    pub fn fits(&self, limit: Limit) -> Verdict {
        if self.idle() {
            return Verdict::Enqueue;
        }
        if self.backlog.has_room_for(self.ip_len, limit) { Verdict::Enqueue } else { Verdict::Drop }
    }
}

/// Decision about an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet is queued.
    Enqueue,
    /// The packet is queued, and marked with CE if its transport supports ECN.
    Mark,
    /// The packet does not fit and is dropped.
    Drop,
    /// The packet is dropped although there is room.
    DropEarly,
    /// The packet loses its payload; its header is queued. Only with a model that
    /// [trims](super::QueueModel::trims). A packet that is not [trimmable](Arrival::trimmable) is dropped.
    Trim,
}

/// A packet at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Head<'p> {
    /// Time at which the packet was enqueued.
    pub since: Time,
    /// Number and IP bytes of the packets queued behind this one.
    pub left: Backlog,
    /// The queued packet.
    pub packet: &'p Stored,
    /// Rank of the packet, see [`CustomQueue::rank`](super::CustomQueue::rank); 0 in a queue
    /// without ranks.
    pub rank: u64,
    /// Handle of the packet.
    pub(crate) handle: PacketHandle,
}

impl<'p> Head<'p> {
    /// Returns a packet of a queue without ranks, with the backlog behind it.
    #[inline]
    pub(crate) fn new(handle: &PacketHandle, left: Backlog, packet: &'p Stored) -> Head<'p> {
        Head { since: handle.arrived(), left, packet, rank: 0, handle: *handle }
    }

    /// Returns a number that is equal for all packets of a connection in this direction, see
    /// [`Stored::flow`].
    pub fn flow(&self) -> u64 {
        self.packet.flow(&self.handle)
    }

    /// Returns the host that receives the packet.
    pub fn dst(&self) -> HostId {
        self.handle.dst()
    }

    /// Returns the IP bytes of the packet.
    pub fn ip_len(&self) -> u32 {
        u32::from(self.handle.ip_len())
    }
}

/// Decision at dequeue about the packets at the head of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Number of packets at the head to drop.
    pub drop: usize,
    /// Whether the first packet after the dropped ones is marked with CE.
    pub mark: bool,
}

impl Verdict {
    /// Returns the cause of the loss; `None` if the packet is not dropped.
    #[inline]
    pub fn loss(self) -> Option<Cause> {
        match self {
            Verdict::Enqueue | Verdict::Mark | Verdict::Trim => None,
            Verdict::Drop => Some(Cause::QueueFull),
            Verdict::DropEarly => Some(Cause::Early),
        }
    }
}

/// Properties of the port of a discipline.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Rate of the link.
    pub rate: Rate,
    /// Largest packet in IP bytes.
    pub mtu: u32,
    /// Bytes on the link of each packet beyond its IP length.
    pub framing: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the link, with the number of the class of the port.
    pub number: u64,
}

impl Place {
    /// Returns the stream of random numbers named `what`; each queue of the fabric has its own.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("queue/{what}/{}", self.number))
    }

    /// Returns the transmission time of a packet of `ip_len` IP bytes, in picoseconds.
    pub(super) fn packet_ps(&self, ip_len: u32) -> u64 {
        self.rate.time_for(u64::from(ip_len + self.framing)).0
    }
}

/// Returns the largest number of packets that cannot exceed the limit, whatever their lengths.
pub(super) fn least_packets(limit: Limit, mtu: u32) -> u32 {
    match limit {
        Limit::Packets(n) => n,
        Limit::Bytes(b) => {
            u32::try_from(b / u64::from(mtu.max(LARGEST_BARE_PACKET))).unwrap_or(u32::MAX)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use eastwest_types::{HostId, Packet};

    /// State of a port at which a packet of 1500 B without ECT arrives.
    pub(in crate::queue) struct Port {
        pub now: Time,
        pub packets: usize,
        pub bytes: u64,
        pub clear_at: Time,
    }

    impl Port {
        pub fn waiting(packets: usize) -> Port {
            let clear_at = Time(if packets > 0 { 2 } else { 1 });
            Port { now: Time(1), packets, bytes: packets as u64 * 1500, clear_at }
        }
    }

    pub(in crate::queue) fn arrive(
        port: &Port,
        judge: impl FnOnce(&Arrival) -> Verdict,
    ) -> Verdict {
        arrive_as(port, &Packet::blank(HostId(1)), judge)
    }

    /// Returns the verdict like `arrive`, for a packet of 1500 B whose other fields are those of `packet`.
    pub(in crate::queue) fn arrive_as(
        port: &Port,
        packet: &Packet,
        judge: impl FnOnce(&Arrival) -> Verdict,
    ) -> Verdict {
        let mut pool = PacketPool::default();
        let packet = Packet { ip_len: 1500, payload: 1460, ..*packet };
        let slot = pool.insert(&packet);
        judge(&Arrival {
            handle: PacketHandle::new(slot, &packet),
            now: port.now,
            ip_len: 1500,
            send_time: Span::from_us(12),
            backlog: Backlog { packets: port.packets, bytes: port.bytes },
            clear_at: port.clear_at,
            packet: pool.get(slot),
            pool: &pool,
        })
    }
}
