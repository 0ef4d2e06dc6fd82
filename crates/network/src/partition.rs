//! A fabric that is divided by racks (pods), each part simulated by a copy of the fabric of its own.
//!
//! A part owns its hosts, their switches with all ports, and of the switches above those ports that lead
//! down to it. So a packet changes parts only on a link up out of the racks, where it is the other
//! part's port that it goes on to.

use crate::losses::EventOrder;
use crate::packet_handle::PacketHandle;
use crate::pool::Whole;
use eastwest_engine::order::Key;
use eastwest_engine::tournament::Order;
use eastwest_types::{EndpointId, HostId, Time};
use serde::{Deserialize, Serialize};

/// A packet on its way to another part.
#[derive(Serialize, Deserialize)]
pub struct CrossingPacket {
    /// Number of the link on which it arrives.
    pub(crate) link: u32,
    pub(crate) handle: PacketHandle,
    pub(crate) whole: Whole,
}

/// The last byte of a message will reach its host at this time, where its sender is in another part.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Promise {
    /// The link to the receiver.
    pub link: u32,
    /// When.
    pub at: Time,
    /// The receiver's endpoint.
    pub endpoint: EndpointId,
    /// How many packets that link has handed over before.
    pub number: u64,
}

/// What a receiver waits for.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// Low half of the position after the last of the message; 0 where nothing is waited for.
    end: u32,
    /// The packet with the last byte has come by.
    last_came: bool,
}

impl Watch {
    /// A packet of the stream comes by whose bytes end before position `after`, low half. Returns whether the
    /// last byte of the message has come by.
    pub(crate) fn sees(&mut self, after: u32) -> bool {
        self.last_came |= after == self.end;
        self.last_came
    }

    /// Whether the receiver waits for a message.
    pub(crate) fn waits(&self) -> bool {
        self.end != 0
    }
}

/// What goes from one part to another.
#[derive(Default, Serialize, Deserialize)]
pub struct Mail {
    /// Packets.
    pub packets: Vec<CrossingPacket>,
    /// Deliveries.
    pub promises: Vec<Promise>,
}

/// See the module.
#[derive(Serialize, Deserialize)]
pub struct Partition {
    /// Which part this is.
    pub part: u8,
    /// The part of every node; [`CORE`] for those above the racks.
    pub(crate) part_of: Vec<u8>,
    pub(crate) watches: Vec<Watch>,
    /// By part, what it is sent.
    pub out: Vec<Mail>,
    /// When the first of it happens there.
    pub first_out: Time,
    /// Links to hosts and endpoints of which the last byte may be under way.
    pub checks: Vec<(u32, EndpointId)>,
    /// Promises of others that have come true.
    pub kept: u64,
    /// The event of a timer or workload that is being carried out.
    pub other: Option<EventOrder>,
    /// The event that loses a packet.
    pub(crate) during: EventOrder,
    pub(crate) order: Order,
}

/// The rack number of nodes that belong to no rack.
pub const CORE: u8 = u8::MAX;

impl Partition {
    /// Returns the division of a fabric into `parts` parts, as part `part` sees it.
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

    /// The part of a host.
    pub fn part_of(&self, host: HostId) -> usize {
        usize::from(self.part_of[host.0 as usize])
    }

    /// Who owns the port from one node to another.
    pub fn owner(&self, from: u32, to: u32) -> u8 {
        match self.part_of[from as usize] {
            CORE => self.part_of[to as usize],
            part => part,
        }
    }

    /// A receiver here waits for the byte before `end`, which is counted as its stream counts.
    pub fn watch(&mut self, endpoint: EndpointId, end: u64) {
        let slot = endpoint.slot();
        if slot >= self.watches.len() {
            self.watches.resize(slot + 1, Watch::default());
        }
        self.watches[slot] = Watch { end: end as u32, last_came: false };
    }

    /// Nothing more to watch for.
    pub fn forget(&mut self, endpoint: EndpointId) {
        self.watches[endpoint.slot()] = Watch::default();
    }

    /// Notes what part has to be told.
    pub fn promise(&mut self, sender: HostId, promise: Promise) {
        let part = self.part_of(sender);
        self.first_out = self.first_out.min(promise.at);
        self.out[part].promises.push(promise);
    }
}

/// What orders events of one link at one time: how many packets it has handed over before, and within
/// one event first what the receiver does with the packet, then what the two ends do when the message is
/// complete, the client first.
pub fn within_link(number: u64, step: u64) -> u64 {
    (number & u64::from(u32::MAX)) << 2 | step
}
