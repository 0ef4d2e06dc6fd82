//! A fabric of which one part is simulated here and the others elsewhere at the same time.
//!
//! Nodes are dealt to parts ([`crate::parts`]). A link belongs to the part of the node that sends on it, and
//! the link up from a host to that of its switch: what a host sends is handed over with the event that sent
//! it, and the part of the switch, which comes behind, offers it to the link in the order of events.
//! Where the far end of a link is in another part, the link exists twice: its owner has the port, the queue and the
//! counters; its reader has only the packets that are about to arrive. At an eager port the time of
//! arrival is known when a packet is enqueued, so the packet is handed over then, for the transmission
//! and the delay of the cable ahead of time. The owner still takes the packet off its wire at that time,
//! which is what counts packets and makes the digest; the reader carries out what the arrival does.

use crate::fabric::Fabric;
use crate::link::Passage;
use crate::losses::Lost;
use crate::pool::{Side, Stored};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::tournament::Tournament;
use eastwest_types::{HostId, NO_SACK, Packet, SackBlocks, Time};
use std::collections::VecDeque;

/// What a part does with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Role {
    /// Nothing.
    Elsewhere,
    /// Everything.
    Inside,
    /// Sends on it; another part reads.
    Owner,
    /// Reads what another part sends on it.
    Reader,
}

/// A link as a part sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub role: Role,
    /// The part that reads.
    pub reader: u8,
    /// Packets on the wire, from the first one, that the reader has.
    pub handed: u32,
    /// When the last of them arrives; the wire keeps their order.
    pub last: Time,
}

/// A packet on its way to another part: one cache line.
#[derive(Clone, Copy)]
pub(crate) struct Handed {
    /// Its time of arrival is the one at which the reader gets it, random delay included.
    pub passage: Passage,
    pub link: u32,
    pub stored: Stored,
}

const _: () = assert!(size_of::<Handed>() == 64);

/// A packet that a host sends, on its way to the part of its switch: one cache line.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// The event that sends it, see [`Tournament::order`]: key and source.
    pub key: Key,
    pub source: u32,
    pub link: u32,
    pub dst: HostId,
    pub identity: u32,
    pub ip_len: u16,
    pub hash: u16,
    /// Tells apart what one event sends.
    pub number: u32,
    pub stored: Stored,
}

const _: () = assert!(size_of::<Sent>() == 64);

/// A lost packet, and the event that lost it.
#[derive(Clone, Copy)]
pub struct LostIn {
    /// See [`Tournament::order`].
    pub event: (Key, u32),
    /// Of what one event sent, which; 0 for others.
    pub number: u32,
    /// The packet.
    pub lost: Lost,
}

/// The event after which a run is over.
#[derive(Clone, Copy, Debug)]
pub struct Last {
    /// See [`Tournament::order`].
    pub event: (Key, u32),
    /// Events of the same time and source before it.
    pub before: u32,
}

/// What one part hands to another at one time.
#[derive(Default)]
pub(crate) struct Batch {
    pub packets: Vec<Handed>,
    /// SACK blocks of those packets that have any, in their order.
    pub sacks: Vec<Side>,
    /// What hosts send, and SACK blocks, the same way.
    pub sent: Vec<Sent>,
    pub sent_sacks: Vec<SackBlocks>,
    /// Lost packets, for the part that keeps the records.
    pub losses: Vec<LostIn>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.sent.is_empty() && self.losses.is_empty()
    }

    /// Adds what another one holds, which is empty afterwards.
    pub fn append(&mut self, other: &mut Batch) {
        append(&mut self.packets, &mut other.packets);
        append(&mut self.sacks, &mut other.sacks);
        append(&mut self.sent, &mut other.sent);
        append(&mut self.sent_sacks, &mut other.sent_sacks);
        append(&mut self.losses, &mut other.losses);
    }
}

/// As [`Vec::append`], without a copy where there is nothing to append to.
fn append<T>(to: &mut Vec<T>, from: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(to, from);
    } else {
        to.append(from);
    }
}

/// What a fabric keeps in mind while others simulate parts of it.
pub struct Cut {
    pub(crate) ends: Vec<End>,
    /// What hosts have sent and is not offered to their links yet, and its SACK blocks.
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) sent_sacks: VecDeque<SackBlocks>,
    /// By part, what it has not been handed yet.
    pub(crate) out: Vec<Batch>,
    /// Events from this time on have to wait.
    pub(crate) horizon: Time,
    /// The event that is being carried out, and how many of the same time and source came before it:
    /// random delays may let packets on a wire arrive together.
    pub(crate) event: (Key, u32),
    pub(crate) before: u32,
    /// The packet that is being sent, of those of this event.
    pub(crate) number: u32,
    /// Events of links that another part reads: the same arrivals are events there.
    pub(crate) doubled: u64,
    /// What was lost here, where losses are kept.
    pub(crate) losses: Vec<LostIn>,
}

impl Cut {
    /// For a part that does this with every link.
    pub(crate) fn new(ends: Vec<End>, parts: usize) -> Cut {
        Cut {
            ends,
            sent: VecDeque::new(),
            sent_sacks: VecDeque::new(),
            out: (0..parts).map(|_| Batch::default()).collect(),
            horizon: Time::ZERO,
            event: (Key::new(Time::ZERO, Class::Departure), 0),
            before: 0,
            number: 0,
            doubled: 0,
            losses: Vec::new(),
        }
    }
}

impl Fabric {
    /// Whether parts of it are simulated elsewhere now.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Notes the event that is next. Tells whether it has to wait for the other parts.
    #[inline]
    pub fn awaits_others(&mut self, key: Key, source: u32) -> bool {
        match &mut self.cut {
            None => false,
            Some(cut) if key.time() >= cut.horizon => true,
            Some(cut) => {
                cut.before = if cut.event == (key, source) { cut.before + 1 } else { 0 };
                cut.event = (key, source);
                false
            }
        }
    }

    /// Lets events before this time be carried out, as far as other parts are concerned.
    pub fn let_run_before(&mut self, horizon: Time) {
        if let Some(cut) = &mut self.cut {
            cut.horizon = horizon;
        }
    }

    /// The event that is being carried out, in a part.
    pub fn event_of_part(&self) -> Option<(Key, u32)> {
        self.cut.as_ref().map(|cut| cut.event)
    }

    /// The same, and how many of its time and source came before it.
    pub fn last_of_part(&self) -> Option<Last> {
        self.cut.as_ref().map(|cut| Last { event: cut.event, before: cut.before })
    }

    /// What was lost here since the last call, by which event.
    pub fn take_losses_of_part(&mut self) -> Vec<LostIn> {
        self.cut.as_mut().map_or(Vec::new(), |cut| std::mem::take(&mut cut.losses))
    }

    /// As [`Fabric::fire`], for a part of a fabric.
    pub(crate) fn fire_in_part(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<Packet> {
        let cut = self.cut.as_mut().expect("the fabric is cut");
        let end = &mut cut.ends[link as usize];
        let l = &mut self.links[link as usize];
        let passage = match end.role {
            Role::Owner => {
                end.handed -= 1;
                cut.doubled += 1;
                let (_, next) = l.arrive(key, &mut self.pool);
                events.set(link, next);
                self.prefetch_next(events);
                return None;
            }
            Role::Reader => {
                let passage = l.on_wire.pop().expect("an arrival was handed over");
                let next = l.on_wire.get(0).map_or(Key::NEVER, |p| arrival(p.arrive));
                events.set(link, next);
                passage
            }
            Role::Inside => {
                let (passage, next) = l.arrive(key, &mut self.pool);
                events.set(link, next);
                passage
            }
            Role::Elsewhere => unreachable!("the event of a link that belongs to another part"),
        };
        self.prefetch_next(events);
        if self.links[link as usize].to < self.hosts {
            return Some(self.hand_to_host(link, &passage));
        }
        let next_link = self.next_link(key.time(), link, &passage);
        self.offer(key.time(), next_link, passage, link, events);
        self.hand_over(next_link);
        None
    }

    /// A host sends a packet, whose link another part has.
    #[inline(never)]
    pub(crate) fn send_elsewhere(&mut self, link: u32, packet: &Packet, sack: Option<SackBlocks>) {
        let Passage { dst, identity, ip_len, hash, .. } = Passage::new(0, packet);
        let number = self.sent as u32;
        let cut = self.cut.as_mut().expect("the fabric is cut");
        let (key, source) = cut.event;
        let out = &mut cut.out[usize::from(cut.ends[link as usize].reader)];
        // where they lie is up to the other part
        let packet = Packet { sack: sack.map_or(NO_SACK, |_| 0), ..*packet };
        out.sent_sacks.extend(sack);
        let stored = Stored::with_echo(&packet);
        out.sent.push(Sent { key, source, link, dst, identity, ip_len, hash, number, stored });
    }

    /// Offers to its link what a host has sent, if that comes before `next` in the order of events and
    /// before `limit`.
    pub(crate) fn offer_sent(
        &mut self,
        next: (Key, u32),
        limit: Key,
        events: &mut Tournament,
    ) -> bool {
        let Some(cut) = &mut self.cut else { return false };
        let Some(&Sent { key, source, link, dst, identity, ip_len, hash, number, stored }) =
            cut.sent.front()
        else {
            return false;
        };
        let later =
            key > next.0 || (key == next.0 && events.order((key, source)) > events.order(next));
        if key >= limit || later {
            return false;
        }
        cut.sent.pop_front();
        (cut.event, cut.number) = ((key, source), number);
        let side = if stored.has_sack() { cut.sent_sacks.pop_front() } else { None };
        let slot = self.pool.put_sent(stored, side);
        let passage = Passage { arrive: Time::NEVER, slot, dst, identity, ip_len, hash };
        self.offer(key.time(), link, passage, link, events);
        self.hand_over(link);
        true
    }

    /// Hands over what has come to the port of a link, if another part reads it.
    pub(crate) fn hand_over(&mut self, link: u32) {
        let Some(cut) = &mut self.cut else { return };
        let Some(end) = cut.ends.get_mut(link as usize) else { return };
        if end.role != Role::Owner {
            return;
        }
        let l = &self.links[link as usize];
        while let Some(&passage) = l.on_wire.get(end.handed) {
            end.last = l.handed_at(&passage, end.handed, end.last);
            let stored = self.pool.take(passage.slot);
            let out = &mut cut.out[usize::from(end.reader)];
            if stored.has_sack() {
                out.sacks.push(self.pool.take_side(&stored));
            }
            let passage = Passage { arrive: end.last, ..passage };
            out.packets.push(Handed { passage, link, stored });
            end.handed += 1;
        }
    }

    /// Takes in what other parts have handed over.
    pub(crate) fn take_in(&mut self, batch: &mut Batch, events: &mut Tournament) {
        if let Some(cut) = &mut self.cut {
            cut.sent.extend(batch.sent.drain(..));
            cut.sent_sacks.extend(batch.sent_sacks.drain(..));
        }
        let mut sacks = batch.sacks.drain(..);
        for handed in batch.packets.drain(..) {
            let side = if handed.stored.has_sack() { sacks.next() } else { None };
            let slot = self.pool.put(handed.stored, side);
            let l = &mut self.links[handed.link as usize];
            if l.on_wire.is_empty() {
                events.set_sooner(handed.link, arrival(handed.passage.arrive));
            }
            l.on_wire.push(Passage { slot, ..handed.passage });
        }
        drop(sacks);
        if let Some(cut) = &mut self.cut {
            cut.losses.append(&mut batch.losses);
        }
    }
}

/// The key of an arrival.
pub(crate) fn arrival(at: Time) -> Key {
    Key::new(at, Class::Arrival)
}
