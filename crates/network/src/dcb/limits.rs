//! Flows that QCN limits at a host, and its port while there are any.
//!
//! A limited flow waits apart until its rate lets the next packet go. The port takes, of what may go, what came
//! first. While nothing may, the first flow to be let go is known, and so is when its packet arrives at the far
//! end. If nothing else comes, that arrival is the next event of the link, and none is needed for the
//! moment at which the packet goes: a [quiet](super::quiet) port carries it out late.

use super::lanes::{Came, Held, Lanes, OWN, bits, on_link};
use super::port::Bridge;
use super::qcn::QcnConfig;
use super::quiet::after;
use super::reaction::ReactionPoint;
use crate::fabric::Fabric;
use crate::link::Link;
use crate::losses::Cause;
use crate::passage::Passage;
use crate::pool::{Entry, PacketPool};
use crate::queue::{Arrival, Backlog};
use crate::ring::Ring;
use eastwest_engine::random::Stream;
use eastwest_engine::tournament::Tournament;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// A flow of a host that QCN limits or has limited a moment ago.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Limited {
    pub point: ReactionPoint,
    packets: Ring<Held>,
    bytes: u64,
    /// When its last packet began to be sent, and how many bytes on the link it had.
    sent: (Time, u32),
    /// When its next packet may go.
    next: Time,
}

impl Limited {
    /// The rate has changed, or a packet was sent.
    fn set_next(&mut self) {
        self.next = match self.point.is_free() {
            true => Time::ZERO,
            false => self.sent.0 + self.point.rate().time_for(u64::from(self.sent.1)),
        };
    }
}

/// The flows that a host limits in one priority, in the order of their destinations: there are few.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Limits {
    dsts: Vec<u32>,
    /// The first packet that waits of each flow: who goes next is decided by these alone.
    first: Vec<First>,
    flows: Vec<Limited>,
}

/// The first packet that waits of a flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct First {
    /// When it may go; never where none waits.
    due: Time,
    /// Its number, and its bytes.
    number: u64,
    bytes: u32,
}

impl First {
    /// The value for a flow without waiting packets.
    const NONE: First = First { due: Time::NEVER, number: u64::MAX, bytes: 0 };

    fn of(flow: &Limited) -> First {
        flow.packets.get(0).map_or(First::NONE, |held| First {
            due: flow.next,
            number: held.number,
            bytes: u32::from(held.passage.ip_len()),
        })
    }
}

impl Limits {
    /// The place of the flow to a host, if it is limited.
    #[inline]
    pub fn place(&self, dst: u32) -> Option<usize> {
        // counted in full: where a search ends cannot be predicted
        let place = self.dsts.iter().map(|other| usize::from(*other < dst)).sum();
        (self.dsts.get(place) == Some(&dst)).then_some(place)
    }

    /// Bytes of the flow to a host that wait, if it is limited.
    pub fn bytes(&self, dst: u32) -> Option<u64> {
        self.place(dst).map(|place| self.flows[place].bytes)
    }

    /// The place of the flow whose packet goes next, when that may go, and its number. Of those that may
    /// go by now it is the one that came first, else the first to be let go.
    #[inline]
    pub fn next(&self, now: Time) -> Option<(Time, u64, usize)> {
        let (mut best, mut place) = (u128::MAX, 0);
        for (other, first) in self.first.iter().enumerate() {
            let order = u128::from(first.due.max(now).0) << 64 | u128::from(first.number);
            // chosen, not jumped over: which of ten it will be cannot be predicted
            let is_sooner = order < best;
            best = if is_sooner { order } else { best };
            place = if is_sooner { other } else { place };
        }
        let at = Time((best >> 64) as u64);
        (at != Time::NEVER).then_some((at, best as u64, place))
    }

    /// Bytes of the first packet of a flow.
    pub fn bytes_of(&self, place: usize) -> u32 {
        self.first[place].bytes
    }

    /// Has a packet of the flow at a place wait.
    #[inline]
    pub fn put(&mut self, place: usize, held: Held) {
        let flow = &mut self.flows[place];
        flow.bytes += u64::from(held.passage.ip_len());
        flow.packets.push(held);
        if flow.packets.len() == 1 {
            self.first[place] = First::of(flow);
        }
    }

    /// Takes out the first packet of a flow.
    #[inline]
    pub fn take(&mut self, place: usize) -> Option<Held> {
        let flow = &mut self.flows[place];
        let held = flow.packets.pop()?;
        flow.bytes -= u64::from(held.passage.ip_len());
        self.first[place] = First::of(flow);
        Some(held)
    }

    /// Takes out all packets.
    pub fn empty(&mut self) -> impl Iterator<Item = Held> {
        self.first.fill(First::NONE);
        self.flows.iter_mut().flat_map(|flow| {
            flow.bytes = 0;
            std::iter::from_fn(|| flow.packets.pop())
        })
    }

    /// All packets.
    pub fn packets(&self) -> impl Iterator<Item = &Held> {
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

    /// The place of the flow to a host, which is limited from now on; `move_own` hands over its packets that
    /// wait, if it was not.
    pub fn limit(
        &mut self,
        dst: u32,
        line: Rate,
        move_own: impl FnOnce(&mut dyn FnMut(Held)),
    ) -> usize {
        let place = self.dsts.partition_point(|other| *other < dst);
        if self.dsts.get(place) != Some(&dst) {
            let (mut packets, mut bytes) = (Ring::default(), 0);
            move_own(&mut |held| {
                bytes += u64::from(held.passage.ip_len());
                packets.push(held);
            });
            let (point, sent) = (ReactionPoint::new(line), (Time::ZERO, 0));
            self.dsts.insert(place, dst);
            self.first.insert(place, First::NONE);
            self.flows.insert(place, Limited { point, packets, bytes, sent, next: Time::ZERO });
        }
        place
    }

    /// A message has come about a flow: it goes slower.
    pub fn slow_down(
        &mut self,
        now: Time,
        place: usize,
        fb: u8,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let flow = &mut self.flows[place];
        flow.point.slow_down(now, fb, config, random);
        flow.set_next();
        self.first[place] = First::of(flow);
    }

    /// A packet of a flow begins to be sent.
    #[inline]
    pub fn sends(
        &mut self,
        now: Time,
        place: usize,
        bytes: u32,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let flow = &mut self.flows[place];
        flow.sent = (now, bytes);
        flow.point.sends(bytes, config, random);
        flow.set_next();
        if !flow.packets.is_empty() {
            self.first[place].due = flow.next;
        } else if flow.point.is_free() {
            self.remove(place);
        }
    }

    #[inline(never)]
    fn remove(&mut self, place: usize) {
        self.dsts.remove(place);
        self.first.remove(place);
        self.flows.remove(place);
    }

    /// Timers ring. Flows that are free and have no packets are limited no more.
    pub fn ring(&mut self, now: Time, config: &QcnConfig, random: &mut Stream) {
        for (flow, first) in self.flows.iter_mut().zip(&mut self.first) {
            if flow.point.timer_at > now {
                continue;
            }
            if flow.point.is_free() {
                flow.point.timer_at = Time::NEVER;
            } else {
                flow.point.times(now, config, random);
            }
            flow.set_next();
            *first = First::of(flow);
        }
        for place in (0..self.flows.len()).rev() {
            if self.flows[place].point.is_free() && self.flows[place].packets.is_empty() {
                self.remove(place);
            }
        }
    }

    /// When a new packet of a flow may go; never where others wait already.
    #[inline]
    fn may_go(&self, place: usize) -> Time {
        match self.flows[place].packets.is_empty() {
            true => self.flows[place].next,
            false => Time::NEVER,
        }
    }
}

/// What goes next.
enum Next {
    /// The packet of this priority that waits longest, of a limited flow or not.
    Now(u8, Option<usize>),
    /// Nothing now, but then a packet with so many bytes.
    Later(Time, u32),
}

impl Lanes {
    /// What of all that waits goes next, where nothing is paused.
    #[inline]
    fn choose(&self, now: Time) -> Next {
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
    fn take_chosen(&mut self, now: Time, priority: u8, flow: Option<usize>) -> Option<Passage> {
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

impl Link {
    /// Whether flows are limited here, and nothing else holds up what waits.
    #[inline]
    pub(super) fn only_limits(&self) -> bool {
        let bridge = self.waiting.as_deref().and_then(|w| w.bridge.as_deref());
        bridge.is_some_and(Bridge::only_limits)
    }

    /// Lets a packet of the host in where [flows are limited](Link::only_limits) and all before now has been
    /// carried out; tells whether the next event of the link may be another now.
    fn take_limited(
        &mut self,
        now: Time,
        mut passage: Passage,
        priority: u8,
        pool: &mut PacketPool,
    ) -> Result<bool, Cause> {
        let ip_len = u32::from(passage.ip_len());
        let (wire_bytes, send_time) = (self.wire_bytes(ip_len), self.send_time(ip_len));
        let w = self.waiting.as_deref_mut().expect("the port is bridged");
        let (lanes, bridge, sent_at) =
            w.only_lanes().expect("ports with limits alone have one class");
        let (backlog, idle) = (lanes.backlog(), *sent_at == Time::NEVER);
        let rest = if idle { now } else { *sent_at };
        let mut clear_at = rest + on_link(backlog, self.framing, self.ps_per_byte_q16);
        if idle && backlog.packets > 0 {
            clear_at = clear_at.max(after(now)); // it needs room
        }
        let arrival = || {
            let packet = pool.get(passage.slot);
            Arrival { now, ip_len, send_time, backlog: Backlog::default(), clear_at, packet }
        };
        let mark = match lanes.let_in(now, priority, ip_len, arrival) {
            Came::In { mark } => mark,
            Came::Lost(cause) => return Err(cause),
        };
        self.counters.max_backlog = self.counters.max_backlog.max(clear_at.since(now));
        self.busy_until = clear_at + send_time;
        let limits = lanes.lane(priority).limits.as_deref();
        let flow = limits.and_then(|limits| Some((limits, limits.place(passage.dst.0)?)));
        let may_go = if idle {
            flow.map_or(Time::ZERO, |(limits, place)| limits.may_go(place))
        } else {
            Time::NEVER
        };
        let flow = flow.map(|(_, place)| place);
        let mut changes = idle && self.on_wire.is_empty();
        if may_go <= now {
            lanes.let_out(now, priority, ip_len);
            *sent_at = now + send_time;
            bridge.sends(lanes, now, (priority, flow), wire_bytes);
            self.send_limited(now + send_time, passage);
        } else {
            passage.arrive = now;
            lanes.put_with(passage, OWN, priority, flow);
            changes &= may_go < bridge.wakes_at;
            if idle && may_go < bridge.wakes_at {
                (bridge.wakes_at, bridge.wakes_with) = (may_go, ip_len);
            }
        }
        if mark {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        Ok(changes)
    }

    /// Begins to send what goes next, where [flows are limited](Link::only_limits).
    #[inline(never)]
    pub(super) fn begin_limited(&mut self, now: Time) {
        let Some(w) = self.waiting.as_deref_mut() else { return };
        let Some((lanes, bridge, sent_at)) = w.only_lanes() else { return };
        match lanes.choose(now) {
            Next::Later(at, bytes) => {
                (bridge.wakes_at, bridge.wakes_with) = (at.max(after(now)), bytes);
            }
            Next::Now(priority, flow) => {
                let Some(passage) = lanes.take_chosen(now, priority, flow) else { return };
                let wire_bytes = bridge.wire.bytes(u32::from(passage.ip_len()));
                let sent = now + Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
                *sent_at = sent;
                bridge.sends(lanes, now, (priority, flow), wire_bytes);
                self.send_limited(sent, passage);
            }
        }
    }

    /// Puts a packet on the wire that will have been sent at `sent`.
    #[inline(always)]
    fn send_limited(&mut self, sent: Time, mut passage: Passage) {
        if let Some(bridge) = self.waiting.as_deref_mut().and_then(|w| w.bridge.as_deref_mut()) {
            (bridge.wakes_at, bridge.serving) = (Time::NEVER, true);
            bridge.sent_apart += 1;
        }
        self.begun += 1;
        self.held_bytes += u64::from(passage.ip_len());
        passage.arrive = sent + self.delay;
        self.on_wire.push(passage);
    }

    /// When the packet arrives that a quiet port sends next, while it is idle and all that waits is limited.
    #[inline]
    pub(crate) fn foreseen(&self) -> Time {
        let bridge = self.waiting.as_deref().and_then(|w| w.bridge.as_deref());
        match bridge {
            Some(b) if b.wakes_at != Time::NEVER && b.wakes_quietly() => {
                b.wakes_at + self.send_time(b.wakes_with) + self.delay
            }
            _ => Time::NEVER,
        }
    }
}

impl Fabric {
    /// A host hands a packet to its card where [flows are limited](Link::only_limits).
    #[inline(never)]
    pub(super) fn offer_limited(
        &mut self,
        now: Time,
        link: u32,
        passage: Passage,
        priority: u8,
        events: &mut Tournament,
    ) {
        self.pool.set_entry(passage.slot, Entry::new(OWN, priority));
        let port = &mut self.links[link as usize];
        port.catch_up(after(now), &mut self.pool);
        match port.take_limited(now, passage, priority, &mut self.pool) {
            Err(cause) => self.lose(now, link, passage, cause),
            Ok(false) => {}
            Ok(true) => {
                let next = port.quiet_key(now);
                events.set(link, next);
            }
        }
    }
}
