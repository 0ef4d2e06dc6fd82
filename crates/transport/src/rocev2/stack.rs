//! All queue pairs, and the cards that they share.

use super::config::RoceV2Config;
use super::counters::Counters;
use super::interface::{Alarm, Connect, Notice, Sink};
use super::queue_pair::QueuePair;
use eastwest_types::{EndpointId, HostId, Packet, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A network card: the queue pairs of one host and one codepoint take turns at it.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    host: HostId,
    dscp: u8,
    /// Ends that may send, in the order of their turns.
    ready: VecDeque<EndpointId>,
    /// When the port takes the next packet.
    free_at: Time,
    armed_at: Time,
}

/// All queue pairs.
#[derive(Serialize, Deserialize)]
pub struct Stack {
    config: RoceV2Config,
    ends: Vec<QueuePair>,
    /// Slots of client ends whose queue pair is gone.
    free: Vec<u32>,
    cards: Vec<Card>,
    /// Cards by host and codepoint.
    card_of: BTreeMap<(u32, u8), u32>,
    /// Counters of all ends that are gone.
    gone: Counters,
}

impl Stack {
    /// No queue pairs yet.
    pub fn new(config: RoceV2Config) -> Stack {
        Stack {
            config,
            ends: Vec::new(),
            free: Vec::new(),
            cards: Vec::new(),
            card_of: BTreeMap::new(),
            gone: Counters::default(),
        }
    }

    /// The settings.
    pub fn config(&self) -> &RoceV2Config {
        &self.config
    }

    /// Makes a queue pair. Returns the client's end, or `None` where all slots are in use.
    pub fn open(&mut self, c: &Connect) -> Option<EndpointId> {
        let (slot, generation) = match self.free.pop() {
            Some(slot) => {
                let old = self.ends[slot as usize].id();
                (slot as usize, old.generation().wrapping_add(1))
            }
            None if self.ends.len() + 2 > EndpointId::MAX_SLOTS => return None,
            None => (self.ends.len(), 0),
        };
        let id = EndpointId::new(slot, generation);
        let (client, server) = (self.card(c.client, c.dscp), self.card(c.server, c.dscp));
        let pair = [(id, client), (id.peer(), server)]
            .map(|(id, card)| QueuePair::new(id, c, card, &self.config.control));
        if slot == self.ends.len() {
            self.ends.extend(pair);
        } else {
            let [client, server] = pair;
            self.ends[slot] = client;
            self.ends[slot + 1] = server;
        }
        Some(id)
    }

    fn card(&mut self, host: HostId, dscp: u8) -> u32 {
        let next = self.cards.len() as u32;
        let number = *self.card_of.entry((host.0, dscp)).or_insert(next);
        if number == next {
            self.cards.push(Card {
                host,
                dscp,
                ready: VecDeque::new(),
                free_at: Time::ZERO,
                armed_at: Time::NEVER,
            });
        }
        number
    }

    /// The application posts a message of `bytes`.
    pub fn write(&mut self, now: Time, id: EndpointId, bytes: u64, sink: &mut impl Sink) {
        let end = &mut self.ends[id.slot()];
        debug_assert_eq!(end.id(), id);
        end.requester.write(bytes);
        self.go_on(now, id, sink);
    }

    /// Drops the bytes that were posted and not sent, except one packet, which ends the last message.
    /// Returns the length of the remaining stream in bytes.
    pub fn truncate(&mut self, id: EndpointId) -> u64 {
        let end = &mut self.ends[id.slot()];
        debug_assert_eq!(end.id(), id);
        end.requester.truncate(self.config.mtu)
    }

    /// The application wants [`Notice::Delivered`] once `bytes` have arrived in all. Returns whether they
    /// already have.
    pub fn expect(&mut self, id: EndpointId, bytes: u64) -> bool {
        let end = &mut self.ends[id.slot()];
        let arrived = end.received() >= bytes;
        end.responder.notify_at = if arrived { u64::MAX } else { bytes };
        arrived
    }

    /// Ends a queue pair once all that was written has arrived.
    pub fn close(&mut self, id: EndpointId, sink: &mut impl Sink) {
        if !self.knows(id) {
            return;
        }
        for end in [id, id.peer()] {
            self.ends[end.slot()].closing = true;
        }
        if self.release(id) {
            sink.notify(id, Notice::Closed);
        }
    }

    /// Ends a queue pair at once: what is under way finds nobody, and there is no [`Notice`] of it.
    pub fn abort(&mut self, id: EndpointId) {
        if self.knows(id) {
            self.free_slots(id);
        }
    }

    /// Whether this is an end of a queue pair that is not gone.
    pub fn knows(&self, id: EndpointId) -> bool {
        self.ends.get(id.slot()).is_some_and(|end| end.id() == id)
    }

    /// A packet has reached the host of its queue pair.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, sink: &mut impl Sink) {
        let id = packet.dst_endpoint;
        if self.knows(id) {
            self.ends[id.slot()].on_packet(now, packet, &self.config, sink);
            self.go_on(now, id, sink);
        }
    }

    /// A wake-up asked for through [`Sink::arm`].
    pub fn on_alarm(&mut self, now: Time, alarm: Alarm, sink: &mut impl Sink) {
        match alarm {
            Alarm::QueuePair(id) => {
                let end = &mut self.ends[id.slot()];
                if end.id() != id || end.armed_at != now {
                    return; // an earlier wake-up took its place
                }
                end.armed_at = Time::NEVER;
                if end.on_timers(now, &self.config) {
                    sink.notify(id, Notice::Failed);
                }
                self.go_on(now, id, sink);
            }
            Alarm::Card(number) => {
                let card = &mut self.cards[number as usize];
                if card.armed_at == now {
                    card.armed_at = Time::NEVER;
                    self.serve(now, number, sink);
                }
            }
        }
    }

    /// Lets an end do what it may after something has happened to it.
    fn go_on(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let end = &mut self.ends[id.slot()];
        if !end.queued && end.may_send(now) {
            end.queued = true;
            let card = end.card;
            self.cards[card as usize].ready.push_back(id);
            self.serve(now, card, sink);
        }
        self.ends[id.slot()].rearm(sink);
        if self.release(id) {
            sink.notify(id, Notice::Closed);
        }
    }

    /// Lets the ends of a card send in turn while the port takes packets.
    fn serve(&mut self, now: Time, number: u32, sink: &mut impl Sink) {
        let full = self.config.mtu + RoceV2Config::HEADERS;
        let card = &mut self.cards[number as usize];
        while !card.ready.is_empty() {
            if card.free_at <= now {
                card.free_at = sink.takes_more_at(card.host, card.dscp, full, false);
            }
            if card.free_at > now {
                if card.armed_at != card.free_at {
                    card.armed_at = card.free_at;
                    sink.arm(card.free_at, Alarm::Card(number));
                }
                return;
            }
            let Some(id) = card.ready.pop_front() else { return };
            let end = &mut self.ends[id.slot()];
            if end.id() != id {
                continue; // its queue pair is gone
            }
            end.queued = false;
            if end.may_send(now) {
                let ip_len = end.send_next(now, &self.config, sink);
                card.free_at = sink.takes_more_at(card.host, card.dscp, ip_len, true);
                if end.may_send(now) {
                    end.queued = true;
                    card.ready.push_back(id);
                }
            }
            end.rearm(sink);
        }
    }

    /// Frees the slots of a queue pair once both ends are done; tells whether they were.
    fn release(&mut self, id: EndpointId) -> bool {
        let client = id.slot() & !1;
        let done = self.ends[client..client + 2].iter().all(QueuePair::is_done);
        if done {
            self.free_slots(id);
        }
        done
    }

    fn free_slots(&mut self, id: EndpointId) {
        let client = id.slot() & !1;
        let generation = id.generation().wrapping_add(1);
        for (i, end) in self.ends[client..client + 2].iter_mut().enumerate() {
            // a generation of its own, so that late packets and wake-ups find nobody
            self.gone.add(end.counters());
            end.vacate(EndpointId::new(client + i, generation));
        }
        self.free.push(client as u32);
    }

    /// An end, for counters and questions.
    pub fn end(&self, id: EndpointId) -> &QueuePair {
        &self.ends[id.slot()]
    }

    /// Counters of all ends there have been.
    pub fn totals(&self) -> Counters {
        let mut sum = self.gone;
        for end in &self.ends {
            sum.add(end.counters());
        }
        sum
    }
}
