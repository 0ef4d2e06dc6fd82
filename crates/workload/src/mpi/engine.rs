//! Transfer of MPI messages: eager or with rendezvous, over the network or through memory.

use super::config::MpiConfig;
use super::matching::{Message, Of, Request, Wanted, is_own};
use super::replay::Mpi;
use crate::protocol::{Action, Parcel};
use eastwest_types::name::Name;
use eastwest_types::{ConnId, MpiMessage, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// Part of an MPI message that crosses the network separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Whole eager message, sent without rendezvous.
    Eager,
    /// Request to send, the first part of a rendezvous.
    Ask,
    /// Clear to send, the receiver's answer in a rendezvous.
    Clear,
    /// Data of the message, sent after the rendezvous.
    Data,
}

/// Number of the lowest bits of a tag, which have the part of the message.
const PART_BITS: u32 = 2;

/// Returns the tag of a part of a message in wake-ups; `slot` is the number of the message in its
/// table.
pub(super) fn tag_of(slot: u32, part: Part) -> u64 {
    u64::from(slot) << PART_BITS | part as u64
}

/// Returns slot or number, and part, of a message with this tag.
pub(super) fn part_of(tag: u64) -> (u32, Part) {
    let part = [Part::Eager, Part::Ask, Part::Clear, Part::Data][(tag & 3) as usize];
    ((tag >> PART_BITS) as u32, part)
}

/// Returns what the tags of all parts of a message have in common.
pub(super) fn without_part(tag: u64) -> u64 {
    tag >> PART_BITS
}

/// Number of the bits of a network tag below the sending rank: part and number of the message.
const SENDER_SHIFT: u32 = u32::BITS + PART_BITS;

/// Bit of a network tag with the sending rank and the number of a message in place of its slot.
const NUMBERED: u64 = 1 << 63;

/// Returns the tag of a part of a message in the network. In an undivided run it contains the slot of
/// the message. A slot depends on the order of events at all ranks, which the parts of a partitioned
/// run do not know: the tag of a message that is sent there contains rank and number.
fn network_tag(slot: u32, message: &Message, part: Part) -> u64 {
    match message.number {
        0 => tag_of(slot, part),
        number => NUMBERED | u64::from(message.from) << SENDER_SHIFT | tag_of(number, part),
    }
}

/// Returns the sending rank in a [network tag](network_tag) with the bit [`NUMBERED`].
fn sender_of(network_tag: u64) -> u32 {
    (network_tag >> SENDER_SHIFT) as u32 & ((1 << RANK_BITS) - 1)
}

/// A message that a rank in one part of a partitioned run (one run on several threads) has sent to a
/// rank in another part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    to: u32,
    communicator: u64,
    tag: i64,
    bytes: u64,
    #[serde(with = "eastwest_types::name")]
    call: Name,
}

impl Envelope {
    /// Returns this message of the rank `from` with its number in a partitioned run, written at the
    /// time `sent`. `send` is the request of a send with rendezvous.
    fn message(self, (from, number): (u32, u32), sent: Time, send: Option<u32>) -> Message {
        let Envelope { to, communicator, tag, bytes, call } = self;
        let (arrived, matched, receive) = (Time::NEVER, Time::NEVER, None);
        Message {
            from,
            number,
            to,
            communicator,
            tag,
            bytes,
            call,
            sent,
            arrived,
            matched,
            send,
            receive,
        }
    }
}

/// Request of a send with rendezvous in another part of a partitioned run.
const ELSEWHERE: u32 = u32::MAX;

/// Returns the ranks from which and to which a part of a message goes.
fn ends_of(message: &Message, part: Part) -> (u32, u32) {
    match part {
        Part::Clear => (message.to, message.from),
        Part::Eager | Part::Ask | Part::Data => (message.from, message.to),
    }
}

/// Place of the stage of a message in the token of a wake-up, and the stages: it arrives through
/// memory, it leaves after the time of a proxy, or the receiver's proxy has taken it in.
const STAGE_SHIFT: u32 = 60;
const ARRIVES: u64 = 0;
const LEAVES: u64 = 1;
const TAKEN_IN: u64 = 2;
/// Number of bits of a rank in the token of a wake-up.
const RANK_BITS: u32 = 24;
const _: () = assert!(MpiConfig::MOST_RANKS <= 1 << RANK_BITS);

impl Mpi {
    /// Schedules the end of the computation of a node of a rank for the time `at`.
    pub(super) fn wake_node(&mut self, at: Time, (rank, node): (u32, u32), out: &mut Vec<Action>) {
        self.pending += 1;
        let r = &mut self.ranks[rank as usize];
        let is_last = !r.source.is_graph() && r.task(node).blocking;
        let number = if is_last { 0 } else { u64::from(node) + 1 };
        out.push(Action::Wake { at, token: (number << RANK_BITS | u64::from(rank)) << 1 });
    }

    /// Returns the rank of the wake-up with this token, in which a computation ends.
    pub(super) fn rank_of_wake_up(token: u64) -> u32 {
        (token >> 1 & ((1 << RANK_BITS) - 1)) as u32
    }

    /// Schedules a wake-up for a message; `tag` identifies message and part, see [`tag_of`].
    fn wake_message(&mut self, at: Time, stage: u64, tag: u64, out: &mut Vec<Action>) {
        self.pending += 1;
        out.push(Action::Wake { at, token: stage << STAGE_SHIFT | tag << 1 | 1 });
    }

    /// Whether the proxies of both ranks need time for a message: it belongs to a collective call
    /// and crosses the network.
    fn needs_proxy(&self, message: &Message) -> bool {
        let [from, to] = [message.from, message.to].map(|rank| self.config.hosts[rank as usize]);
        self.config.chunk_overhead > Span::ZERO && from != to && !is_own(message.communicator)
    }

    /// Returns the time at which the proxy of a rank has handled a message that it gets now.
    fn proxy_time(&mut self, now: Time, rank: u32) -> Time {
        let proxy = &mut self.ranks[rank as usize].proxy_until;
        *proxy = now.max(*proxy) + self.config.chunk_overhead;
        *proxy
    }

    /// Returns the time at which a message arrives at another rank of the same host.
    fn inside(&mut self, now: Time, (from, to): (u32, u32), payload: u64) -> Time {
        let (latency, rate) = (self.config.local_latency, self.config.local_rate);
        let copied = rate.time_for(payload);
        if !self.config.local_switch || from == to {
            return now + latency + copied;
        }
        let sender = &mut self.ranks[from as usize].port_until;
        let begins = now.max(sender.0);
        sender.0 = begins + copied;
        let receiver = &mut self.ranks[to as usize].port_until;
        // the first byte reaches the receiver's port after the latency
        receiver.1 = (begins + latency).max(receiver.1) + copied;
        receiver.1
    }

    /// Handles a wake-up: a message through memory has arrived, or a computation has ended. The
    /// token of the latter has the number of the rank and, above it, that of the node plus 1; 0
    /// stands for the record at which a sequence has stopped. So the order of wake-ups at one time
    /// does not depend on the number of records before.
    pub(super) fn woken(
        &mut self,
        now: Time,
        token: u64,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        if token & 1 == 1 {
            let tag = (token & ((1 << STAGE_SHIFT) - 1)) >> 1;
            let (slot, part) = part_of(tag);
            match token >> STAGE_SHIFT {
                LEAVES => self.depart(now, slot, part, out),
                TAKEN_IN => self.complete_message(now, slot, out),
                _ => return self.arrived(now, slot, part, out),
            }
            return Ok(());
        }
        let rank = Mpi::rank_of_wake_up(token);
        let node = match (token >> (RANK_BITS + 1)).checked_sub(1) {
            Some(node) => node as u32,
            None => *self.ranks[rank as usize].tasks.keys().next_back().expect("it has stopped"),
        };
        self.computed(now, (rank, node), out)
    }

    /// Executes a send of `bytes` bytes from the rank `from` to the rank `to`, in a communicator
    /// and with a tag. Returns the number of the request with which the rank can wait for the send;
    /// `None` if the send is complete at once (eager message).
    pub(super) fn send(
        &mut self,
        now: Time,
        (from, to): (u32, u32),
        (communicator, tag): (u64, i64),
        bytes: u64,
        call: Name,
        out: &mut Vec<Action>,
    ) -> Option<u32> {
        let r = &mut self.ranks[from as usize];
        let counted = if is_own(communicator) { &mut r.sent } else { &mut r.sent_in_collectives };
        counted.0 += 1;
        counted.1 += bytes;
        let number = match self.own {
            None => 0,
            Some(_) => (r.sent.0 + r.sent_in_collectives.0) as u32,
        };
        let asks = bytes > self.config.eager_limit;
        let of = Of::Send { communicator, to, tag, bytes };
        let send = asks.then(|| self.requests.add(Request::new(from, of)));
        let envelope = Envelope { to, communicator, tag, bytes, call };
        let message = envelope.message((from, number), now, send);
        let slot = self.add_message(message);
        if self.own.is_some() {
            out.push(Action::MpiSent { tag: network_tag(slot, &message, Part::Eager) });
        }
        self.put(now, slot, if asks { Part::Ask } else { Part::Eager }, out);
        send
    }

    /// Posts a receive of a rank. Returns the number of the request with which the rank can wait
    /// for the receive; the request may be complete at once.
    pub(super) fn receive(
        &mut self,
        now: Time,
        rank: u32,
        wanted: Wanted,
        out: &mut Vec<Action>,
    ) -> Result<u32, String> {
        let of = Of::Receive(wanted, None);
        let request = self.requests.add(Request::new(rank, of));
        let r = &mut self.ranks[rank as usize];
        match r.unexpected.take(&wanted) {
            Some(slot) => self.meet(now, slot, request, out)?,
            None => r.posted.add(request, &wanted),
        }
        Ok(request)
    }

    /// Matches a receive with a message that has arrived; of a rendezvous message, only the request
    /// to send has arrived.
    fn meet(
        &mut self,
        now: Time,
        slot: u32,
        request: u32,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let message = self.messages.get_mut(slot);
        message.matched = now;
        message.receive = Some(request);
        let (from, to, tag, bytes) = (message.from, message.to, message.tag, message.bytes);
        let (asks, call) = (message.send.is_some(), message.call);
        if let Of::Receive(wanted, met) = &mut self.requests.get_mut(request).of {
            *met = Some((from, tag));
            if let Some(most) = wanted.most.filter(|most| *most < bytes) {
                return Err(format!(
                    "rank {to} receives at most {most} B from rank {from} with tag {tag}, but the \
                     message that rank {from} sends in {call} has {bytes} B"
                ));
            }
        }
        if asks {
            self.put(now, slot, Part::Clear, out);
        } else {
            self.received(now, slot, out);
        }
        Ok(())
    }

    /// Handles a message that is matched with a receive and has arrived completely.
    fn received(&mut self, now: Time, slot: u32, out: &mut Vec<Action>) {
        let message = *self.messages.get(slot);
        if self.needs_proxy(&message) {
            let at = self.proxy_time(now, message.to);
            self.wake_message(at, TAKEN_IN, tag_of(slot, Part::Data), out);
        } else {
            self.complete_message(now, slot, out);
        }
    }

    fn complete_message(&mut self, now: Time, slot: u32, out: &mut Vec<Action>) {
        let m = self.remove_message(slot);
        if self.own.is_some() {
            out.push(Action::MpiReceived { tag: network_tag(slot, &m, Part::Eager) });
        }
        let [from, to] = [m.from, m.to].map(|rank| self.config.hosts[rank as usize]);
        out.push(Action::MpiMessage(Box::new(MpiMessage {
            from: m.from,
            to: m.to,
            tag: m.tag,
            call: m.call,
            bytes: m.bytes,
            rendezvous: m.send.is_some(),
            network: from != to,
            sent: m.sent,
            arrived: m.arrived,
            matched: m.matched,
            received: now,
        })));
        let send = m.send.filter(|_| self.executes(m.from));
        m.receive.into_iter().chain(send).for_each(|request| self.complete(request));
    }

    fn add_message(&mut self, message: Message) -> u32 {
        let slot = self.messages.add(message);
        if message.number > 0 {
            self.numbered.insert((message.from, message.number), slot);
        }
        slot
    }

    pub(super) fn remove_message(&mut self, slot: u32) -> Message {
        let message = self.messages.remove(slot);
        if message.number > 0 {
            self.numbered.remove(&(message.from, message.number));
        }
        message
    }

    /// Returns the slot of the message with this network tag, and the part of the message.
    fn of_network_tag(&self, tag: u64) -> (u32, Part) {
        let (number, part) = part_of(tag);
        match tag & NUMBERED {
            0 => (number, part),
            _ => (self.numbered[&(sender_of(tag), number)], part),
        }
    }

    /// Handles the arrival of a part of a message that has crossed the network; `tag` identifies
    /// message and part, see [`network_tag`].
    pub(super) fn delivered(
        &mut self,
        now: Time,
        tag: u64,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let (slot, part) = self.of_network_tag(tag);
        let message = self.messages.get(slot);
        if self.executes(ends_of(message, part).1) {
            return self.arrived(now, slot, part, out);
        }
        // another part of the partitioned run executes the receiver
        if matches!(part, Part::Eager | Part::Data) {
            let send = self.remove_message(slot).send;
            send.into_iter().for_each(|request| self.complete(request));
        }
        Ok(())
    }

    /// Returns what the part of the receiver needs of the message with this network tag; `None` if
    /// the receiver has received a part of the message before.
    pub fn envelope(&self, tag: u64) -> Option<Envelope> {
        let (slot, part) = self.of_network_tag(tag);
        let Message { to, communicator, tag, bytes, call, .. } = *self.messages.get(slot);
        matches!(part, Part::Eager | Part::Ask).then_some(Envelope {
            to,
            communicator,
            tag,
            bytes,
            call,
        })
    }

    /// Adds a message that a rank in another part of a partitioned run has sent at the time `sent`
    /// to a rank of this part.
    pub fn announce(&mut self, sent: Time, network_tag: u64, envelope: Envelope) {
        let (number, part) = part_of(network_tag);
        let send = (part == Part::Ask).then_some(ELSEWHERE);
        self.add_message(envelope.message((sender_of(network_tag), number), sent, send));
    }

    /// Handles the arrival of a part of a message at its destination.
    fn arrived(
        &mut self,
        now: Time,
        slot: u32,
        part: Part,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let message = self.messages.get_mut(slot);
        match part {
            Part::Clear => self.put(now, slot, Part::Data, out),
            Part::Data => {
                message.arrived = now;
                self.received(now, slot, out);
            }
            Part::Eager | Part::Ask => {
                if part == Part::Eager {
                    message.arrived = now;
                }
                let to = &mut self.ranks[message.to as usize];
                match to.posted.take(&self.requests, message) {
                    Some(request) => self.meet(now, slot, request, out)?,
                    None => to.unexpected.add(slot, message),
                }
            }
        }
        Ok(())
    }

    /// Sends a part of a message over the network, or through memory on one host.
    fn put(&mut self, now: Time, slot: u32, part: Part, out: &mut Vec<Action>) {
        let message = *self.messages.get(slot);
        if matches!(part, Part::Eager | Part::Ask) && self.needs_proxy(&message) {
            let at = self.proxy_time(now, message.from);
            self.wake_message(at, LEAVES, tag_of(slot, part), out);
            return;
        }
        self.depart(now, slot, part, out);
    }

    /// Sends a part of a message that needs no more time of a proxy.
    fn depart(&mut self, now: Time, slot: u32, part: Part, out: &mut Vec<Action>) {
        let message = *self.messages.get(slot);
        let (from, to) = ends_of(&message, part);
        let payload = match part {
            Part::Eager | Part::Data => message.bytes,
            Part::Ask | Part::Clear => 0,
        };
        let [a, b] = [from, to].map(|rank| self.config.hosts[rank as usize]);
        if a == b {
            let tag = tag_of(slot, part);
            let arrives = self.inside(now, (from, to), payload);
            // at least a picosecond after the message before it, to keep the order of sending
            let last = self.local.entry((from, to)).or_insert(Time::ZERO);
            *last = arrives.max(*last + Span(1));
            let at = *last;
            self.wake_message(at, ARRIVES, tag, out);
            return;
        }
        let tag = network_tag(slot, &message, part);
        self.pending += 1;
        if let Some(frame) = self.config.frame {
            let bytes = payload + u64::from(self.config.envelope);
            let class = self.config.class;
            // Eager messages and requests to send keep their order for the matching. Data of a
            // rendezvous uses another line, so that they do not wait behind it.
            let line = u8::from(part == Part::Data);
            out.push(Action::Parcel(Parcel { from: a, to: b, line, bytes, frame, class, tag }));
            return;
        }
        let channel = match is_own(message.communicator) {
            true => 0,
            false => message.tag as u32 % self.config.algorithms.channels,
        };
        let (conn, side) = self.connection((from, to, channel), out);
        out.push(Action::Send {
            conn,
            from: side,
            payload,
            header: self.config.envelope,
            tag,
            purpose: if payload > 0 { Purpose::Message } else { Purpose::Control },
            job: None,
            record: payload > 0,
        });
    }

    /// Returns the connection between the ranks `from` and `to` for a channel of collective calls,
    /// and the side of `from`; opens the connection if there is none.
    fn connection(
        &mut self,
        (from, to, channel): (u32, u32, u32),
        out: &mut Vec<Action>,
    ) -> (ConnId, Side) {
        let ends = (from.min(to), from.max(to), channel);
        let next = ConnId(self.conns.len() as u32);
        let conn = *self.conns.entry(ends).or_insert_with(|| {
            let [client, server] = [ends.0, ends.1].map(|rank| self.config.hosts[rank as usize]);
            let [here, there] = [ends.0, ends.1].map(|rank| self.local_ranks[rank as usize]);
            let class = self.config.class;
            out.push(Action::Open {
                conn: next,
                client,
                server,
                class,
                cards: Some((here, there)),
            });
            next
        });
        (conn, if from == ends.0 { Side::Client } else { Side::Server })
    }
}
