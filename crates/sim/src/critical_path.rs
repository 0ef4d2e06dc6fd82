//! Critical paths of messages (Barford and Crovella, *Critical path analysis of TCP transactions*,
//! SIGCOMM 2000): the chain of packets from the write of a message to the in-order arrival of its
//! last byte. Each packet of the chain was sent because the packet before it had arrived. The
//! completion time of a message is the length of this path, and every instant of the path belongs
//! to one of the [`Parts`] (queueing, transmission …).
//!
//! Paths are not searched after the run. For each packet in flight, the path up to its transmission
//! is recorded. Rules:
//!
//! * A packet sent on the arrival of another packet continues the path of that packet. The path of
//!   an acknowledgement is the path of the data that it acknowledges. Both rules hold in both
//!   directions of a connection.
//! * An acknowledgement sent on the expiry of a timer was deferred from the arrival of the data to
//!   the expiry. Data sent on the expiry of a timer for pacing, or for space in the network card,
//!   continues the path of the preceding data, whose transmission set the timer. A packet sent
//!   because the application writes begins a path.
//! * Data of a message that is sent on an acknowledgement of the same message ends a round trip in
//!   which the window was full.
//! * A retransmission continues the path of the first transmission; the time between them is
//!   retransmission. This also holds for SYN and SYN-ACK.
//! * A path belongs to one message. The first packet of a message may be sent because of earlier
//!   packets, when the window was full of other messages. This packet then begins the path of its
//!   message, and the time since the write of the message counts as waiting for earlier messages. A
//!   handshake that began when the message was written, or later, is part of the path of the
//!   message.
//! * The packet that completes a message may have no path of that message: it contains the end of
//!   another message before the end of this one, or it fills a gap before this message. The time
//!   from the write of the message to the transmission of the packet then counts as waiting for
//!   earlier messages or, if the packet is a retransmission, as retransmission.
//!
//! * With `[hosts]` (processing time of hosts), a packet also waits for the CPU core that sends it
//!   and for the core that receives it. A segment that a core has merged from several frames
//!   continues the path of its last frame. A message that ends in an earlier frame of this segment
//!   has the path of that frame.
//!
//! One point differs from the paper. In the paper, the path of a loss contains the duplicate
//! acknowledgements that report it. In Eastwest, all time from the first transmission to the
//! retransmission counts as retransmission.

use crate::messages::{Message, Messages};
use crate::network::Network;
use crate::processing::{Frame, Spent};
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

/// Value of `Path::message` for a path of a handshake, or of packets without a known cause.
const NO_MESSAGE: u64 = u64::MAX;

/// A critical path (chain of packets, each caused by the arrival of the preceding packet) from its
/// begin to the time [`Path::end`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Path {
    /// Simulated time at which the path begins.
    origin: Time,
    /// Message to which the path belongs: the position of its first byte in the sender's stream, or
    /// [`NO_MESSAGE`].
    message: u64,
    /// Duration of the path, divided by cause (queueing, transmission, retransmission …).
    parts: Parts,
    /// Queueing delays in switches along the path, by link; their sum is `parts.queueing`.
    waits: Waits,
}

impl Path {
    fn new(now: Time) -> Path {
        Path { origin: now, message: NO_MESSAGE, parts: Parts::default(), waits: Waits::default() }
    }

    fn end(&self) -> Time {
        self.origin + self.parts.sum()
    }

    /// Returns the critical path extended to the time `now`. The time from the end of the path to
    /// `now` is added to the part that the function `part` selects.
    fn continued(mut self, now: Time, part: impl FnOnce(&mut Parts) -> &mut Span) -> Path {
        let time = now.since(self.end());
        *part(&mut self.parts) += time;
        self
    }

    /// Returns this critical path, which ends at `now`, as a path of `message`, of which a packet
    /// is sent now. `limit` is the window that was full before an acknowledgement opened it for
    /// this packet; `None` if the packet did not wait for an acknowledgement.
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

/// Returns the part of a completion time for round trips in which the window `limit` was full.
fn round_trips(parts: &mut Parts, limit: WindowLimit) -> &mut RoundTrips {
    match limit {
        WindowLimit::SlowStart => &mut parts.slow_start,
        WindowLimit::Congestion => &mut parts.congestion_window,
        WindowLimit::Receiver => &mut parts.receiver_window,
    }
}

/// Critical paths of a packet in flight: of its data, and of the data that it acknowledges. Both
/// paths end at the transmission of the packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sent {
    /// Critical path to the transmission of the packet's data.
    data: Path,
    /// Critical path of the data that the packet acknowledges, up to the transmission of the
    /// packet.
    ack: Path,
    /// Whether the packet is a retransmission.
    again: bool,
    /// Time that the packet waited for a CPU core of the sending host, and processing time of this
    /// core; zero without `[hosts]`.
    core: (Span, Span),
}

/// A received frame on its way from the network card to TCP, with its critical paths.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrived {
    /// Stream positions of the frame: the first one, and the one after the last one.
    positions: (u64, u64),
    /// Critical paths up to the transmission of the frame.
    sent: Sent,
    /// Parts of the time from the transmission to the arrival at the host (and at TCP, after a core
    /// has processed the frame), and the queueing delays by switch.
    way: (Parts, Waits),
}

/// A segment that waits for a CPU core of its host or is being processed by this core.
// A box for the larger variant would need an allocation for each received frame.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum AtCore {
    /// A segment to send; its critical paths end when TCP created it.
    Sending(Sent),
    /// A received segment, with the time at which it reached its host.
    Received(Arrived, Time),
}

/// Critical paths at one endpoint of a connection.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    id: EndpointId,
    /// Critical path through the latest arrived packet, regarded as an acknowledgement. Data that
    /// this endpoint sends now continues this path.
    told: Path,
    /// Critical path through the latest arrived packet that this endpoint has to acknowledge. The
    /// acknowledgement continues this path. `None` before the first such packet.
    given: Option<Path>,
    /// Critical paths to the first transmissions of unacknowledged data, each with its first
    /// position in the stream.
    first: VecDeque<(u64, Path)>,
    /// Stream position after the last byte that has been sent.
    next: u64,
    /// Critical path to the SYN that the first SYN-ACK of this endpoint answers, up to the
    /// transmission of the SYN-ACK; `None` if the endpoint has sent no SYN-ACK.
    asked: Option<Path>,
}

impl End {
    fn new(id: EndpointId, now: Time) -> End {
        let told = Path::new(now);
        End { id, told, given: None, first: VecDeque::new(), next: 0, asked: None }
    }

    /// Returns the critical path to the first transmission of the byte at a stream position.
    fn first_of(&self, position: u64) -> Option<Path> {
        let after = self.first.partition_point(|(start, _)| *start <= position);
        Some(self.first.get(after.checked_sub(1)?)?.1)
    }
}

/// Reason for which an endpoint sends packets now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prompt {
    /// The application has written data.
    #[default]
    Application,
    /// A packet has arrived. The value is the window that limited the outstanding data before the
    /// arrival.
    Arrival(WindowLimit),
    /// A timer has expired. The values are the reason why data waited for the expiry
    /// ([`SendWait`]), and the window that limits the outstanding data.
    Timer(SendWait, WindowLimit),
}

/// Recorder of the critical paths of the messages of selected senders, for the table `flow_parts`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CriticalPaths {
    senders: Senders,
    on: bool,
    /// Reason for which packets are sent in the current event.
    prompt: Prompt,
    /// Critical paths of packets in flight, by slot of the packet pool.
    under_way: Vec<Option<Sent>>,
    /// Critical paths at each endpoint that sends messages, by the slot of the endpoint.
    ends: Vec<Option<End>>,
    /// Endpoint at which a segment arrives in the current event, and the frames of this segment in
    /// the order of their positions: one, or several that a core has merged.
    arriving: (Option<EndpointId>, Vec<Arrived>),
    /// Segments at CPU cores, indexed by the number of their path minus 1. `None`: the index is
    /// free.
    at_cores: Vec<Option<AtCore>>,
    /// Indices in `at_cores` that are free.
    free: Vec<u32>,
    /// For each stream of raw Ethernet frames: time at which the latest arrived frame was
    /// generated, and the parts of its journey through the network.
    frames: Vec<Option<(Time, (Parts, Waits))>>,
    /// Rows of the table `flow_parts`.
    pub rows: PartsTable,
}

/// Returns the number of stream positions that a packet occupies: its payload bytes, and one each
/// for SYN and FIN.
fn positions(packet: &Packet) -> u64 {
    let marks = (packet.flags & flag::SYN > 0, packet.flags & flag::FIN > 0);
    u64::from(packet.payload) + u64::from(marks.0) + u64::from(marks.1)
}

/// Returns the parts (queueing, transmission …) of a packet's journey through the network, which
/// lasted `latency`, and the queueing delays by switch. `core` are the waiting time for a core of
/// the sending host and the processing time of this core; both are contained in `journey.at_host`.
fn travel(journey: &Journey, latency: Span, core: (Span, Span)) -> (Parts, Waits) {
    let mut rest = latency;
    let mut part = |time: Span| {
        let time = time.min(rest);
        rest = rest - time;
        time
    };
    let (core_queue, core) = core;
    let parts = Parts {
        send_core_queue: part(core_queue),
        send_core: part(core),
        host_queue: part(journey.at_host - (core_queue + core)),
        transmission: part(journey.transmission),
        propagation: part(journey.propagation),
        processing: part(journey.processing),
        ..Parts::default()
    };
    // If the rate or delay of a link changes while a packet is on it, the sum of the parts differs
    // from the latency; the difference counts as queueing.
    let mut waits = journey.waits.without_first(journey.waits.sum() - rest);
    waits.add(None, rest - waits.sum());
    (Parts { queueing: rest, ..parts }, waits)
}

impl CriticalPaths {
    /// Returns the recorder at the begin of a run. Critical paths are recorded for the messages of
    /// `senders`; the table `flow_parts` has at most `most` rows.
    pub fn new(senders: Senders, most: u64) -> CriticalPaths {
        let on = !senders.is_empty();
        let rows = PartsTable::new(most);
        CriticalPaths { senders, on, rows, ..CriticalPaths::default() }
    }

    /// Whether critical paths are recorded, because at least one sender is selected.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Sets the reason for which endpoints send packets from now on.
    pub fn prompted(&mut self, prompt: Prompt) {
        self.prompt = prompt;
    }

    /// Records that a timer of this endpoint expires at `now`; called before TCP handles the
    /// expiry. This function is not inlined, so that the event loop remains fast in runs without
    /// critical paths.
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

    /// Records a packet that TCP sends at `now`. `slot` is the index of the packet in the packet
    /// pool; `None` if the packet first waits for a core of its host. Returns the number of the
    /// packet's path if the packet waits for a core, otherwise 0.
    pub fn sends(
        &mut self,
        now: Time,
        packet: &Packet,
        messages: &Messages,
        slot: Option<u32>,
    ) -> u32 {
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
            // in stream positions the SYN is 0 and the first byte 1; messages count bytes from 0
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
        let sent = Sent { data, ack, again, core: Default::default() };
        let Some(slot) = slot else { return self.store(AtCore::Sending(sent)) };
        self.is_under_way(slot, sent);
        0
    }

    fn is_under_way(&mut self, slot: u32, sent: Sent) {
        let slot = slot as usize;
        if slot >= self.under_way.len() {
            self.under_way.resize(slot + 1, None);
        }
        self.under_way[slot] = Some(sent);
    }

    /// Stores the critical path of a segment at a core. Returns the number of the path, which is
    /// not 0.
    fn store(&mut self, at_core: AtCore) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.at_cores.push(None);
            self.at_cores.len() as u32 - 1
        });
        self.at_cores[index as usize] = Some(at_core);
        index + 1
    }

    /// Removes the critical path with the number `path` of a segment at a core, and returns it;
    /// `None` for number 0.
    fn remove(&mut self, path: u32) -> Option<AtCore> {
        let index = path.checked_sub(1)?;
        let found = self.at_cores.get_mut(index as usize)?.take();
        self.free.extend(found.is_some().then_some(index));
        found
    }

    /// Removes the critical path with the number `path` of a segment that was lost because the ring
    /// of a core was full.
    pub fn lose(&mut self, path: u32) {
        self.remove(path);
    }

    /// Records that a core, after the time `spent`, has passed a segment to the network card of its
    /// host. `slot` is the index of the segment in the packet pool.
    pub fn leaves_core(&mut self, now: Time, path: u32, spent: Spent, slot: u32) {
        if let Some(AtCore::Sending(mut sent)) = self.remove(path) {
            let all = now.since(sent.data.end());
            sent.core = (all - spent.processing.min(all), spent.processing.min(all));
            self.is_under_way(slot, sent);
        }
    }

    /// Returns the critical paths of a packet that reaches its host now, and removes them; `None`
    /// if there are none.
    fn reaches_host(&mut self, network: &Network, packet: &Packet) -> Option<Arrived> {
        let (slot, journey) = network.fabric.journeys.latest();
        let sent = self.under_way.get_mut(slot as usize).and_then(Option::take)?;
        let way = travel(&journey, network.now.since(sent.data.end()), sent.core);
        let positions = (packet.seq, packet.seq + positions(packet));
        Some(Arrived { positions, sent, way })
    }

    /// Records that a packet has reached its host and waits for a core. Returns the number of the
    /// packet's path; 0 if there is no path.
    pub fn reaches_core(&mut self, network: &Network, packet: &Packet) -> u32 {
        match self.reaches_host(network, packet) {
            Some(arrived) => self.store(AtCore::Received(arrived, network.now)),
            None => 0,
        }
    }

    /// Records that a core, after the time `spent`, passes a segment that was merged from `frames`
    /// to TCP.
    pub fn core_passes_on(
        &mut self,
        now: Time,
        stack: &Stack,
        to: EndpointId,
        frames: &[Frame],
        spent: Spent,
    ) {
        let mut arrived = std::mem::take(&mut self.arriving.1);
        arrived.clear();
        for frame in frames {
            let Some(AtCore::Received(mut one, reached)) = self.remove(frame.path) else {
                continue;
            };
            let all = now.since(reached);
            let receive_core = spent.processing.min(all);
            let waiting = all - receive_core;
            let interrupt_delay = spent.woken.max(reached).since(reached).min(waiting);
            let receive_core_queue = waiting - interrupt_delay;
            let core =
                Parts { receive_core, interrupt_delay, receive_core_queue, ..Parts::default() };
            one.way.0 = one.way.0.and(core);
            arrived.push(one);
        }
        self.arriving = (None, arrived);
        self.arrive(now, stack, to);
    }

    /// Records that TCP now processes the frames in `arriving` at the endpoint `to`.
    fn arrive(&mut self, now: Time, stack: &Stack, to: EndpointId) {
        if !stack.is_live(to) {
            return;
        }
        if let Some(Arrived { positions, sent, way }) = self.arriving.1.last().copied() {
            let end = self.end(to, now);
            end.told = sent.ack.and(&way);
            if positions.1 > positions.0 {
                end.given = Some(sent.data.and(&way));
            }
            self.arriving.0 = Some(to);
        }
        self.prompted(Prompt::Arrival(stack.window_limit(to)));
    }

    /// Removes the critical paths of data before the stream position `position`: the data has been
    /// acknowledged.
    fn forget(&mut self, id: EndpointId, position: u64) {
        let Some(Some(end)) = self.ends.get_mut(id.slot()) else { return };
        while end.first.get(1).is_some_and(|(start, _)| *start <= position) {
            end.first.pop_front();
        }
    }

    /// Returns the completion time of a message, divided into parts, and its queueing delays by
    /// switch. The packet that arrives in the current event completes the message.
    fn of_message(&self, now: Time, receiver: EndpointId, message: &Message) -> (Parts, Waits) {
        let all = now.since(message.sent);
        let frames = if self.arriving.0 == Some(receiver) { &self.arriving.1[..] } else { &[] };
        // Byte number n of a stream, counted from 0, has position n + 1, because the SYN has
        // position 0.
        let ends_in =
            |frame: &&Arrived| frame.positions.0 <= message.end && message.end < frame.positions.1;
        let frame = frames.iter().find(ends_in).or(frames.last());
        let Some(&Arrived { sent, way: (way, waits), .. }) = frame else {
            // A message without bytes is complete without the arrival of a packet.
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

    /// Records that a packet has reached its host; called before TCP processes the packet.
    pub fn arrives_at(&mut self, network: &Network, stack: &Stack, packet: &Packet) {
        self.arriving.0 = None;
        self.arriving.1.clear();
        if stack.is_live(packet.dst_endpoint) {
            let arrived = self.reaches_host(network, packet);
            self.arriving.1.extend(arrived);
            self.arrive(network.now, stack, packet.dst_endpoint);
        }
    }

    /// Records that TCP has processed the packet that arrived at the endpoint `to`: removes the
    /// critical paths of acknowledged data.
    pub fn has_arrived(&mut self, stack: &Stack, to: EndpointId) {
        self.prompted(Prompt::Application);
        if stack.is_live(to) {
            self.forget(to, stack.endpoint(to).acknowledged());
        }
    }

    /// Adds the parts of a message's completion time to the table, if its sender is selected. The
    /// message has arrived at `receiver`; `number` is the number of its row `row` in the table of
    /// flows.
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
        let way = travel(&journey, latency, Default::default());
        self.frames[stream] = Some((frame.born, way));
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
