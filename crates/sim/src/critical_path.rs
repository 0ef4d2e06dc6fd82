//! Critical paths of messages: the chain of packets of which each was sent because the one before had arrived,
//! from the write of a message until its last byte is there in order (Barford and Crovella, *Critical path
//! analysis of TCP transactions*, SIGCOMM 2000). The time of a message is that of its path, and every instant
//! of it belongs to one of [`Parts`].
//!
//! The path is not searched at the end but recorded with each packet: the parts of the path up to its
//! transmission. Rules:
//!
//! * A packet sent on the arrival of another one is caused by it and continues its path. A path through an
//!   acknowledgement is that of the data which it acknowledges, in both directions.
//! * An acknowledgement sent when a timer has expired was deferred until then. Data sent when a timer of pacing,
//!   or for room in the network card, has expired continues the path of the data sent before it: that data set
//!   the timer. A packet sent because the application writes begins a path.
//! * Data of a message that is sent on an acknowledgement of the same message ends a round trip, for which the
//!   window had no room.
//! * A retransmission continues the path of the first transmission; the time between them is retransmission.
//!   That holds for SYN and SYN-ACK, too.
//! * A path belongs to one message. The first packet of a message that is sent because of packets before it
//!   (the window was full of other messages) begins the path of that message, which was held since its write. A
//!   handshake that began with the message or later is part of its path.
//! * A packet that completes a message without a path of that message carries the end of the message behind the
//!   end of another one, or fills a gap before it. The message was held until that packet was sent, or, if it
//!   is a retransmission, waited for the retransmission.
//!
//! One point differs from the paper: there, the path of a loss goes through the duplicate acknowledgements that
//! report it; here, all time from the first transmission to the next counts as retransmission.

use crate::messages::{Message, Messages};
use crate::network::Network;
use crate::scenario::Senders;
use eastwest_measure::flow_parts::{Parts, PartsRow, PartsTable, RoundTrips};
use eastwest_measure::flows::FlowRow;
use eastwest_measure::streams::StreamRow;
use eastwest_network::journeys::Journey;
use eastwest_transport::tcp::sender_state::WindowLimit;
use eastwest_transport::tcp::{SendWait, Stack};
use eastwest_types::{EndpointId, Packet, Span, Time, Waits, flag};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Value of `message` for a handshake, or for packets without a cause.
const NO_MESSAGE: u64 = u64::MAX;

/// A critical path up to a certain time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Path {
    /// Time of its begin.
    origin: Time,
    /// Position in the sender's stream of the first byte of the path's message, or [`NO_MESSAGE`].
    message: u64,
    /// Parts of its time.
    parts: Parts,
    /// Waiting times in switches, by link; their sum is `parts.queueing`.
    waits: Waits,
}

impl Path {
    fn new(now: Time) -> Path {
        Path { origin: now, message: NO_MESSAGE, parts: Parts::default(), waits: Waits::default() }
    }

    fn end(&self) -> Time {
        self.origin + self.parts.sum()
    }

    /// Returns the path continued to `now`; the time since its end is added to one part.
    fn continued(mut self, now: Time, part: impl FnOnce(&mut Parts) -> &mut Span) -> Path {
        let time = now.since(self.end());
        *part(&mut self.parts) += time;
        self
    }

    /// Returns the path, which ends at `now`, as a path of this message, whose first packet may be sent now.
    /// If an acknowledgement lets the packet be sent, `limit` is the window that was full before.
    fn of(mut self, message: &Message, now: Time, limit: Option<WindowLimit>) -> Path {
        if self.message == message.start {
            if let Some(limit) = limit {
                self.parts = self.parts.after_round_trip(|parts| round_trips(parts, limit));
            }
            return self;
        }
        if self.message != NO_MESSAGE || self.origin < message.sent {
            self = Path::new(now);
        }
        self.parts = self.parts.after_handshake();
        self.parts.earlier += self.origin.since(message.sent);
        Path { origin: message.sent, message: message.start, ..self }
    }

    fn and(mut self, (parts, waits): &(Parts, Waits)) -> Path {
        self.parts = self.parts.and(*parts);
        self.waits.and(waits);
        self
    }
}

/// Returns the round trips of a path for which this window was full.
fn round_trips(parts: &mut Parts, limit: WindowLimit) -> &mut RoundTrips {
    match limit {
        WindowLimit::SlowStart => &mut parts.slow_start,
        WindowLimit::Congestion => &mut parts.congestion_window,
        WindowLimit::Receiver => &mut parts.receiver_window,
    }
}

/// Paths of a packet in flight. Both end when it was sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sent {
    /// Path to the transmission of its data.
    data: Path,
    /// Path to the transmission of what it acknowledges.
    ack: Path,
    /// Whether its data had been sent before.
    again: bool,
}

/// Paths at an end of a connection.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    id: EndpointId,
    /// Path through the latest arrival, as an acknowledgement.
    told: Path,
    /// Path through the latest arrival that has to be acknowledged.
    given: Option<Path>,
    /// Paths to first transmissions of unacknowledged data, by their first position in the stream.
    first: VecDeque<(u64, Path)>,
    /// Position after the last one that has been sent.
    next: u64,
    /// Path to the SYN that the first SYN-ACK answers.
    asked: Option<Path>,
}

impl End {
    fn new(id: EndpointId, now: Time) -> End {
        let told = Path::new(now);
        End { id, told, given: None, first: VecDeque::new(), next: 0, asked: None }
    }

    /// Returns the path to the first transmission of a position.
    fn first_of(&self, position: u64) -> Option<Path> {
        let after = self.first.partition_point(|(start, _)| *start <= position);
        Some(self.first.get(after.checked_sub(1)?)?.1)
    }
}

/// Reason for which an endpoint sends packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prompt {
    /// The application writes.
    #[default]
    Application,
    /// A packet has arrived; before, this window limited the outstanding data.
    Arrival(WindowLimit),
    /// A timer has expired for which data waited, if it did; this window limits the outstanding data.
    Timer(SendWait, WindowLimit),
}

/// Critical paths of the messages of selected senders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CriticalPaths {
    senders: Senders,
    on: bool,
    /// Why packets are sent now.
    prompt: Prompt,
    /// Packets in flight, by slot of the packet pool.
    under_way: Vec<Option<Sent>>,
    /// State of each endpoint that sends messages, by the slot of the endpoint.
    ends: Vec<Option<End>>,
    /// The packet that is arriving, its endpoint, and the parts of its journey.
    arriving: Option<(EndpointId, Sent, (Parts, Waits))>,
    /// By stream of frames: generation time of the latest arrival, and the parts of its journey.
    frames: Vec<Option<(Time, (Parts, Waits))>>,
    /// Rows of the table `flow_parts`.
    pub rows: PartsTable,
}

/// Returns the number of stream positions of a packet: its payload, and one each for SYN and FIN.
fn positions(packet: &Packet) -> u64 {
    let marks = (packet.flags & flag::SYN > 0, packet.flags & flag::FIN > 0);
    u64::from(packet.payload) + u64::from(marks.0) + u64::from(marks.1)
}

/// Returns the parts of a journey with this latency, and its waiting times in switches.
fn travel(journey: &Journey, latency: Span) -> (Parts, Waits) {
    let mut rest = latency;
    let mut part = |time: Span| {
        let time = time.min(rest);
        rest = rest - time;
        time
    };
    let parts = Parts {
        host_queue: part(journey.at_host),
        transmission: part(journey.transmission),
        propagation: part(journey.propagation),
        processing: part(journey.processing),
        ..Parts::default()
    };
    // Rates and delays that change while a packet is on a link leave a difference.
    let mut waits = journey.waits.without_first(journey.waits.sum() - rest);
    waits.add(None, rest - waits.sum());
    (Parts { queueing: rest, ..parts }, waits)
}

impl CriticalPaths {
    /// Returns the state before the run. Critical paths are recorded for the messages of `senders`;
    /// their table has at most `most` rows.
    pub fn new(senders: Senders, most: u64) -> CriticalPaths {
        let on = !senders.is_empty();
        let rows = PartsTable::new(most);
        CriticalPaths { senders, on, rows, ..CriticalPaths::default() }
    }

    /// Whether critical paths are recorded: at least one sender is selected.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Sets why endpoints send packets from now on.
    pub fn prompted(&mut self, prompt: Prompt) {
        self.prompt = prompt;
    }

    /// Records that a timer of this endpoint expires at `now`, before TCP handles it. It is not inlined into the
    /// run loop, which has to be fast without critical paths.
    #[cold]
    #[inline(never)]
    pub fn timer_expires(&mut self, stack: &Stack, endpoint: EndpointId, now: Time) {
        let wait = stack.endpoint(endpoint).send_wait(now);
        self.prompted(Prompt::Timer(wait, stack.window_limit(endpoint)));
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

    /// Records a packet that is sent now; `slot` is its place in the packet pool.
    pub fn sends(&mut self, now: Time, packet: &Packet, messages: &Messages, slot: u32) {
        let (id, prompt) = (packet.dst_endpoint.peer(), self.prompt);
        let end = self.end(id, now);
        let before = end.first.back().filter(|(_, path)| path.message != NO_MESSAGE);
        let before = before.map_or(end.told, |(_, path)| *path);
        let mut data = match prompt {
            Prompt::Application => Path::new(now),
            Prompt::Arrival(_) => end.told.continued(now, |parts| &mut parts.earlier),
            Prompt::Timer(SendWait::Card, _) => {
                before.continued(now, |parts| &mut parts.host_queue)
            }
            Prompt::Timer(SendWait::Pacing, _) => before.continued(now, |parts| &mut parts.pacing),
            Prompt::Timer(SendWait::None, _) => end.told.continued(now, |parts| &mut parts.pacing),
        };
        let deferred = |path: Path| path.continued(now, |parts| &mut parts.delayed_ack);
        let mut ack = end.given.map_or(Path::new(now), deferred);
        let last = packet.seq + positions(packet);
        let again = last > packet.seq && packet.seq < end.next;
        if again {
            let sent_again = |path: Path| path.continued(now, |parts| &mut parts.retransmission);
            data = end.first_of(packet.seq).map_or(data, sent_again);
            if packet.flags & flag::SYN > 0 {
                ack = end.asked.map_or(ack, sent_again);
            }
        } else if last > packet.seq {
            // the SYN has position 0, the first byte 1
            let message = messages.at(id, packet.seq.saturating_sub(1));
            if let Some(message) = message.filter(|_| packet.payload > 0) {
                let limit = match prompt {
                    Prompt::Arrival(limit) | Prompt::Timer(SendWait::None, limit) => Some(limit),
                    Prompt::Application | Prompt::Timer(..) => None,
                };
                data = data.of(message, now, limit);
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

    /// Records the arrival of a packet of a known connection, from this slot.
    fn arrives(&mut self, now: Time, packet: &Packet, (slot, journey): (u32, Journey)) {
        let Some(sent) = self.under_way.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        let way = travel(&journey, now.since(sent.data.end()));
        let end = self.end(packet.dst_endpoint, now);
        end.told = sent.ack.and(&way);
        if positions(packet) > 0 {
            end.given = Some(sent.data.and(&way));
        }
        self.arriving = Some((packet.dst_endpoint, sent, way));
    }

    /// Removes paths of positions before this one, which have been acknowledged.
    fn forget(&mut self, id: EndpointId, position: u64) {
        let Some(Some(end)) = self.ends.get_mut(id.slot()) else { return };
        while end.first.get(1).is_some_and(|(start, _)| *start <= position) {
            end.first.pop_front();
        }
    }

    /// Returns the parts of the time of a message that the arriving packet completes, and its waiting times in
    /// switches.
    fn of_message(&self, now: Time, receiver: EndpointId, message: &Message) -> (Parts, Waits) {
        let all = now.since(message.sent);
        let Some((_, sent, (way, waits))) = self.arriving.filter(|(to, ..)| *to == receiver) else {
            // The message has no bytes.
            return (Parts { earlier: all, ..Parts::default() }, Waits::default());
        };
        let left = sent.data.end();
        let (parts, waits) = if sent.data.message == message.start {
            let Path { parts, waits, .. } = sent.data.and(&(way, waits));
            (parts, waits)
        } else if left < message.sent {
            let (parts, waited_before) = way.without_first(message.sent.since(left));
            (parts, waits.without_first(waited_before))
        } else if sent.again {
            let retransmission = left.since(message.sent);
            (way.and(Parts { retransmission, ..Parts::default() }), waits)
        } else {
            (way.and(Parts { earlier: left.since(message.sent), ..Parts::default() }), waits)
        };
        debug_assert_eq!(parts.sum(), all, "the parts of {message:?} are all of its time");
        (parts, waits)
    }

    /// Records that a packet has reached its host, before TCP processes it.
    pub fn arrives_at(&mut self, network: &Network, stack: &Stack, packet: &Packet) {
        self.arriving = None;
        if stack.is_live(packet.dst_endpoint) {
            self.arrives(network.now, packet, network.fabric.journeys.latest());
            self.prompted(Prompt::Arrival(stack.window_limit(packet.dst_endpoint)));
        }
    }

    /// Records that TCP has processed the packet that arrived at the endpoint `to`. Paths of
    /// acknowledged data are removed.
    pub fn has_arrived(&mut self, stack: &Stack, to: EndpointId) {
        self.prompted(Prompt::Application);
        if stack.is_live(to) {
            self.forget(to, stack.endpoint(to).acknowledged());
        }
    }

    /// Adds the row of a message that has arrived at `receiver`, if its sender is selected;
    /// `number` is the number of `row` in the table of flows.
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
        let (parts, waits) = self.of_message(now, receiver, message);
        let row = PartsRow {
            row: number,
            is_stream: false,
            workload: row.workload,
            class: row.class,
            src: row.src,
            dst: row.dst,
            bytes: row.bytes,
            with_loss: row.retransmits > 0,
            parts,
        };
        self.rows.push(row, &waits);
    }

    /// Records that a raw Ethernet frame of a stream has arrived.
    pub fn frame(&mut self, network: &Network, frame: &Packet) {
        let stream = frame.ack as usize - 1;
        if stream >= self.frames.len() {
            self.frames.resize(stream + 1, None);
        }
        let journey = network.fabric.journeys.latest().1;
        let latency = network.now.since(frame.born);
        self.frames[stream] = Some((frame.born, travel(&journey, latency)));
    }

    /// Adds the streams of raw Ethernet frames of selected senders to the table: the time from the
    /// first frame to the latest arrival.
    pub fn end_frames(&mut self, streams: &[StreamRow]) {
        let streams = streams.iter().zip(&self.frames);
        for (row, (stream, frame)) in (0..).zip(streams.filter(|(stream, _)| stream.sent > 0)) {
            let Some((born, (way, waits))) = *frame else { continue };
            if !self.senders.contains(stream.src, stream.dst) {
                continue;
            }
            let generated = Parts { application: born.since(stream.first), ..Parts::default() };
            let row = PartsRow {
                row,
                is_stream: true,
                workload: stream.workload,
                class: stream.class,
                src: stream.src,
                dst: stream.dst,
                bytes: stream.received_bytes,
                with_loss: stream.lost > 0,
                parts: way.and(generated),
            };
            self.rows.push(row, &waits);
        }
    }
}
