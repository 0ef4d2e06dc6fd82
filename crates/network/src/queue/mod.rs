//! Queue disciplines: what becomes of a packet that finds others waiting at a port.
//!
//! One file each. Most decide when a packet comes ([`Queue::at_enqueue`]), from what waits then;
//! [eager ports](crate::link::Mode) know that as well as two-event ones. CoDel decides when one leaves
//! ([`CoDel::at_dequeue`]), which takes lazy ports. What a discipline does to a packet it wants to
//! tell of congestion is in [`protection`].

mod adaptive_red;
mod codel;
mod custom;
mod drop_tail;
mod fq_codel;
mod pie;
mod protection;
mod red;
mod step_marking;

use crate::config::QueueConfig;
use crate::losses::Cause;
use crate::pool::Stored;
pub use adaptive_red::{AdaptiveRed, AdaptiveRedConfig};
pub use codel::{CoDel, CoDelConfig};
pub use custom::{Custom, CustomQueue, CustomQueueConfig, QueueModel};
use eastwest_engine::random::Stream;
use eastwest_types::{Limit, Rate, Span, Time};
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use pie::{Pie, PieConfig};
pub use protection::{Protection, Signal};
pub use red::{Level, Red, RedConfig, Spread};
use serde::{Deserialize, Serialize};
pub use step_marking::{StepMarking, StepMarkingConfig};

/// The largest packet without payload, which a very small MTU does not cut: an ACK of 40 B with
/// timestamps and three SACK blocks.
const LARGEST_BARE_PACKET: u32 = 80;

/// What waits at a port before a packet: the one being sent does not count.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// IP bytes.
    pub bytes: u64,
}

impl Backlog {
    /// The two together.
    pub fn and(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    /// What is left without the other, which is part of it.
    pub fn without(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }

    /// Whether this or more waits.
    #[inline]
    pub fn reaches(self, threshold: Limit) -> bool {
        match threshold {
            Limit::Packets(n) => self.packets >= n as usize,
            Limit::Bytes(n) => self.bytes >= n,
        }
    }
}

/// A packet that comes to a port, as far as disciplines ask.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'p> {
    /// When.
    pub now: Time,
    /// Its IP bytes.
    pub ip_len: u32,
    /// The time it takes to be sent.
    pub send_time: Span,
    /// What waits before it.
    pub backlog: Backlog,
    /// When the port will have sent all that came before; in the past if it is idle.
    pub clear_at: Time,
    /// The packet.
    pub packet: &'p Stored,
}

impl Arrival<'_> {
    /// Whether the port is idle: the packet is sent at once and needs no room.
    #[inline]
    pub fn idle(&self) -> bool {
        self.clear_at <= self.now
    }

    /// What a queue does that has nothing but a limit.
    #[inline]
    pub fn fits(&self, limit: Limit) -> Verdict {
        if self.idle() {
            return Verdict::Enqueue;
        }
        drop_tail::at_enqueue(limit, self.backlog, self.ip_len)
    }
}

/// What is done with a packet that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits.
    Enqueue,
    /// It waits, marked if its transport understands marks.
    Mark,
    /// It does not fit and is lost.
    Drop,
    /// It is lost though there was room.
    DropEarly,
}

/// A packet at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Head<'p> {
    /// When it came.
    pub since: Time,
    /// What waits behind it.
    pub left: Backlog,
    /// The packet.
    pub packet: &'p Stored,
}

/// What to do with the head of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// So many packets are dropped.
    pub drop: usize,
    /// The one after them is marked.
    pub mark: bool,
}

impl Verdict {
    /// Why the packet is lost, if it is.
    #[inline]
    pub fn loss(self) -> Option<Cause> {
        match self {
            Verdict::Enqueue | Verdict::Mark => None,
            Verdict::Drop => Some(Cause::QueueFull),
            Verdict::DropEarly => Some(Cause::Early),
        }
    }
}

/// What a discipline knows of its port.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Rate of the link.
    pub rate: Rate,
    /// Largest IP packet.
    pub mtu: u32,
    /// Bytes per packet beyond its IP length.
    pub framing: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the link; one for each class of the port.
    pub number: u64,
}

impl Place {
    /// The stream of random numbers of this name: one of its own for each queue of the fabric.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("queue/{what}/{}", self.number))
    }

    fn packet_ps(&self, ip_len: u32) -> u64 {
        self.rate.time_for(u64::from(ip_len + self.framing)).0
    }
}

/// The discipline of one port or of one class of it: small where there is nothing but a limit.
#[derive(Debug, Serialize, Deserialize)]
pub enum Queue {
    /// See [`drop_tail`].
    DropTail(Limit),
    /// See [`step_marking`].
    StepMarking(Box<StepMarking>),
    /// See [`codel`].
    CoDel(Box<CoDel>),
    /// See [`red`].
    Red(Box<Red>),
    /// See [`adaptive_red`].
    AdaptiveRed(Box<AdaptiveRed>),
    /// See [`pie`].
    Pie(Box<Pie>),
    /// See [`custom`].
    #[serde(skip)]
    Custom(Box<Custom>),
}

impl Queue {
    /// A queue of this kind, without packets.
    pub fn new(config: &QueueConfig, place: &Place) -> Queue {
        match *config {
            QueueConfig::DropTail(limit) => Queue::DropTail(limit),
            QueueConfig::StepMarking(c) => Queue::StepMarking(Box::new(StepMarking::new(c))),
            QueueConfig::CoDel(c) => Queue::CoDel(Box::new(CoDel::new(c, place.mtu))),
            QueueConfig::Red(c) => {
                let packet_ps = place.packet_ps(c.mean_packet);
                Queue::Red(Box::new(Red::new(c, packet_ps, place.random("red"))))
            }
            QueueConfig::AdaptiveRed(c) => {
                let packet_ps = place.packet_ps(c.red.mean_packet);
                let random = place.random("red");
                Queue::AdaptiveRed(Box::new(AdaptiveRed::new(c, place.rate, packet_ps, random)))
            }
            QueueConfig::Pie(c) => {
                Queue::Pie(Box::new(Pie::new(c, place.mtu, place.random("pie"))))
            }
            QueueConfig::Custom(ref c) => Queue::Custom(Box::new(Custom::new(c, place))),
            QueueConfig::FqCoDel(_) => unreachable!("its flows have queues of their own"),
        }
    }

    /// Whether it has to see every packet, even one that comes to an idle port.
    pub fn sees_all(&self) -> bool {
        match self {
            Queue::Red(_) | Queue::AdaptiveRed(_) | Queue::Pie(_) => true,
            Queue::Custom(c) => c.sees_all,
            Queue::DropTail(_) | Queue::StepMarking(_) | Queue::CoDel(_) => false,
        }
    }

    /// While no more packets than this are held, [`Queue::at_enqueue`] lets every packet in and
    /// changes nothing.
    pub fn surely_lets_in(&self, mtu: u32) -> u32 {
        match self {
            Queue::DropTail(limit) => least_packets(*limit, mtu),
            Queue::CoDel(c) => least_packets(c.limit(), mtu),
            Queue::StepMarking(s) => s.surely_lets_in(mtu),
            Queue::Red(_) | Queue::AdaptiveRed(_) | Queue::Pie(_) | Queue::Custom(_) => 0,
        }
    }

    /// RED whose settings stay as they are.
    #[inline]
    pub fn steady_red(&mut self) -> Option<&mut Red> {
        match self {
            Queue::Red(red) => Some(red),
            Queue::AdaptiveRed(red) => red.steady(),
            _ => None,
        }
    }

    /// What to do with a packet.
    #[inline(always)]
    pub fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        match self {
            Queue::DropTail(limit) => arrival.fits(*limit),
            Queue::CoDel(c) => arrival.fits(c.limit()),
            Queue::StepMarking(s) => s.at_enqueue(arrival),
            Queue::Red(r) => r.at_enqueue(arrival),
            Queue::AdaptiveRed(r) => r.at_enqueue(arrival),
            Queue::Pie(p) => p.at_enqueue(arrival),
            Queue::Custom(c) => c.at_enqueue(arrival),
        }
    }
}

impl Queue {
    /// Whether [`Queue::at_dequeue`] would do nothing to a packet that has waited since then; may say
    /// no where it would.
    #[inline]
    pub fn surely_lets_out(&mut self, now: Time, since: Time) -> bool {
        match self {
            Queue::CoDel(c) => c.surely_lets_out(now, since),
            _ => false,
        }
    }

    /// What to do with the packet at the head, and with those behind it that it takes along; `heads`
    /// is called where the discipline looks at them.
    pub fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        now: Time,
        heads: impl FnOnce() -> I,
    ) -> Plan {
        match self {
            Queue::CoDel(c) => c.at_dequeue(now, heads()),
            Queue::StepMarking(s) if s.looks_at_dequeue() => s.at_dequeue(heads()),
            Queue::Custom(c) if c.decides_at_dequeue => c.at_dequeue(now, heads()),
            _ => Plan::default(),
        }
    }
}

/// So many packets never hold more than the limit.
fn least_packets(limit: Limit, mtu: u32) -> u32 {
    match limit {
        Limit::Packets(n) => n,
        Limit::Bytes(b) => {
            u32::try_from(b / u64::from(mtu.max(LARGEST_BARE_PACKET))).unwrap_or(u32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::PacketPool;
    use eastwest_types::{HostId, Packet};

    /// What a packet of 1500 B without ECT finds at a port.
    pub(super) struct Port {
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

    pub(super) fn arrive(port: &Port, judge: impl FnOnce(&Arrival) -> Verdict) -> Verdict {
        arrive_as(port, &Packet::blank(HostId(1)), judge)
    }

    /// The same for a packet of 1500 B with the rest of this one.
    pub(super) fn arrive_as(
        port: &Port,
        packet: &Packet,
        judge: impl FnOnce(&Arrival) -> Verdict,
    ) -> Verdict {
        let mut pool = PacketPool::default();
        let slot = pool.insert(&Packet { ip_len: 1500, payload: 1460, ..*packet });
        judge(&Arrival {
            now: port.now,
            ip_len: 1500,
            send_time: Span::from_us(12),
            backlog: Backlog { packets: port.packets, bytes: port.bytes },
            clear_at: port.clear_at,
            packet: pool.get(slot),
        })
    }
}
