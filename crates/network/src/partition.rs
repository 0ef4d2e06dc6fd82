//! A fabric that is partitioned by racks (pods): each part is simulated by a copy of the fabric of its own.
//!
//! A part owns its hosts and their switches with all ports; of the core switches it owns the ports that lead
//! down to it. So a packet can change parts only on a link from a rack up to the core: its next port may belong
//! to another part.

use crate::losses::EventOrder;
use crate::packet_handle::PacketHandle;
use crate::pool::DetachedPacket;
use eastwest_engine::order::Key;
use eastwest_engine::tournament::Order;
use eastwest_types::{EndpointId, HostId, Time};
use serde::{Deserialize, Serialize};

/// A packet in flight to another part.
#[derive(Serialize, Deserialize)]
pub struct CrossingPacket {
    /// Number of the link on which the packet arrives.
    pub(crate) link: u32,
    pub(crate) handle: PacketHandle,
    pub(crate) packet: DetachedPacket,
}

/// Announcement of the time at which the last byte of a message will reach its receiver. The part
/// of the receiver sends it to the part of the message's sender.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Promise {
    /// Number of the link to the receiver.
    pub link: u32,
    /// Time at which the last byte is delivered.
    pub at: Time,
    /// Endpoint that receives the message.
    pub endpoint: EndpointId,
    /// Number of packets that the link hands over before the packet with the last byte.
    pub number: u64,
}

/// State of a receiver that waits for the last byte of a message.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct MessageWatch {
    /// Low half of the stream position after the last byte; 0 if no message is waited for.
    end: u32,
    /// Whether a packet with the last byte has been enqueued at the last port.
    last_seen: bool,
}

impl MessageWatch {
    /// Observes a packet of the stream whose bytes end before position `after` (low half). Returns whether the
    /// last byte of the message has been observed.
    pub(crate) fn observe(&mut self, after: u32) -> bool {
        self.last_seen |= after == self.end;
        self.last_seen
    }

    /// Whether the receiver waits for a message.
    pub(crate) fn waits(&self) -> bool {
        self.end != 0
    }
}

/// Packets and announced deliveries on their way from one part of a partitioned fabric to another.
#[derive(Default, Serialize, Deserialize)]
pub struct Mail {
    /// Packets in flight to the other part.
    pub packets: Vec<CrossingPacket>,
    /// Announced deliveries to receivers in the sending part.
    pub promises: Vec<Promise>,
}

/// One part of a partitioned fabric: the links it owns, and the messages it exchanges with other
/// parts.
#[derive(Serialize, Deserialize)]
pub struct Partition {
    /// Number of this part, from 0.
    pub part: u8,
    /// By node, its part; [`CORE`] for core switches.
    pub(crate) part_of: Vec<u8>,
    pub(crate) watches: Vec<MessageWatch>,
    /// Packets and promises to be sent, by receiving part.
    pub out: Vec<Mail>,
    /// Earliest time at which something in `out` is an event in another part, or never.
    pub first_out: Time,
    /// Links to hosts, with endpoints of messages whose last byte may be in flight.
    pub checks: Vec<(u32, EndpointId)>,
    /// Number of promises of other parts that were executed as events in this part.
    pub kept: u64,
    /// Place, in the order of all events, of the timer or workload event that is being executed;
    /// `None` during other events.
    pub other: Option<EventOrder>,
    /// Place, in the order of all events, of the event in which a packet is dropped.
    pub(crate) during: EventOrder,
    pub(crate) order: Order,
}

/// Part number of core switches, which belong to no rack.
pub const CORE: u8 = u8::MAX;

impl Partition {
    /// Returns part `part` of a fabric with `parts` parts.
    pub fn new(part: u8, parts: usize, part_of: Vec<u8>, order: Order) -> Partition {
        Partition {
            part,
            part_of,
            watches: Vec::new(),
            out: (0..parts).map(|_| Mail::default()).collect(),
            first_out: Time::NEVER,
            checks: Vec::new(),
            kept: 0,
            other: None,
            during: ((Key::NEVER, 0), 0),
            order,
        }
    }

    /// Whether a host is in this part.
    pub fn owns(&self, host: HostId) -> bool {
        self.part_of[host.0 as usize] == self.part
    }

    /// Returns the number of the part to which a host belongs.
    pub fn part_of(&self, host: HostId) -> usize {
        usize::from(self.part_of[host.0 as usize])
    }

    /// Returns the part that owns the port from one node to another.
    pub fn owner(&self, from: u32, to: u32) -> u8 {
        match self.part_of[from as usize] {
            CORE => self.part_of[to as usize],
            part => part,
        }
    }

    /// Starts to watch for the byte before stream position `end` of a message to a receiver in this
    /// part.
    pub fn watch(&mut self, endpoint: EndpointId, end: u64) {
        let slot = endpoint.slot();
        if slot >= self.watches.len() {
            self.watches.resize(slot + 1, MessageWatch::default());
        }
        self.watches[slot] = MessageWatch { end: end as u32, last_seen: false };
    }

    /// Ends the watch of a receiver.
    pub fn forget(&mut self, endpoint: EndpointId) {
        self.watches[endpoint.slot()] = MessageWatch::default();
    }

    /// Queues a promise for the part of the sender of a message.
    pub fn promise(&mut self, sender: HostId, promise: Promise) {
        let part = self.part_of(sender);
        self.first_out = self.first_out.min(promise.at);
        self.out[part].promises.push(promise);
    }
}

/// Returns the order of an event among those of one link at one time: first the number of packets that the link
/// has handed over before; then, within one packet, what the receiver does with it (`step` 0), and what the two
/// ends do when the message is complete, the client first.
pub fn within_link(number: u64, step: u64) -> u64 {
    (number & u64::from(u32::MAX)) << 2 | step
}
