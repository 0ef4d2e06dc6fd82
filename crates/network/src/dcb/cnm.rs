//! Congestion notification messages (IEEE 802.1Q, 33.3 and 33.4): what a congestion point sends back to
//! the source of a frame that it has sampled.
//!
//! A message is a packet like others: it waits in queues, takes link time and can be lost. Whoever has a
//! [`Stored`] packet on its way, such as a switch that looks at messages passing by, can ask [`Cnm::of`]
//! what it says. A message travels from the congestion point to the source, so at a switch that it came
//! to on link `came`, the port towards the congestion point is `came ^ 1`; at the switch of the congestion
//! point itself that is the congested port. Its hash is [`NOTE_HASH`], by which routing knows it.

use crate::pool::Stored;
use eastwest_types::{EndpointId, HostId, Packet, Time};
use serde::{Deserialize, Serialize};

/// [`eastwest_types::Packet::hash`] of congestion notifications, at which switches look.
pub const NOTE_HASH: u16 = u16::MAX;

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cnm {
    /// Where the sampled frame was going: the destination that is congested.
    pub congested: HostId,
    /// Who had sent it, and gets the message.
    pub source: HostId,
    /// Its priority.
    pub priority: u8,
    /// How congested, 1 to 63: −Fb, quantised to 6 bits.
    pub fb: u8,
    /// The congested port, as the number of its link.
    pub port: u32,
}

impl Cnm {
    /// What a packet says, if it is a message.
    pub fn of(packet: &Stored) -> Option<Cnm> {
        let (notes, [seq, ack, window, port]) = packet.raw();
        (notes == Packet::CONGESTION_NOTE).then(|| Cnm::from_fields(seq, ack, window, port))
    }

    /// What a delivered packet says, if it is a message.
    pub fn delivered(packet: &Packet) -> Option<Cnm> {
        let fields = (packet.seq as u32, packet.ack as u32, packet.window, packet.ts_echo_us);
        (packet.notes == Packet::CONGESTION_NOTE)
            .then(|| Cnm::from_fields(fields.0, fields.1, fields.2, fields.3))
    }

    fn from_fields(seq: u32, ack: u32, window: u32, port: u32) -> Cnm {
        Cnm {
            congested: HostId(ack),
            source: HostId(window),
            priority: (seq >> 8) as u8 & 7,
            fb: seq as u8,
            port,
        }
    }

    /// The message as a packet of `bytes` bytes, without framing, that travels with `priority`.
    pub fn packet(&self, now: Time, bytes: u16, priority: u8) -> Packet {
        let mut packet = Packet::blank(self.source);
        packet.born = now;
        packet.dst_endpoint = EndpointId(0);
        packet.seq = u64::from(self.fb) | u64::from(self.priority) << 8;
        packet.ack = u64::from(self.congested.0);
        packet.window = self.source.0;
        packet.ts_echo_us = self.port;
        packet.hash = NOTE_HASH;
        packet.ip_len = bytes;
        packet.tos = priority << 5;
        packet.notes = Packet::CONGESTION_NOTE;
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_says_survives_its_way_as_a_packet() {
        let cnm =
            Cnm { congested: HostId(70_000), source: HostId(3), priority: 5, fb: 63, port: 9 };
        let packet = cnm.packet(Time(7), 64, 6);
        assert_eq!(Cnm::of(&Stored::new(&packet)), Some(cnm));
        assert_eq!(Cnm::delivered(&packet), Some(cnm));
        assert_eq!(Stored::new(&packet).dscp() >> 3, 6);
        let datagram = Packet { notes: Packet::DATAGRAM, ..packet };
        assert_eq!(Cnm::of(&Stored::new(&datagram)), None);
    }
}
