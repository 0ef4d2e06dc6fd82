//! Operations of a fabric with data-centre bridging (DCB). The fabric counts packets at ingress
//! buffers, sends, applies and refreshes PFC pauses, sends congestion notification messages (CNM),
//! and finds deadlocks.
//!
//! An ingress buffer counts a packet from its arrival at the switch until its last bit has left. An
//! effect of one port on another port, such as a pause, is applied at once, within the event that
//! causes the effect.

use super::cnm::Cnm;
use super::deadlock::{self, Deadlock};
use super::eventless::Arrived;
use super::ingress_pool::{Free, MemoryCounts, SwitchMemory, Used};
use super::port_state::pause_settings;
use super::priority_queues::set_bits;
use super::queued_packet::LOCAL_ORIGIN;
use crate::fabric::Fabric;
use crate::link::Link;
use crate::losses::Cause;
use crate::packet_handle::{PacketHandle, PacketWords};
use crate::pool::IngressTag;
use crate::routing::View;
use crate::topology::reverse;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::Tournament;
use eastwest_types::{HostId, Time};

impl Fabric {
    /// Returns the queued IP bytes that a new packet with DSCP `dscp` from host `from` to host `to`
    /// would have ahead at the network card; 0 without data-centre bridging. For a host with
    /// several cards, the result is about its first card; the only caller, streams of Ethernet
    /// frames, is refused for these hosts.
    pub fn bytes_ahead(&self, from: HostId, to: HostId, dscp: u8) -> u64 {
        self.links[self.up[from.0 as usize] as usize].bytes_ahead(to.0, dscp)
    }

    /// Enqueues a packet at a port that leaves its packets to the fabric: the network card of a host
    /// with data-centre bridging or, in a partitioned fabric, a port to another part, or to a host
    /// that soon receives the last byte of a message.
    #[inline(never)]
    pub(crate) fn enqueue_via_fabric(
        &mut self,
        now: Time,
        link: u32,
        packet: PacketWords,
        before: u32,
        events: &mut Tournament,
    ) {
        // Both functions are calls, so that this one saves no registers for them.
        match self.partition.is_some() && !self.has_dcb() {
            true => self.enqueue_in_part(now, link, packet, before, events),
            false => self.enqueue_at_dcb_card(now, link, packet, events),
        }
    }

    /// Enqueues a packet at the network card of a host with data-centre bridging.
    #[inline(never)]
    fn enqueue_at_dcb_card(
        &mut self,
        now: Time,
        link: u32,
        packet: PacketWords,
        events: &mut Tournament,
    ) {
        let handle = packet.arriving(Time::NEVER);
        let priority = self.pool.get(handle.slot()).dscp() >> 3;
        if self.dcb.qcn.is_some() {
            self.pool.set_source(handle.slot(), self.links[link as usize].from);
        }
        if self.links[link as usize].has_only_rate_limits() {
            return self.enqueue_limited(now, link, handle, priority, events);
        }
        self.enqueue_at_port(now, link, handle, IngressTag::new(LOCAL_ORIGIN, priority), events);
    }

    /// Executes an arrival at the far end of a link with data-centre bridging, like
    /// [`Fabric::fire`] at other links. Returns the slot of the packet if it has reached a host,
    /// otherwise `None`.
    #[inline(always)]
    pub(crate) fn arrive_dcb<const TAPPED: bool>(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<u32> {
        let l = &mut self.links[link as usize];
        let to = l.to;
        let Arrived { handle, was_released, next } = l.arrive_dcb(key, &mut self.pool);
        events.set(link, next);
        if let Some(next) = events.leader().and_then(|source| self.links.get(source as usize)) {
            next.prefetch_dcb();
        }
        let before = self.pool.ingress_tag(handle.slot());
        if !was_released {
            self.release_without_xoff(before, u32::from(handle.ip_len()));
        }
        if TAPPED {
            if self.ends_elsewhere(link, &handle) {
                return None;
            }
            self.observe(key.time(), link, &handle);
        }
        if to < self.graph.hosts {
            self.note_delivery(link);
            return Some(handle.slot());
        }
        let now = key.time();
        let next_link = self.next_link(now, to, link, handle.words());
        if self.links.get(next_link as usize).is_none() {
            self.end_without_link(now, next_link, link, handle);
            return None;
        }
        let tag = IngressTag::new(link, before.priority());
        self.enqueue_at_port(now, next_link, handle, tag, events);
        None
    }

    /// Enqueues a packet at the port of link `link`, and counts the packet at the ingress buffer of
    /// the link on which it arrived.
    #[inline(always)]
    fn enqueue_at_port(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        tag: IngressTag,
        events: &mut Tournament,
    ) {
        let (ingress, priority) = (tag.link(), tag.priority());
        let bytes = u32::from(handle.ip_len());
        self.pool.set_ingress_tag(handle.slot(), tag);
        // Usually the fast paths of ingress buffer and port are sufficient.
        let input = self.links.get_mut(ingress as usize).and_then(Link::input_mut);
        let is_counted = input.is_none_or(|input| input.add_fast_path(priority, bytes))
            || self.count_after_release(now, (ingress, link), priority, bytes);
        if !is_counted {
            return self.enqueue_at_port_slow(now, link, handle, false, events);
        }
        let port = &mut self.links[link as usize];
        let is_due = port.enqueue_fast_path(now, handle, (ingress, priority)).or_else(|| {
            port.enqueue_after_departures(now, handle, (ingress, priority), &mut self.pool)
        });
        let Some(is_due) = is_due else {
            return self.enqueue_at_port_slow(now, link, handle, true, events);
        };
        if port.on_wire.len() == 1 {
            let next = port.next_key(now);
            match port.precommitted() {
                0 => events.set_sooner(link, next),
                // A PAUSE frame is in transmission. The event at its end may be pending although no
                // pause is in force any more.
                _ => events.set(link, next),
            }
        }
        if is_due {
            self.sample_fast_path(now, link, &handle, priority, events);
        }
    }

    /// Subtracts from ingress buffers the packets that have left a switch on link `egress`, then
    /// counts a packet at the ingress buffer of link `ingress`, if it is certain that the packet sets
    /// no new maximum and stays below XOFF. Returns whether the packet was counted.
    #[inline(never)]
    fn count_after_release(
        &mut self,
        now: Time,
        (ingress, egress): (u32, u32),
        priority: u8,
        bytes: u32,
    ) -> bool {
        // While XOFF is in force at the switch, each departure is an event, and all counts are exact.
        if !self.links[egress as usize].is_eventless() {
            return false;
        }
        self.release_departed(now, egress as usize);
        let input = self.links[ingress as usize].input_mut();
        input.is_some_and(|input| input.add_fast_path(priority, bytes))
    }

    /// Takes a QCN sample of the queue of a port that has enqueued a packet on the fast path, and
    /// sends a congestion notification message (CNM) if necessary.
    #[inline(never)]
    fn sample_fast_path(
        &mut self,
        now: Time,
        link: u32,
        handle: &PacketHandle,
        priority: u8,
        events: &mut Tournament,
    ) {
        let port = &mut self.links[link as usize];
        port.catch_up(now.next(), &mut self.pool);
        let started = port.precommitted() == 0;
        if let Some(fb) = port.sample(priority, u32::from(handle.ip_len()), started) {
            self.send_cnm(now, link, handle, (priority, fb), events);
        }
    }

    /// Enqueues a packet at a port like `enqueue_at_port`, with exact counts. `is_counted` means
    /// that the ingress buffer has already counted the packet, or that the packet has no ingress
    /// buffer.
    #[inline(never)]
    fn enqueue_at_port_slow(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        is_counted: bool,
        events: &mut Tournament,
    ) {
        let tag = self.pool.ingress_tag(handle.slot());
        let (ingress, priority) = (tag.link(), tag.priority());
        let bytes = u32::from(handle.ip_len());
        if !is_counted && !self.has_room(now, ingress, priority, bytes) {
            if !self.owns_port(ingress)
                && let Some(partition) = &mut self.partition
            {
                partition.abort_reason = Some(
                    "a packet from another part did not fit into the ingress buffer of a switch",
                );
            }
            return self.drop_packet(now, ingress, handle, Cause::SharedBuffer);
        }
        let port = &mut self.links[link as usize];
        let started = match port.enqueue_dcb(now, handle, (ingress, priority), &mut self.pool) {
            Ok(started) => started,
            Err(cause) => {
                if is_counted
                    && let Some(input) =
                        self.links.get_mut(ingress as usize).and_then(Link::input_mut)
                {
                    input.subtract(priority, bytes);
                }
                return self.drop_packet(now, link, handle, cause);
            }
        };
        let is_due = port.is_due(priority, bytes);
        let feedback = if is_due { port.sample(priority, bytes, started) } else { None };
        if !is_counted && self.links[ingress as usize].input().is_some() {
            let to = self.links[ingress as usize].to as usize;
            let free = self.memory_free(to);
            let input = self.links[ingress as usize].input_mut().expect("the far end is a switch");
            let before = input.used(priority);
            let send_xoff = input.add_and_check_xoff(priority, bytes, free);
            if let Some(memory) = self.switch_ports.memories.get_mut(to) {
                memory.changed(before, input.used(priority));
            }
            if send_xoff {
                self.request_pause(now, ingress, priority, events);
            }
        }
        // The next event of a busy port does not change.
        let port = &mut self.links[link as usize];
        if started {
            if port.on_wire.len() == 1 || !port.is_eventless() {
                let next = port.next_key(now);
                events.set_sooner(link, next);
            }
        } else if port.is_idle() {
            self.start_port(now, link, events);
        } else if port.precommitted() > 0 && port.on_wire.len() == 1 {
            let next = port.next_key(now); // a PAUSE frame is in transmission
            events.set(link, next);
        }
        if let Some(fb) = feedback {
            self.send_cnm(now, link, &handle, (priority, fb), events);
        }
    }

    /// Starts the next transmission at a port if possible, and sets the next event of its link.
    fn start_port(&mut self, now: Time, link: u32, events: &mut Tournament) {
        let port = &mut self.links[link as usize];
        port.start_next_dcb(now, &mut self.pool);
        let next = port.next_key(now);
        events.set(link, next);
        if port.has_dropped_queued() {
            self.drop_queued(now, link, events);
        }
    }

    /// Drops the packets that a queue discipline has removed from the queues of a port.
    fn drop_queued(&mut self, now: Time, link: u32, events: &mut Tournament) {
        for (queued, priority) in self.links[link as usize].take_dropped_queued() {
            let bytes = u32::from(queued.handle.ip_len());
            self.drop_packet(now, link, queued.handle, Cause::Sojourn);
            self.release_bytes(now, queued.ingress, priority, bytes, events);
        }
    }

    /// Sends XOFF for a priority of the ingress buffer at the far end of link `ingress`.
    fn request_pause(&mut self, now: Time, ingress: u32, priority: u8, events: &mut Tournament) {
        let rate = self.links[ingress as usize].cable.rate;
        let Some((quanta, again)) = pause_settings(&self.dcb, rate) else { return };
        let due =
            self.links[ingress as usize].input().map_or(Time::NEVER, |input| input.refresh_at);
        self.links[ingress as usize].set_refresh_at(due.min(now + again));
        let next = self.links[ingress as usize].next_key(now);
        events.set(ingress, next);
        self.note_switch_xoff(now, self.links[ingress as usize].to, events);
        let port = &mut self.links[reverse(ingress) as usize];
        port.queue_pause_frame(now, (priority, quanta), &self.pool);
        self.start_port(now, reverse(ingress), events);
    }

    /// Subtracts a packet that has left the switch from its ingress buffer, and sends XON if
    /// necessary.
    fn release_packet(&mut self, now: Time, handle: &PacketHandle, events: &mut Tournament) {
        let tag = self.pool.ingress_tag(handle.slot());
        self.release_bytes(now, tag.link(), tag.priority(), u32::from(handle.ip_len()), events);
    }

    /// Subtracts `bytes` bytes that have left the switch from the ingress buffer of link `ingress`,
    /// and sends XON if necessary.
    fn release_bytes(
        &mut self,
        now: Time,
        ingress: u32,
        priority: u8,
        bytes: u32,
        events: &mut Tournament,
    ) {
        if ingress == LOCAL_ORIGIN {
            return;
        }
        if !self.switch_ports.memories.is_empty() {
            return self.release_shared(now, ingress, priority, bytes, events);
        }
        let Some(input) = self.links[ingress as usize].input_mut() else { return };
        if input.remove_and_check_xon(priority, bytes) {
            self.end_pause(now, ingress, priority, events);
        }
    }

    /// Sends XON for a priority of the ingress buffer at the far end of link `ingress`.
    fn end_pause(&mut self, now: Time, ingress: u32, priority: u8, events: &mut Tournament) {
        if self.links[ingress as usize].input().is_some_and(|input| input.xoff_sent == 0) {
            self.links[ingress as usize].set_refresh_at(Time::NEVER);
            let next = self.links[ingress as usize].next_key(now);
            events.set(ingress, next);
        }
        let port = &mut self.links[reverse(ingress) as usize];
        port.queue_pause_frame(now, (priority, 0), &self.pool);
        self.start_port(now, reverse(ingress), events);
        self.note_switch_xon(self.links[ingress as usize].to);
    }

    /// Returns the free bytes of the memory that the inputs of a node share; [`Free::UNLIMITED`] if
    /// they share no memory.
    fn memory_free(&self, node: usize) -> Free {
        self.switch_ports.memories.get(node).map_or(Free::UNLIMITED, SwitchMemory::free)
    }

    /// Returns current use and largest use so far of the memory of each switch, by inputs and by
    /// the queues of its ports; an empty list if inputs share no memory.
    pub fn memory_counts(&self) -> Vec<MemoryCounts> {
        let switches = self.graph.hosts as usize..self.switch_ports.memories.len();
        let counts = switches.map(|node| {
            let SwitchMemory { used, most, .. } = self.switch_ports.memories[node];
            let ports = self.switch_ports.out_links[node].iter();
            let mut queues = ports.filter_map(|port| self.links[*port as usize].shared_memory());
            let (queued, most_queued) =
                queues.next().map_or((0, 0), |shared| (shared.used(), shared.most()));
            MemoryCounts { used, most, queued, most_queued }
        });
        counts.collect()
    }

    /// Returns the use of the memory of each switch, summed over its inputs and queues; equal to
    /// the current use in [`Fabric::memory_counts`].
    pub fn memory_sums(&self) -> Vec<(Used, u64)> {
        let switches = self.graph.hosts as usize..self.switch_ports.memories.len();
        let sums = switches.map(|node| {
            let (mut used, mut queued) = (Used::default(), 0);
            for &port in &self.switch_ports.out_links[node] {
                queued += self.links[port as usize].shared_bytes();
                let Some(input) = self.links[reverse(port) as usize].input() else { continue };
                for of in (0..8).map(|p| input.used(p)) {
                    used.shared += of.shared;
                    used.headroom += of.headroom;
                }
            }
            (used, queued)
        });
        sums.collect()
    }

    /// Subtracts a packet that has left the switch from its ingress buffer, if inputs share memory.
    /// Returns the number of the node; `None` if the link has no ingress buffer.
    fn subtract_shared(&mut self, ingress: u32, priority: u8, bytes: u32) -> Option<u32> {
        let to = self.links[ingress as usize].to;
        let input = self.links[ingress as usize].input_mut()?;
        let before = input.used(priority);
        input.subtract_shared(priority, bytes);
        let after = input.used(priority);
        self.switch_ports.memories[to as usize].changed(before, after);
        Some(to)
    }

    /// Subtracts a packet like [`Fabric::release_bytes`], if inputs share memory. Since memory
    /// becomes free, the pause of every input of the switch may end.
    #[inline(never)]
    fn release_shared(
        &mut self,
        now: Time,
        ingress: u32,
        priority: u8,
        bytes: u32,
        events: &mut Tournament,
    ) {
        let Some(node) = self.subtract_shared(ingress, priority, bytes) else { return };
        if self.switch_ports.xoff_counts[node as usize] == 0 {
            return;
        }
        let free = self.memory_free(node as usize).shared;
        for at in 0..self.switch_ports.out_links[node as usize].len() {
            let input_link = reverse(self.switch_ports.out_links[node as usize][at]);
            let paused = self.links[input_link as usize].input().map_or(0, |input| input.xoff_sent);
            for p in set_bits(paused) {
                let input = self.links[input_link as usize]
                    .input_mut()
                    .expect("an input that has sent XOFF exists");
                if input.check_shared_xon(p as u8, free) {
                    self.end_pause(now, input_link, p as u8, events);
                }
            }
        }
    }

    /// Refreshes the pauses that the ingress buffer of a link has requested. If no packet of a
    /// paused priority has left since the last refresh, searches for a deadlock.
    fn refresh_pauses(&mut self, now: Time, link: u32, events: &mut Tournament) {
        let rate = self.links[link as usize].cable.rate;
        let Some((quanta, again)) = pause_settings(&self.dcb, rate) else { return };
        let input =
            self.links[link as usize].input_mut().expect("an input that refreshes pauses exists");
        let (xoff_sent, no_progress) = (input.xoff_sent, input.no_progress & input.xoff_sent);
        input.no_progress = xoff_sent;
        for p in set_bits(xoff_sent) {
            input.pause_counts[p][2] += 1;
        }
        self.links[link as usize].set_refresh_at(now + again);
        for p in set_bits(xoff_sent) {
            let port = &mut self.links[reverse(link) as usize];
            port.queue_pause_frame(now, (p as u8, quanta), &self.pool);
        }
        self.start_port(now, reverse(link), events);
        // One search per point in time is sufficient, since further searches at the same time would
        // have the same result.
        if no_progress != 0
            && self.has_deadlocks()
            && self.deadlock.is_none()
            && self.deadlock_searched_at < now
        {
            self.deadlock_searched_at = now;
            if let Some(partition) = &mut self.partition {
                partition.abort_reason =
                    Some("pauses of PFC lasted so long that a deadlock had to be searched for");
                return;
            }
            self.find_deadlock(now);
            if self.deadlock.is_some() {
                events.set(self.halt, Key::new(now, Class::Change));
            }
        }
    }

    /// Whether PFC deadlocks can last: with a watchdog they cannot.
    fn has_deadlocks(&self) -> bool {
        self.dcb.pfc.as_ref().is_some_and(|c| c.watchdog.is_none())
    }

    /// Searches for a deadlock and stores it, unless one was found before. With a watchdog no
    /// deadlock can last, and the search is skipped.
    pub fn find_deadlock(&mut self, now: Time) {
        if self.has_deadlocks() && self.deadlock.is_none() && self.partition.is_none() {
            self.deadlock = deadlock::find(now, &self.links);
        }
    }

    /// Executes the next event of a link with data-centre bridging that is not an arrival at the
    /// far end.
    #[inline(never)]
    pub(crate) fn depart_dcb(&mut self, key: Key, link: u32, events: &mut Tournament) {
        let (now, l) = (key.time(), link as usize);
        self.links[l].catch_up(now, &mut self.pool);
        if self.links[l].is_control_due(now) {
            self.process_pause_frames(now, link, events);
        }
        if let Some((handle, cause)) = self.links[l].take_lost_in_flight(key) {
            let is_counted = self.links[l].release_lost();
            self.drop_packet(now, link, handle, cause);
            if is_counted {
                self.release_packet(now, &handle, events);
            }
        }
        if self.links[l].finish_transmission(now) {
            let transmitted = self.links[l].first_waiting();
            while let Some(handle) = self.links[l].release_next(transmitted) {
                self.release_packet(now, &handle, events);
            }
        }
        for (queued, priority) in self.links[l].fire_timers(now) {
            let bytes = u32::from(queued.handle.ip_len());
            self.drop_packet(now, link, queued.handle, Cause::Sojourn);
            self.release_bytes(now, queued.ingress, priority, bytes, events);
        }
        self.start_port(now, link, events);
    }

    /// Applies the PAUSE frames of a link that take effect at `now`, and refreshes the pauses of
    /// its ingress buffer.
    #[inline(never)]
    fn process_pause_frames(&mut self, now: Time, link: u32, events: &mut Tournament) {
        let l = link as usize;
        while let Some(frame) = self.links[l].take_pause_frame(now) {
            if !self.links[l].is_down() && self.owns_port(reverse(link)) {
                self.catch_up_before(now, reverse(link), link, events);
                self.links[reverse(link) as usize].apply_pause(now, &frame, &self.pool);
                self.start_port(now, reverse(link), events);
            }
        }
        if self.links[l].input().is_some_and(|input| input.refresh_at <= now) {
            self.refresh_pauses(now, link, events);
        }
    }

    /// Sends a congestion notification message (CNM) from the congestion point of a port to the
    /// source of the sampled packet.
    fn send_cnm(
        &mut self,
        now: Time,
        link: u32,
        handle: &PacketHandle,
        (priority, fb): (u8, u8),
        events: &mut Tournament,
    ) {
        let Some(config) = &self.dcb.qcn else { return };
        let source = self.pool.source(handle.slot());
        let cnm = Cnm { congested: handle.dst(), source, priority, fb, port: link };
        let packet = cnm.packet(now, config.cnm_bytes, config.cnm_priority);
        let own_priority = config.cnm_priority;
        self.tally.sent += 1;
        let slot = self.pool.insert(&packet);
        let (links, pool) = (&self.links, &self.pool);
        // Routing treats the CNM as if it had entered the switch by the congested port.
        let view = || View { now, packet: pool.get(slot), links, ingress: reverse(link), tag: 0 };
        let switch = links[link as usize].from - self.graph.hosts;
        let egress = self.routing.next_link(switch, source, packet.hash, view);
        let handle = PacketHandle::new(slot, &packet);
        if self.links.get(egress as usize).is_none() {
            return self.end_without_link(now, egress, link, handle);
        }
        self.enqueue_local_packet(now, egress, handle, own_priority, events);
    }

    /// Enqueues a packet that was created by the switch of the port.
    #[inline(never)]
    fn enqueue_local_packet(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        priority: u8,
        events: &mut Tournament,
    ) {
        self.enqueue_at_port(now, link, handle, IngressTag::new(LOCAL_ORIGIN, priority), events);
    }

    /// Limits the rate of the flow that a congestion notification message (CNM) refers to, or
    /// decreases its limit, when the CNM has reached the source of the flow. QCN is refused where
    /// hosts have several cards, so that the source has one card.
    pub fn apply_cnm(&mut self, now: Time, cnm: &Cnm, events: &mut Tournament) {
        let link = self.up[cnm.source.0 as usize];
        if self.links[link as usize].has_dcb() {
            self.links[link as usize].catch_up(now.next(), &mut self.pool);
            self.links[link as usize].apply_cnm(now, cnm, &self.pool);
            self.start_port(now, link, events);
        }
    }

    /// Returns the PFC deadlock that was found; `None` if none was found.
    pub fn deadlock(&self) -> Option<&Deadlock> {
        self.deadlock.as_ref()
    }

    /// Sets the event source `source` as the source that gets an event when a PFC deadlock is
    /// found.
    pub fn halt_with(&mut self, source: u32) {
        self.halt = source;
    }

    /// Enqueues a packet of a host at its network card, if the port [has rate-limited
    /// flows](Link::has_only_rate_limits).
    #[inline(never)]
    pub(super) fn enqueue_limited(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        priority: u8,
        events: &mut Tournament,
    ) {
        self.pool.set_ingress_tag(handle.slot(), IngressTag::new(LOCAL_ORIGIN, priority));
        let port = &mut self.links[link as usize];
        port.catch_up(now.next(), &mut self.pool);
        match port.enqueue_rate_limited(now, handle, priority, &mut self.pool) {
            Err(cause) => self.drop_packet(now, link, handle, cause),
            Ok(false) => {}
            Ok(true) => {
                let next = port.eventless_key(now);
                events.set(link, next);
            }
        }
    }

    /// Whether the ingress buffer of a link has room for a packet, by exact counts.
    #[inline(never)]
    pub(super) fn has_room(&mut self, now: Time, ingress: u32, priority: u8, bytes: u32) -> bool {
        let to = self.links[ingress as usize].to;
        // With shared memory, each departure is an event, and all counts are exact.
        if self.switch_ports.xoff_counts[to as usize] == 0 && self.switch_ports.memories.is_empty()
        {
            for at in 0..self.switch_ports.out_links[to as usize].len() {
                self.release_departed(now, self.switch_ports.out_links[to as usize][at] as usize);
            }
        }
        let free = self.memory_free(to as usize);
        let input = self.links[ingress as usize].input_mut();
        input.is_none_or(|input| input.admits(priority, bytes, free))
    }

    /// Subtracts from ingress buffers the packets that have left a node on link `port` by `now`.
    #[inline(always)]
    fn release_departed(&mut self, now: Time, port: usize) {
        if !self.links[port].is_precommitted() {
            self.links[port].catch_up(now.next(), &mut self.pool);
        }
        while let Some(handle) = self.links[port].release_departed(now) {
            let tag = self.pool.ingress_tag(handle.slot());
            self.release_without_xoff(tag, u32::from(handle.ip_len()));
        }
    }

    /// Subtracts a packet of `bytes` bytes that has left a switch from its ingress buffer, which the
    /// tag names, if no XOFF is in force at the switch.
    #[inline(always)]
    fn release_without_xoff(&mut self, tag: IngressTag, bytes: u32) {
        let Some(input) = self.links.get_mut(tag.link() as usize).and_then(Link::input_mut) else {
            return;
        };
        if input.shares_memory() {
            self.subtract_shared(tag.link(), tag.priority(), bytes);
        } else {
            input.subtract(tag.priority(), bytes);
        }
    }

    /// Makes the network card of each host schedule an event for the end of each transmission,
    /// because the queue of the card is read between arrivals. Applies to ports with data-centre
    /// bridging.
    pub fn require_host_events(&mut self) {
        let all = self.cards.as_ref().map_or(&self.up, |cards| &cards.links);
        for &up in all {
            if self.links[up as usize].has_dcb() {
                self.links[up as usize].require_events();
            }
        }
    }

    /// Executes the departures of all ports with data-centre bridging that are due by `now`. Must
    /// be called after all other events at this time that move packets.
    pub(crate) fn settle_dcb(&mut self, now: Time) {
        for node in 0..self.switch_ports.out_links.len() {
            for at in 0..self.switch_ports.out_links[node].len() {
                let port = self.switch_ports.out_links[node][at] as usize;
                self.links[port].catch_up(now.next(), &mut self.pool);
                self.release_departed(now, port);
            }
        }
    }

    /// Counts a pause (XOFF) of an ingress buffer of a switch. From the first pause in force, the
    /// ports of the switch need an event at the end of each transmission.
    pub(super) fn note_switch_xoff(&mut self, now: Time, node: u32, events: &mut Tournament) {
        let count = &mut self.switch_ports.xoff_counts[node as usize];
        *count += 1;
        if *count > 1 {
            return;
        }
        for &port in &self.switch_ports.out_links[node as usize] {
            let link = &mut self.links[port as usize];
            link.catch_up(now.next(), &mut self.pool);
            link.set_switch_xoff(true);
            if !link.is_idle() {
                events.set(port, link.next_key(now));
            }
        }
    }

    /// Counts the end of a pause (XON) of an ingress buffer of a switch. When no pause is in force,
    /// the ports of the switch no longer need an event at the end of each transmission.
    pub(super) fn note_switch_xon(&mut self, node: u32) {
        let count = &mut self.switch_ports.xoff_counts[node as usize];
        *count -= 1;
        if *count == 0 {
            for &port in &self.switch_ports.out_links[node as usize] {
                self.links[port as usize].set_switch_xoff(false);
            }
        }
    }

    /// Executes the departures of a port that are due before a PAUSE frame takes effect at this
    /// port. The effect of the frame is an event of link `by`.
    pub(super) fn catch_up_before(&mut self, now: Time, port: u32, by: u32, events: &Tournament) {
        let link = &mut self.links[port as usize];
        link.catch_up(now, &mut self.pool);
        let key = Key::new(now, Class::Departure);
        if link.acts_without_event(now) && events.goes_before(key, port, by) {
            link.catch_up(now.next(), &mut self.pool);
        }
    }
}
