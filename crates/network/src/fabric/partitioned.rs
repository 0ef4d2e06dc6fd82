//! One part of a partitioned fabric, which is simulated in several parts (threads): the part
//! enqueues packets at its ports, and exchanges packets with other parts.

use super::{Fabric, Tally};
use crate::dcb::queued_packet::LOCAL_ORIGIN;
use crate::link::{Kinds, Link, Outcome};
use crate::losses::EventOrder;
use crate::packet_handle::{PacketHandle, PacketWords};
use crate::partition::{CORE, CrossingPacket, LatePort, Mail, Partition, Promise, within_link};
use crate::pool::{IngressTag, PacketPool};
use crate::topology::reverse;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::{Order, Tournament};
use eastwest_types::{EndpointId, HostId, Packet, Time};

impl Fabric {
    /// Returns the position, in the order of all events, of the event that is being executed. The
    /// event is a timer or workload event or, if no such event is being executed, an arrival on
    /// link `ingress`.
    pub fn event_at(&self, now: Time, ingress: u32) -> EventOrder {
        let Some(partition) = &self.partition else { return ((Key::NEVER, 0), 0) };
        partition.other.unwrap_or_else(|| {
            let before = self.links[ingress as usize].counters().packets.saturating_sub(1);
            (partition.order.of((Key::new(now, Class::Arrival), ingress)), within_link(before, 0))
        })
    }

    /// Whether all ports of the fabric can be partitioned.
    pub fn can_be_partitioned(&self) -> bool {
        self.links.iter().all(|l| l.can_be_partitioned())
    }

    /// Makes this fabric one part of a fabric that is simulated in several parts (threads). Other
    /// parts have equal fabrics: packets that are in flight now are kept in one of them. `unused` is the
    /// fabric before its first event; `None` if this is it.
    pub fn become_part(
        &mut self,
        mut partition: Partition,
        now: Time,
        events: &mut Tournament,
        unused: Option<Fabric>,
    ) {
        let is_in_use = unused.is_some();
        let mut unused = unused.map_or(Vec::new(), |unused| unused.links).into_iter();
        let mut kinds = Kinds::default();
        for (number, link) in (0..).zip(&mut self.links) {
            let is_own = partition.owner(link.from, link.to) == partition.part;
            let crosses = partition.crosses(link.from, link.to);
            partition.inside.push(is_own && !crosses);
            if let Some(mut unused) = unused.next() {
                // The ingress buffer at the far end is in the part of the far end.
                let is_far_end_own = partition.part_of[link.to as usize] == partition.part;
                let swaps_input = link.has_dcb() && is_far_end_own != is_own;
                if swaps_input {
                    let (used, fresh) = (link.take_input(), unused.take_input());
                    link.put_input(fresh);
                    unused.put_input(used);
                }
                if !is_own {
                    *link = unused;
                }
                if !is_own || swaps_input {
                    events.set(number, link.next_key(now));
                }
            }
            if !is_own {
                link.only_arrives();
                kinds.share(&mut link.kind);
            } else if crosses && link.decides_late() {
                let (packets, frames) = (link.counters().packets, link.pause_frames_arrived());
                partition.late.push(LatePort { link: number, packets, frames });
            } else if crosses {
                link.partition();
                let part = usize::from(partition.part);
                let is_elsewhere = |handle: &PacketHandle| partition.part_of(handle.dst()) != part;
                let (elsewhere, next) = link.split(is_elsewhere);
                if !elsewhere.is_empty() {
                    events.set(number, next);
                }
                for handle in elsewhere {
                    let part = partition.part_of(handle.dst());
                    let mail = &mut partition.out[part];
                    let packet = self.pool.detach(handle.slot(), &mut mail.sides);
                    partition.first_out = partition.first_out.min(handle.arrived());
                    mail.packets.push(CrossingPacket { link: number, handle, packet });
                }
            }
        }
        if is_in_use {
            // the packets that other parts have kept
            let held: usize = self.links.iter().map(Link::held_here).sum();
            self.pool.leave_out(held);
        }
        self.observes_cards |= partition.replicates;
        if partition.part > 0 {
            self.tally = Tally::default(); // the first part has counted the packets before
        }
        self.partition = Some(Box::new(partition));
    }

    /// Starts to watch for the last byte of a message whose packets may be in flight: the byte before
    /// stream position `end` at a receiver in this part. The last message in flight to it ends before
    /// the position `last`. The link `down` leads to its host.
    pub fn watch_under_way(&mut self, down: u32, endpoint: EndpointId, (end, last): (u64, u64)) {
        let Some(partition) = &mut self.partition else { return };
        partition.watch(endpoint, end);
        partition.checks.push((down, endpoint));
        partition.watches[endpoint.slot()].under_way(end, last);
        partition.last_bytes[self.links[down as usize].to as usize] += 1;
        self.observe_last_bytes(down);
    }

    /// Prepares the port to the receiver of a packet that a host sends, if both are in this part of the
    /// partitioned fabric and the packet contains the last byte of a message for which the receiver
    /// waits.
    pub(super) fn observe_sent(&mut self, handle: PacketHandle) {
        let packet = self.pool.get(handle.slot());
        let ((first, after), endpoint) = (packet.positions(), packet.dst_endpoint);
        if first != after
            && let Some(partition) = &mut self.partition
            && let Some(watch) = partition.watches.get_mut(endpoint.slot())
            && watch.comes((first, after))
        {
            self.expect_last_byte(handle.dst(), endpoint);
        }
    }

    /// Enqueues a packet that arrived on link `before`, at a port of a partitioned fabric that leaves
    /// its packets to the fabric: its packets may arrive in another part, or its host soon receives
    /// the last byte of a message from there.
    #[inline(never)]
    pub(crate) fn enqueue_in_part(
        &mut self,
        now: Time,
        link: u32,
        packet: PacketWords,
        before: u32,
        events: &mut Tournament,
    ) {
        let l = &mut self.links[link as usize];
        if !l.is_partitioned() {
            return self.enqueue_watched(now, link, packet.arriving(Time::NEVER), before, events);
        }
        if l.must_decide() && !self.is_admitted(now, (link, before), packet, events) {
            return;
        }
        let l = &mut self.links[link as usize];
        let Some(partition) = &mut self.partition else { return };
        let part = partition.part_of(packet.dst());
        if part == usize::from(partition.part) {
            if let Some(key) = l.append_here(now, packet) {
                events.set_sooner(link, key);
            }
            return;
        }
        let arrive = l.append_elsewhere(now, packet);
        partition.first_out = partition.first_out.min(arrive);
        let mail = &mut partition.out[part];
        let (handle, slot) = (packet.arriving(arrive), packet.slot());
        let packet = self.pool.detach(slot, &mut mail.sides);
        mail.packets.push(CrossingPacket { link, handle, packet });
    }

    /// Whether a port whose packets may arrive in another part of the partitioned fabric admits a
    /// packet, which arrived on link `before`; a packet that is not admitted is dropped. The port
    /// first counts the packets that have arrived elsewhere.
    #[inline(never)]
    fn is_admitted(
        &mut self,
        now: Time,
        (link, before): (u32, u32),
        packet: PacketWords,
        events: &Tournament,
    ) -> bool {
        let l = &mut self.links[link as usize];
        l.count_elsewhere(now, false);
        // Another part of the partitioned fabric may execute an arrival at this port at the same
        // time, before or after the current arrival.
        if l.arrives_elsewhere(now)
            && events.goes_before(Key::new(now, Class::Arrival), link, before)
        {
            l.count_elsewhere(now, true);
        }
        let lost = l.decide_partitioned(now, packet, &mut self.pool);
        if let Some(cause) = lost {
            self.drop_at_port(now, link, packet.arriving(Time::NEVER), cause, before);
        }
        lost.is_none()
    }

    /// Executes the next event of a link whose packets may arrive in another part of the partitioned
    /// fabric, an arrival in this part. Returns the result of [`Fabric::fire`].
    #[inline(never)]
    pub(crate) fn fire_partitioned<const TAPPED: bool>(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<u32> {
        let l = &mut self.links[link as usize];
        let to = l.to;
        let (handle, next) = l.arrive_here(key);
        events.set(link, next);
        self.prefetch_next(events);
        self.pass_on::<TAPPED>(key.time(), (link, to), handle, events)
    }

    /// Enqueues a packet that arrived on link `before`, at a port to a host that soon receives the
    /// last byte of a message from another part of the partitioned fabric.
    #[inline(never)]
    fn enqueue_watched(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        before: u32,
        events: &mut Tournament,
    ) {
        let outcome = self.links[link as usize].enqueue_left(now, handle.words(), &mut self.pool);
        let packet = self.pool.get(handle.slot());
        let (first, after) = packet.positions();
        if first != after
            && let Some(partition) = &mut self.partition
            && let Some(watch) = partition.watches.get_mut(packet.dst_endpoint.slot())
            && watch.waits()
            && !matches!(outcome, Outcome::Dropped(_))
            && watch.observe((first, after))
        {
            partition.checks.push((link, packet.dst_endpoint));
        }
        self.apply_outcome(now, (link, before), handle, outcome, events);
    }

    /// Sets the next event of a link, and drops packets, according to the result of an enqueue.
    fn apply_outcome(
        &mut self,
        now: Time,
        (link, before): (u32, u32),
        handle: PacketHandle,
        outcome: Outcome,
        events: &mut Tournament,
    ) {
        match outcome {
            Outcome::Sooner(key) => events.set_sooner(link, key),
            Outcome::Dropped(cause) => self.drop_at_port(now, link, handle, cause, before),
            Outcome::Displaced(key) => {
                events.set(link, key);
                self.record_drops(now, link);
            }
            Outcome::Queued => {}
        }
    }

    /// Returns the number of packet transmissions that have completed on the links owned by this
    /// part of the partitioned fabric.
    pub fn own_packet_hops(&self) -> u64 {
        let own = |l: &&Link| {
            self.partition
                .as_ref()
                .is_none_or(|partition| partition.owner(l.from, l.to) == partition.part)
        };
        self.links.iter().filter(own).map(|l| l.counters().packets).sum()
    }

    /// Receives packets and promises from another part of the partitioned fabric. The packets are
    /// in flight to this part; promises are announced delivery times of messages.
    pub fn receive(&mut self, mail: &mut Mail, events: &mut Tournament) {
        let has_dcb = self.has_dcb();
        let mut sides = mail.sides.drain(..);
        let mut sources = mail.sources.drain(..);
        for CrossingPacket { link, handle, packet } in &mail.packets {
            let (first, after) = packet.positions();
            if first != after
                && let Some(partition) = &mut self.partition
                && let Some(watch) = partition.watches.get_mut(packet.dst_endpoint.slot())
                && watch.comes((first, after))
            {
                self.expect_last_byte(handle.dst(), packet.dst_endpoint);
            }
            let slot = self.pool.attach(packet, &mut sides);
            if has_dcb && let Some(source) = sources.next() {
                self.pool.set_source(slot, source);
            }
            self.arrives_from_elsewhere(*link, handle.in_slot(slot), has_dcb, events);
        }
        mail.packets.clear();
        for Promise { link, at, endpoint, number } in mail.promises.drain(..) {
            let mut packet = Packet::blank(HostId(self.links[link as usize].to));
            packet.notes = Packet::DATAGRAM;
            packet.dst_endpoint = endpoint;
            packet.seq = number;
            packet.ack = 1; // 0 in datagrams; raw Ethernet frames have payload
            let slot = self.pool.insert(&packet);
            let handle = PacketHandle::new(slot, &packet).arriving(at);
            self.arrives_from_elsewhere(link, handle, has_dcb, events);
        }
        for (link, at, frame) in mail.pauses.drain(..) {
            let next = self.links[link as usize].receive_pause_frame(at, frame);
            events.set(link, next);
        }
        if let Some(partition) = &mut self.partition {
            partition.refreshes.append(&mut mail.refreshes);
        }
    }

    /// Prepares the port to the host `to` for the last byte of a message to `endpoint`, which has come
    /// from another part of the partitioned fabric.
    #[inline(never)]
    fn expect_last_byte(&mut self, to: HostId, endpoint: EndpointId) {
        let Some(partition) = &mut self.partition else { return };
        partition.last_bytes[to.0 as usize] += 1;
        let down = reverse(self.up[to.0 as usize]);
        let port = &mut self.links[down as usize];
        if port.decides_late() {
            let start = port.next_start_after(partition.handed_until);
            partition.next_hand_over = partition.next_hand_over.min(start);
            partition.checks.push((down, endpoint));
        } else {
            port.leave_to_fabric(true);
        }
    }

    /// Adds a packet to the packets in flight on a link whose port belongs to another part of the
    /// partitioned fabric. This part has no ingress buffer that counts the packet.
    #[inline(always)]
    fn arrives_from_elsewhere(
        &mut self,
        link: u32,
        handle: PacketHandle,
        has_dcb: bool,
        events: &mut Tournament,
    ) {
        if has_dcb {
            let priority = self.pool.get(handle.slot()).dscp() >> 3;
            self.pool.set_ingress_tag(handle.slot(), IngressTag::new(LOCAL_ORIGIN, priority));
        }
        match self.links[link as usize].arrives(handle) {
            Some(key) if has_dcb => events.set(link, key),
            Some(key) => events.set_sooner(link, key),
            None => {}
        }
    }

    /// Ends the watch of a receiver for the last byte of a message, which arrives on the link
    /// `down`. `next` is the stream position after the last byte of the next message, whose packets
    /// may already be in flight; `None` if there is none.
    pub fn end_watch(&mut self, down: u32, endpoint: EndpointId, next: Option<u64>) {
        let Some(partition) = &mut self.partition else { return };
        let Some(watch) = partition.watches.get_mut(endpoint.slot()) else { return };
        let last_bytes = &mut partition.last_bytes[self.links[down as usize].to as usize];
        *last_bytes -= u32::from(watch.last_came);
        watch.go_on(next);
        *last_bytes += u32::from(watch.last_came);
        self.observe_last_bytes(down);
    }

    /// Makes the port of the link `down` to a host leave its packets to the fabric as long as the last
    /// byte of a message to this host may be in flight.
    fn observe_last_bytes(&mut self, down: u32) {
        let Some(partition) = &self.partition else { return };
        let l = &mut self.links[down as usize];
        if !l.decides_late() {
            l.leave_to_fabric(partition.last_bytes[l.to as usize] > 0);
        }
    }

    /// Whether the arrival of a message at an endpoint must be checked again in the next window: its
    /// last byte has come from another part, and the port of the link `down` decides about packets
    /// when their transmission starts.
    pub fn checks_again(&self, down: u32, endpoint: EndpointId) -> bool {
        let watch = self.partition.as_ref().and_then(|p| p.watches.get(endpoint.slot()));
        self.links[down as usize].decides_late() && watch.is_some_and(|watch| watch.last_came)
    }

    /// Sends to the other parts what ports that decide late have started to transmit by `until`:
    /// packets, and PAUSE frames. All events until this time must have been executed.
    pub fn hand_over(&mut self, until: Time) {
        let Some(partition) = self.partition.as_mut().filter(|p| !p.late.is_empty()) else {
            return;
        };
        let mut late = std::mem::take(&mut partition.late);
        let checks = std::mem::take(&mut partition.checks);
        // Most ports are at rest in the steps at the end of a run, which follow each event.
        let mut active = std::mem::take(&mut partition.active);
        let at_work = |link: &u32| !self.links[*link as usize].is_at_rest();
        active.extend(late.iter().map(|port| port.link).filter(at_work));
        active.extend(checks.iter().map(|check| check.0));
        for &link in &active {
            self.links[link as usize].depart_until(until, &mut self.pool);
            if self.links[link as usize].has_deferred_drops() {
                self.record_deferred_drops(link);
            }
        }
        let Some(mut partition) = self.partition.take() else { return };
        // A departure at one port can send a PAUSE frame on a link at rest.
        let has_dcb = self.has_dcb();
        for port in &mut late {
            if has_dcb || !self.links[port.link as usize].is_at_rest() {
                self.hand_over_from(port, until, &mut partition);
            }
        }
        let starts = active.iter().map(|&link| self.links[link as usize].next_start_after(until));
        partition.next_hand_over = starts.min().unwrap_or(Time::NEVER);
        active.clear();
        (partition.late, partition.checks, partition.active) = (late, checks, active);
        partition.foreign += partition.match_refreshes(until);
        partition.handed_until = until;
        self.partition = Some(partition);
    }

    /// Sends to the other parts the packets and PAUSE frames that a port has started to transmit.
    fn hand_over_from(&self, port: &mut LatePort, until: Time, partition: &mut Partition) {
        let (link, l) = (port.link, &self.links[port.link as usize]);
        let mut place = (port.packets - l.counters().packets) as u32;
        while let Some(handle) = l.started_by(until, place) {
            let part = partition.part_at(l.to, handle.dst());
            if part != usize::from(partition.part) {
                let mail = &mut partition.out[part];
                let packet = self.pool.copy_out(handle.slot(), &mut mail.sides);
                if self.dcb.qcn.is_some() {
                    mail.sources.push(self.pool.source(handle.slot()).0);
                }
                partition.first_out = partition.first_out.min(handle.arrived());
                mail.packets.push(CrossingPacket { link, handle, packet });
            }
            place += 1;
        }
        port.packets = l.counters().packets + u64::from(place);
        for &(at, frame) in l.pause_frames_after(port.frames) {
            let part = partition.part_at(l.to, HostId(0));
            partition.out[part].pauses.push((link, at, frame));
            partition.first_out = partition.first_out.min(at);
            port.frames += 1;
        }
    }

    /// Returns the time at which [`Fabric::hand_over`] next has packets to send, or a message to
    /// check, without an event before; [`Time::NEVER`] if there is none. Since the last call of
    /// `hand_over`, no event may have been executed.
    pub fn next_hand_over(&self) -> Time {
        self.partition.as_ref().map_or(Time::NEVER, |partition| partition.next_hand_over)
    }

    /// Whether this part has ports to other parts that decide about a packet when its transmission
    /// starts. Their packets are events in two parts.
    pub fn has_late_ports(&self) -> bool {
        self.partition.as_ref().is_some_and(|partition| !partition.late.is_empty())
    }

    /// Whether this part of a partitioned fabric, or the fabric without parts, has the port of a
    /// link.
    pub(crate) fn owns_port(&self, link: u32) -> bool {
        let l = &self.links[link as usize];
        self.partition.as_ref().is_none_or(|p| p.owner(l.from, l.to) == p.part)
    }

    /// Removes a packet that has reached the far end of a link in another part of the partitioned
    /// fabric, where it has its own copy. Returns false if the packet is in this part.
    #[inline]
    pub(crate) fn ends_elsewhere(&mut self, link: u32, handle: &PacketHandle) -> bool {
        let Some(partition) = &self.partition else { return false };
        if partition.inside[link as usize] {
            return false;
        }
        let l = &self.links[link as usize];
        let is_elsewhere = partition.owner(l.from, l.to) == partition.part
            && partition.part_at(l.to, handle.dst()) != usize::from(partition.part);
        if is_elsewhere {
            self.pool.discard(handle.slot());
        }
        is_elsewhere
    }

    /// Notes the next event of a link, which several parts of the partitioned fabric may have, so
    /// that one of them counts it.
    #[inline]
    pub(crate) fn note_event(&mut self, key: Key, link: u32) {
        let has_dcb = self.has_dcb();
        let Some(partition) = &mut self.partition else { return };
        let l = &self.links[link as usize];
        if has_dcb {
            partition.during = (key, link, l.counters().packets);
        }
        if partition.inside[link as usize] {
            return;
        }
        let owner = partition.owner(l.from, l.to);
        match (owner == partition.part, key.is_departure()) {
            (true, true) if partition.crosses(l.from, l.to) => {
                partition.departures.push((link, key.time()));
            }
            (true, _) => {}
            (false, true) if !l.is_pause_frame_due(key.time()) => {
                partition.out[usize::from(owner)].refreshes.push((link, key.time()));
            }
            (false, _) => partition.foreign += u64::from(l.to >= self.graph.hosts),
        }
    }

    /// Returns for each of the stream positions `ends`, in order, the time at which a link delivers
    /// the packet that completes the stream up to this position, and the number of packets that the
    /// link delivers before. The list ends before the first position whose packet is not on this
    /// link. All bytes before `next`, and all bytes of the ranges `above`, have already arrived;
    /// `None`: the receiver drops packets that are not in order.
    pub fn completes(
        &self,
        link: u32,
        endpoint: EndpointId,
        (mut next, ends): (u64, &[u64]),
        above: &mut Option<Vec<(u64, u64)>>,
        now: Time,
    ) -> Vec<(Time, u64)> {
        let mut complete = Vec::new();
        let until = self.partition.as_ref().map_or(now, |partition| partition.handed_until);
        let l = &self.links[link as usize];
        for (place, handle) in l.handed_over(until) {
            let packet = self.pool.get(handle.slot());
            let (first, after) = packet.positions();
            if packet.dst_endpoint != endpoint || first == after {
                continue;
            }
            let first_wide = Packet::widen(u64::from(first), next);
            let end = first_wide + u64::from(after.wrapping_sub(first));
            match above {
                Some(above) if first_wide > next => {
                    let place = above.partition_point(|range| range.0 < first_wide);
                    above.insert(place, (first_wide, end));
                }
                Some(above) => {
                    next = next.max(end);
                    let mut passed = 0;
                    while let Some(&(_, to)) = above.get(passed).filter(|range| range.0 <= next) {
                        next = next.max(to);
                        passed += 1;
                    }
                    above.drain(..passed);
                }
                None if first_wide == next => next = end,
                None => {}
            }
            while ends.get(complete.len()).is_some_and(|&end| next >= end) {
                complete.push(l.delivery_of(place, now));
            }
            if complete.len() == ends.len() {
                break;
            }
        }
        complete
    }

    /// Returns the place of the next event of a link in the order of the events that all parts of
    /// the partitioned fabric have on this link at the same time. Each packet arrives in the part
    /// that owns the link, and then, if it completes a message from another part, its promise
    /// (announced delivery) is executed there.
    pub fn place_on_link(&self, link: u32) -> u64 {
        let l = &self.links[link as usize];
        match (&self.partition, l.upcoming(0)) {
            (Some(partition), Some(slot))
                if partition.owner(l.from, l.to) != partition.part && l.to < self.graph.hosts =>
            {
                within_link(u64::from(self.pool.get(slot).positions().0), 1)
            }
            _ => within_link(l.counters().packets, 0),
        }
    }

    /// Counts the packets sent by this part of the partitioned fabric that have arrived in other
    /// parts, up to and including the event `last` (key, link).
    pub fn count_elsewhere(&mut self, last: (Key, u32), order: Order) {
        let key = last.0;
        for (link, l) in (0u32..).zip(&mut self.links).filter(|(_, l)| l.is_partitioned()) {
            let at = Key::new(key.time(), Class::Arrival);
            l.count_elsewhere(key.time(), order.of((at, link)) <= order.of(last));
        }
    }

    /// Exchanges the links that part `part` of the partitioned fabric owns with `other`, which is
    /// that part; a second call exchanges them back. Between the calls, the queues of all links are
    /// those of a run without parts.
    pub fn swap_links(&mut self, other: &mut Fabric, part: u8) {
        let partition = self.partition.as_ref().expect("the fabric has parts");
        for (mine, theirs) in self.links.iter_mut().zip(&mut other.links) {
            if partition.owner(mine.from, mine.to) == part {
                std::mem::swap(mine, theirs);
            }
        }
    }

    /// Merges the parts `others` of a partitioned fabric into this part, the first one, at the end
    /// of a run.
    pub fn unite(&mut self, others: &mut [Fabric]) {
        let partition = self.partition.take().expect("the fabric has parts");
        self.tally.delivered -= partition.kept;
        for number in 0..self.links.len() {
            let (from, to) = (self.links[number].from, self.links[number].to);
            let owner = partition.owner(from, to);
            let crosses = owner != CORE && partition.part_of[to as usize] == CORE;
            if self.links[number].decides_late() {
                // The port of the owner has all packets; those of other parts are copies.
                for part in (0..=others.len()).filter(|&part| part != usize::from(owner)) {
                    let (link, pool) = link_of(self, others, part, number);
                    link.take_on_wire().for_each(|handle| pool.discard(handle.slot()));
                }
                // The ingress buffer at the far end is in the part of the far end.
                if self.has_dcb() {
                    let far = usize::from(partition.part_of[to as usize]);
                    let input = link_of(self, others, far, number).0.take_input();
                    link_of(self, others, owner.into(), number).0.put_input(input);
                }
                swap_with_first(self, others, number, owner);
                continue;
            }
            let mut under_way: Vec<PacketHandle> = Vec::new();
            for part in 0..=others.len() {
                let (link, pool) = link_of(self, others, part, number);
                let taken = link.take_on_wire();
                if crosses || part == usize::from(owner) {
                    under_way.extend(taken);
                } else {
                    // These handles are promises (announced deliveries); the packets are in the
                    // part of the fabric that owns the link.
                    taken.for_each(|handle| _ = pool.remove(handle.slot()));
                }
            }
            under_way.sort_by_key(PacketHandle::arrived);
            swap_with_first(self, others, number, owner);
            under_way.into_iter().for_each(|handle| self.links[number].put_on_wire(handle));
        }
        for (node, &part) in partition.part_of.iter().enumerate() {
            if part > 0 && part != CORE {
                self.switch_ports.swap_node(&mut others[usize::from(part) - 1].switch_ports, node);
            }
        }
        for other in others {
            let kept = other.partition.as_ref().map_or(0, |partition| partition.kept);
            self.tally.sent += other.tally.sent;
            self.tally.delivered += other.tally.delivered - kept;
            self.tally.dropped += other.tally.dropped;
            self.pool.add_counts_of(&other.pool);
        }
    }
}

/// Returns link `number` and the pool of packets of part `part` of a partitioned fabric; `first` is
/// part 0.
fn link_of<'f>(
    first: &'f mut Fabric,
    others: &'f mut [Fabric],
    part: usize,
    number: usize,
) -> (&'f mut Link, &'f mut PacketPool) {
    let fabric = if part == 0 { first } else { &mut others[part - 1] };
    (&mut fabric.links[number], &mut fabric.pool)
}

/// Exchanges link `number` of part 0 with that of part `part` of a partitioned fabric.
fn swap_with_first(first: &mut Fabric, others: &mut [Fabric], number: usize, part: u8) {
    if part > 0 {
        std::mem::swap(&mut first.links[number], &mut others[usize::from(part) - 1].links[number]);
    }
}
