//! What waits in a class of a bridged port: a queue for each priority, so that one can be paused without
//! the others, and, at hosts, one for each flow that QCN limits.
//!
//! Among those that may send, the packet that came first goes first: without pause and limits a class is
//! one FIFO queue, as it is at ports without bridging. Each priority has a discipline of its own. It may
//! mark packets of a lossless priority, and never drops them.

use super::cnm::Cnm;
use super::held::Held;
use super::limits::Limits;
use super::pfc::PRIORITIES;
use super::qcn::QcnConfig;
use crate::losses::Cause;
use crate::passage::Passage;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog, Discipline, Head, Place, Queue, QueueConfig, Verdict};
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A queue. What every packet touches comes first and fills a cache line.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct Lane {
    /// Packets and bytes, those of limited flows among them.
    held: Backlog,
    /// The most bytes there ever were.
    pub most: u64,
    /// With fewer packets than this its discipline lets all in and marks none, or may not drop any.
    surely: usize,
    /// When it last sent a packet, or was empty.
    pub moved: Time,
    /// Bytes of limited flows among those that wait.
    pub(super) apart: u64,
    pub(super) limits: Option<Box<Limits>>,
    pub(super) packets: VecDeque<Held>,
    queue: Queue,
}

const _: () = assert!(std::mem::offset_of!(Lane, packets) <= 64);

/// The queues of a class, by priority.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Lanes {
    /// Bit p is set where packets of priority p wait.
    occupied: u8,
    lossless: u8,
    next_number: u64,
    /// Packets and bytes of all priorities.
    total: Backlog,
    lanes: [Lane; PRIORITIES],
}

/// What becomes of a packet that comes.
pub(crate) enum Came {
    In { mark: bool },
    Lost(Cause),
}

impl Lanes {
    pub fn new(config: &QueueConfig, place: &Place, lossless: u8) -> Lanes {
        let lane = |priority: usize| {
            let place = Place { number: place.number | (priority as u64) << 40, ..*place };
            let queue = config.start(&place);
            Lane {
                packets: VecDeque::new(),
                surely: match &queue {
                    Queue::DropTail(_) if lossless >> priority & 1 == 1 => usize::MAX,
                    queue => queue.surely_lets_in(place.mtu) as usize,
                },
                queue,
                held: Backlog::default(),
                apart: 0,
                most: 0,
                limits: None,
                moved: Time::ZERO,
            }
        };
        Lanes {
            lanes: std::array::from_fn(lane),
            occupied: 0,
            lossless,
            next_number: 0,
            total: Backlog::default(),
        }
    }

    pub fn lane(&self, priority: u8) -> &Lane {
        &self.lanes[usize::from(priority)]
    }

    pub(super) fn lane_mut(&mut self, priority: u8) -> &mut Lane {
        &mut self.lanes[usize::from(priority)]
    }

    /// Packets and bytes of all priorities.
    pub fn backlog(&self) -> Backlog {
        self.total
    }

    /// Packets and bytes of priorities that are not paused.
    pub fn moving(&self, paused: u8) -> Backlog {
        let mut all = self.total;
        for p in bits(self.occupied & paused) {
            all.packets -= self.lanes[p].held.packets;
            all.bytes -= self.lanes[p].held.bytes;
        }
        all
    }

    /// Bytes that wait in a priority.
    pub fn bytes(&self, priority: u8) -> u64 {
        self.lanes[usize::from(priority)].held.bytes
    }

    /// Bytes that go before a new packet to this host: those of its flow if QCN limits that, else those of all
    /// flows without limit.
    pub fn ahead(&self, priority: u8, dst: u32) -> u64 {
        let lane = self.lane(priority);
        let own = lane.limits.as_ref().and_then(|limits| limits.bytes(dst));
        own.unwrap_or(lane.held.bytes - lane.apart)
    }

    /// Priorities with packets, as bits.
    pub fn occupied(&self) -> u8 {
        self.occupied
    }

    /// Hands in a packet; `arrival` says nothing of what waits.
    pub fn push(
        &mut self,
        mut passage: Passage,
        came: u32,
        priority: u8,
        arrival: &Arrival,
    ) -> Came {
        let came_in = self.let_in(arrival.now, priority, arrival.ip_len, || *arrival);
        if let Came::In { .. } = came_in {
            passage.arrive = arrival.now;
            self.put(passage, came, priority);
        }
        came_in
    }

    /// Counts a packet in that goes to the wire and is not kept here, see [`super::quiet`].
    #[inline(always)]
    pub fn let_in<'p>(
        &mut self,
        now: Time,
        priority: u8,
        bytes: u32,
        arrival: impl FnOnce() -> Arrival<'p>,
    ) -> Came {
        let lane = &mut self.lanes[usize::from(priority)];
        let mut mark = false;
        if lane.held.packets >= lane.surely {
            let verdict = lane.queue.at_enqueue(&Arrival { backlog: lane.held, ..arrival() });
            if let Some(cause) = verdict.loss()
                && self.lossless >> priority & 1 == 0
            {
                return Came::Lost(cause);
            }
            mark = verdict == Verdict::Mark;
        }
        if lane.held.packets == 0 {
            lane.moved = now;
        }
        lane.held.packets += 1;
        lane.held.bytes += u64::from(bytes);
        lane.most = lane.most.max(lane.held.bytes);
        self.total.packets += 1;
        self.total.bytes += u64::from(bytes);
        self.occupied |= 1 << priority;
        Came::In { mark }
    }

    /// Counts a packet in that goes to the wire, if it surely comes in without a mark and changes nothing
    /// but what waits, even where some that are counted wait no more.
    #[inline(always)]
    pub fn surely_lets_in(&mut self, now: Time, priority: u8, bytes: u32) -> bool {
        let lane = &mut self.lanes[usize::from(priority)];
        let then = lane.held.bytes + u64::from(bytes);
        if lane.held.packets >= lane.surely || then > lane.most {
            return false;
        }
        if lane.held.packets == 0 {
            lane.moved = now;
        }
        lane.held.packets += 1;
        lane.held.bytes = then;
        self.total.packets += 1;
        self.total.bytes += u64::from(bytes);
        self.occupied |= 1 << priority;
        true
    }

    /// Counts it out: it begins to be sent.
    #[inline]
    pub fn let_out(&mut self, now: Time, priority: u8, bytes: u32) {
        let lane = &mut self.lanes[usize::from(priority)];
        lane.held.packets -= 1;
        lane.held.bytes -= u64::from(bytes);
        lane.moved = now;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(bytes);
        if lane.held.packets == 0 {
            self.occupied &= !(1 << priority);
        }
    }

    /// The priority of all that waits here and the packets, where it is one and no flow is limited.
    pub fn one_fifo(&mut self) -> Option<(u8, &mut VecDeque<Held>)> {
        let priority = self.occupied.trailing_zeros() as u8;
        let lane = self.lanes.get_mut(usize::from(priority))?;
        let one = self.occupied & (self.occupied - 1) == 0 && lane.limits.is_none();
        one.then_some((priority, &mut lane.packets))
    }

    /// Keeps a packet that has been counted.
    #[inline]
    pub fn put(&mut self, passage: Passage, came: u32, priority: u8) {
        let limits = self.lane(priority).limits.as_ref();
        let flow = limits.and_then(|limits| limits.place(passage.dst.0));
        self.put_with(passage, came, priority, flow);
    }

    /// Like [`Lanes::put`], where the place of its flow among the limited ones is known.
    #[inline]
    pub fn put_with(&mut self, passage: Passage, came: u32, priority: u8, flow: Option<usize>) {
        let lane = &mut self.lanes[usize::from(priority)];
        let held = Held { passage, came, number: self.next_number };
        self.next_number += 1;
        if let Some((limits, place)) = lane.limits.as_mut().zip(flow) {
            lane.apart += u64::from(passage.ip_len());
            return limits.put(place, held);
        }
        lane.packets.push_back(held);
    }

    /// Whether a packet can go now.
    pub fn ready(&self, now: Time, paused: u8) -> bool {
        let free = self.occupied & !paused;
        free != 0 && bits(free).any(|p| self.lanes[p].first(now).is_some())
    }

    /// When a limited flow may go on, if all that waits is limited, and the bytes of its packet.
    pub fn next(&self, now: Time, paused: u8) -> Option<(Time, u32)> {
        let flows = bits(self.occupied & !paused).filter_map(|p| self.lanes[p].limits.as_deref());
        let heads = flows.filter_map(|limits| Some((limits.next(now)?, limits)));
        let ((at, _, place), limits) = heads.min_by_key(|(first, _)| *first)?;
        Some((at, limits.bytes_of(place)))
    }

    /// When the timer of a limiter next rings.
    pub fn next_timer(&self) -> Time {
        let limits = self.lanes.iter().filter_map(|lane| lane.limits.as_deref());
        limits.filter_map(Limits::next_timer).min().unwrap_or(Time::NEVER)
    }

    /// Takes out the packet that is next, with its priority and whether it is to be marked; those that the
    /// discipline drops go to `dropped`. `None` also where it has dropped all.
    pub fn pop(
        &mut self,
        now: Time,
        paused: u8,
        pool: &PacketPool,
        dropped: &mut Vec<(Held, u8)>,
    ) -> Option<(Held, u8, bool)> {
        let free = self.occupied & !paused;
        if free == 0 {
            return None;
        }
        let (p, flow) = if free & (free - 1) == 0 {
            let p = free.trailing_zeros() as usize;
            (p, self.lanes[p].first(now)?.0)
        } else {
            let heads = bits(free).filter_map(|p| {
                let (flow, number) = self.lanes[p].first(now)?;
                Some((number, p, flow))
            });
            heads.min().map(|(_, p, flow)| (p, flow))?
        };
        let lossless = self.lossless >> p & 1 == 1;
        let lane = &mut self.lanes[p];
        let before = lane.held;
        let (held, mark) = lane.take(now, flow, lossless, pool, p as u8, dropped);
        self.total.packets -= before.packets - lane.held.packets;
        self.total.bytes -= before.bytes - lane.held.bytes;
        if lane.held.packets == 0 {
            self.occupied &= !(1 << p);
        }
        Some((held?, p as u8, mark))
    }

    /// Empties a priority, for the watchdog.
    pub fn empty(&mut self, now: Time, priority: u8) -> Vec<Held> {
        let lane = &mut self.lanes[usize::from(priority)];
        let mut all: Vec<Held> = lane.packets.drain(..).collect();
        all.extend(lane.limits.iter_mut().flat_map(|limits| limits.empty()));
        lane.apart = 0;
        self.total.packets -= lane.held.packets;
        self.total.bytes -= lane.held.bytes;
        lane.held = Backlog::default();
        lane.moved = now;
        self.occupied &= !(1 << priority);
        all
    }

    /// All that waits, with its priority.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &Held)> {
        (0u8..).zip(&self.lanes).flat_map(|(p, lane)| {
            let apart = lane.limits.iter().flat_map(|limits| limits.packets());
            lane.packets.iter().chain(apart).map(move |held| (p, held))
        })
    }

    /// A message has come: the flow that it is about goes slower.
    pub fn slow_down(
        &mut self,
        now: Time,
        cnm: &Cnm,
        line: Rate,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let Lane { packets, limits, apart, .. } = &mut self.lanes[usize::from(cnm.priority)];
        let limits = limits.get_or_insert_default();
        let place = limits.limit(cnm.congested.0, line, |own| {
            // what waits of this flow waits apart from now on
            packets.retain(|held| {
                let is_own = held.passage.dst == cnm.congested;
                if is_own {
                    *apart += u64::from(held.passage.ip_len());
                    own(*held);
                }
                !is_own
            });
        });
        limits.slow_down(now, place, cnm.fb, config, random);
    }

    /// A packet begins to be sent.
    #[inline]
    pub fn sends(
        &mut self,
        now: Time,
        (priority, dst): (u8, u32),
        bytes: u32,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let Some(limits) = &mut self.lanes[usize::from(priority)].limits else { return };
        let Some(place) = limits.place(dst) else { return };
        limits.sends(now, place, bytes, config, random);
    }

    /// Timers of limiters ring.
    pub fn ring(&mut self, now: Time, config: &QcnConfig, random: &mut Stream) {
        for limits in self.lanes.iter_mut().filter_map(|lane| lane.limits.as_mut()) {
            limits.ring(now, config, random);
        }
    }

    /// Rates of limited flows: priority, destination, rate.
    pub fn rates(&self) -> impl Iterator<Item = (u8, u32, Rate)> {
        (0u8..).zip(&self.lanes).flat_map(|(p, lane)| {
            let rates = lane.limits.iter().flat_map(|limits| limits.rates());
            rates.map(move |(dst, rate)| (p, dst, rate))
        })
    }
}

impl Lane {
    /// Whose packet may go first, and its number: that of a limited flow by its place, or of the others.
    #[inline]
    fn first(&self, now: Time) -> Option<(Option<usize>, u64)> {
        let plain = self.packets.front().map(|held| (held.number, None));
        let Some(limits) = &self.limits else { return plain.map(|(number, _)| (None, number)) };
        let apart = limits.next(now).filter(|(at, ..)| *at <= now);
        let apart = apart.map(|(_, number, place)| (number, Some(place)));
        [apart, plain].into_iter().flatten().min().map(|(number, flow)| (flow, number))
    }

    fn take(
        &mut self,
        now: Time,
        flow: Option<usize>,
        lossless: bool,
        pool: &PacketPool,
        priority: u8,
        dropped: &mut Vec<(Held, u8)>,
    ) -> (Option<Held>, bool) {
        if let Some(place) = flow {
            let held = self.limits.as_mut().and_then(|limits| limits.take(place));
            self.apart -= held.map_or(0, |held| u64::from(held.passage.ip_len()));
            self.count_out(now, held.as_ref());
            return (held, false);
        }
        let all = self.held;
        let packets = &self.packets;
        let plan = self.queue.at_dequeue(now, || {
            let mut left = all;
            packets.iter().map(move |held| {
                left.packets -= 1;
                left.bytes -= u64::from(held.passage.ip_len());
                Head { since: held.passage.arrive, left, packet: pool.get(held.passage.slot) }
            })
        });
        for _ in 0..if lossless { 0 } else { plan.drop } {
            let held = self.packets.pop_front().expect("the plan drops what waits");
            self.count_out(now, Some(&held));
            dropped.push((held, priority));
        }
        let held = self.packets.pop_front();
        self.count_out(now, held.as_ref());
        (held, plan.mark)
    }

    fn count_out(&mut self, now: Time, held: Option<&Held>) {
        if let Some(held) = held {
            self.held.packets -= 1;
            self.held.bytes -= u64::from(held.passage.ip_len());
            self.moved = now;
        }
    }
}

/// The numbers of the bits that are set.
pub(crate) fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// The time that bytes and packets take on a link, framing included.
pub(crate) fn on_link(backlog: Backlog, framing: u16, ps_per_byte_q16: u64) -> Span {
    let bytes = backlog.bytes + backlog.packets as u64 * u64::from(framing);
    Span(((u128::from(bytes) * u128::from(ps_per_byte_q16)) >> 16) as u64)
}

/// What goes next.
pub(super) enum Next {
    /// The packet of this priority that waits longest, of a limited flow or not.
    Now(u8, Option<usize>),
    /// Nothing now, but then a packet with so many bytes.
    Later(Time, u32),
}

impl Lanes {
    /// What of all that waits goes next, where nothing is paused.
    #[inline]
    pub(super) fn choose(&self, now: Time) -> Next {
        let mut best = (Time::NEVER, u64::MAX);
        let mut next = Next::Later(Time::NEVER, 0);
        for p in bits(self.occupied()) {
            let lane = self.lane(p as u8);
            if let Some(held) = lane.packets.front()
                && (now, held.number) < best
            {
                best = (now, held.number);
                next = Next::Now(p as u8, None);
            }
            let Some(limits) = lane.limits.as_deref() else { continue };
            if let Some((at, number, place)) = limits.next(now)
                && (at, number) < best
            {
                best = (at, number);
                next = match at <= now {
                    true => Next::Now(p as u8, Some(place)),
                    false => Next::Later(at, limits.bytes_of(place)),
                };
            }
        }
        next
    }

    /// Takes out what was chosen.
    #[inline]
    pub(super) fn take_chosen(
        &mut self,
        now: Time,
        priority: u8,
        flow: Option<usize>,
    ) -> Option<Passage> {
        let lane = self.lane_mut(priority);
        let held = match (flow, lane.limits.as_mut()) {
            (Some(place), Some(limits)) => {
                let held = limits.take(place)?;
                lane.apart -= u64::from(held.passage.ip_len());
                held
            }
            _ => lane.packets.pop_front()?,
        };
        self.let_out(now, priority, u32::from(held.passage.ip_len()));
        Some(held.passage)
    }
}
