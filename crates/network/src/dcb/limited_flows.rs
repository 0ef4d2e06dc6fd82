//! Flows that QCN limits at a host: a queue and a rate for each destination.
//!
//! A limited flow waits apart until its rate lets the next packet go. Of the packets that may go, the port sends
//! the one that came first.

use super::qcn::QcnConfig;
use super::queued_packet::QueuedPacket;
use super::reaction::ReactionPoint;
use crate::ring::Ring;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Time};
use serde::{Deserialize, Serialize};

/// A flow of a host that QCN limits or has limited a moment ago.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LimitedFlow {
    pub point: ReactionPoint,
    packets: Ring<QueuedPacket>,
    bytes: u64,
    /// When its last packet began to be sent, and how many bytes on the link it had.
    sent: (Time, u32),
    /// When its next packet may go.
    next: Time,
}

impl LimitedFlow {
    /// The rate has changed, or a packet was sent.
    fn set_next(&mut self) {
        self.next = match self.point.is_at_line_rate() {
            true => Time::ZERO,
            false => self.sent.0 + self.point.rate().time_for(u64::from(self.sent.1)),
        };
    }
}

/// The flows that a host limits in one priority, in the order of their destinations: there are few.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LimitedFlows {
    dsts: Vec<u32>,
    /// The first packet that waits of each flow: who goes next is decided by these alone.
    heads: Vec<HeadPacket>,
    flows: Vec<LimitedFlow>,
}

/// The first packet that waits of a flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct HeadPacket {
    /// When it may go; never where none waits.
    due: Time,
    /// Its number, and its bytes.
    number: u64,
    bytes: u32,
}

impl HeadPacket {
    /// The value for a flow without waiting packets.
    const NONE: HeadPacket = HeadPacket { due: Time::NEVER, number: u64::MAX, bytes: 0 };

    fn of(flow: &LimitedFlow) -> HeadPacket {
        flow.packets.get(0).map_or(HeadPacket::NONE, |queued| HeadPacket {
            due: flow.next,
            number: queued.number,
            bytes: u32::from(queued.handle.ip_len()),
        })
    }
}

impl LimitedFlows {
    /// The place of the flow to a host, if it is limited.
    #[inline]
    pub fn index_of(&self, dst: u32) -> Option<usize> {
        // counted in full: where a search ends cannot be predicted
        let index = self.dsts.iter().map(|other| usize::from(*other < dst)).sum();
        (self.dsts.get(index) == Some(&dst)).then_some(index)
    }

    /// Bytes of the flow to a host that wait, if it is limited.
    pub fn bytes(&self, dst: u32) -> Option<u64> {
        self.index_of(dst).map(|index| self.flows[index].bytes)
    }

    /// The place of the flow whose packet goes next, when that may go, and its number. Of those that may
    /// go by now it is the one that came first, else the first to be let go.
    #[inline]
    pub fn next(&self, now: Time) -> Option<(Time, u64, usize)> {
        let (mut best, mut index) = (u128::MAX, 0);
        for (other, first) in self.heads.iter().enumerate() {
            let order = u128::from(first.due.max(now).0) << 64 | u128::from(first.number);
            // chosen, not jumped over: which of ten it will be cannot be predicted
            let is_sooner = order < best;
            best = if is_sooner { order } else { best };
            index = if is_sooner { other } else { index };
        }
        let at = Time((best >> 64) as u64);
        (at != Time::NEVER).then_some((at, best as u64, index))
    }

    /// Bytes of the first packet of a flow.
    pub fn bytes_of(&self, index: usize) -> u32 {
        self.heads[index].bytes
    }

    /// Has a packet of the flow at a place wait.
    #[inline]
    pub fn enqueue(&mut self, index: usize, queued: QueuedPacket) {
        let flow = &mut self.flows[index];
        flow.bytes += u64::from(queued.handle.ip_len());
        flow.packets.push(queued);
        if flow.packets.len() == 1 {
            self.heads[index] = HeadPacket::of(flow);
        }
    }

    /// Takes out the first packet of a flow.
    #[inline]
    pub fn dequeue(&mut self, index: usize) -> Option<QueuedPacket> {
        let flow = &mut self.flows[index];
        let queued = flow.packets.pop()?;
        flow.bytes -= u64::from(queued.handle.ip_len());
        self.heads[index] = HeadPacket::of(flow);
        Some(queued)
    }

    /// Takes out all packets.
    pub fn drain(&mut self) -> impl Iterator<Item = QueuedPacket> {
        self.heads.fill(HeadPacket::NONE);
        self.flows.iter_mut().flat_map(|flow| {
            flow.bytes = 0;
            std::iter::from_fn(|| flow.packets.pop())
        })
    }

    /// All packets.
    pub fn packets(&self) -> impl Iterator<Item = &QueuedPacket> {
        self.flows.iter().flat_map(|flow| flow.packets.iter())
    }

    /// When a timer next rings.
    pub fn next_timer(&self) -> Option<Time> {
        self.flows.iter().map(|flow| flow.point.timer_at).min()
    }

    /// Rates by destination.
    pub fn rates(&self) -> impl Iterator<Item = (u32, Rate)> {
        self.dsts.iter().zip(&self.flows).map(|(dst, flow)| (*dst, flow.point.rate()))
    }

    /// The place of the flow to a host, which is limited from now on; `move_queued` hands over its packets that
    /// wait, if it was not.
    pub fn limit(
        &mut self,
        dst: u32,
        line: Rate,
        move_queued: impl FnOnce(&mut dyn FnMut(QueuedPacket)),
    ) -> usize {
        let index = self.dsts.partition_point(|other| *other < dst);
        if self.dsts.get(index) != Some(&dst) {
            let (mut packets, mut bytes) = (Ring::default(), 0);
            move_queued(&mut |queued| {
                bytes += u64::from(queued.handle.ip_len());
                packets.push(queued);
            });
            let (point, sent) = (ReactionPoint::new(line), (Time::ZERO, 0));
            self.dsts.insert(index, dst);
            self.heads.insert(index, HeadPacket::NONE);
            self.flows.insert(index, LimitedFlow { point, packets, bytes, sent, next: Time::ZERO });
        }
        index
    }

    /// A message has come about a flow: it goes slower.
    pub fn decrease_rate(
        &mut self,
        now: Time,
        index: usize,
        fb: u8,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let flow = &mut self.flows[index];
        flow.point.decrease_rate(now, fb, config, random);
        flow.set_next();
        self.heads[index] = HeadPacket::of(flow);
    }

    /// A packet of a flow begins to be sent.
    #[inline]
    pub fn on_transmit(
        &mut self,
        now: Time,
        index: usize,
        bytes: u32,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let flow = &mut self.flows[index];
        flow.sent = (now, bytes);
        flow.point.on_transmit(bytes, config, random);
        flow.set_next();
        if !flow.packets.is_empty() {
            self.heads[index].due = flow.next;
        } else if flow.point.is_at_line_rate() {
            self.remove(index);
        }
    }

    #[inline(never)]
    fn remove(&mut self, index: usize) {
        self.dsts.remove(index);
        self.heads.remove(index);
        self.flows.remove(index);
    }

    /// Timers ring. Flows that are free and have no packets are limited no more.
    pub fn expire_timers(&mut self, now: Time, config: &QcnConfig, random: &mut Stream) {
        for (flow, first) in self.flows.iter_mut().zip(&mut self.heads) {
            if flow.point.timer_at > now {
                continue;
            }
            if flow.point.is_at_line_rate() {
                flow.point.timer_at = Time::NEVER;
            } else {
                flow.point.on_timer(now, config, random);
            }
            flow.set_next();
            *first = HeadPacket::of(flow);
        }
        for index in (0..self.flows.len()).rev() {
            if self.flows[index].point.is_at_line_rate() && self.flows[index].packets.is_empty() {
                self.remove(index);
            }
        }
    }

    /// When a new packet of a flow may go; never where others wait already.
    #[inline]
    pub fn start_time(&self, index: usize) -> Time {
        match self.flows[index].packets.is_empty() {
            true => self.flows[index].next,
            false => Time::NEVER,
        }
    }
}
