//! Input and output of a queue discipline: the packet and the state of its port, and the possible
//! decisions.

use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::{PacketPool, Stored};
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// IP bytes of the largest packet without payload, an ACK of 40 B with timestamps and three SACK
/// blocks. A port sends packets of this size even if its MTU is smaller.
pub(super) const LARGEST_BARE_PACKET: u32 = 80;

/// Number and bytes of the packets queued at a port, without the packet in transmission.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Backlog {
    /// Number of queued packets.
    pub packets: usize,
    /// IP bytes of the queued packets together.
    pub bytes: u64,
}

impl Backlog {
    /// Returns the sum of two backlogs.
    pub fn and(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    /// Returns this backlog minus `other`, which must be a part of this backlog.
    pub fn without(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }

    /// Whether a packet of `ip_len` IP bytes can be queued behind this backlog without exceeding
    /// the limit `limit`.
    #[inline]
    pub fn has_room_for(self, ip_len: u32, limit: Limit) -> bool {
        match limit {
            Limit::Packets(n) => self.packets < n as usize,
            Limit::Bytes(b) => self.bytes + u64::from(ip_len) <= b,
        }
    }

    /// Whether the backlog is equal to or above the threshold, in the unit of the threshold
    /// (packets or IP bytes).
    #[inline]
    pub fn reaches(self, threshold: Limit) -> bool {
        match threshold {
            Limit::Packets(n) => self.packets >= n as usize,
            Limit::Bytes(n) => self.bytes >= n,
        }
    }
}

/// A queue length in packets or bytes; not always an integer, since it may be an average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Level {
    /// Queue length as a number of packets.
    Packets(f64),
    /// Queue length as a number of IP bytes.
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

/// Properties of the ports for which the settings of queues are read.
#[derive(Debug)]
pub struct Ports {
    /// Largest packet in IP bytes; `None` if it is not known.
    pub mtu: Option<u32>,
    /// Framing in bytes: bytes of a packet on the link in addition to its IP length.
    pub framing: u32,
    /// Rates of all links; links with equal rates have one entry together.
    pub rates: Vec<Rate>,
}

/// Properties of an arriving packet and of its port, on which a discipline may base its decision.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'p> {
    /// Time at which the packet arrives at the port.
    pub now: Time,
    /// IP bytes of the packet.
    pub ip_len: u32,
    /// Transmission time of the packet at this port, framing included; zero if the packet does not
    /// wait because its link sleeps.
    pub send_time: Span,
    /// Number and IP bytes of the packets queued before this packet.
    pub backlog: Backlog,
    /// Time at which the port will have sent all packets that arrived before this packet; in the
    /// past if the port is idle.
    pub clear_at: Time,
    /// The arriving packet.
    pub packet: &'p Stored,
    /// Handle of the packet, which has its destination, length and hash.
    pub(crate) handle: PacketHandle,
    /// Pool of the packet.
    pub(crate) pool: &'p PacketPool,
}

impl Arrival<'_> {
    /// Returns the payload bytes that the sender had left when it sent this packet: bytes that its
    /// application has written to the connection and the receiver has not acknowledged, including
    /// the payload of this packet. 0 for a packet without payload. `None` if no queue of the
    /// scenario [reads remaining bytes](super::QueueModel::reads_remaining).
    pub fn remaining(&self) -> Option<u64> {
        self.pool.remaining(self.handle.slot())
    }

    /// Returns a number that is equal for all packets that a connection sends in the direction of
    /// this packet, see [`Stored::flow`].
    pub fn flow(&self) -> u64 {
        self.packet.flow(&self.handle)
    }

    /// Returns the host that receives the packet.
    pub fn dst(&self) -> HostId {
        self.handle.dst()
    }

    /// Whether [`Verdict::Trim`] is possible: the receiver of the packet can use the header without
    /// payload. True for data packets of RoCEv2.
    pub fn trimmable(&self) -> bool {
        self.packet.is_trimmable()
    }

    /// Whether the port is idle, so that the packet is sent at once and does not count in the
    /// queue.
    #[inline]
    pub fn idle(&self) -> bool {
        self.clear_at <= self.now
    }

    /// Returns the decision of a drop-tail queue with the limit `limit`: enqueue if the packet
    /// fits, otherwise drop.
    #[inline]
    pub fn fits(&self, limit: Limit) -> Verdict {
        if self.idle() {
            return Verdict::Enqueue;
        }
        if self.backlog.has_room_for(self.ip_len, limit) { Verdict::Enqueue } else { Verdict::Drop }
    }
}

/// Decision of a queue discipline about an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet is queued.
    Enqueue,
    /// The packet is queued and, if its transport supports ECN, marked with CE.
    Mark,
    /// The packet does not fit and is dropped.
    Drop,
    /// The packet is dropped although it would fit, as a signal of congestion.
    DropEarly,
    /// The payload of the packet is removed, and its header is queued. Only with a model that
    /// [trims](super::QueueModel::trims). A packet that is not [trimmable](Arrival::trimmable) is
    /// dropped.
    Trim,
}

/// A queued packet, as a discipline sees it at dequeue.
#[derive(Clone, Copy, Debug)]
pub struct Head<'p> {
    /// Time at which the packet was enqueued.
    pub since: Time,
    /// Number and IP bytes of the packets queued behind this packet.
    pub left: Backlog,
    /// The queued packet.
    pub packet: &'p Stored,
    /// Rank of the packet, see [`CustomQueue::rank`](super::CustomQueue::rank); 0 if the queue does
    /// not order packets by ranks.
    pub rank: u64,
    /// Handle of the packet, which has its destination, length and hash.
    pub(crate) handle: PacketHandle,
}

impl<'p> Head<'p> {
    /// Returns the view of a packet in a queue without ranks; `left` is the backlog behind the
    /// packet.
    #[inline]
    pub(crate) fn new(handle: &PacketHandle, left: Backlog, packet: &'p Stored) -> Head<'p> {
        Head { since: handle.arrived(), left, packet, rank: 0, handle: *handle }
    }

    /// Returns a number that is equal for all packets that a connection sends in the direction of
    /// this packet, see [`Stored::flow`].
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

/// Decision of a queue discipline at dequeue about the packets at the head of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Number of packets that are dropped from the head of the queue.
    pub drop: usize,
    /// Whether the first packet that is not dropped is marked with CE.
    pub mark: bool,
}

impl Verdict {
    /// Returns the cause of the loss that this decision means; `None` if the packet is not dropped.
    #[inline]
    pub fn loss(self) -> Option<Cause> {
        match self {
            Verdict::Enqueue | Verdict::Mark | Verdict::Trim => None,
            Verdict::Drop => Some(Cause::QueueFull),
            Verdict::DropEarly => Some(Cause::Early),
        }
    }
}

/// Properties of the port to which the queue of a discipline belongs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Rate of the link.
    pub rate: Rate,
    /// Largest packet at the port, in IP bytes.
    pub mtu: u32,
    /// Framing in bytes: bytes of a packet on the link in addition to its IP length.
    pub framing: u32,
    /// Seed of the run, from which all random numbers follow.
    pub seed: u64,
    /// Number that identifies the queue: the link number combined with the number of the class at
    /// the port.
    pub number: u64,
}

impl Place {
    /// Returns the stream of random numbers named `what` of this queue; each queue of the fabric
    /// has its own stream.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("queue/{what}/{}", self.number))
    }

    /// Returns the transmission time of a packet of `ip_len` IP bytes in picoseconds, framing
    /// included.
    pub(super) fn packet_ps(&self, ip_len: u32) -> u64 {
        self.rate.time_for(u64::from(ip_len + self.framing)).0
    }
}

/// Returns the largest number of packets that never exceeds the limit, even if all packets have
/// `mtu` IP bytes.
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

    /// State of a port at which a test packet of 1500 B without ECT arrives.
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

    /// Returns the verdict about a test packet of 1500 B that arrives at `port`. Its other fields
    /// are those of `packet`.
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
