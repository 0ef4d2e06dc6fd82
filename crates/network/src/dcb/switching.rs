//! What a fabric does at bridged ports: it counts what comes in and leaves, has pauses said, obeyed and
//! repeated, sends messages of congestion, and finds deadlocks.
//!
//! A packet counts at its input from its arrival at the switch until its last bit has left. What one port
//! does to another, such as a pause that takes effect, happens at once, within the event that causes it.

use super::bridge::pause_of;
use super::cnm::Cnm;
use super::deadlock::{self, Deadlock};
use super::held::OWN;
use super::lanes::bits;
use crate::fabric::Fabric;
use crate::link::Link;
use crate::losses::Cause;
use crate::passage::Passage;
use crate::pool::Entry;
use crate::routing::View;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::Tournament;
use eastwest_types::{HostId, Packet, Time};

impl Fabric {
    /// Bytes at a host's card that go before a new packet with this codepoint to another host.
    pub fn bytes_ahead(&self, from: HostId, to: HostId, dscp: u8) -> u64 {
        self.links[self.up[from.0 as usize] as usize].bytes_ahead(to.0, dscp)
    }

    /// A host hands a packet to its card, which is a bridged port; or any node to a divided one.
    #[inline(never)]
    pub(crate) fn offer_bridged(
        &mut self,
        now: Time,
        link: u32,
        passage: Passage,
        before: u32,
        events: &mut Tournament,
    ) {
        if self.cut.is_some() {
            return self.offer_divided(now, link, passage, before, events);
        }
        let priority = self.pool.get(passage.slot).dscp() >> 3;
        if self.dcb.qcn.is_some() {
            self.pool.set_source(passage.slot, self.links[link as usize].from);
        }
        if self.links[link as usize].only_limits() {
            return self.offer_limited(now, link, passage, priority, events);
        }
        self.bring_in(now, link, passage, Entry::new(OWN, priority), events);
    }

    /// Carries out an arrival of a bridged link, as [`Fabric::fire`] does at others.
    #[inline(always)]
    pub(crate) fn arrive_bridged<const TAPPED: bool>(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<Packet> {
        let l = &mut self.links[link as usize];
        let to = l.to;
        let (passage, counts, next) = l.arrive_bridged(key, &mut self.pool);
        events.set(link, next);
        if let Some(next) = events.leader().and_then(|source| self.links.get(source as usize)) {
            next.prefetch_bridged();
        }
        if counts {
            self.no_longer_counts(&passage);
        }
        if TAPPED {
            self.look_at(key.time(), link, &passage);
        }
        if let Some(packet) = self.deliver(link, to, &passage) {
            return Some(packet);
        }
        let now = key.time();
        let next_link = self.next_link(now, to, link, &passage);
        if self.links.get(next_link as usize).is_none() {
            self.go_nowhere(now, next_link, link, passage);
            return None;
        }
        let priority = self.pool.entry(passage.slot).priority();
        self.bring_in(now, next_link, passage, Entry::new(link, priority), events);
        None
    }

    /// Lets a packet in at a port, and counts it where it came in.
    #[inline(always)]
    fn bring_in(
        &mut self,
        now: Time,
        link: u32,
        passage: Passage,
        entry: Entry,
        events: &mut Tournament,
    ) {
        let (came, priority) = (entry.came(), entry.priority());
        let bytes = u32::from(passage.ip_len());
        self.pool.set_entry(passage.slot, entry);
        // nearly always, counting a packet in is all
        let input = self.links.get_mut(came as usize).and_then(Link::input_mut);
        let sure = input.is_none_or(|input| input.surely_takes(priority, bytes));
        let port = &mut self.links[link as usize];
        if !sure || !port.take_swiftly(now, passage, (came, priority)) {
            return self.bring_in_exactly(now, link, passage, sure, events);
        }
        let is_due = port.is_due(priority, bytes);
        if port.on_wire.len() == 1 {
            let next = port.next_key(now);
            events.set_sooner(link, next);
        }
        if is_due {
            self.sample_swift(now, link, &passage, priority, events);
        }
    }

    /// The congestion point of a swift port looks at its queue.
    #[inline(never)]
    fn sample_swift(
        &mut self,
        now: Time,
        link: u32,
        passage: &Passage,
        priority: u8,
        events: &mut Tournament,
    ) {
        let port = &mut self.links[link as usize];
        port.catch_up(now.next(), &mut self.pool);
        let started = port.ahead() == 0;
        if let Some(fb) = port.sample(priority, u32::from(passage.ip_len()), started) {
            self.tell_source(now, link, passage, (priority, fb), events);
        }
    }

    /// Like `bring_in`, for packets that need exact counts; `sure`: it has been counted at its input.
    #[inline(never)]
    fn bring_in_exactly(
        &mut self,
        now: Time,
        link: u32,
        passage: Passage,
        sure: bool,
        events: &mut Tournament,
    ) {
        let entry = self.pool.entry(passage.slot);
        let (came, priority) = (entry.came(), entry.priority());
        let bytes = u32::from(passage.ip_len());
        if !sure && !self.has_room(now, came, priority, bytes) {
            return self.lose(now, came, passage, Cause::SharedBuffer);
        }
        let port = &mut self.links[link as usize];
        let started = match port.take_in(now, passage, (came, priority), &mut self.pool) {
            Ok(started) => started,
            Err(cause) => {
                if sure
                    && let Some(input) = self.links.get_mut(came as usize).and_then(Link::input_mut)
                {
                    input.give_back(priority, bytes);
                }
                return self.lose(now, link, passage, cause);
            }
        };
        let is_due = port.is_due(priority, bytes);
        let feedback = if is_due { port.sample(priority, bytes, started) } else { None };
        if !sure
            && let Some(input) = self.links[came as usize].input_mut()
            && input.add(priority, bytes)
        {
            self.pause(now, came, priority, events);
        }
        // a busy port goes on as it was
        let port = &mut self.links[link as usize];
        if started {
            if port.on_wire.len() == 1 || !port.is_quiet() {
                let next = port.next_key(now);
                events.set_sooner(link, next);
            }
        } else if port.is_idle() {
            self.start(now, link, events);
        } else if port.ahead() > 0 && port.on_wire.len() == 1 {
            let next = port.next_key(now); // a frame is being sent
            events.set(link, next);
        }
        if let Some(fb) = feedback {
            self.tell_source(now, link, &passage, (priority, fb), events);
        }
    }

    /// Starts to send at a port that may have become able to.
    fn start(&mut self, now: Time, link: u32, events: &mut Tournament) {
        let port = &mut self.links[link as usize];
        port.start_bridged(now, &mut self.pool);
        let next = port.next_key(now);
        events.set(link, next);
        if port.has_dropped_held() {
            self.lose_held(now, link, events);
        }
    }

    /// Loses what the discipline of a port has dropped.
    fn lose_held(&mut self, now: Time, link: u32, events: &mut Tournament) {
        for (held, priority) in self.links[link as usize].take_dropped_held() {
            let bytes = u32::from(held.passage.ip_len());
            self.lose(now, link, held.passage, Cause::Sojourn);
            self.leave(now, held.came, priority, bytes, events);
        }
    }

    /// The input of a link asks its sender to pause, for the first time.
    fn pause(&mut self, now: Time, came: u32, priority: u8, events: &mut Tournament) {
        let rate = self.links[came as usize].cable.rate;
        let Some((quanta, again)) = pause_of(&self.dcb, rate) else { return };
        let due = self.links[came as usize].input().map_or(Time::NEVER, |input| input.refresh_at);
        self.links[came as usize].repeat_at(due.min(now + again));
        let next = self.links[came as usize].next_key(now);
        events.set(came, next);
        self.watch(now, self.links[came as usize].to, events);
        self.links[came as usize ^ 1].say(now, priority, quanta, &self.pool);
        self.start(now, came ^ 1, events);
    }

    /// A packet has left the switch.
    fn leave_with(&mut self, now: Time, passage: &Passage, events: &mut Tournament) {
        let entry = self.pool.entry(passage.slot);
        self.leave(now, entry.came(), entry.priority(), u32::from(passage.ip_len()), events);
    }

    /// Bytes that came on a link have left the switch.
    fn leave(&mut self, now: Time, came: u32, priority: u8, bytes: u32, events: &mut Tournament) {
        if came == OWN {
            return;
        }
        let Some(input) = self.links[came as usize].input_mut() else { return };
        if input.remove(priority, bytes) {
            if input.asked == 0 {
                self.links[came as usize].repeat_at(Time::NEVER);
                let next = self.links[came as usize].next_key(now);
                events.set(came, next);
            }
            self.links[came as usize ^ 1].say(now, priority, 0, &self.pool);
            self.start(now, came ^ 1, events);
            self.unwatch(self.links[came as usize].to);
        }
    }

    /// Repeats the pauses that the input of a link has asked for. Where nothing has left since, all may be
    /// stuck.
    fn repeat(&mut self, now: Time, link: u32, events: &mut Tournament) {
        let rate = self.links[link as usize].cable.rate;
        let Some((quanta, again)) = pause_of(&self.dcb, rate) else { return };
        let input = self.links[link as usize].input_mut().expect("it has asked");
        let (asked, still) = (input.asked, input.still & input.asked);
        input.still = asked;
        for p in bits(asked) {
            input.said[p][2] += 1;
        }
        self.links[link as usize].repeat_at(now + again);
        for p in bits(asked) {
            self.links[link as usize ^ 1].say(now, p as u8, quanta, &self.pool);
        }
        self.start(now, link ^ 1, events);
        // all that are to repeat at one instant would find the same
        if still != 0 && self.deadlock.is_none() && self.searched < now {
            self.searched = now;
            self.look_for_deadlock(now);
            if self.deadlock.is_some() {
                events.set(self.halt, Key::new(now, Class::Change));
            }
        }
    }

    /// Finds a deadlock, if there is one now and none was found before. A watchdog ends all of them.
    pub fn look_for_deadlock(&mut self, now: Time) {
        let unwatched = self.dcb.pfc.as_ref().is_some_and(|c| c.watchdog.is_none());
        if unwatched && self.deadlock.is_none() {
            self.deadlock = deadlock::find(now, &self.links);
        }
    }

    /// Carries out what is due at a bridged link.
    #[inline(never)]
    pub(crate) fn depart_bridged(&mut self, key: Key, link: u32, events: &mut Tournament) {
        let (now, l) = (key.time(), link as usize);
        self.links[l].catch_up(now, &mut self.pool);
        if self.links[l].says(now) {
            self.carry_frames(now, link, events);
        }
        if let Some((passage, cause)) = self.links[l].lose_first(key) {
            let counts = self.links[l].drop_first();
            self.lose(now, link, passage, cause);
            if counts {
                self.leave_with(now, &passage, events);
            }
        }
        if self.links[l].finish_bridged(now) {
            let finished = self.links[l].begun;
            while let Some(passage) = self.links[l].next_gone(finished) {
                self.leave_with(now, &passage, events);
            }
        }
        for (held, priority) in self.links[l].ring(now) {
            let bytes = u32::from(held.passage.ip_len());
            self.lose(now, link, held.passage, Cause::Sojourn);
            self.leave(now, held.came, priority, bytes, events);
        }
        self.start(now, link, events);
    }

    /// Carries out the frames of a link that take effect, and repeats them.
    #[inline(never)]
    fn carry_frames(&mut self, now: Time, link: u32, events: &mut Tournament) {
        let l = link as usize;
        while let Some(said) = self.links[l].take_said(now) {
            if !self.links[l].is_down() {
                self.catch_up_before(now, link ^ 1, link, events);
                self.links[l ^ 1].obey(now, &said, &self.pool);
                self.start(now, link ^ 1, events);
            }
        }
        if self.links[l].input().is_some_and(|input| input.refresh_at <= now) {
            self.repeat(now, link, events);
        }
    }

    /// The congestion point of a port tells the source of a packet to slow down.
    fn tell_source(
        &mut self,
        now: Time,
        link: u32,
        passage: &Passage,
        (priority, fb): (u8, u8),
        events: &mut Tournament,
    ) {
        let Some(config) = &self.dcb.qcn else { return };
        let source = self.pool.source(passage.slot);
        let cnm = Cnm { congested: passage.dst, source, priority, fb, port: link };
        let packet = cnm.packet(now, config.cnm_bytes, config.cnm_priority);
        let own_priority = config.cnm_priority;
        self.tally.sent += 1;
        let slot = self.pool.insert(&packet);
        let (links, pool) = (&self.links, &self.pool);
        // as if it came from where the congestion is
        let view = || View { now, packet: pool.get(slot), links, came: link ^ 1 };
        let switch = links[link as usize].from - self.graph.hosts;
        let way = self.routing.next_link(switch, source, packet.hash, view);
        let passage = Passage::new(slot, &packet);
        if self.links.get(way as usize).is_none() {
            return self.go_nowhere(now, way, link, passage);
        }
        self.bring_in_made_here(now, way, passage, own_priority, events);
    }

    /// A switch hands a packet that it has made to a port.
    #[inline(never)]
    fn bring_in_made_here(
        &mut self,
        now: Time,
        link: u32,
        passage: Passage,
        priority: u8,
        events: &mut Tournament,
    ) {
        self.bring_in(now, link, passage, Entry::new(OWN, priority), events);
    }

    /// A message of congestion has reached its source: the flow that it is about goes slower.
    pub fn slow_down(&mut self, now: Time, cnm: &Cnm, events: &mut Tournament) {
        let link = self.up[cnm.source.0 as usize];
        if self.links[link as usize].is_bridged() {
            self.links[link as usize].catch_up(now.next(), &mut self.pool);
            self.links[link as usize].slow_down(now, cnm, &self.pool);
            self.start(now, link, events);
        }
    }

    /// The deadlock that was found, if one was.
    pub fn deadlock(&self) -> Option<&Deadlock> {
        self.deadlock.as_ref()
    }

    /// Has the event of this source set to the instant at which a deadlock is found.
    pub fn halt_with(&mut self, source: u32) {
        self.halt = source;
    }

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
        port.catch_up(now.next(), &mut self.pool);
        match port.take_limited(now, passage, priority, &mut self.pool) {
            Err(cause) => self.lose(now, link, passage, cause),
            Ok(false) => {}
            Ok(true) => {
                let next = port.quiet_key(now);
                events.set(link, next);
            }
        }
    }

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
            self.links[port].catch_up(now.next(), &mut self.pool);
            let finished = self.links[port].finished();
            while let Some(passage) = self.links[port].next_gone(finished) {
                self.no_longer_counts(&passage);
            }
        }
    }

    /// A packet has left a switch where no input has asked for a pause.
    #[inline(always)]
    pub(super) fn no_longer_counts(&mut self, passage: &Passage) {
        let entry = self.pool.entry(passage.slot);
        let input = self.links.get_mut(entry.came() as usize).and_then(Link::input_mut);
        if let Some(input) = input {
            input.give_back(entry.priority(), u32::from(passage.ip_len()));
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
            link.catch_up(now.next(), &mut self.pool);
        }
    }
}
