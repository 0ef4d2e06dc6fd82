//! A fabric that is partitioned by racks (pods). Each part has its own copy of the fabric, and is
//! simulated in its own thread.
//!
//! A part owns its hosts, their switches with all ports, and the ports of core switches that lead
//! down to its racks. Therefore a packet can change parts only on a link from a rack up to the
//! core, after which its next port may belong to another part. If the ports of a switch depend on
//! each other (shared buffers, PFC, QCN), each core switch belongs to one part with all its ports;
//! then a packet can change parts on the link to a core switch and on the link from it.

use crate::dcb::pfc::PauseFrame;
use crate::losses::{EventOrder, Lost};
use crate::packet_handle::PacketHandle;
use crate::pool::{Side, Stored};
use eastwest_engine::order::Key;
use eastwest_engine::tournament::Order;
use eastwest_types::{EndpointId, HostId, Time};
use serde::{Deserialize, Serialize};

/// A packet in flight from one part of a partitioned fabric to another.
#[derive(Serialize, Deserialize)]
pub struct CrossingPacket {
    /// Number of the link on which the packet arrives in the other part.
    pub(crate) link: u32,
    pub(crate) handle: PacketHandle,
    pub(crate) packet: Stored,
}

/// Announcement of the time at which the last byte of a message will reach its receiver. The part
/// that contains the receiver sends the promise to the part that contains the sender, or to all parts
/// if they [replicate](Partition::replicates) workloads.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Promise {
    /// Number of the link to the receiver.
    pub link: u32,
    /// Time at which the last byte is delivered.
    pub at: Time,
    /// Endpoint that receives the message.
    pub endpoint: EndpointId,
    /// Number of packets that the link delivers before the packet with the last byte.
    pub number: u64,
}

/// State of a receiver while it waits for the last byte of a message.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct MessageWatch {
    /// Stream position after the last byte of the message (low 32 bits); 0 if the receiver waits
    /// for no message.
    end: u32,
    /// Largest stream position after the payload of a packet that has come (low 32 bits).
    came_to: u32,
    /// Whether a packet with the last byte has come from the part of the sender, or the sender in
    /// this part has sent it. From then on the port to the receiver leaves its packets to the fabric,
    /// which observes them.
    pub(crate) last_came: bool,
    /// Whether a packet with the last byte has been enqueued at the port to the receiver.
    last_seen: bool,
}

impl MessageWatch {
    /// Makes this the watch for the next message, which ends before stream position `end`; `None`: the
    /// receiver waits for no message.
    pub(crate) fn go_on(&mut self, end: Option<u64>) {
        *self = match end {
            Some(end) => {
                let end = end as u32;
                let came = self.came_to.wrapping_sub(end) as i32 >= 0;
                MessageWatch { end, last_came: came, last_seen: came, ..*self }
            }
            None => MessageWatch::default(),
        }
    }

    /// Makes this the watch for the byte before stream position `end`. Packets may have come with any
    /// byte before the position `last`.
    pub(crate) fn under_way(&mut self, end: u64, last: u64) {
        self.came_to = last as u32;
        self.go_on(Some(end));
    }

    /// Records a packet of the stream that comes from the part of the sender, or that its sender in
    /// this part sends; `payload` are the stream positions of its first byte and after its last byte
    /// (low 32 bits). Returns whether it is the first one with the last byte of the message.
    pub(crate) fn comes(&mut self, payload: (u32, u32)) -> bool {
        if !self.waits() {
            return false;
        }
        if payload.1.wrapping_sub(self.came_to) as i32 > 0 {
            self.came_to = payload.1;
        }
        let is_first = !self.last_came && self.ends_in(payload);
        self.last_came |= is_first;
        is_first
    }

    /// Whether a payload contains the last byte of the message.
    fn ends_in(&self, (first, after): (u32, u32)) -> bool {
        let bytes = self.end.wrapping_sub(first);
        0 < bytes && bytes <= after.wrapping_sub(first)
    }

    /// Records a packet of the stream that is enqueued at the port to the receiver; `payload` are
    /// the stream positions of its first byte and after its last byte (low 32 bits). Returns whether
    /// a packet with the last byte of the message has been enqueued.
    pub(crate) fn observe(&mut self, payload: (u32, u32)) -> bool {
        self.last_seen |= self.ends_in(payload);
        self.last_seen
    }

    /// Whether the receiver waits for a message.
    pub(crate) fn waits(&self) -> bool {
        self.end != 0
    }
}

/// Data that one part of a partitioned fabric sends to another part: packets and promises
/// (announced deliveries).
#[derive(Default, Serialize, Deserialize)]
pub struct Mail {
    /// Packets in flight to the other part.
    pub packets: Vec<CrossingPacket>,
    /// SACK blocks of these packets, for those that have any.
    pub(crate) sides: Vec<Side>,
    /// Announced deliveries to receivers in the sending part.
    pub promises: Vec<Promise>,
    /// Sending hosts of the packets; only with QCN.
    pub(crate) sources: Vec<u32>,
    /// PAUSE frames in flight to the other part: link, time at which the frame takes effect, and
    /// content.
    pub(crate) pauses: Vec<(u32, Time, PauseFrame)>,
    /// Endpoints of the sending part that have entered TIME-WAIT, with its end; only if the parts
    /// [replicate](Partition::replicates) workloads.
    pub waits: Vec<(EndpointId, Time)>,
    /// Events in which the sending part has refreshed the pauses of an ingress buffer: link, whose
    /// port belongs to the receiving part, and time.
    pub(crate) refreshes: Vec<(u32, Time)>,
    /// Raw Ethernet frames to hosts of the receiving part that were lost in the sending part.
    pub lost_frames: Vec<Lost>,
}

impl Mail {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        // SACK blocks and sources belong to packets.
        self.packets.is_empty()
            && self.promises.is_empty()
            && self.waits.is_empty()
            && self.pauses.is_empty()
            && self.refreshes.is_empty()
            && self.lost_frames.is_empty()
    }
}

/// A port that sends packets to another part of a partitioned fabric, and decides about a packet
/// when its transmission starts.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LatePort {
    pub link: u32,
    /// Number of packets whose transmission had started when packets were last handed over.
    pub packets: u64,
    /// Number of PAUSE frames that had been sent when packets were last handed over.
    pub frames: u64,
}

/// One part of a partitioned fabric: the links it owns, and the messages it exchanges with other
/// parts.
#[derive(Serialize, Deserialize)]
pub struct Partition {
    /// Number of this part of the partitioned fabric, counted from 0.
    pub part: u8,
    /// Whether all parts execute all events of all workloads, so that each part needs the arrivals
    /// of all messages in advance.
    pub replicates: bool,
    /// Number of the part to which each node belongs, by node; [`CORE`] for core switches.
    pub(crate) part_of: Vec<u8>,
    pub(crate) watches: Vec<MessageWatch>,
    /// By link: whether it belongs to this part and all its packets arrive in this part.
    pub(crate) inside: Vec<bool>,
    /// Ports to other parts that decide about a packet when its transmission starts.
    pub(crate) late: Vec<LatePort>,
    /// Memory for the links whose ports are not at rest in a hand-over; empty between hand-overs.
    #[serde(skip)]
    pub(crate) active: Vec<u32>,
    /// Simulated time until which packets were last handed over to other parts at these ports.
    pub(crate) handed_until: Time,
    /// Simulated time at which one of these ports next starts a transmission without an event, or a
    /// port for which `checks` has an entry.
    pub(crate) next_hand_over: Time,
    /// Number of events of links between switches that the part of the port counts, and not this
    /// one.
    pub foreign: u64,
    /// Recent events of ports with data-centre bridging (DCB) to other parts, other than arrivals:
    /// link and time.
    pub(crate) departures: Vec<(u32, Time)>,
    /// Times at which other parts have refreshed pauses of ingress buffers at links of this part.
    pub(crate) refreshes: Vec<(u32, Time)>,
    /// Reason for which the run must be repeated on one thread; `None` if there is none.
    #[serde(skip)]
    pub abort_reason: Option<&'static str>,
    /// By host: number of receivers on it for which a packet with the last byte of a message has
    /// come from another part. If there are none, the port to the host is an ordinary port.
    pub(crate) last_bytes: Vec<u32>,
    /// Packets and promises (announced deliveries) that will be sent to other parts of the fabric,
    /// by number of the receiving part.
    pub out: Vec<Mail>,
    /// Earliest time at which a packet or promise in `out` causes an event in another part of the
    /// fabric; [`Time::NEVER`] if `out` is empty.
    pub first_out: Time,
    /// Messages whose last byte may be in flight: link to the receiving host, and receiving
    /// endpoint.
    pub checks: Vec<(u32, EndpointId)>,
    /// Number of promises (announced deliveries) from other parts of the fabric that were executed
    /// as events in this part.
    pub kept: u64,
    /// Position, in the order of all events, of the timer or workload event that is being executed;
    /// `None` during other events.
    pub other: Option<EventOrder>,
    /// Event of a link in which a packet may be dropped: its key, the link, and the number of packets
    /// that the link has delivered before. Its position in the order of all events is computed only
    /// for a drop ([`Partition::order_of_drop`]).
    pub(crate) during: (Key, u32, u64),
    pub(crate) order: Order,
}

/// Part number of core switches, which belong to no rack.
pub const CORE: u8 = u8::MAX;

impl Partition {
    /// Returns the state of the part `part` of a fabric that is simulated in `parts` parts.
    /// `part_of` has the number of the part of each node.
    pub fn new(part: u8, parts: usize, part_of: Vec<u8>, order: Order) -> Partition {
        Partition {
            part,
            replicates: false,
            last_bytes: vec![0; part_of.len()],
            part_of,
            watches: Vec::new(),
            inside: Vec::new(),
            late: Vec::new(),
            active: Vec::new(),
            handed_until: Time::ZERO,
            next_hand_over: Time::NEVER,
            foreign: 0,
            departures: Vec::new(),
            refreshes: Vec::new(),
            abort_reason: None,
            out: (0..parts).map(|_| Mail::default()).collect(),
            first_out: Time::NEVER,
            checks: Vec::new(),
            kept: 0,
            other: None,
            during: (Key::NEVER, 0, 0),
            order,
        }
    }

    /// Reserves memory for the watches of this number of endpoints.
    pub fn reserve(&mut self, endpoints: usize) {
        self.watches.reserve(endpoints);
    }

    /// Whether a host belongs to this part of the partitioned fabric.
    pub fn owns(&self, host: HostId) -> bool {
        self.part_of[host.0 as usize] == self.part
    }

    /// Returns the number of the part of the partitioned fabric to which a host belongs.
    pub fn part_of(&self, host: HostId) -> usize {
        usize::from(self.part_of[host.0 as usize])
    }

    /// Whether a host belongs to the part number `part` of the partitioned fabric; false for a
    /// number that no host has.
    pub fn is_in(&self, host: HostId, part: usize) -> bool {
        self.part_of.get(host.0 as usize).is_some_and(|&of| usize::from(of) == part)
    }

    /// Returns the number of the part of the partitioned fabric that owns the port from node `from`
    /// to node `to`.
    pub fn owner(&self, from: u32, to: u32) -> u8 {
        match self.part_of[from as usize] {
            CORE => self.part_of[to as usize],
            part => part,
        }
    }

    /// Returns the position, in the order of all events, of the event in which a packet is being
    /// dropped.
    pub(crate) fn order_of_drop(&self) -> EventOrder {
        let (key, link, number) = self.during;
        self.other.unwrap_or_else(|| (self.order.of((key, link)), within_link(number, 0)))
    }

    /// Returns the number of the part in which a packet to host `dst` arrives at node `to`.
    pub(crate) fn part_at(&self, to: u32, dst: HostId) -> usize {
        match self.part_of[to as usize] {
            CORE => self.part_of(dst),
            part => usize::from(part),
        }
    }

    /// Whether packets on a link from node `from` to node `to` may arrive in another part than that
    /// of the port.
    pub(crate) fn crosses(&self, from: u32, to: u32) -> bool {
        self.part_of[from as usize] != CORE
            && self.part_of[from as usize] != self.part_of[to as usize]
    }

    /// Counts the events of links that have also been events of the same links in other parts, after
    /// all events until `until` have been executed, and returns their number.
    pub(crate) fn match_refreshes(&mut self, until: Time) -> u64 {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.refreshes).into_iter().partition(|&(_, at)| at <= until);
        self.refreshes = later;
        let both = due.iter().filter(|of| self.departures.contains(of)).count() as u64;
        self.departures.retain(|&(_, at)| at > self.handed_until);
        both
    }

    /// Returns the number of events of this part that are events of another part, too, which counts
    /// them. All events of the run have been executed.
    pub fn copied_events(&mut self) -> u64 {
        self.kept + self.foreign + self.match_refreshes(Time::NEVER)
    }

    /// Starts to watch for the last byte of a message, the byte before stream position `end`, at a
    /// receiver in this part of the partitioned fabric, unless the receiver waits for an earlier
    /// message. No packet with this byte has been sent.
    pub fn watch(&mut self, endpoint: EndpointId, end: u64) {
        let slot = endpoint.slot();
        if slot >= self.watches.len() {
            self.watches.resize(slot + 1, MessageWatch::default());
        }
        if self.watches[slot].waits() {
            return;
        }
        self.watches[slot] = MessageWatch { end: end as u32, ..MessageWatch::default() };
    }

    /// Queues a promise (announced delivery) for the part of the fabric that contains the sender of
    /// the message; if the parts [replicate](Partition::replicates) workloads, for all other parts.
    pub fn promise(&mut self, sender: HostId, promise: Promise) {
        self.first_out = self.first_out.min(promise.at);
        if !self.replicates {
            let part = self.part_of(sender);
            return self.out[part].promises.push(promise);
        }
        self.for_others().for_each(|mail| mail.promises.push(promise));
    }

    /// Tells the other parts that an endpoint of this part ends its TIME-WAIT at the time `until`, if
    /// the parts [replicate](Partition::replicates) workloads.
    pub fn waits(&mut self, endpoint: EndpointId, until: Time) {
        if self.replicates {
            self.for_others().for_each(|mail| mail.waits.push((endpoint, until)));
        }
    }

    /// Yields the data that is sent to each other part.
    fn for_others(&mut self) -> impl Iterator<Item = &mut Mail> {
        let part = usize::from(self.part);
        self.out.iter_mut().enumerate().filter(move |(to, _)| *to != part).map(|(_, mail)| mail)
    }
}

/// Returns the position of an event among the events of one link at one time. Events are ordered by
/// `number`, the packets that the link has delivered before, then by `step`. Step 0 is the
/// processing of the packet by the receiver; higher steps, below 2³², are reactions to a complete
/// message: of the two ends, the client first, or of replicated workloads, action by action.
pub fn within_link(number: u64, step: u64) -> u64 {
    number << 32 | step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_knows_whether_the_last_byte_of_the_next_message_has_come() {
        let mut watch = MessageWatch { end: 1_001, ..MessageWatch::default() };
        assert!(!watch.comes((1, 501)));
        assert!(watch.comes((501, 1_501)), "it has the byte before 1,001");
        assert!(!watch.comes((801, 1_001)), "it is a repetition");
        watch.go_on(Some(1_501));
        assert!(watch.last_came, "the second packet had its last byte");
        watch.go_on(Some(2_001));
        assert!(!watch.last_came);
        assert!(watch.comes((1_501, 2_001)));
        watch.go_on(None);
        assert!(!watch.waits() && !watch.comes((2_001, 2_501)));
        // Messages may be in flight when the watch begins.
        watch.under_way(1_000, 3_000);
        assert!(watch.last_came);
        watch.go_on(Some(3_000));
        assert!(watch.last_came);
        watch.go_on(Some(3_001));
        assert!(!watch.last_came);
    }

    #[test]
    fn stream_positions_of_a_watch_wrap_around() {
        let near = u64::from(u32::MAX) - 100;
        let mut watch = MessageWatch { end: near as u32, ..MessageWatch::default() };
        watch.under_way(near, near);
        watch.go_on(Some(near + 500));
        assert!(!watch.last_came);
        assert!(watch.comes(((near + 300) as u32, (near + 500) as u32)));
    }
}
