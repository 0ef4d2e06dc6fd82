//! Bridged ports without an event at the end of a transmission, and departures decided ahead.
//!
//! **Quiet ports.** When a transmission ends, the packet's bytes no longer count where it came in, and the
//! next one begins. Mostly nobody sees that at once. A quiet port does it when it is next touched, for the
//! moments at which it was due, as a [lazy](crate::link::Mode::Lazy) one: a packet that waits begins when the
//! one before it has been sent, and that one arrives later still, as an event of the same link.
//!
//! A port is quiet while it obeys no pause, has none to say, and no input of its switch has asked for one
//! (what leaves then may end it, at that moment); never where somebody looks at it between its own events.
//!
//! **Calm ports.** Where nothing holds up what waits and one class is all there is, a packet goes to the wire
//! as it comes: when it leaves is known. What has not begun to be sent is taken off again when a pause, a
//! frame or a limited flow comes; then it waits in its lane, until that is empty. Two cursors into the ring
//! stand for all that a calm port knows of its packets: how many have begun to be sent, and how many no
//! longer count where they came in.
//!
//! **Swift.** Before a packet is let in, a port has to catch up: what is decided about the packet depends on
//! what waits. It is decided alike, though, as long as the packet would not make the longest queue there was,
//! nor one that its discipline wants to see, even with all that are counted still waiting. Then a calm
//! port lets it in as an eager one does, by the time until which it is busy, and its cursor comes after.
//! It also has to be certain that this time tells how long the packet waits: bytes take whole picoseconds,
//! and nothing waits that is smaller than a frame.
//!
//! **Inputs.** A packet that has left a quiet port is taken off its input at its next arrival, or before that
//! where it matters: when with one more packet the input would hold more than ever before, or reach XOFF. Till
//! then inputs count too much.
//!
//! **Limited flows.** While no limited flow may send, the port knows which one may send first, and so when that
//! packet arrives at the far end. If nothing else comes, that arrival is the next event of the link. The moment
//! at which the packet goes needs no event.
//!
//! **Order.** A frame takes effect as one of the departures of its instant. Whether a transmission that ends at
//! the same instant goes before it is decided as the list of events would.

use super::bridge::Bridge;
use super::held::{Held, OWN};
use super::lanes::{Came, Next, on_link};
use crate::link::{Link, Waiting};
use crate::losses::Cause;
use crate::passage::Passage;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog};
use eastwest_engine::order::{Class, Key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// What a fabric with bridged ports knows of its switches.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Inputs {
    /// The links that go out of each node.
    pub(super) ports: Vec<Vec<u32>>,
    /// For each node, how many priorities of its inputs have asked for a pause.
    pub(super) asked: Vec<u32>,
}

impl Inputs {
    /// Returns the inputs of a fabric with these links and this number of nodes.
    pub fn new(links: &[Link], nodes: usize) -> Inputs {
        if !links.first().is_some_and(Link::is_bridged) {
            return Inputs::default();
        }
        let mut ports = vec![Vec::new(); nodes];
        for (number, link) in (0..).zip(links) {
            ports[link.from as usize].push(number);
        }
        Inputs { ports, asked: vec![0; nodes] }
    }
}

impl Link {
    /// Packets on the wire of a bridged port that have not begun to be sent, as far as that is known.
    #[inline]
    pub(crate) fn ahead(&self) -> usize {
        self.on_wire.len() - self.begun as usize
    }

    /// Begins to send the packet that is next of those on the wire already, if there is one.
    #[inline(always)]
    pub(super) fn begin_ahead(&mut self, now: Time, pool: &PacketPool) -> bool {
        let Some(&passage) = self.on_wire.get(self.begun) else { return false };
        let Some(w) = self.waiting.as_deref_mut() else { return false };
        let Some((lanes, bridge, sent_at)) = w.only_lanes() else { return false };
        let priority = pool.entry(passage.slot).priority();
        lanes.let_out(now, priority, u32::from(passage.ip_len()));
        bridge.serving = true;
        *sent_at = passage.arrived().before(self.delay);
        self.begun += 1;
        true
    }

    /// Carries out at a bridged port what was due before `until`.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, until: Time, pool: &mut PacketPool) {
        if let Some((sent_at, bridge)) = self.bridge_parts()
            && bridge.wakes_at.min(*sent_at) < until
        {
            self.carry_out_until(until, pool);
        }
    }

    #[inline(never)]
    fn carry_out_until(&mut self, until: Time, pool: &mut PacketPool) {
        while let Some(w) = self.waiting.as_deref_mut()
            && let Some(bridge) = w.bridge.as_deref_mut()
            && w.sent_at.min(bridge.wakes_at) < until
        {
            let at = w.sent_at.min(bridge.wakes_at);
            (w.sent_at, bridge.wakes_at) = (Time::NEVER, Time::NEVER);
            bridge.serving = false;
            if bridge.only_limits() {
                self.begin_limited(at);
            } else if !self.begin_ahead(at, pool)
                && self.waiting.as_deref_mut().is_some_and(Waiting::has_any)
            {
                self.start_bridged(at, pool);
            }
        }
    }

    /// Packets at the head of the ring whose last bit has left, at a port that has caught up.
    #[inline]
    pub(super) fn finished(&self) -> u32 {
        let Some(w) = self.waiting.as_deref() else { return 0 };
        let sends = w.sent_at != Time::NEVER && w.bridge.as_deref().is_some_and(|b| b.serving);
        self.begun - u32::from(sends)
    }

    /// The next packet that has left and still counts where it came in, of the first `finished` of the ring;
    /// from now on it no longer does.
    #[inline]
    pub(super) fn next_gone(&mut self, finished: u32) -> Option<Passage> {
        let bridge = self.waiting.as_deref_mut()?.bridge.as_deref_mut()?;
        if bridge.gone >= finished {
            return None;
        }
        bridge.gone += 1;
        self.on_wire.get(bridge.gone - 1).copied()
    }

    /// Carries out an arrival of a bridged link: the packet, whether it still counts where it came in, and the
    /// key of the next event.
    #[inline(always)]
    pub(crate) fn arrive_bridged(
        &mut self,
        key: Key,
        pool: &mut PacketPool,
    ) -> (Passage, bool, Key) {
        let now = key.time();
        let Some((_, bridge)) = self.bridge_parts() else { unreachable!("the port is bridged") };
        let (is_swift, is_quiet) = (bridge.swift_from != Time::NEVER, bridge.is_quiet());
        if !is_swift {
            self.catch_up(now.next(), pool);
        } else if self.begun == 0 {
            self.begin_ahead(now, pool);
        }
        self.begun -= 1;
        let passage = self.take_first(key);
        let Some((_, bridge)) = self.bridge_parts() else { unreachable!("the port is bridged") };
        let counts = bridge.gone == 0;
        bridge.gone = bridge.gone.saturating_sub(1);
        if !is_quiet {
            return (passage, counts, self.next_key(now));
        }
        let next = self.quiet_key(now);
        (passage, counts, next)
    }

    /// The key of the next event of a quiet port.
    #[inline(always)]
    pub(super) fn quiet_key(&mut self, now: Time) -> Key {
        let due = self.waiting.as_deref().and_then(|w| w.plain_due()).unwrap_or(Time::NEVER);
        let arrive = self.on_wire.get(0).map_or_else(|| self.foreseen(), |held| held.arrived());
        let next = match arrive {
            Time::NEVER => Key::NEVER,
            arrive => self.arrival_key(now, arrive),
        };
        match due {
            Time::NEVER => next,
            due => next.min(Key::new(due.max(now), Class::Departure)),
        }
    }

    /// A packet in front has been lost on the way; tells whether it still counted where it came in.
    pub(super) fn drop_first(&mut self) -> bool {
        self.begun -= 1;
        let Some((_, bridge)) = self.bridge_parts() else { return false };
        let counts = bridge.gone == 0;
        bridge.gone = bridge.gone.saturating_sub(1);
        counts
    }

    /// When the transmission of the moment is over, and the rest of a bridged port.
    #[inline(always)]
    fn bridge_parts(&mut self) -> Option<(&mut Time, &mut Bridge)> {
        let w = self.waiting.as_deref_mut()?;
        Some((&mut w.sent_at, w.bridge.as_deref_mut()?))
    }

    /// Lets a packet in at a swift port, where all but its way on the wire is certain; what has begun to be
    /// sent is counted later. `false` where more has to be known.
    #[inline(always)]
    pub(super) fn take_swiftly(
        &mut self,
        now: Time,
        mut passage: Passage,
        (came, priority): (u32, u8),
    ) -> bool {
        let ip_len = u32::from(passage.ip_len());
        let wire_bytes = self.wire_bytes(ip_len);
        let Some(w) = self.waiting.as_deref_mut() else { return false };
        let Some((lanes, bridge, sent_at)) = w.only_lanes() else { return false };
        if now < bridge.swift_from
            || came ^ 1 == bridge.number
            || wire_bytes != ip_len + u32::from(self.framing)
            || (*sent_at == Time::NEVER && !bridge.is_quiet())
            || !lanes.surely_lets_in(now, priority, ip_len)
        {
            return false;
        }
        let start = bridge.free_at.max(now);
        let sent = start + Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
        bridge.free_at = sent;
        if *sent_at == Time::NEVER {
            *sent_at = now; // it begins when the port next catches up
        }
        self.counters.max_backlog = self.counters.max_backlog.max(start.since(now));
        self.busy_until = sent;
        self.held_bytes += u64::from(ip_len);
        passage.arrive = sent + self.delay;
        self.on_wire.push(passage);
        true
    }

    /// Lets a packet in and decides when it leaves, where nothing holds up what waits and all of it is on the
    /// wire; tells whether it has begun to be sent. What goes back where it came from may have to wait for a
    /// frame that it sets off.
    pub(super) fn take_ahead(
        &mut self,
        now: Time,
        mut passage: Passage,
        (came, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Option<Result<bool, Cause>> {
        let ip_len = u32::from(passage.ip_len());
        let send_time = self.send_time(ip_len);
        let is_small = self.wire_bytes(ip_len) != ip_len + u32::from(self.framing);
        self.become_calm();
        let (lanes, bridge, sent_at) = self.waiting.as_deref_mut()?.only_lanes()?;
        if !bridge.calm {
            return None;
        }
        if came ^ 1 == bridge.number {
            self.take_back(now, pool);
            return None;
        }
        let idle = *sent_at == Time::NEVER;
        let rest = if idle { now } else { *sent_at };
        let clear_at = rest + on_link(lanes.backlog(), self.framing, self.ps_per_byte_q16);
        let arrival = || {
            let packet = pool.get(passage.slot);
            Arrival { now, ip_len, send_time, backlog: Backlog::default(), clear_at, packet }
        };
        let mark = match lanes.let_in(now, priority, ip_len, arrival) {
            Came::In { mark } => mark,
            Came::Lost(cause) => return Some(Err(cause)),
        };
        let start = if idle { now } else { bridge.free_at };
        let sent = start + send_time;
        bridge.free_at = sent;
        if idle {
            lanes.let_out(now, priority, ip_len);
            bridge.serving = true;
            *sent_at = sent;
            self.begun += 1;
        } else if is_small {
            bridge.uneven_until = start;
            bridge.set_swift();
        }
        self.counters.max_backlog = self.counters.max_backlog.max(clear_at.since(now));
        self.busy_until = clear_at + send_time;
        self.held_bytes += u64::from(ip_len);
        passage.arrive = sent + self.delay;
        self.on_wire.push(passage);
        if mark {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        Some(Ok(idle))
    }

    /// Becomes calm where nothing waits and nothing would hold it up.
    fn become_calm(&mut self) {
        let Some(w) = self.waiting.as_deref_mut() else { return };
        let Some((lanes, bridge, sent_at)) = w.only_lanes() else { return };
        if bridge.calm || lanes.backlog().packets > 0 || !(bridge.can_go_ahead && bridge.is_free())
        {
            return;
        }
        bridge.calm = true;
        bridge.free_at = if *sent_at == Time::NEVER { Time::ZERO } else { *sent_at };
        bridge.set_swift();
    }

    /// Puts what waits on the wire after the packet that has just begun to be sent, where nothing holds it up
    /// any more. As many packets must have been sent as wait since the last ones were taken back: else pauses
    /// that come and go would have a long queue carried to and fro.
    pub(super) fn go_ahead_again(&mut self) {
        let Some(w) = self.waiting.as_deref_mut() else { return };
        let Some((lanes, bridge, sent_at)) = w.only_lanes() else { return };
        let waits = lanes.backlog().packets;
        if waits == 0 || waits > bridge.sent_apart || !(bridge.can_go_ahead && bridge.is_free()) {
            return;
        }
        let Some((_, packets)) = lanes.one_fifo() else { return };
        let mut sent = *sent_at;
        for Held { mut passage, .. } in packets.drain(..) {
            let bytes = u32::from(passage.ip_len());
            let wire_bytes = bridge.wire.bytes(bytes);
            if wire_bytes != bytes + bridge.wire.framing {
                bridge.uneven_until = sent;
            }
            sent += Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
            passage.arrive = sent + self.delay;
            self.held_bytes += u64::from(bytes);
            self.on_wire.push(passage);
        }
        bridge.calm = true;
        bridge.free_at = sent;
        bridge.set_swift();
    }

    /// Takes what waits off the wire again: something may hold it up. The port has caught up.
    pub(super) fn take_back(&mut self, now: Time, pool: &PacketPool) {
        let w = self.waiting.as_mut().expect("the port is bridged");
        let Some((lanes, bridge, _)) = w.only_lanes() else { return };
        bridge.calm = false;
        bridge.set_swift();
        for place in self.begun.. {
            let Some(&(mut passage)) = self.on_wire.get(place) else { break };
            bridge.sent_apart = 0;
            self.held_bytes -= u64::from(passage.ip_len());
            passage.arrive = now;
            let entry = pool.entry(passage.slot);
            lanes.put(passage, entry.came(), entry.priority());
        }
        self.on_wire.truncate(self.begun);
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
    pub(super) fn take_limited(
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
            clear_at = clear_at.max(now.next()); // it needs room
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
                (bridge.wakes_at, bridge.wakes_with) = (at.max(now.next()), bytes);
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
