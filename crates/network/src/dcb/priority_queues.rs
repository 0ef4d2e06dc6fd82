//! Queues of one traffic class at a port with data-centre bridging (DCB): one queue for each
//! priority, so that one priority can be paused alone. At hosts, there is also a queue for each
//! flow that QCN limits.
//!
//! The port sends, among the packets that may start, the packet that was enqueued first. Without
//! pauses and limits, a class is therefore one FIFO queue, as at ports without DCB. Each priority
//! has its own queue discipline, which may mark packets of a lossless priority but cannot drop
//! them.

use super::cnm::Cnm;
use super::limited_flows::LimitedFlows;
use super::pfc::PRIORITIES;
use super::qcn::QcnConfig;
use super::queued_packet::QueuedPacket;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog, Discipline, Head, Place, Queue, QueueConfig, Verdict};
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Queue of one priority at a port with data-centre bridging (DCB).
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct PriorityQueue {
    /// Number and IP bytes of queued packets, including packets of rate-limited flows.
    backlog: Backlog,
    /// Largest number of queued IP bytes so far.
    pub max_bytes: u64,
    /// Number of queued packets below which the discipline neither drops nor marks, so that the
    /// port need not call it.
    admits_below: usize,
    /// Time at which the transmission of a packet last started or, if later, at which a packet was
    /// last enqueued in the empty queue.
    pub last_departure: Time,
    /// IP bytes of rate-limited flows in the queue, a part of `backlog`.
    pub(super) limited_bytes: u64,
    pub(super) flows: Option<Box<LimitedFlows>>,
    pub(super) packets: VecDeque<QueuedPacket>,
    discipline: Queue,
}

const _: () = assert!(std::mem::offset_of!(PriorityQueue, packets) <= 64);

/// Queues of one traffic class at a port with data-centre bridging (DCB): one queue for each
/// priority.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct PriorityQueues {
    /// Mask of priorities with queued packets: bit p for priority p.
    occupied: u8,
    lossless: u8,
    next_number: u64,
    /// Number and IP bytes of queued packets of all priorities.
    total: Backlog,
    queues: [PriorityQueue; PRIORITIES],
}

/// Result of the admission of a packet at a port with data-centre bridging: the packet is queued,
/// or dropped for the given cause.
pub(crate) enum DcbAdmission {
    Admitted { mark: bool },
    Dropped(Cause),
}

impl PriorityQueues {
    pub fn new(config: &QueueConfig, place: &Place, lossless: u8) -> PriorityQueues {
        let queue = |priority: usize| {
            let place = Place { number: place.number | (priority as u64) << 40, ..*place };
            let discipline = config.start(&place);
            PriorityQueue {
                packets: VecDeque::new(),
                admits_below: match &discipline {
                    Queue::DropTail(_) if lossless >> priority & 1 == 1 => usize::MAX,
                    discipline => discipline.admits_below(place.mtu) as usize,
                },
                discipline,
                backlog: Backlog::default(),
                limited_bytes: 0,
                max_bytes: 0,
                flows: None,
                last_departure: Time::ZERO,
            }
        };
        PriorityQueues {
            queues: std::array::from_fn(queue),
            occupied: 0,
            lossless,
            next_number: 0,
            total: Backlog::default(),
        }
    }

    pub fn queue(&self, priority: u8) -> &PriorityQueue {
        &self.queues[usize::from(priority)]
    }

    pub(super) fn queue_mut(&mut self, priority: u8) -> &mut PriorityQueue {
        &mut self.queues[usize::from(priority)]
    }

    /// Returns number and IP bytes of the queued packets of all priorities.
    pub fn backlog(&self) -> Backlog {
        self.total
    }

    /// Returns number and IP bytes of the queued packets of all priorities that are not in the mask
    /// `paused`.
    pub fn unpaused_backlog(&self, paused: u8) -> Backlog {
        let mut all = self.total;
        for p in set_bits(self.occupied & paused) {
            all.packets -= self.queues[p].backlog.packets;
            all.bytes -= self.queues[p].backlog.bytes;
        }
        all
    }

    /// Returns the queued IP bytes of a priority.
    pub fn bytes(&self, priority: u8) -> u64 {
        self.queues[usize::from(priority)].backlog.bytes
    }

    /// Returns the queued IP bytes of the priorities in the mask `priorities`.
    pub fn bytes_of(&self, priorities: u8) -> u64 {
        set_bits(self.occupied & priorities).map(|p| self.queues[p].backlog.bytes).sum()
    }

    /// Returns the mask of lossless priorities: bit p for priority p.
    pub fn lossless(&self) -> u8 {
        self.lossless
    }

    /// Returns the queued IP bytes that a new packet to host `dst` would have ahead: the bytes of
    /// its flow if QCN limits this flow, otherwise the bytes of all flows without a limit.
    pub fn bytes_ahead(&self, priority: u8, dst: u32) -> u64 {
        let queue = self.queue(priority);
        let own = queue.flows.as_ref().and_then(|flows| flows.bytes(dst));
        own.unwrap_or(queue.backlog.bytes - queue.limited_bytes)
    }

    /// Returns the mask of priorities with queued packets: bit p for priority p.
    pub fn occupied(&self) -> u8 {
        self.occupied
    }

    /// Admits a packet and queues it, or drops it. The backlog in `arrival` is ignored; the backlog
    /// of the queue is used.
    pub fn push(
        &mut self,
        mut handle: PacketHandle,
        ingress: u32,
        priority: u8,
        arrival: &Arrival,
    ) -> DcbAdmission {
        let came_in = self.admit(arrival.now, priority, arrival.ip_len, || *arrival);
        if let DcbAdmission::Admitted { .. } = came_in {
            handle.arrive = arrival.now;
            self.store(handle, ingress, priority);
        }
        came_in
    }

    /// Admits a packet and counts it in the backlog, or drops it. The packet itself is not stored:
    /// at a port that decides departures at enqueue, the packet enters the ring of packets on the
    /// wire, see [`super::eventless`].
    #[inline(always)]
    pub fn admit<'p>(
        &mut self,
        now: Time,
        priority: u8,
        bytes: u32,
        arrival: impl FnOnce() -> Arrival<'p>,
    ) -> DcbAdmission {
        let queue = &mut self.queues[usize::from(priority)];
        let mut mark = false;
        if queue.backlog.packets >= queue.admits_below {
            let verdict =
                queue.discipline.at_enqueue(&Arrival { backlog: queue.backlog, ..arrival() });
            if let Some(cause) = verdict.loss()
                && self.lossless >> priority & 1 == 0
            {
                return DcbAdmission::Dropped(cause);
            }
            mark = verdict == Verdict::Mark;
        }
        if queue.backlog.packets == 0 {
            queue.last_departure = now;
        }
        queue.backlog.packets += 1;
        queue.backlog.bytes += u64::from(bytes);
        queue.max_bytes = queue.max_bytes.max(queue.backlog.bytes);
        self.total.packets += 1;
        self.total.bytes += u64::from(bytes);
        self.occupied |= 1 << priority;
        DcbAdmission::Admitted { mark }
    }

    /// Whether the discipline of a priority must see every packet.
    pub fn sees_all(&self, priority: u8) -> bool {
        self.queue(priority).admits_below == 0
    }

    /// Admits a packet on the fast path, if the discipline admits every packet at this backlog and
    /// the backlog sets no new maximum. The backlog may still include packets that have left.
    /// Returns whether the packet was counted; if not, [`PriorityQueues::admit`] is needed.
    #[inline(always)]
    pub fn admit_fast_path(&mut self, now: Time, priority: u8, bytes: u32) -> bool {
        let queue = &mut self.queues[usize::from(priority)];
        let then = queue.backlog.bytes + u64::from(bytes);
        if queue.backlog.packets >= queue.admits_below || then > queue.max_bytes {
            return false;
        }
        if queue.backlog.packets == 0 {
            queue.last_departure = now;
        }
        queue.backlog.packets += 1;
        queue.backlog.bytes = then;
        self.total.packets += 1;
        self.total.bytes += u64::from(bytes);
        self.occupied |= 1 << priority;
        true
    }

    /// Admits a packet on the fast path at an idle port, which starts its transmission at once.
    /// Returns whether the packet was admitted; if not, [`PriorityQueues::admit`] is needed.
    #[inline(always)]
    pub fn admit_idle(&mut self, now: Time, priority: u8, bytes: u32) -> bool {
        debug_assert_eq!(self.total.packets, 0);
        let queue = &mut self.queues[usize::from(priority)];
        let is_admitted = queue.admits_below > 0 && u64::from(bytes) <= queue.max_bytes;
        if is_admitted {
            queue.last_departure = now;
        }
        is_admitted
    }

    /// Subtracts a packet from the backlog when its transmission starts.
    #[inline]
    pub fn count_departure(&mut self, now: Time, priority: u8, bytes: u32) {
        let queue = &mut self.queues[usize::from(priority)];
        queue.backlog.packets -= 1;
        queue.backlog.bytes -= u64::from(bytes);
        queue.last_departure = now;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(bytes);
        if queue.backlog.packets == 0 {
            self.occupied &= !(1 << priority);
        }
    }

    /// Returns the FIFO of queued packets and their priority, if all queued packets have the same
    /// priority and QCN limits no flow of this priority; otherwise `None`.
    pub fn single_fifo(&mut self) -> Option<(u8, &mut VecDeque<QueuedPacket>)> {
        let priority = self.occupied.trailing_zeros() as u8;
        let queue = self.queues.get_mut(usize::from(priority))?;
        let one = self.occupied & (self.occupied - 1) == 0 && queue.flows.is_none();
        one.then_some((priority, &mut queue.packets))
    }

    /// Stores a packet, which the backlog already counts, in the queue of its flow or of its
    /// priority.
    #[inline]
    pub fn store(&mut self, handle: PacketHandle, ingress: u32, priority: u8) {
        let flows = self.queue(priority).flows.as_ref();
        let flow = flows.and_then(|flows| flows.index_of(handle.dst().0));
        self.store_in_flow(handle, ingress, priority, flow);
    }

    /// Stores a packet like [`PriorityQueues::store`], if the index of its flow among the
    /// rate-limited flows is known.
    #[inline]
    pub fn store_in_flow(
        &mut self,
        handle: PacketHandle,
        ingress: u32,
        priority: u8,
        flow: Option<usize>,
    ) {
        let queue = &mut self.queues[usize::from(priority)];
        let queued = QueuedPacket { handle, ingress, number: self.next_number };
        self.next_number += 1;
        if let Some((flows, index)) = queue.flows.as_mut().zip(flow) {
            queue.limited_bytes += u64::from(handle.ip_len());
            return flows.enqueue(index, queued);
        }
        queue.packets.push_back(queued);
    }

    /// Whether a packet of a priority outside the mask `paused` may start at `now`.
    pub fn has_ready(&self, now: Time, paused: u8) -> bool {
        let free = self.occupied & !paused;
        free != 0 && set_bits(free).any(|p| self.queues[p].head(now).is_some())
    }

    /// Returns the time from which the first rate-limited flow may send, and the IP bytes of its
    /// packet; `None` if rate-limited flows have no queued packets.
    pub fn next_limited(&self, now: Time, paused: u8) -> Option<(Time, u32)> {
        let flows =
            set_bits(self.occupied & !paused).filter_map(|p| self.queues[p].flows.as_deref());
        let heads = flows.filter_map(|flows| Some((flows.next(now)?, flows)));
        let ((at, _, index), flows) = heads.min_by_key(|(head, _)| *head)?;
        Some((at, flows.bytes_of(index)))
    }

    /// Returns the time at which the next timer of a rate limiter expires; [`Time::NEVER`] if no
    /// timer runs.
    pub fn next_timer(&self) -> Time {
        let flows = self.queues.iter().filter_map(|queue| queue.flows.as_deref());
        flows.filter_map(LimitedFlows::next_timer).min().unwrap_or(Time::NEVER)
    }

    /// Removes and returns the next packet, with its priority, and whether it must be marked with
    /// CE. Priorities in the mask `paused` are skipped. Packets that the discipline drops are added
    /// to `dropped`. Returns `None` if no packet may start, or if the discipline has dropped all
    /// packets.
    pub fn pop(
        &mut self,
        now: Time,
        paused: u8,
        pool: &PacketPool,
        dropped: &mut Vec<(QueuedPacket, u8)>,
    ) -> Option<(QueuedPacket, u8, bool)> {
        let free = self.occupied & !paused;
        if free == 0 {
            return None;
        }
        let (p, flow) = if free & (free - 1) == 0 {
            let p = free.trailing_zeros() as usize;
            (p, self.queues[p].head(now)?.0)
        } else {
            let heads = set_bits(free).filter_map(|p| {
                let (flow, number) = self.queues[p].head(now)?;
                Some((number, p, flow))
            });
            heads.min().map(|(_, p, flow)| (p, flow))?
        };
        let lossless = self.lossless >> p & 1 == 1;
        let queue = &mut self.queues[p];
        let before = queue.backlog;
        let (queued, mark) = queue.dequeue(now, flow, lossless, pool, p as u8, dropped);
        self.total.packets -= before.packets - queue.backlog.packets;
        self.total.bytes -= before.bytes - queue.backlog.bytes;
        if queue.backlog.packets == 0 {
            self.occupied &= !(1 << p);
        }
        Some((queued?, p as u8, mark))
    }

    /// Removes and returns all packets of a priority, which the PFC watchdog drops.
    pub fn drain(&mut self, now: Time, priority: u8) -> Vec<QueuedPacket> {
        let queue = &mut self.queues[usize::from(priority)];
        let mut all: Vec<QueuedPacket> = queue.packets.drain(..).collect();
        all.extend(queue.flows.iter_mut().flat_map(|flows| flows.drain()));
        queue.limited_bytes = 0;
        self.total.packets -= queue.backlog.packets;
        self.total.bytes -= queue.backlog.bytes;
        queue.backlog = Backlog::default();
        queue.last_departure = now;
        self.occupied &= !(1 << priority);
        all
    }

    /// Returns all queued packets, each with its priority.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &QueuedPacket)> {
        (0u8..).zip(&self.queues).flat_map(|(p, queue)| {
            let limited_bytes = queue.flows.iter().flat_map(|flows| flows.packets());
            queue.packets.iter().chain(limited_bytes).map(move |queued| (p, queued))
        })
    }

    /// Limits the rate of the flow that a congestion notification message (CNM) refers to, or
    /// decreases its limit. `line` is the rate of the link.
    pub fn apply_cnm(
        &mut self,
        now: Time,
        cnm: &Cnm,
        line: Rate,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let PriorityQueue { packets, flows, limited_bytes, .. } =
            &mut self.queues[usize::from(cnm.priority)];
        let flows = flows.get_or_insert_default();
        let index = flows.limit(cnm.congested.0, line, |own| {
            // Queued packets of the flow move to the new queue of this flow.
            packets.retain(|queued| {
                let is_own = queued.handle.dst() == cnm.congested;
                if is_own {
                    *limited_bytes += u64::from(queued.handle.ip_len());
                    own(*queued);
                }
                !is_own
            });
        });
        flows.decrease_rate(now, index, cnm.fb, config, random);
    }

    /// Updates the rate limiter of a flow, if QCN limits the flow, when the transmission of a
    /// packet of `bytes` bytes on the link starts.
    #[inline]
    pub fn on_transmit(
        &mut self,
        now: Time,
        (priority, dst): (u8, u32),
        bytes: u32,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let Some(flows) = &mut self.queues[usize::from(priority)].flows else { return };
        let Some(index) = flows.index_of(dst) else { return };
        flows.on_transmit(now, index, bytes, config, random);
    }

    /// Executes the timers of rate limiters that have expired by `now`.
    pub fn expire_timers(&mut self, now: Time, config: &QcnConfig, random: &mut Stream) {
        for flows in self.queues.iter_mut().filter_map(|queue| queue.flows.as_mut()) {
            flows.expire_timers(now, config, random);
        }
    }

    /// Returns (priority, destination host, rate) of each flow that QCN limits.
    pub fn rates(&self) -> impl Iterator<Item = (u8, u32, Rate)> {
        (0u8..).zip(&self.queues).flat_map(|(p, queue)| {
            let rates = queue.flows.iter().flat_map(|flows| flows.rates());
            rates.map(move |(dst, rate)| (p, dst, rate))
        })
    }
}

impl PriorityQueue {
    /// Returns (flow, sequence number) of the first enqueued packet among the packets that may
    /// start at `now`; `None` if no packet may start. The flow is its index among the rate-limited
    /// flows, or `None` if the flow is not limited.
    #[inline]
    fn head(&self, now: Time) -> Option<(Option<usize>, u64)> {
        let plain = self.packets.front().map(|queued| (queued.number, None));
        let Some(flows) = &self.flows else { return plain.map(|(number, _)| (None, number)) };
        let limited_bytes = flows.next(now).filter(|(at, ..)| *at <= now);
        let limited_bytes = limited_bytes.map(|(_, number, index)| (number, Some(index)));
        [limited_bytes, plain].into_iter().flatten().min().map(|(number, flow)| (flow, number))
    }

    fn dequeue(
        &mut self,
        now: Time,
        flow: Option<usize>,
        lossless: bool,
        pool: &PacketPool,
        priority: u8,
        dropped: &mut Vec<(QueuedPacket, u8)>,
    ) -> (Option<QueuedPacket>, bool) {
        if let Some(index) = flow {
            let queued = self.flows.as_mut().and_then(|flows| flows.dequeue(index));
            self.limited_bytes -= queued.map_or(0, |queued| u64::from(queued.handle.ip_len()));
            self.count_out(now, queued.as_ref());
            return (queued, false);
        }
        let all = self.backlog;
        let packets = &self.packets;
        let plan = self.discipline.at_dequeue(now, || {
            let mut left = all;
            packets.iter().map(move |queued| {
                left.packets -= 1;
                left.bytes -= u64::from(queued.handle.ip_len());
                Head::new(&queued.handle, left, pool.get(queued.handle.slot()))
            })
        });
        for _ in 0..if lossless { 0 } else { plan.drop } {
            let queued = self.packets.pop_front().expect("only queued packets are dropped");
            self.count_out(now, Some(&queued));
            dropped.push((queued, priority));
        }
        let queued = self.packets.pop_front();
        self.count_out(now, queued.as_ref());
        (queued, plan.mark)
    }

    fn count_out(&mut self, now: Time, queued: Option<&QueuedPacket>) {
        if let Some(queued) = queued {
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(queued.handle.ip_len());
            self.last_departure = now;
        }
    }
}

/// Returns the positions of the bits that are set in `mask`, from 0 for the lowest bit.
pub(crate) fn set_bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// Returns the transmission time of a backlog on a link, with `framing` bytes of framing for each
/// packet.
pub(crate) fn transmission_time(backlog: Backlog, framing: u32, ps_per_byte_q16: u64) -> Span {
    let bytes = backlog.bytes + backlog.packets as u64 * u64::from(framing);
    Span(((u128::from(bytes) * u128::from(ps_per_byte_q16)) >> 16) as u64)
}

/// The queued packet that a port with data-centre bridging sends next.
pub(super) enum Next {
    /// A packet can start now. The values are its priority and the index of its rate-limited flow
    /// (`None` if the flow is not limited).
    Now(u8, Option<usize>),
    /// No packet can start now. A packet with the given IP bytes can start at the given time.
    Later(Time, u32),
}

impl PriorityQueues {
    /// Returns which queued packet is sent next, if no priority is paused.
    #[inline]
    pub(super) fn choose(&self, now: Time) -> Next {
        let mut best = (Time::NEVER, u64::MAX);
        let mut next = Next::Later(Time::NEVER, 0);
        for p in set_bits(self.occupied()) {
            let queue = self.queue(p as u8);
            if let Some(queued) = queue.packets.front()
                && (now, queued.number) < best
            {
                best = (now, queued.number);
                next = Next::Now(p as u8, None);
            }
            let Some(flows) = queue.flows.as_deref() else { continue };
            if let Some((at, number, index)) = flows.next(now)
                && (at, number) < best
            {
                best = (at, number);
                next = match at <= now {
                    true => Next::Now(p as u8, Some(index)),
                    false => Next::Later(at, flows.bytes_of(index)),
                };
            }
        }
        next
    }

    /// Removes and returns the packet that [`PriorityQueues::choose`] has chosen; `None` if it is
    /// no longer queued.
    #[inline]
    pub(super) fn dequeue_chosen(
        &mut self,
        now: Time,
        priority: u8,
        flow: Option<usize>,
    ) -> Option<PacketHandle> {
        let queue = self.queue_mut(priority);
        let queued = match (flow, queue.flows.as_mut()) {
            (Some(index), Some(flows)) => {
                let queued = flows.dequeue(index)?;
                queue.limited_bytes -= u64::from(queued.handle.ip_len());
                queued
            }
            _ => queue.packets.pop_front()?,
        };
        self.count_departure(now, priority, u32::from(queued.handle.ip_len()));
        Some(queued.handle)
    }
}
