//! Flows of a host that QCN limits: a queue and a rate for each destination.
//!
//! Packets of a limited flow wait in a separate queue until the rate of the flow allows the next
//! packet. If several packets may start, the port sends the packet that was enqueued first.

use super::qcn::QcnConfig;
use super::queued_packet::QueuedPacket;
use super::reaction::ReactionPoint;
use crate::ring::Ring;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Time};
use serde::{Deserialize, Serialize};

/// A flow of a host that QCN limits, or a flow that has returned to line rate and still has queued
/// packets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LimitedFlow {
    pub point: ReactionPoint,
    packets: Ring<QueuedPacket>,
    bytes: u64,
    /// Start of the last transmission of the flow, and the bytes on the link of the packet sent.
    sent: (Time, u32),
    /// Time from which the rate allows the next packet of the flow.
    next: Time,
}

impl LimitedFlow {
    /// Computes the time from which the flow may send again, after a change of its rate or a
    /// transmission.
    fn set_next(&mut self) {
        self.next = match self.point.is_at_line_rate() {
            true => Time::ZERO,
            false => self.sent.0 + self.point.rate().time_for(u64::from(self.sent.1)),
        };
    }
}

/// All flows that QCN limits in one priority of a host, sorted by destination. Usually a priority
/// has few limited flows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LimitedFlows {
    dsts: Vec<u32>,
    /// First queued packet of each flow; these packets alone decide which flow sends next.
    heads: Vec<HeadPacket>,
    flows: Vec<LimitedFlow>,
}

/// First queued packet of a flow: start time, sequence number and length.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct HeadPacket {
    /// Time from which the packet may start; [`Time::NEVER`] if the flow has no queued packet.
    due: Time,
    /// Sequence number of the packet in its traffic class. The field `bytes` has the IP bytes of
    /// the packet.
    number: u64,
    bytes: u32,
}

impl HeadPacket {
    /// Value for a flow that has no queued packets.
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
    /// Returns the index of the limited flow to host `dst`; `None` if QCN does not limit this flow.
    #[inline]
    pub fn index_of(&self, dst: u32) -> Option<usize> {
        // All flows are compared, since the processor cannot predict the branches of a search.
        let index = self.dsts.iter().map(|other| u32::from(*other < dst)).sum::<u32>() as usize;
        (self.dsts.get(index) == Some(&dst)).then_some(index)
    }

    /// Returns the queued IP bytes of the flow to host `dst`; `None` if QCN does not limit this
    /// flow.
    pub fn bytes(&self, dst: u32) -> Option<u64> {
        self.index_of(dst).map(|index| self.flows[index].bytes)
    }

    /// Returns (start time, sequence number, index of the flow) of the next packet. The next packet
    /// is the first enqueued packet among those that may start by `now`; if no packet may start by
    /// `now`, it is the packet with the earliest start time. `None` if no packet is queued.
    #[inline]
    pub fn next(&self, now: Time) -> Option<(Time, u64, usize)> {
        let (mut best, mut index) = (u128::MAX, 0);
        for (other, first) in self.heads.iter().enumerate() {
            let order = u128::from(first.due.max(now).0) << 64 | u128::from(first.number);
            // The two assignments are conditional moves instead of a branch, since the processor
            // cannot predict which flow is next.
            let is_sooner = order < best;
            best = if is_sooner { order } else { best };
            index = if is_sooner { other } else { index };
        }
        let at = Time((best >> 64) as u64);
        (at != Time::NEVER).then_some((at, best as u64, index))
    }

    /// Returns the IP bytes of the first queued packet of the limited flow with index `index`; 0 if
    /// no packet is queued.
    pub fn bytes_of(&self, index: usize) -> u32 {
        self.heads[index].bytes
    }

    /// Enqueues a packet of the limited flow with index `index`.
    #[inline]
    pub fn enqueue(&mut self, index: usize, queued: QueuedPacket) {
        let flow = &mut self.flows[index];
        flow.bytes += u64::from(queued.handle.ip_len());
        flow.packets.push(queued);
        if flow.packets.len() == 1 {
            self.heads[index] = HeadPacket::of(flow);
        }
    }

    /// Removes and returns the first queued packet of the limited flow with index `index`; `None`
    /// if no packet is queued.
    #[inline]
    pub fn dequeue(&mut self, index: usize) -> Option<QueuedPacket> {
        let flow = &mut self.flows[index];
        let queued = flow.packets.pop()?;
        flow.bytes -= u64::from(queued.handle.ip_len());
        self.heads[index] = HeadPacket::of(flow);
        Some(queued)
    }

    /// Removes and returns all queued packets of all limited flows.
    pub fn drain(&mut self) -> impl Iterator<Item = QueuedPacket> {
        self.heads.fill(HeadPacket::NONE);
        self.flows.iter_mut().flat_map(|flow| {
            flow.bytes = 0;
            std::iter::from_fn(|| flow.packets.pop())
        })
    }

    /// Returns all queued packets of all limited flows.
    pub fn packets(&self) -> impl Iterator<Item = &QueuedPacket> {
        self.flows.iter().flat_map(|flow| flow.packets.iter())
    }

    /// Returns the time at which the first timer of a rate limiter expires; `None` if no flow is
    /// limited.
    pub fn next_timer(&self) -> Option<Time> {
        self.flows.iter().map(|flow| flow.point.timer_at).min()
    }

    /// Returns (destination host, current rate) of each limited flow.
    pub fn rates(&self) -> impl Iterator<Item = (u32, Rate)> {
        self.dsts.iter().zip(&self.flows).map(|(dst, flow)| (*dst, flow.point.rate()))
    }

    /// Returns the index of the limited flow to host `dst`. If the flow is not limited yet, creates
    /// its rate limiter, for a link of rate `line`, and calls `move_queued`, which must move the
    /// queued packets of the flow to its new queue.
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

    /// Decreases the rate of a flow, as its reaction point (rate limiter) does for a CNM with
    /// feedback `fb`.
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

    /// Updates the rate limiter of a flow when the transmission of a packet of `bytes` bytes on the
    /// link starts. Removes the flow if it has no packets and has returned to line rate.
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

    /// Executes the timers of rate limiters that have expired by `now`. Removes flows that have no
    /// packets and have returned to line rate.
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

    /// Returns the time from which a new packet of a flow may start; [`Time::NEVER`] if the flow
    /// already has queued packets.
    #[inline]
    pub fn start_time(&self, index: usize) -> Time {
        match self.flows[index].packets.is_empty() {
            true => self.flows[index].next,
            false => Time::NEVER,
        }
    }
}
