//! Transfer of MPI messages: eager or with rendezvous, over the network or through memory.

use super::matching::{Message, Of, Request, Wanted, is_own};
use super::replay::Mpi;
use crate::protocol::{Action, Parcel};
use eastwest_types::name::Name;
use eastwest_types::{ConnId, MpiMessage, Purpose, Side, Span, Time};

/// Part of an MPI message that crosses the network separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Whole eager message, sent without rendezvous.
    Eager,
    /// Request to send, the first part of a rendezvous.
    Ask,
    /// Clear to send, the receiver's answer in a rendezvous.
    Clear,
    /// Data of the message, sent after the rendezvous.
    Data,
}

/// Returns the network tag of a part of a message; `slot` is the number of the message in its
/// table.
fn tag_of(slot: u32, part: Part) -> u64 {
    u64::from(slot) << 2 | part as u64
}

fn part_of(tag: u64) -> (u32, Part) {
    let part = [Part::Eager, Part::Ask, Part::Clear, Part::Data][(tag & 3) as usize];
    ((tag >> 2) as u32, part)
}

impl Mpi {
    /// Schedules the end of the computation of a node of a rank for the time `at`.
    pub(super) fn wake_node(&mut self, at: Time, (rank, node): (u32, u32), out: &mut Vec<Action>) {
        self.pending += 1;
        // a program has fewer than 2^31 ranks
        out.push(Action::Wake { at, token: (u64::from(rank) << 32 | u64::from(node)) << 1 });
    }

    pub(super) fn woken(
        &mut self,
        now: Time,
        token: u64,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        if token & 1 == 1 {
            return self.arrived(now, token >> 1, out);
        }
        let (rank, node) = ((token >> 33) as u32, (token >> 1) as u32);
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
        let asks = bytes > self.config.eager_limit;
        let of = Of::Send { communicator, to, tag, bytes };
        let send = asks.then(|| self.requests.add(Request::new(from, of)));
        let message = Message {
            from,
            to,
            communicator,
            tag,
            bytes,
            call,
            sent: now,
            arrived: Time::NEVER,
            matched: Time::NEVER,
            send,
            receive: None,
        };
        let slot = self.messages.add(message);
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

    /// Completes a message that is matched with a receive and has arrived completely.
    fn received(&mut self, now: Time, slot: u32, out: &mut Vec<Action>) {
        let m = self.messages.remove(slot);
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
        m.receive.into_iter().chain(m.send).for_each(|request| self.complete(request));
    }

    /// Handles the arrival of a part of a message at its destination; `tag` identifies message and
    /// part, see [`tag_of`].
    pub(super) fn arrived(
        &mut self,
        now: Time,
        tag: u64,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let (slot, part) = part_of(tag);
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
        let (from, to) = match part {
            Part::Clear => (message.to, message.from),
            Part::Eager | Part::Ask | Part::Data => (message.from, message.to),
        };
        let payload = match part {
            Part::Eager | Part::Data => message.bytes,
            Part::Ask | Part::Clear => 0,
        };
        self.pending += 1;
        let tag = tag_of(slot, part);
        let [a, b] = [from, to].map(|rank| self.config.hosts[rank as usize]);
        if a == b {
            let copied = self.config.local_rate.time_for(payload);
            let arrives = now + self.config.local_latency + copied;
            // at least a picosecond after the message before it, to keep the order of sending
            let last = self.local.entry((from, to)).or_insert(Time::ZERO);
            *last = arrives.max(*last + Span(1));
            out.push(Action::Wake { at: *last, token: tag << 1 | 1 });
            return;
        }
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
