//! Critical paths of messages: the chain of packets of which each was sent because the one before had
//! arrived, from the write of a message until its last byte is there in order (Barford and Crovella,
//! *Critical path analysis of TCP transactions*, SIGCOMM 2000). The time of a message is that of its path,
//! and every moment of it is one of [`Parts`].
//!
//! The path is not looked for at the end but carried along: each packet has with it what the path to its
//! own sending has taken. Rules:
//!
//! * What a host sends when a packet arrives, it sends because of it: its path goes on from that packet's.
//!   A path through an acknowledgement is that of the data which it answers, on the way there and back.
//! * What it sends later, when a timer has expired (pacing, a delayed acknowledgement), was held until then:
//!   injection. What it sends because the application writes begins a path.
//! * What is sent again goes on from where it was first sent; the time between is retransmission. That
//!   holds for SYN and SYN-ACK, too.
//! * A path is of one message. The first packet of a message that is sent because of packets before it
//!   (the window was full of other messages) begins the path of that message, which was held since its
//!   write. A handshake that began with the message or later is part of its path.
//! * A packet that completes a message without having a path of it carries the end of the message behind
//!   the end of another one, or fills a gap before it. The message was held until that packet was sent,
//!   or, where it was sent again, waited for the retransmission.
//!
//! This departs from the paper in one point: there, a loss is followed through the duplicate
//! acknowledgements that tell of it; here, all from the first sending to the next is its price.

use crate::messages::{Message, Messages};
use crate::network::Network;
use crate::scenario::Senders;
use eastwest_measure::flow_parts::{Parts, PartsRow, PartsTable};
use eastwest_measure::flows::FlowRow;
use eastwest_measure::streams::StreamRow;
use eastwest_network::journeys::Journey;
use eastwest_transport::tcp::Stack;
use eastwest_types::{EndpointId, Packet, Span, Time, flag};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// In place of a message: a handshake, or what nothing has caused.
const NO_MESSAGE: u64 = u64::MAX;

/// A path as far as it goes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Path {
    /// When it begins.
    origin: Time,
    /// The first byte, in its sender's stream, of the message that it is of, or [`NO_MESSAGE`].
    message: u64,
    /// What it has taken.
    parts: Parts,
}

impl Path {
    fn new(now: Time) -> Path {
        Path { origin: now, message: NO_MESSAGE, parts: Parts::default() }
    }

    fn end(&self) -> Time {
        self.origin + self.parts.sum()
    }

    /// It goes on at `now`, and a host has waited until then.
    fn held_until(mut self, now: Time) -> Path {
        self.parts.injection += now.since(self.end());
        self
    }

    /// It goes on at `now`, when what was sent at its end is sent again.
    fn sent_again(mut self, now: Time) -> Path {
        self.parts.retransmission += now.since(self.end());
        self
    }

    /// The path, which goes to `now`, as one of this message, whose first packet may be sent now.
    fn of(mut self, message: &Message, now: Time) -> Path {
        if self.message == message.start {
            return self;
        }
        if self.message != NO_MESSAGE || self.origin < message.sent {
            self = Path { origin: now, ..Path::new(now) };
        }
        self.parts.injection += self.origin.since(message.sent);
        Path { origin: message.sent, message: message.start, ..self }
    }

    fn and(self, parts: Parts) -> Path {
        Path { parts: self.parts.and(parts), ..self }
    }
}

/// A packet under way. Both paths end when it was sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sent {
    /// To the sending of what it carries.
    data: Path,
    /// To the sending of what it acknowledges.
    ack: Path,
    /// Whether what it carries had been sent before.
    again: bool,
}

/// An end of a connection.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    id: EndpointId,
    /// Through the latest packet that came, as an acknowledgement.
    told: Path,
    /// Through the latest one with something to acknowledge.
    given: Option<Path>,
    /// Paths to first sendings, by their first position in the stream, of what is not acknowledged.
    first: VecDeque<(u64, Path)>,
    /// One past the last position that has been sent.
    next: u64,
    /// To the request that the first SYN-ACK answers.
    asked: Option<Path>,
}

impl End {
    fn new(id: EndpointId, now: Time) -> End {
        let told = Path::new(now);
        End { id, told, given: None, first: VecDeque::new(), next: 0, asked: None }
    }

    /// The path to the first sending of a position.
    fn first_of(&self, position: u64) -> Option<Path> {
        let after = self.first.partition_point(|(start, _)| *start <= position);
        Some(self.first.get(after.checked_sub(1)?)?.1)
    }
}

/// All that is followed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CriticalPaths {
    senders: Senders,
    on: bool,
    /// Whether what is sent now is not because of an arrival or a timer.
    unprompted: bool,
    /// By slot of the packet pool.
    under_way: Vec<Option<Sent>>,
    /// By slot of the endpoint.
    ends: Vec<Option<End>>,
    /// The packet that is arriving, where it came to, and what its way has taken.
    arriving: Option<(EndpointId, Sent, Parts)>,
    /// By stream of frames: when the latest one to arrive had come up, and what its way has taken.
    frames: Vec<Option<(Time, Parts)>>,
    /// What was found.
    pub rows: PartsTable,
}

/// Positions of a stream that a packet takes.
fn positions(packet: &Packet) -> u64 {
    let marks = (packet.flags & flag::SYN > 0, packet.flags & flag::FIN > 0);
    u64::from(packet.payload) + u64::from(marks.0) + u64::from(marks.1)
}

/// What a way of this length has taken.
fn travel(journey: Journey, latency: Span) -> Parts {
    let injection = journey.at_host.min(latency);
    let flight = journey.flight.min(latency - injection);
    let queueing = latency - injection - flight;
    Parts { injection, queueing, flight, retransmission: Span::ZERO }
}

impl CriticalPaths {
    /// Follows what these send, for at most so many rows.
    pub fn new(senders: Senders, most: u64) -> CriticalPaths {
        let on = !senders.is_empty();
        let rows = PartsTable::new(most);
        CriticalPaths { senders, on, unprompted: true, rows, ..CriticalPaths::default() }
    }

    /// Whether anything is followed.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// From now on a host sends because of a packet or a timer (`true`), or because of what its
    /// application does.
    pub fn prompted(&mut self, prompted: bool) {
        self.unprompted = !prompted;
    }

    fn end(&mut self, id: EndpointId, now: Time) -> &mut End {
        let slot = id.slot();
        if slot >= self.ends.len() {
            self.ends.resize_with(slot + 1, || None);
        }
        let end = self.ends[slot].get_or_insert_with(|| End::new(id, now));
        if end.id != id {
            *end = End::new(id, now);
        }
        end
    }

    /// A packet is sent now, and will lie in this slot.
    pub fn sends(&mut self, now: Time, packet: &Packet, messages: &Messages, slot: u32) {
        let (id, unprompted) = (packet.dst_endpoint.peer(), self.unprompted);
        let end = self.end(id, now);
        let mut data = if unprompted { Path::new(now) } else { end.told.held_until(now) };
        let mut ack = end.given.map_or(Path::new(now), |path| path.held_until(now));
        let last = packet.seq + positions(packet);
        let again = last > packet.seq && packet.seq < end.next;
        if again {
            data = end.first_of(packet.seq).map_or(data, |path| path.sent_again(now));
            if packet.flags & flag::SYN > 0 {
                ack = end.asked.map_or(ack, |path| path.sent_again(now));
            }
        } else if last > packet.seq {
            // the SYN has position 0, the first byte 1
            let message = messages.at(id, packet.seq.saturating_sub(1));
            if let Some(message) = message.filter(|_| packet.payload > 0) {
                data = data.of(message, now);
            }
            end.first.push_back((packet.seq, data));
            if packet.flags & flag::SYN > 0 {
                end.asked = end.given.and(Some(ack));
            }
        }
        end.next = end.next.max(last);
        let slot = slot as usize;
        if slot >= self.under_way.len() {
            self.under_way.resize(slot + 1, None);
        }
        self.under_way[slot] = Some(Sent { data, ack, again });
    }

    /// A packet of a connection that is known has arrived out of this slot.
    fn arrives(&mut self, now: Time, packet: &Packet, (slot, journey): (u32, Journey)) {
        let Some(sent) = self.under_way.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        let way = travel(journey, now.since(sent.data.end()));
        let end = self.end(packet.dst_endpoint, now);
        end.told = sent.ack.and(way);
        if positions(packet) > 0 {
            end.given = Some(sent.data.and(way));
        }
        self.arriving = Some((packet.dst_endpoint, sent, way));
    }

    /// All before this position of a stream has been acknowledged.
    fn forget(&mut self, id: EndpointId, position: u64) {
        let Some(Some(end)) = self.ends.get_mut(id.slot()) else { return };
        while end.first.get(1).is_some_and(|(start, _)| *start <= position) {
            end.first.pop_front();
        }
    }

    /// What the time of a message went into that the packet which is arriving completes.
    fn of_message(&self, now: Time, receiver: EndpointId, message: &Message) -> Parts {
        let all = now.since(message.sent);
        let Some((_, sent, way)) = self.arriving.filter(|(to, ..)| *to == receiver) else {
            // it has no bytes
            return Parts { injection: all, ..Parts::default() };
        };
        let left = sent.data.end();
        let parts = if sent.data.message == message.start {
            sent.data.parts.and(way)
        } else if left < message.sent {
            way.without_first(message.sent.since(left))
        } else if sent.again {
            way.and(Parts { retransmission: left.since(message.sent), ..Parts::default() })
        } else {
            way.and(Parts { injection: left.since(message.sent), ..Parts::default() })
        };
        debug_assert_eq!(parts.sum(), all, "the parts of {message:?} are all of its time");
        parts
    }

    /// Notes that a packet has reached its host, before TCP sees it.
    pub fn arrives_at(&mut self, network: &Network, stack: &Stack, packet: &Packet) {
        self.arriving = None;
        if stack.is_live(packet.dst_endpoint) {
            self.arrives(network.now, packet, network.fabric.journeys.latest());
            self.prompted(true);
        }
    }

    /// Notes that TCP has seen the packet.
    pub fn has_arrived(&mut self, stack: &Stack, to: EndpointId) {
        self.prompted(false);
        if stack.is_live(to) {
            self.forget(to, stack.endpoint(to).acknowledged());
        }
    }

    /// Ends the path of a message that has arrived; `number` is that of its row in the table of flows.
    pub fn ends(
        &mut self,
        now: Time,
        receiver: EndpointId,
        (number, row): (u64, &FlowRow),
        message: &Message,
    ) {
        if !self.senders.contains(row.src, row.dst) {
            return;
        }
        let parts = self.of_message(now, receiver, message);
        self.rows.push(PartsRow {
            row: number,
            is_stream: false,
            workload: row.workload,
            class: row.class,
            src: row.src,
            dst: row.dst,
            bytes: row.bytes,
            with_loss: row.retransmits > 0,
            parts,
        });
    }

    /// Notes that a frame of a stream has arrived.
    pub fn frame(&mut self, network: &Network, frame: &Packet) {
        let stream = frame.ack as usize - 1;
        if stream >= self.frames.len() {
            self.frames.resize(stream + 1, None);
        }
        let journey = network.fabric.journeys.latest().1;
        let latency = network.now.since(frame.born);
        self.frames[stream] = Some((frame.born, travel(journey, latency)));
    }

    /// Adds streams of frames to the table: the time from the first frame to the last one that arrived.
    pub fn end_frames(&mut self, streams: &[StreamRow]) {
        let streams = streams.iter().zip(&self.frames);
        for (row, (stream, frame)) in (0..).zip(streams.filter(|(stream, _)| stream.sent > 0)) {
            let Some((born, way)) = *frame else { continue };
            if !self.senders.contains(stream.src, stream.dst) {
                continue;
            }
            let held = Parts { injection: born.since(stream.first), ..Parts::default() };
            self.rows.push(PartsRow {
                row,
                is_stream: true,
                workload: stream.workload,
                class: stream.class,
                src: stream.src,
                dst: stream.dst,
                bytes: stream.received_bytes,
                with_loss: stream.lost > 0,
                parts: way.and(held),
            });
        }
    }
}
