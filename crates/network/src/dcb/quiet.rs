//! Bridged ports without an event at the end of a transmission, and departures decided ahead.
//!
//! **Quiet ports.** When a transmission ends, the packet's bytes no longer count where it came in, and the
//! next one begins. Mostly nobody sees that at once. A quiet port does it when it is next touched, for the
//! moments at which it was due, as a [lazy](crate::link::Mode::Lazy) one: a packet that waits begins when the
//! one before it has been sent, and that one arrives later still, as an event of the same link. Before a packet
//! is let in the port catches up, so that what is decided about it is the same.
//!
//! A port is quiet while it obeys no pause, has none to say, and no input of its switch has asked for one
//! (what leaves then may end it, at that moment); never where somebody looks at it between its own events.
//!
//! **Ahead.** Where nothing holds up what waits and one class is all there is, a packet goes to the wire
//! as it comes: when it leaves is known. What has not begun to be sent is taken off again when a pause, a
//! frame or a limited flow comes; then it waits in its lane, until that is empty.
//!
//! **Inputs.** What has left a quiet port is noted, and taken off its input when that matters: when with one
//! more packet the input would hold more than ever before, or reach XOFF. Till then inputs count too much.
//!
//! **Order.** A frame takes effect as one of the departures of its instant. Whether a transmission that ends at
//! the same instant goes before it is decided as the list of events would.

use super::lanes::{Came, Held, OWN, on_link};
use super::port::{Ahead, Serving};
use crate::fabric::Fabric;
use crate::link::{Link, Passage, Waiting};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::Tournament;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// What a fabric with bridged ports knows of its switches.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Inputs {
    /// The links that go out of each node.
    ports: Vec<Vec<u32>>,
    /// For each node, how many priorities of its inputs have asked for a pause.
    asked: Vec<u32>,
}

impl Inputs {
    /// Of a fabric with these links, of which so many nodes have none.
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

impl Waiting {
    /// Begins to send the packet that is next of those on the wire already, if there is one.
    #[inline]
    pub(crate) fn begin_ahead(&mut self, now: Time) -> bool {
        let Some((lanes, bridge, sent_at)) = self.only_lanes() else { return false };
        let Some(Ahead { sent, serving }) = bridge.ahead.pop() else { return false };
        lanes.let_out(now, serving.priority, serving.bytes);
        bridge.serving = Some(serving);
        *sent_at = sent;
        true
    }

    /// Whether a packet waits.
    #[inline]
    fn has_any(&mut self) -> bool {
        self.only_lanes().is_none_or(|(lanes, ..)| lanes.backlog().packets > 0)
    }
}

impl Link {
    /// Whether the port has something to catch up with, or to take off its inputs.
    #[inline]
    fn lags(&self, now: Time) -> bool {
        let Some(w) = self.waiting.as_deref() else { return false };
        let Some(bridge) = w.bridge.as_deref() else { return false };
        w.sent_at.min(bridge.wakes_at) <= now || !bridge.left.is_empty()
    }

    /// Carries out at a bridged port what was due before `until`.
    #[inline]
    pub(crate) fn catch_up(&mut self, until: Time, pool: &mut PacketPool) {
        while let Some(w) = self.waiting.as_deref_mut()
            && let Some(bridge) = w.bridge.as_deref_mut()
            && w.sent_at.min(bridge.wakes_at) < until
        {
            let at = w.sent_at.min(bridge.wakes_at);
            (w.sent_at, bridge.wakes_at) = (Time::NEVER, Time::NEVER);
            if let Some(sent) = bridge.serving.take()
                && sent.came != OWN
            {
                bridge.left.push(sent);
            }
            if !w.begin_ahead(at) && w.has_any() {
                self.start_bridged(at, pool);
            }
        }
    }

    /// Lets a packet in and decides when it leaves, where nothing holds up what waits and all of it is on the
    /// wire; tells whether it has begun to be sent. What goes back where it came from may have to wait for a
    /// frame that it sets off.
    #[inline]
    pub(super) fn take_ahead(
        &mut self,
        now: Time,
        mut passage: Passage,
        (came, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Option<Result<bool, Cause>> {
        let ip_len = u32::from(passage.ip_len());
        let send_time = self.send_time(ip_len);
        let (lanes, bridge, sent_at) = self.waiting.as_deref_mut()?.only_lanes()?;
        if !bridge.goes_ahead(came) || lanes.backlog().packets != bridge.ahead.len() {
            return None;
        }
        let idle = *sent_at == Time::NEVER;
        let rest = if idle { now } else { *sent_at };
        let start = bridge.ahead.last().map_or(rest, |last| last.sent);
        let clear_at = rest + on_link(lanes.backlog(), self.framing, self.ps_per_byte_q16);
        let arrival = || {
            let packet = pool.get(passage.slot);
            Arrival { now, ip_len, send_time, backlog: Backlog::default(), clear_at, packet }
        };
        let mark = match lanes.let_in(now, priority, ip_len, arrival) {
            Came::In { mark } => mark,
            Came::Lost(cause) => return Some(Err(cause)),
        };
        let sent = start + send_time;
        let serving = Serving { came, priority, bytes: ip_len };
        if idle {
            lanes.let_out(now, priority, ip_len);
            bridge.serving = Some(serving);
            *sent_at = sent;
        } else {
            bridge.ahead.push(Ahead { sent, serving });
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
        let Some((priority, packets)) = lanes.one_fifo() else { return };
        let mut sent = *sent_at;
        for Held { mut passage, came, .. } in packets.drain(..) {
            let bytes = u32::from(passage.ip_len());
            let wire_bytes = bridge.wire.bytes(bytes);
            sent += Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
            passage.arrive = sent + self.delay;
            self.held_bytes += u64::from(bytes);
            self.on_wire.push(passage);
            bridge.ahead.push(Ahead { sent, serving: Serving { came, priority, bytes } });
        }
    }

    /// Takes what waits off the wire again: something may hold it up.
    pub(super) fn take_back(&mut self, now: Time) {
        let w = self.waiting.as_mut().expect("the port is bridged");
        let Some((lanes, bridge, _)) = w.only_lanes() else { return };
        if !bridge.ahead.is_empty() {
            bridge.sent_apart = 0;
        }
        let kept = self.on_wire.len() - bridge.ahead.len();
        for place in kept as u32.. {
            let Some(Ahead { serving, .. }) = bridge.ahead.pop() else { break };
            let mut passage = *self.on_wire.get(place).expect("it is on the wire");
            passage.arrive = now;
            lanes.put(passage, serving.came, serving.priority);
            self.held_bytes -= u64::from(serving.bytes);
        }
        self.on_wire.truncate(kept as u32);
    }
}

/// The first moment after `now`.
pub(super) fn after(now: Time) -> Time {
    Time(now.0 + 1)
}

impl Fabric {
    /// Whether there is room for a packet that has come on a link, where that is not sure.
    #[inline(never)]
    pub(super) fn has_room(&mut self, now: Time, came: u32, priority: u8, bytes: u32) -> bool {
        let to = self.links[came as usize].to;
        if self.inputs.asked[to as usize] == 0 {
            self.count_left(now, to);
        }
        self.links[came as usize].input_mut().is_none_or(|input| input.admits(priority, bytes))
    }

    /// Has the inputs of a switch count what is there now.
    #[inline(never)]
    fn count_left(&mut self, now: Time, node: u32) {
        for at in 0..self.inputs.ports[node as usize].len() {
            let port = self.inputs.ports[node as usize][at] as usize;
            let link = &mut self.links[port];
            if !link.lags(now) {
                continue;
            }
            link.catch_up(after(now), &mut self.pool);
            let Some(mut left) = link.take_left() else { continue };
            for sent in left.drain(..) {
                if let Some(input) = self.links[sent.came as usize].input_mut() {
                    input.remove(sent.priority, sent.bytes);
                }
            }
            self.links[port].give_left(left);
        }
    }

    /// Somebody looks at the ports of hosts between their own events.
    pub fn look_at_hosts(&mut self) {
        for &up in &self.up {
            if self.links[up as usize].is_bridged() {
                self.links[up as usize].be_exact();
            }
        }
    }

    /// Has all bridged ports catch up: after everything else at this instant that moves packets.
    pub(crate) fn settle_bridged(&mut self, now: Time) {
        for node in 0..self.inputs.ports.len() as u32 {
            self.count_left(now, node);
        }
    }

    /// An input of a switch has asked for a pause: what leaves the switch may end it.
    pub(super) fn watch(&mut self, now: Time, node: u32, events: &mut Tournament) {
        let asked = &mut self.inputs.asked[node as usize];
        *asked += 1;
        if *asked > 1 {
            return;
        }
        for &port in &self.inputs.ports[node as usize] {
            let link = &mut self.links[port as usize];
            link.set_watched(true);
            if !link.is_idle() {
                events.set(port, link.next_key(now));
            }
        }
    }

    /// An input has taken back what it asked for.
    pub(super) fn unwatch(&mut self, node: u32) {
        let asked = &mut self.inputs.asked[node as usize];
        *asked -= 1;
        if *asked == 0 {
            for &port in &self.inputs.ports[node as usize] {
                self.links[port as usize].set_watched(false);
            }
        }
    }

    /// Has a port catch up before a frame takes effect there, as an event of link `by`.
    pub(super) fn catch_up_before(&mut self, now: Time, port: u32, by: u32, events: &Tournament) {
        let link = &mut self.links[port as usize];
        link.catch_up(now, &mut self.pool);
        let key = Key::new(now, Class::Departure);
        if link.acts_quietly(now) && events.goes_before(key, port, by) {
            link.catch_up(after(now), &mut self.pool);
        }
    }
}
