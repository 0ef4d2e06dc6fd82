//! What queue pairs are made of, what they want to happen, and what they tell.

use eastwest_types::{EndpointId, HostId, Packet, Rate, Time};

/// Receiver of a timer event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alarm {
    /// An end of a queue pair.
    QueuePair(EndpointId),
    /// A card, by its number.
    Card(u32),
}

impl Alarm {
    const CARD: u64 = 1 << 32;

    /// As a number.
    pub fn number(self) -> u64 {
        match self {
            Alarm::QueuePair(id) => u64::from(id.0),
            Alarm::Card(card) => Alarm::CARD | u64::from(card),
        }
    }

    /// Back from its number.
    pub fn of_number(number: u64) -> Alarm {
        match number & Alarm::CARD {
            0 => Alarm::QueuePair(EndpointId(number as u32)),
            _ => Alarm::Card(number as u32),
        }
    }
}

/// Event of a queue pair that the application is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The bytes given to [`super::Stack::expect`] have arrived in order.
    Delivered,
    /// Too many timeouts in a row.
    Failed,
    /// The queue pair is gone and its slot free for another.
    Closed,
}

/// What queue pairs want to happen next.
pub trait Sink {
    /// Hand this packet to the port of `from`.
    fn send(&mut self, from: HostId, packet: Packet);
    /// When the port of a host takes the next packet with this codepoint, so that not many wait there. `sent`
    /// says that one of `ip_len` bytes has been handed to it this moment; else that is what may wait there.
    fn takes_more_at(&self, from: HostId, dscp: u8, ip_len: u32, sent: bool) -> Time;
    /// Call [`super::Stack::on_alarm`] at this time.
    fn arm(&mut self, at: Time, alarm: Alarm);
    /// Tell the application.
    fn notify(&mut self, endpoint: EndpointId, notice: Notice);
}

/// Parameters of a new queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// Who has opened it.
    pub client: HostId,
    /// The other end.
    pub server: HostId,
    /// Values for [`Packet::hash`]: client to server, server to client.
    pub hashes: (u16, u16),
    /// Rates of the links of client and server.
    pub rates: (Rate, Rate),
    /// Differentiated services codepoint of its packets, 0–63.
    pub dscp: u8,
    /// Traffic class, for measuring.
    pub class: u8,
}
