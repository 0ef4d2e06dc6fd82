//! Congestion notification messages (CNM; IEEE 802.1Q, 33.3 and 33.4). A congestion point at a
//! switch sends a CNM to the source of a packet that it has sampled.
//!
//! A CNM is a normal packet: it is queued, uses time on links, and can be lost. [`Cnm::of`] returns
//! its content from a [`Stored`] packet in flight, for example at a switch that reads passing CNMs.
//! A CNM travels from the congestion point to the source. At a switch that it has entered on link
//! `ingress`, the port towards the congestion point is therefore the
//! [reverse](crate::topology::reverse) of this link; at the switch of the congestion point, this
//! port is the congested port itself. Routing recognises a CNM by its hash, [`NOTE_HASH`].

use crate::pool::Stored;
use eastwest_types::{EndpointId, HostId, Packet, Time};
use serde::{Deserialize, Serialize};

/// Value of [`eastwest_types::Packet::hash`] in congestion notification messages (CNM), by which
/// switches recognise them.
pub const NOTE_HASH: u16 = u16::MAX;

/// Content of a congestion notification message (CNM; IEEE 802.1Q, 33.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cnm {
    /// Destination of the sampled packet: the host towards which the path is congested.
    pub congested: HostId,
    /// Source of the sampled packet: the host that receives the CNM.
    pub source: HostId,
    /// Priority of the sampled packet.
    pub priority: u8,
    /// Feedback of the congestion point: −Fb, quantised to 6 bits, from 1 to 63.
    pub fb: u8,
    /// Congested port, identified by the number of its link.
    pub port: u32,
}

impl Cnm {
    /// Returns the content of a packet in flight if it is a CNM, otherwise `None`.
    pub fn of(packet: &Stored) -> Option<Cnm> {
        let (notes, [seq, ack, window, port]) = packet.raw();
        (notes == Packet::CONGESTION_NOTE).then(|| Cnm::from_fields(seq, ack, window, port))
    }

    /// Returns the content of a delivered packet if it is a CNM, otherwise `None`.
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

    /// Returns the CNM as a packet of `bytes` IP bytes with the priority `priority`, created at
    /// `now`.
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
