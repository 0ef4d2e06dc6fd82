//! Queue disciplines: what becomes of a packet that finds others waiting at a port.
//!
//! One file each. Most decide when a packet comes ([`Queue::at_enqueue`]), from what waits then;
//! [eager ports](crate::link::Mode) know that as well as two-event ones. CoDel decides when one leaves
//! ([`CoDel::at_dequeue`]), which needs two-event ports.

mod codel;
mod drop_tail;
mod step_marking;

use crate::config::{Limit, QueueConfig};
pub use codel::{CoDel, Head};
pub use step_marking::StepMarking;

/// The largest packet without payload, which a very small MTU does not cut: an ACK of 40 B with
/// timestamps and three SACK blocks.
const LARGEST_BARE_PACKET: u32 = 80;

/// What waits at a port before a packet: the one being sent does not count.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// IP bytes.
    pub bytes: u64,
}

impl Backlog {
    /// Whether more than this waits.
    fn exceeds(self, limit: Limit) -> bool {
        match limit {
            Limit::Packets(n) => self.packets > n as usize,
            Limit::Bytes(n) => self.bytes > n,
        }
    }
}

/// What is done with a packet that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits.
    Enqueue,
    /// It waits, marked if its transport understands marks.
    Mark,
    /// It is lost.
    Drop,
}

/// The discipline of one port: small where there is nothing but a limit.
#[derive(Clone, Debug)]
pub enum Queue {
    /// See [`drop_tail`].
    DropTail(Limit),
    /// See [`step_marking`].
    StepMarking(Box<StepMarking>),
    /// See [`codel`].
    CoDel(Box<CoDel>),
}

impl Queue {
    /// A queue of this kind for packets of at most `mtu` bytes.
    pub fn new(config: QueueConfig, mtu: u32) -> Queue {
        match config {
            QueueConfig::DropTail(limit) => Queue::DropTail(limit),
            QueueConfig::StepMarking { threshold, limit } => {
                Queue::StepMarking(Box::new(StepMarking { threshold, limit }))
            }
            QueueConfig::CoDel { target, interval, ecn, limit } => {
                Queue::CoDel(Box::new(CoDel::new(limit, target, interval, ecn, mtu)))
            }
        }
    }

    /// While no more packets than this are held, [`Queue::at_enqueue`] lets every packet in.
    pub fn surely_lets_in(&self, mtu: u32) -> u32 {
        match self {
            Queue::DropTail(limit) => least_packets(*limit, mtu),
            Queue::CoDel(c) => least_packets(c.limit, mtu),
            Queue::StepMarking(s) => {
                least_packets(s.threshold, mtu).min(least_packets(s.limit, mtu))
            }
        }
    }

    /// What to do with a packet of `ip_len` bytes behind `backlog`.
    pub fn at_enqueue(&self, backlog: Backlog, ip_len: u32) -> Verdict {
        match self {
            Queue::DropTail(limit) => drop_tail::at_enqueue(*limit, backlog, ip_len),
            Queue::CoDel(c) => drop_tail::at_enqueue(c.limit, backlog, ip_len),
            Queue::StepMarking(s) => s.at_enqueue(backlog, ip_len),
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
