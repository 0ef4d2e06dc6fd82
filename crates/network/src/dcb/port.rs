//! A link whose port is bridged: packets come in and are sent, pauses are obeyed and said, timers ring.

use super::bridge::{Bridge, InputCounts, OutputCounts};
use super::cnm::Cnm;
use super::held::Held;
use super::lanes::{Came, Lanes, bits, on_link};
use super::pauses::PauseLog;
use super::pfc::{Input, PRIORITIES, Pauses};
use super::qcn::QcnConfig;
use crate::link::{Link, Waiting};
use crate::losses::Cause;
use crate::passage::Passage;
use crate::pool::PacketPool;
use eastwest_engine::memory;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span, Time};

/// What a bridged port does; on others these are not called.
impl Link {
    pub(crate) fn is_bridged(&self) -> bool {
        self.waiting.as_ref().is_some_and(|w| w.bridge.is_some())
    }

    fn bridge(&self) -> &Bridge {
        self.waiting.as_ref().and_then(|w| w.bridge.as_deref()).expect("the port is bridged")
    }

    fn bridge_mut(&mut self) -> &mut Bridge {
        self.waiting.as_mut().and_then(|w| w.bridge.as_deref_mut()).expect("the port is bridged")
    }

    /// Asks for what the next packet of this port touches.
    #[inline(always)]
    pub(super) fn prefetch_bridged(&self) {
        if !self.on_wire.is_empty() {
            self.on_wire.prefetch(0);
        }
        let Some(w) = self.waiting.as_deref() else { return };
        if let Some(bridge) = w.bridge.as_deref() {
            memory::prefetch_lines(bridge, 2);
        }
        if let Some(lanes) = w.lanes().next() {
            memory::prefetch_lines(lanes, 2);
        }
    }

    /// What came in at the far end and is in the switch there.
    pub(crate) fn input(&self) -> Option<&Input> {
        self.waiting.as_ref()?.bridge.as_ref()?.input.as_ref()
    }

    pub(crate) fn input_mut(&mut self) -> Option<&mut Input> {
        self.waiting.as_mut()?.bridge.as_mut()?.input.as_mut()
    }

    /// Sets when the input at the far end repeats the pauses that it has asked for.
    pub(super) fn repeat_at(&mut self, at: Time) {
        let b = self.bridge_mut();
        if let Some(input) = &mut b.input {
            input.refresh_at = at;
        }
        b.has_changed();
    }

    /// Whether the port sends nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.as_ref().is_some_and(|w| w.sent_at == Time::NEVER)
    }

    /// Whether the port is quiet and a packet has been sent just now, or a limited one may go.
    pub(super) fn acts_quietly(&self, now: Time) -> bool {
        let b = self.bridge();
        let ends = || self.waiting.as_ref().is_some_and(|w| w.sent_at == now);
        (b.is_quiet() && b.wakes_at == now) || (b.ends_quietly() && ends())
    }

    /// Has the port be touched by an event at the end of each transmission from now on.
    pub(super) fn be_exact(&mut self) {
        let b = self.bridge_mut();
        b.exact = true;
        b.has_changed();
    }

    /// Whether the port is quiet, see [`super::quiet`].
    pub(super) fn is_quiet(&self) -> bool {
        self.bridge().is_quiet()
    }

    /// Sets whether an input of the switch has asked for a pause.
    pub(super) fn set_watched(&mut self, watched: bool) {
        let b = self.bridge_mut();
        b.watched = watched;
        b.has_changed();
    }

    /// Whether a host feeds the link.
    pub(crate) fn feeds_from_host(&self) -> bool {
        self.bridge().from_host
    }

    /// Whether a priority is paused at this port, and nothing is on its way that ends it.
    pub(crate) fn is_held(&self, reverse: &Link, priority: u8) -> bool {
        self.bridge().paused.mask >> priority & 1 == 1
            && !reverse.bridge().control.releases(priority)
    }

    /// Bytes that wait in each priority.
    pub(crate) fn bytes_waiting(&self) -> [u64; PRIORITIES] {
        let w = self.waiting.as_ref().expect("the port is bridged");
        std::array::from_fn(|p| w.lanes().map(|lanes| lanes.bytes(p as u8)).sum())
    }

    /// Bytes that go before a new packet of this codepoint to a host at a bridged port; none at others.
    pub(crate) fn bytes_ahead(&self, dst: u32, dscp: u8) -> u64 {
        let Some(w) = self.waiting.as_ref() else { return 0 };
        let lanes = w.lanes().nth(usize::from(w.class_of(dscp)));
        lanes.map_or(0, |lanes| lanes.ahead(dscp >> 3, dst))
    }

    /// All that waits at a bridged port, with its priority.
    pub(crate) fn waiting_packets(&self) -> impl Iterator<Item = (u8, &Held)> {
        let w = self.waiting.as_ref().expect("the port is bridged");
        w.lanes().flat_map(|lanes| lanes.iter())
    }

    /// Lets a packet in; tells whether it has begun to be sent.
    pub(super) fn take_in(
        &mut self,
        now: Time,
        passage: Passage,
        (came, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Result<bool, Cause> {
        self.catch_up(now.next(), pool);
        match self.take_ahead(now, passage, (came, priority), pool) {
            Some(taken) => taken,
            None => self.take_apart(now, passage, (came, priority), pool).map(|()| false),
        }
    }

    /// Lets a packet in at a port where it has to wait for its turn.
    #[inline(never)]
    fn take_apart(
        &mut self,
        now: Time,
        passage: Passage,
        (came, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Result<(), Cause> {
        let before = self.waiting.as_ref().expect("the port is bridged");
        let rest = if before.sent_at == Time::NEVER { now } else { before.sent_at };
        let backlog = before.backlog();
        let clear_at = rest + on_link(backlog, self.framing, self.ps_per_byte_q16);
        let clear_at = if before.sent_at == Time::NEVER && backlog.packets > 0 {
            clear_at.max(now.next()) // paused: it has to wait, and needs room
        } else {
            clear_at
        };
        let arrival = self.arrival(now, &passage, Default::default(), clear_at, pool);
        let send_time = arrival.send_time;
        let group = self.meter.is_some().then(|| self.group(arrival.packet));
        let w = self.waiting.as_mut().expect("the port is bridged");
        if let (Some(meter), Some(group)) = (&mut self.meter, group) {
            meter.comes(group.class, w.backlog_of(group.class));
            self.account.get_or_insert_default().of(group).arrivals += 1;
        }
        let mark = match w.push_bridged(passage, (came, priority), &arrival) {
            Came::In { mark } => mark,
            Came::Lost(cause) => return Err(cause),
        };
        if mark {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        self.counters.max_backlog = self.counters.max_backlog.max(clear_at.since(now));
        self.busy_until = clear_at + send_time;
        Ok(())
    }

    /// Counts a packet that has just come; tells whether the congestion point of its priority is to look.
    #[inline]
    pub(super) fn is_due(&mut self, priority: u8, bytes: u32) -> bool {
        self.bridge_mut().samples_in.is_due(priority, bytes)
    }

    /// The feedback that the congestion point of this priority has for the source of a packet that has
    /// just come, where it [is due](Link::is_due).
    pub(super) fn sample(&mut self, priority: u8, bytes: u32, started: bool) -> Option<u8> {
        let w = self.waiting.as_mut()?;
        // the queue with the packet, which may have begun to be sent
        let own = if started { u64::from(bytes) } else { 0 };
        let queue = own + w.lanes().map(|lanes| lanes.bytes(priority)).sum::<u64>();
        let b = w.bridge.as_deref_mut()?;
        let point = b.points.get_mut(usize::from(priority))?.as_mut()?;
        let config = b.config.qcn.as_ref()?;
        let (fb, next) = point.look(queue, config, &mut b.random);
        b.samples_in.set(priority, next);
        fb
    }

    /// Sends what is next, if the port is idle: a PFC frame before all else.
    pub(crate) fn start_bridged(&mut self, now: Time, pool: &mut PacketPool) {
        if !self.is_idle() {
            return;
        }
        let delay = self.delay;
        let ps_per_byte_q16 = self.ps_per_byte_q16;
        let b = self.bridge_mut();
        if b.control.waits() {
            let bytes = b.wire.pfc_frame();
            let sent_at = now + Span((bytes * ps_per_byte_q16) >> 16);
            let response = b.config.pfc.as_ref().map_or(Span::ZERO, |c| c.response);
            b.control.send(sent_at + delay + response);
            b.has_changed();
            b.wakes_at = Time::NEVER;
            self.counters.bytes += bytes;
            self.waiting.as_mut().expect("the port is bridged").sent_at = sent_at;
            return;
        }
        b.expire(now);
        if self.begin_ahead(now, pool) {
            return;
        }
        let w = self.waiting.as_mut().expect("the port is bridged");
        let Some((held, priority, mark)) = w.pop_bridged(now, pool) else {
            return w.rest(now);
        };
        let mut passage = held.passage;
        let ip_len = u32::from(passage.ip_len());
        let waited_since = passage.arrive;
        if mark {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        if let Some(meter) = &mut self.meter {
            let w = self.waiting.as_ref().expect("the port is bridged");
            meter.goes(w.class_of(pool.get(passage.slot).dscp()), now.since(waited_since));
        }
        let sent_at = now + self.send_time(ip_len);
        passage.arrive = self.arrival_after(sent_at, self.on_wire.len());
        self.held_bytes += u64::from(ip_len);
        self.on_wire.push(passage);
        self.begun += 1;
        let wire_bytes = self.wire_bytes(ip_len);
        let w = self.waiting.as_mut().expect("the port is bridged");
        w.sent_at = sent_at;
        let b = w.bridge.as_deref_mut().expect("the port is bridged");
        b.wakes_at = Time::NEVER;
        b.sent_apart += 1;
        b.serving = true;
        if b.limits {
            w.note_sent(now, (priority, passage.dst.0), wire_bytes);
        } else {
            self.go_ahead_again();
        }
    }

    /// Ends the transmission that is over by now, if one is.
    pub(crate) fn finish_bridged(&mut self, now: Time) -> bool {
        let w = self.waiting.as_mut().expect("the port is bridged");
        let is_over = w.sent_at <= now;
        if is_over {
            w.sent_at = Time::NEVER;
            self.bridge_mut().serving = false;
        }
        is_over
    }

    /// Whether disciplines have dropped packets.
    pub(crate) fn has_dropped_held(&self) -> bool {
        !self.bridge().dropped.is_empty()
    }

    /// Packets that disciplines have dropped.
    pub(crate) fn take_dropped_held(&mut self) -> Vec<(Held, u8)> {
        std::mem::take(&mut self.bridge_mut().dropped)
    }

    /// Has something said to the far end at the next frame boundary.
    pub(crate) fn say(&mut self, now: Time, priority: u8, quanta: u16, pool: &PacketPool) {
        self.take_back(now, pool);
        let b = self.bridge_mut();
        b.control.say(priority, quanta);
        b.has_changed();
    }

    /// What takes effect at the far end now.
    pub(crate) fn take_said(&mut self, now: Time) -> Option<Pauses> {
        let b = self.bridge_mut();
        let said = b.control.take(now);
        b.has_changed();
        said
    }

    /// Obeys what the far end says.
    pub(crate) fn obey(&mut self, now: Time, said: &Pauses, pool: &PacketPool) {
        self.take_back(now, pool);
        let rate = self.cable.rate;
        let b = self.bridge_mut();
        b.paused.expire(now);
        b.paused.obey(now, said, rate);
        b.has_changed();
    }

    /// Logs its pauses, if the port is bridged.
    pub fn log_pauses(&mut self, log: PauseLog) {
        if self.is_bridged() {
            self.bridge_mut().paused.keep_log(log);
        }
    }

    /// The log of its pauses until `now`, if it has one.
    pub fn take_pauses(&mut self, now: Time) -> Option<PauseLog> {
        self.waiting.as_mut()?.bridge.as_deref_mut()?.paused.take_log(now)
    }

    /// Whether a frame takes effect or is to be repeated by now.
    pub(super) fn says(&self, now: Time) -> bool {
        self.bridge().due <= now
    }

    /// The key of the next event, where that of the next arrival is `first`.
    #[inline]
    pub(crate) fn with_due(&self, first: Key, now: Time) -> Key {
        match self.due_bridged() {
            Time::NEVER => first,
            due => first.min(Key::new(due.max(now), Class::Departure)),
        }
    }

    /// When the next event is due that no packet on the wire brings.
    #[inline]
    fn due_bridged(&self) -> Time {
        let w = self.waiting.as_ref().expect("the port is bridged");
        let b = w.bridge.as_deref().expect("the port is bridged");
        let mut due = b.due.min(b.timer_at).min(b.wakes_at);
        if !b.ends_quietly() {
            due = due.min(w.sent_at);
        }
        if b.paused.mask != 0 {
            due = due.min(b.paused.next()).min(self.watchdog_at());
        }
        due
    }

    /// When the watchdog bites.
    fn watchdog_at(&self) -> Time {
        let b = self.bridge();
        let Some(after) = b.config.pfc.as_ref().and_then(|c| c.watchdog) else {
            return Time::NEVER;
        };
        let stuck = bits(b.paused.mask).filter_map(|p| Some(self.stuck_since(p)? + after));
        stuck.min().unwrap_or(Time::NEVER)
    }

    /// Since when a paused priority has packets and sends none.
    fn stuck_since(&self, p: usize) -> Option<Time> {
        let since = self.bridge().paused.since(p)?;
        let w = self.waiting.as_ref()?;
        let lanes = w.lanes().filter(|lanes| lanes.occupied() >> p & 1 == 1);
        lanes.map(|lanes| lanes.lane(p as u8).moved.max(since)).min()
    }

    /// Lets the watchdog bite, and the timers of limiters ring; returns what the watchdog has dropped.
    pub(crate) fn ring(&mut self, now: Time) -> Vec<(Held, u8)> {
        let b = self.bridge();
        if b.timer_at > now && b.paused.mask == 0 {
            return Vec::new();
        }
        self.ring_all(now)
    }

    #[inline(never)]
    fn ring_all(&mut self, now: Time) -> Vec<(Held, u8)> {
        let mut dropped = Vec::new();
        self.bridge_mut().expire(now);
        let after = self.bridge().config.pfc.as_ref().and_then(|c| c.watchdog);
        for p in bits(self.bridge().paused.mask) {
            let (Some(after), Some(since)) = (after, self.stuck_since(p)) else { continue };
            if since + after <= now {
                let w = self.waiting.as_mut().expect("the port is bridged");
                let held = w.lanes_mut().flat_map(|lanes| lanes.empty(now, p as u8));
                dropped.extend(held.map(|held| (held, p as u8)));
            }
        }
        self.bridge_mut().watchdog_drops += dropped.len() as u64;
        if self.bridge().timer_at <= now {
            self.waiting.as_mut().expect("the port is bridged").ring(now);
        }
        dropped
    }

    /// Limits the flow that a message is about. The port has caught up.
    pub(crate) fn slow_down(&mut self, now: Time, cnm: &Cnm, pool: &PacketPool) {
        self.take_back(now, pool);
        let line = self.cable.rate;
        let w = self.waiting.as_mut().expect("the port is bridged");
        w.slow_down(now, cnm, line);
    }

    /// Rates of limited flows: priority, destination, rate.
    pub fn limited_rates(&self) -> Vec<(u8, u32, Rate)> {
        let w = self.waiting.iter().filter(|w| w.bridge.is_some());
        w.flat_map(|w| w.lanes().flat_map(|lanes| lanes.rates())).collect()
    }

    /// What came in at the far end of a bridged link, by priority.
    pub fn input_counts(&self) -> Option<[InputCounts; PRIORITIES]> {
        let input = self.input()?;
        Some(std::array::from_fn(|p| InputCounts {
            most_bytes: input.most(p as u8),
            bytes: input.bytes(p as u8),
            pauses: input.said[p][0],
            releases: input.said[p][1],
            repeats: input.said[p][2],
            headroom_bytes: input.headroom(),
        }))
    }

    /// What a bridged port has done, by priority.
    pub fn output_counts(&self, now: Time) -> Option<[OutputCounts; PRIORITIES]> {
        let w = self.waiting.as_ref()?;
        let b = w.bridge.as_ref()?;
        let point = |p: usize| b.points.get(p).and_then(Option::as_ref);
        Some(std::array::from_fn(|p| OutputCounts {
            most_bytes: w.lanes().map(|lanes| lanes.lane(p as u8).most).max().unwrap_or(0),
            pauses: b.paused.count[p],
            paused: b.paused.total(p, now),
            samples: point(p).map_or(0, |c| c.samples),
            messages: point(p).map_or(0, |c| c.messages),
        }))
    }

    /// PFC frames sent by a bridged port, packets dropped by its watchdog, and packets for which there was
    /// no room at the far end.
    pub fn bridge_counts(&self) -> [u64; 3] {
        let bridge = self.waiting.as_ref().and_then(|w| w.bridge.as_deref());
        bridge.map_or([0; 3], |b| {
            [b.control.sent, b.watchdog_drops, b.input.as_ref().map_or(0, |i| i.overflows)]
        })
    }
}

/// What the queues of a bridged port do together with the rest of it.
impl Waiting {
    /// Takes out the packet that is next in turn among those not paused.
    pub fn pop_bridged(&mut self, now: Time, pool: &PacketPool) -> Option<(Held, u8, bool)> {
        let bridge = self.bridge.as_ref().expect("the port is bridged");
        let (mask, wire) = (bridge.mask(), bridge.wire);
        let mut dropped = Vec::new();
        let next = self.pop_held(now, (mask, wire), pool, &mut dropped);
        if !dropped.is_empty() {
            self.bridge.as_mut().expect("the port is bridged").dropped.extend(dropped);
        }
        next
    }

    /// The idle port has nothing that may go.
    pub fn rest(&mut self, now: Time) {
        let Some(b) = self.bridge.as_deref().filter(|b| b.limits) else { return };
        let next = self.lanes().filter_map(|lanes| lanes.next(now, b.mask())).min_by_key(|n| n.0);
        let (at, mut bytes) = next.unwrap_or((Time::NEVER, 0));
        if self.lanes().nth(1).is_some() {
            bytes = 0;
        }
        let b = self.bridge.as_mut().expect("the port is bridged");
        (b.wakes_at, b.wakes_with) = (at.max(now.next()), bytes);
    }

    /// A packet of a host with limits begins to be sent.
    pub fn note_sent(&mut self, now: Time, (priority, dst): (u8, u32), bytes: u32) {
        self.with_qcn(|lanes, config, random| {
            lanes.sends(now, (priority, dst), bytes, config, random);
        });
    }

    /// Timers of limiters ring.
    pub fn ring(&mut self, now: Time) {
        self.with_qcn(|lanes, config, random| lanes.ring(now, config, random));
        self.set_timer();
    }

    /// Limits a flow.
    pub fn slow_down(&mut self, now: Time, cnm: &Cnm, line: Rate) {
        let class = self.class_of(cnm.priority << 3);
        self.bridge.as_mut().expect("the port is bridged").limits = true;
        let mut number = 0;
        self.with_qcn(|lanes, config, random| {
            if number == class {
                lanes.slow_down(now, cnm, line, config, random);
            }
            number += 1;
        });
        self.set_timer();
    }

    fn set_timer(&mut self) {
        let first = self.lanes().map(Lanes::next_timer).min().unwrap_or(Time::NEVER);
        self.bridge.as_mut().expect("the port is bridged").timer_at = first;
    }

    fn with_qcn(&mut self, mut f: impl FnMut(&mut Lanes, &QcnConfig, &mut Stream)) {
        let mut bridge = self.bridge.take().expect("the port is bridged");
        if let Some(config) = &bridge.config.qcn {
            self.lanes_mut().for_each(|lanes| f(lanes, config, &mut bridge.random));
        }
        self.bridge = Some(bridge);
    }
}
