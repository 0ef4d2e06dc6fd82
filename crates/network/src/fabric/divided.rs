//! One part of a divided fabric: what it offers to its ports, sends to other parts and takes from them.

use super::Fabric;
use crate::cut::{Crossed, Cut, Mail, Promise, TOP, within_link};
use crate::link::{Link, Offer};
use crate::losses::EventOrder;
use crate::passage::Passage;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::{Order, Tournament};
use eastwest_types::{EndpointId, HostId, Packet, Time};

impl Fabric {
    /// What orders the event that is being carried out: that of a timer or workload, or else an arrival
    /// on the link `came`.
    pub fn event_at(&self, now: Time, came: u32) -> EventOrder {
        let Some(cut) = &self.cut else { return ((Key::NEVER, 0), 0) };
        cut.other.unwrap_or_else(|| {
            let before = self.links[came as usize].counters.packets.saturating_sub(1);
            (cut.order.of((Key::new(now, Class::Arrival), came)), within_link(before, 0))
        })
    }

    /// Whether all ports know when a packet arrives once they have enqueued it.
    pub fn can_be_divided(&self) -> bool {
        self.links.iter().all(|l| l.can_be_divided())
    }

    /// Makes this fabric one part of several.
    pub fn become_part(&mut self, cut: Cut) {
        for link in &mut self.links {
            if cut.owner(link.from, link.to) != cut.part {
                link.only_arrives();
            } else if cut.part_of[link.to as usize] == TOP {
                link.divide(true);
            } else if link.to < self.graph.hosts {
                link.divide(false);
            }
        }
        self.cut = Some(Box::new(cut));
    }

    /// Hands a packet that came on link `before` to a divided port.
    pub(crate) fn offer_divided(
        &mut self,
        now: Time,
        link: u32,
        passage: Passage,
        before: u32,
        events: &mut Tournament,
    ) {
        let (l, cut) = (&mut self.links[link as usize], self.cut.as_mut().expect("it is divided"));
        if !l.divided.as_ref().is_some_and(|d| d.crosses) {
            let offer = l.offer_here(now, passage, false, &mut self.pool);
            let packet = self.pool.get(passage.slot);
            let (first, after) = packet.positions();
            if first != after
                && let Some(watch) = cut.watches.get_mut(packet.dst_endpoint.slot())
                && watch.waits()
                && !matches!(offer, Offer::Dropped(_))
                && watch.sees(after)
            {
                cut.checks.push((link, packet.dst_endpoint));
            }
            return self.take_offer(now, (link, before), passage, offer, events);
        }
        // what arrives elsewhere at this very instant may come before or after
        let key = Key::new(now, Class::Arrival);
        let tie = events.goes_before(key, link, before);
        let part = cut.part_of(passage.dst);
        if part == usize::from(cut.part) {
            let offer = l.offer_here(now, passage, tie, &mut self.pool);
            return self.take_offer(now, (link, before), passage, offer, events);
        }
        match l.offer_across(now, passage, tie, &mut self.pool) {
            Ok(arrive) => {
                let whole = self.pool.take_whole(passage.slot);
                cut.first_out = cut.first_out.min(arrive);
                let passage = Passage { arrive, ..passage };
                cut.out[part].packets.push(Crossed { link, passage, whole });
            }
            Err(cause) => self.lose_at_port(now, link, passage, cause, before),
        }
    }

    fn take_offer(
        &mut self,
        now: Time,
        (link, before): (u32, u32),
        passage: Passage,
        offer: Offer,
        events: &mut Tournament,
    ) {
        match offer {
            Offer::Sooner(key) => events.set_sooner(link, key),
            Offer::Dropped(cause) => self.lose_at_port(now, link, passage, cause, before),
            Offer::Displaced(key) => {
                events.set(link, key);
                self.lose_dropped(now, link);
            }
            Offer::Queued | Offer::Bridged => {}
        }
    }

    /// Packet transmissions completed on the links that this part owns.
    pub fn own_packet_hops(&self) -> u64 {
        let own =
            |l: &&Link| self.cut.as_ref().is_none_or(|cut| cut.owner(l.from, l.to) == cut.part);
        self.links.iter().filter(own).map(|l| l.counters.packets).sum()
    }

    /// Takes what other parts have sent.
    pub fn receive(&mut self, mail: &mut Mail, events: &mut Tournament) {
        for Crossed { link, mut passage, whole } in mail.packets.drain(..) {
            passage.slot = self.pool.put_whole(&whole);
            if let Some(key) = self.links[link as usize].arrives(passage) {
                events.set_sooner(link, key);
            }
        }
        for Promise { link, at, endpoint, number } in mail.promises.drain(..) {
            let mut packet = Packet::blank(HostId(self.links[link as usize].to));
            packet.notes = Packet::DATAGRAM;
            packet.dst_endpoint = endpoint;
            packet.seq = number;
            let slot = self.pool.insert(&packet);
            let passage = Passage { arrive: at, ..Passage::new(slot, &packet) };
            if let Some(key) = self.links[link as usize].arrives(passage) {
                events.set_sooner(link, key);
            }
        }
    }

    /// When the packet is handed over that completes a stream up to `end`, if it is on this link, and
    /// how many the link has handed over before it: of the stream all before `next` has come, and `held` besides.
    pub fn completes(
        &self,
        link: u32,
        endpoint: EndpointId,
        (next, end): (u64, u64),
        held: &mut Vec<(u64, u64)>,
        events: &Tournament,
    ) -> Option<(Time, u64)> {
        let mut next = next;
        for (at, number, passage) in self.links[link as usize].handed_over(events.key(link).time())
        {
            let packet = self.pool.get(passage.slot);
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
            if next >= end {
                return Some((at, number));
            }
        }
        None
    }

    /// Whether the next event of a link is a promise: then how many packets that link has handed over
    /// before in the part that owns it, less multiples of 2³², and which part that is.
    pub fn promised(&self, link: u32) -> Option<(u32, usize)> {
        let (cut, l) = (self.cut.as_ref()?, self.links.get(link as usize)?);
        let owner = cut.owner(l.from, l.to);
        if owner == cut.part || l.to >= self.graph.hosts {
            return None;
        }
        let slot = l.upcoming(0)?;
        Some((self.pool.get(slot).positions().0, usize::from(owner)))
    }

    /// Counts what has arrived in other parts until the end of the run, or of an instant.
    pub fn count_gone(&mut self, last: (Key, u32), order: Order) {
        let key = last.0;
        for (link, l) in (0u32..).zip(&mut self.links) {
            let at = Key::new(key.time(), Class::Arrival);
            l.count_gone(key.time(), order.of((at, link)) <= order.of(last));
        }
    }

    /// Lends the links that another part owns, or takes them back; with [`Fabric::lay_open`] the queues
    /// of all links are then those of one run.
    pub fn swap_links(&mut self, other: &mut Fabric, part: u8) {
        let cut = self.cut.as_ref().expect("it is divided");
        for (mine, theirs) in self.links.iter_mut().zip(&mut other.links) {
            if cut.owner(mine.from, mine.to) == part {
                std::mem::swap(mine, theirs);
            }
        }
    }

    /// Shows what each port holds for all parts as its own, or no longer.
    pub fn lay_open(&mut self, open: bool) {
        self.links.iter_mut().for_each(|l| l.lay_open(open));
    }

    /// Puts all parts together, of which this is the first, at the end of a run.
    pub fn unite(&mut self, others: &mut [Fabric]) {
        let cut = self.cut.take().expect("it is divided");
        self.tally.delivered -= cut.kept;
        for number in 0..self.links.len() {
            let (from, to) = (self.links[number].from, self.links[number].to);
            let owner = cut.owner(from, to);
            let crosses = owner != TOP && cut.part_of[to as usize] == TOP;
            // what is on the way, with the part in whose pool it lies
            let mut under_way: Vec<(Passage, usize)> = Vec::new();
            for part in 0..=others.len() {
                let (link, pool) = match part {
                    0 => (&mut self.links[number], &mut self.pool),
                    _ => (&mut others[part - 1].links[number], &mut others[part - 1].pool),
                };
                let held = link.take_on_wire();
                if crosses || part == usize::from(owner) {
                    under_way.extend(held.map(|passage| (passage, part)));
                } else {
                    // only promises
                    held.for_each(|passage| _ = pool.remove(passage.slot));
                }
            }
            under_way.sort_by_key(|(passage, _)| passage.arrived());
            if owner > 0 {
                std::mem::swap(
                    &mut self.links[number],
                    &mut others[usize::from(owner) - 1].links[number],
                );
            }
            for (mut passage, part) in under_way {
                if part > 0 {
                    passage.slot =
                        self.pool.put_whole(&others[part - 1].pool.take_whole(passage.slot));
                }
                self.links[number].put_on_wire(passage);
            }
        }
        for other in others {
            let kept = other.cut.as_ref().map_or(0, |cut| cut.kept);
            self.tally.sent += other.tally.sent;
            self.tally.delivered += other.tally.delivered - kept;
            self.tally.dropped += other.tally.dropped;
        }
    }
}
