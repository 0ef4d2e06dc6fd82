//! One part of a partitioned fabric, which is simulated in several parts (threads): the part
//! enqueues packets at its ports, and exchanges packets with other parts.

use super::Fabric;
use crate::link::{Link, Outcome};
use crate::losses::EventOrder;
use crate::packet_handle::PacketHandle;
use crate::partition::{CORE, CrossingPacket, Mail, MessageWatch, Partition, Promise, within_link};
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
            let before = self.links[ingress as usize].counters.packets.saturating_sub(1);
            (partition.order.of((Key::new(now, Class::Arrival), ingress)), within_link(before, 0))
        })
    }

    /// Whether the fabric can be partitioned: every port must know, when it enqueues a packet, the
    /// arrival time at the far end.
    pub fn can_be_partitioned(&self) -> bool {
        self.links.iter().all(|l| l.can_be_partitioned())
    }

    /// Makes this fabric one part of a fabric that is simulated in several parts (threads).
    pub fn become_part(&mut self, partition: Partition) {
        for link in &mut self.links {
            if partition.owner(link.from, link.to) != partition.part {
                link.only_arrives();
            } else if partition.part_of[link.to as usize] == CORE {
                link.partition();
            }
        }
        self.partition = Some(Box::new(partition));
    }

    /// Enqueues a packet that arrived on link `before`, at a port of a fabric that is simulated in
    /// several parts.
    pub(crate) fn enqueue_partitioned(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        before: u32,
        events: &mut Tournament,
    ) {
        let (l, partition) = (
            &mut self.links[link as usize],
            self.partition.as_mut().expect("the fabric has parts"),
        );
        if l.partitioned.is_none() {
            let outcome = l.enqueue_left(now, handle.words(), &mut self.pool);
            let packet = self.pool.get(handle.slot());
            let (first, after) = packet.positions();
            if first != after
                && let Some(watch) = partition.watches.get_mut(packet.dst_endpoint.slot())
                && watch.waits()
                && !matches!(outcome, Outcome::Dropped(_))
                && watch.observe((first, after))
            {
                partition.checks.push((link, packet.dst_endpoint));
            }
            return self.apply_outcome(now, (link, before), handle, outcome, events);
        }
        l.count_remote(now, false);
        // Another part of the partitioned fabric may execute an arrival at this port at the same
        // time, before or after the current arrival.
        if l.arrives_elsewhere(now)
            && events.goes_before(Key::new(now, Class::Arrival), link, before)
        {
            l.count_remote(now, true);
        }
        let part = partition.part_of(handle.dst());
        if part == usize::from(partition.part) {
            let outcome = l.enqueue_local(now, handle, &mut self.pool);
            return self.apply_outcome(now, (link, before), handle, outcome, events);
        }
        match l.enqueue_crossing(now, handle, &mut self.pool) {
            Ok(arrive) => {
                let mail = &mut partition.out[part];
                let packet = self.pool.detach(handle.slot(), &mut mail.sides);
                partition.first_out = partition.first_out.min(arrive);
                let handle = handle.arriving(arrive);
                mail.packets.push(CrossingPacket { link, handle, packet });
            }
            Err(cause) => self.drop_at_port(now, link, handle, cause, before),
        }
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
        self.links.iter().filter(own).map(|l| l.counters.packets).sum()
    }

    /// Receives packets and promises from another part of the partitioned fabric. The packets are
    /// in flight to this part; promises are announced delivery times of messages.
    pub fn receive(&mut self, mail: &mut Mail, events: &mut Tournament) {
        let mut sides = mail.sides.drain(..);
        for CrossingPacket { link, handle, packet } in mail.packets.drain(..) {
            let (first, after) = packet.positions();
            if first != after
                && let Some(partition) = &mut self.partition
                && let Some(watch) = partition.watches.get_mut(packet.dst_endpoint.slot())
                && watch.comes((first, after))
            {
                partition.last_bytes[handle.dst().0 as usize] += 1;
                let down = self.down_to(handle.dst());
                self.links[down as usize].leave_to_fabric(true);
            }
            let handle = handle.in_slot(self.pool.attach(&packet, &mut sides));
            if let Some(key) = self.links[link as usize].arrives(handle) {
                events.set_sooner(link, key);
            }
        }
        for Promise { link, at, endpoint, number } in mail.promises.drain(..) {
            let mut packet = Packet::blank(HostId(self.links[link as usize].to));
            packet.notes = Packet::DATAGRAM;
            packet.dst_endpoint = endpoint;
            packet.seq = number;
            let slot = self.pool.insert(&packet);
            let handle = PacketHandle::new(slot, &packet).arriving(at);
            if let Some(key) = self.links[link as usize].arrives(handle) {
                events.set_sooner(link, key);
            }
        }
    }

    /// Ends the watch of a receiver for the last byte of a message, which arrives on the link
    /// `down`. `next` is the stream position after the last byte of the next message, whose packets
    /// may already be in flight; `None` if there is none.
    pub fn end_watch(&mut self, down: u32, endpoint: EndpointId, next: Option<u64>) {
        let Some(partition) = &mut self.partition else { return };
        let watch = &mut partition.watches[endpoint.slot()];
        let l = &mut self.links[down as usize];
        let last_bytes = &mut partition.last_bytes[l.to as usize];
        *last_bytes -= u32::from(watch.last_came);
        *watch = MessageWatch::under_way(next);
        *last_bytes += u32::from(watch.last_came);
        l.leave_to_fabric(*last_bytes > 0);
    }

    /// Returns for each of the stream positions `ends`, in order, the time at which a link delivers
    /// the packet that completes the stream up to this position, and the number of packets that the
    /// link delivers before. The list ends before the first position whose packet is not on this
    /// link. All bytes before `next`, and all bytes of the ranges `held`, have already arrived.
    pub fn completes(
        &self,
        link: u32,
        endpoint: EndpointId,
        (mut next, ends): (u64, &[u64]),
        held: &mut Vec<(u64, u64)>,
        events: &Tournament,
    ) -> Vec<(Time, u64)> {
        let mut complete = Vec::new();
        for (at, number, handle) in self.links[link as usize].handed_over(events.key(link).time()) {
            let packet = self.pool.get(handle.slot());
            let (first, after) = packet.positions();
            if packet.dst_endpoint != endpoint || first == after {
                continue;
            }
            let first_wide = Packet::widen(u64::from(first), next);
            held.push((first_wide, first_wide + u64::from(after.wrapping_sub(first))));
            held.sort_unstable();
            for &(from, to) in held.iter() {
                if from <= next {
                    next = next.max(to);
                }
            }
            held.retain(|r| r.1 > next);
            while ends.get(complete.len()).is_some_and(|&end| next >= end) {
                complete.push((at, number));
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
            _ => within_link(l.counters.packets, 0),
        }
    }

    /// Counts the packets sent by this part of the partitioned fabric that have arrived in other
    /// parts, up to and including the event `last` (key, link).
    pub fn count_remote(&mut self, last: (Key, u32), order: Order) {
        let key = last.0;
        for (link, l) in (0u32..).zip(&mut self.links) {
            let at = Key::new(key.time(), Class::Arrival);
            l.count_remote(key.time(), order.of((at, link)) <= order.of(last));
        }
    }

    /// Exchanges the links that part `part` of the partitioned fabric owns with `other`, which is
    /// that part; a second call exchanges them back. If [`Fabric::expose_all`] was called before,
    /// the queues of all links are then the queues of a run without parts.
    pub fn swap_links(&mut self, other: &mut Fabric, part: u8) {
        let partition = self.partition.as_ref().expect("the fabric has parts");
        for (mine, theirs) in self.links.iter_mut().zip(&mut other.links) {
            if partition.owner(mine.from, mine.to) == part {
                std::mem::swap(mine, theirs);
            }
        }
    }

    /// Makes the packets of all parts of a partitioned fabric visible at each port (`open` is
    /// true), or restores the packets of this part alone.
    pub fn expose_all(&mut self, open: bool) {
        self.links.iter_mut().for_each(|l| l.expose_all(open));
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
            // Packets in flight, each with the number of the part of the fabric whose pool stores
            // it.
            let mut under_way: Vec<(PacketHandle, usize)> = Vec::new();
            for part in 0..=others.len() {
                let (link, pool) = match part {
                    0 => (&mut self.links[number], &mut self.pool),
                    _ => (&mut others[part - 1].links[number], &mut others[part - 1].pool),
                };
                let taken = link.take_on_wire();
                if crosses || part == usize::from(owner) {
                    under_way.extend(taken.map(|handle| (handle, part)));
                } else {
                    // These handles are promises (announced deliveries); the packets are in the
                    // part of the fabric that owns the link.
                    taken.for_each(|handle| _ = pool.remove(handle.slot()));
                }
            }
            under_way.sort_by_key(|(handle, _)| handle.arrived());
            if owner > 0 {
                std::mem::swap(
                    &mut self.links[number],
                    &mut others[usize::from(owner) - 1].links[number],
                );
            }
            for (mut handle, part) in under_way {
                if part > 0 {
                    let mut sides = Vec::new();
                    let detached = others[part - 1].pool.detach(handle.slot(), &mut sides);
                    let slot = self.pool.attach(&detached, &mut sides.into_iter());
                    handle = handle.in_slot(slot);
                }
                self.links[number].put_on_wire(handle);
            }
        }
        for other in others {
            let kept = other.partition.as_ref().map_or(0, |partition| partition.kept);
            self.tally.sent += other.tally.sent;
            self.tally.delivered += other.tally.delivered - kept;
            self.tally.dropped += other.tally.dropped;
        }
    }
}
