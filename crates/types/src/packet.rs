//! The packet and its kinds, used by all layers.

use crate::ids::{EndpointId, HostId};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// TCP header flags (RFC 9293, section 3.1) and their bits.
pub mod flag {
    /// FIN: the sender has no more data to send.
    pub const FIN: u8 = 0x01;
    /// SYN: synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// RST: abort the connection.
    pub const RST: u8 = 0x04;
    /// PSH: the receiver should deliver the data received so far to the application at once.
    pub const PSH: u8 = 0x08;
    /// ACK: the acknowledgement field is valid.
    pub const ACK: u8 = 0x10;
    /// ECE: the receiver has received a packet with the mark CE (ECN echo, RFC 3168). In a SYN: the
    /// sender supports ECN.
    pub const ECE: u8 = 0x40;
    /// CWR: the sender has reduced its congestion window because of ECE (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// Types of packets of transports other than TCP, such as the queue pairs of RoCEv2. The type is
/// stored in the field of the TCP flags. A packet of one of these transports has exactly one type,
/// and any other datagram has none.
pub mod rocev2 {
    /// Type of a data packet that is sent for the first time.
    pub const DATA: u8 = 0x01;
    /// Type of a data packet whose payload is retransmitted.
    pub const AGAIN: u8 = 0x02;
    /// Acknowledgement (ACK) of everything before the position [`ack`](super::Packet::ack).
    pub const ACK: u8 = 0x04;
    /// Negative acknowledgement (NAK): everything before [`ack`](super::Packet::ack) has arrived,
    /// and the receiver has discarded later packets.
    pub const NAK: u8 = 0x08;
    /// Type of a congestion notification packet (CNP).
    pub const NOTIFICATION: u8 = 0x10;
    /// Bit with which a packet requests an acknowledgement.
    pub const ASKS: u8 = 0x40;
    /// Bits that hold the number of the transport, see
    /// [`Packet::stream_transport`](super::Packet::stream_transport).
    pub const TRANSPORT: u8 = 0xa0;
}

/// Values of the ECN field of the IP header, the low two bits of [`Packet::tos`] (RFC 3168, section
/// 5).
pub mod ecn {
    /// Not ECT: the transport does not support ECN.
    pub const NOT_ECT: u8 = 0;
    /// ECT(0): the transport supports ECN.
    pub const ECT0: u8 = 2;
    /// CE: a router has marked the packet to signal congestion.
    pub const CE: u8 = 3;
    /// Mask of the ECN field in [`Packet::tos`].
    pub const MASK: u8 = 3;
}

/// Value of [`Packet::sack`] in a packet without SACK blocks.
pub const NO_SACK: u32 = u32::MAX;

/// A packet as its sender creates it and as its receiver gets it. While it is in the network, the
/// pool of packets stores it as a 32-byte record.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packet {
    /// Time at which the sending host created the packet, also used as the TCP timestamp.
    pub born: Time,
    /// Position of the first payload byte in the sender's stream (the SYN is position 0). Only the
    /// low 32 bits are transmitted, as in a real header; see [`Packet::widen`].
    pub seq: u64,
    /// Position of the next byte that the sender of this packet expects to receive; the low 32 bits
    /// are transmitted. In a datagram without queue pair: number of the stream of raw Ethernet
    /// frames to which the datagram belongs, counted from 1; 0 if there is none.
    pub ack: u64,
    /// Receiving endpoint of the connection or queue pair; in other datagrams the number of the
    /// traffic class.
    pub dst_endpoint: EndpointId,
    /// Receiving host, by which the packet is routed.
    pub dst: HostId,
    /// Receive window in bytes; in datagrams the number of the sending host.
    pub window: u32,
    /// TCP timestamp echo in µs; 0 if the packet carries no echo.
    pub ts_echo_us: u32,
    /// Index of the SACK blocks of this packet in a separate table of SACK blocks; [`NO_SACK`] if
    /// the packet has none.
    pub sack: u32,
    /// Seeded hash of the five-tuple, by which ECMP chooses a path.
    pub hash: u16,
    /// IP length in bytes: IP header, transport header and payload, without link framing.
    pub ip_len: u16,
    /// Payload of the transport protocol in bytes.
    pub payload: u16,
    /// TCP flags, see [`flag`]; in a packet of a queue pair the packet type, see [`rocev2`].
    pub flags: u8,
    /// DSCP and ECN, formerly the type of service byte of the IP header: ECN in bits 0–1 (RFC
    /// 3168), DSCP in bits 2–7 (RFC 2474).
    pub tos: u8,
    /// Flags of the simulator, which no real header has, see [`Packet::RETRANSMISSION`] and
    /// [`Packet::DATAGRAM`].
    pub notes: u8,
}

/// Up to four SACK blocks as (stream position of the first byte, position after the last byte);
/// unused blocks are (0, 0).
pub type SackBlocks = [(u64, u64); 4];

/// Kind of a packet. Drops are counted separately for each kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum PacketKind {
    /// Packet with data that is sent for the first time.
    Data = 0,
    /// Packet with retransmitted data.
    Retransmission = 1,
    /// Acknowledgement or reset without payload and without ECE; also ACK or NAK of a queue pair.
    Ack = 2,
    /// Acknowledgement without payload and with ECE (RFC 3168), or congestion notification packet
    /// of a queue pair.
    EceAck = 3,
    /// SYN: connection request.
    Syn = 4,
    /// SYN-ACK: answer to a connection request.
    SynAck = 5,
    /// FIN without payload: the sender has no more data to send.
    Fin = 6,
    /// Datagram: packet without a connection or queue pair.
    Datagram = 7,
}

impl PacketKind {
    /// Number of kinds of packets.
    pub const COUNT: usize = 8;
    /// All kinds in the order of their numbers.
    pub const ALL: [PacketKind; PacketKind::COUNT] = [
        PacketKind::Data,
        PacketKind::Retransmission,
        PacketKind::Ack,
        PacketKind::EceAck,
        PacketKind::Syn,
        PacketKind::SynAck,
        PacketKind::Fin,
        PacketKind::Datagram,
    ];
    /// Returns the kind of a packet from its values of [`Packet::payload`], [`Packet::flags`] and
    /// [`Packet::notes`].
    pub fn of(payload: u16, flags: u8, notes: u8) -> PacketKind {
        if notes & Packet::DATAGRAM != 0 {
            PacketKind::of_datagram(flags)
        } else if payload > 0 {
            if notes & Packet::RETRANSMISSION != 0 {
                PacketKind::Retransmission
            } else {
                PacketKind::Data
            }
        } else if flags & flag::SYN != 0 {
            if flags & flag::ACK != 0 { PacketKind::SynAck } else { PacketKind::Syn }
        } else if flags & flag::FIN != 0 {
            PacketKind::Fin
        } else if flags & flag::ECE != 0 {
            PacketKind::EceAck
        } else {
            PacketKind::Ack
        }
    }

    /// Returns the kind of a datagram. A packet of a queue pair gets the kind of the TCP packet
    /// with the same purpose.
    fn of_datagram(flags: u8) -> PacketKind {
        match flags {
            0 => PacketKind::Datagram,
            _ if flags & rocev2::AGAIN != 0 => PacketKind::Retransmission,
            _ if flags & rocev2::DATA != 0 => PacketKind::Data,
            _ if flags & rocev2::NOTIFICATION != 0 => PacketKind::EceAck,
            _ => PacketKind::Ack,
        }
    }

    /// Returns the name of the packet kind in result tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            PacketKind::Data => "data",
            PacketKind::Retransmission => "retransmission",
            PacketKind::Ack => "ack",
            PacketKind::EceAck => "ece_ack",
            PacketKind::Syn => "syn",
            PacketKind::SynAck => "syn_ack",
            PacketKind::Fin => "fin",
            PacketKind::Datagram => "datagram",
        }
    }
}

impl Packet {
    /// Bit of [`Packet::notes`] that marks retransmitted payload.
    pub const RETRANSMISSION: u8 = 1;
    /// Bit of [`Packet::notes`] that marks packets without a TCP connection (datagrams), also
    /// packets of queue pairs.
    pub const DATAGRAM: u8 = 2;
    /// Value of [`Packet::notes`] of a congestion notification message (IEEE 802.1Q, clause 30). No
    /// other packet has both bits: a retransmission of a queue pair has the type [`rocev2::AGAIN`]
    /// instead.
    pub const CONGESTION_NOTE: u8 = Packet::DATAGRAM | Packet::RETRANSMISSION;

    /// Returns a packet to host `dst` whose other fields are zero.
    pub fn blank(dst: HostId) -> Packet {
        Packet {
            born: Time::ZERO,
            seq: 0,
            ack: 0,
            dst_endpoint: EndpointId(0),
            dst,
            window: 0,
            ts_echo_us: 0,
            sack: NO_SACK,
            hash: 0,
            ip_len: 0,
            payload: 0,
            flags: 0,
            tos: 0,
            notes: 0,
        }
    }

    /// Returns the number of the transport protocol that sent this packet: 0 for TCP, 1 to 4 for
    /// other protocols; `None` for a datagram that no transport protocol sent.
    #[inline]
    pub fn stream_transport(&self) -> Option<u8> {
        match self.flags {
            _ if self.notes & Packet::DATAGRAM == 0 => Some(0),
            0 => None,
            flags => Some(1 + (flags >> 5 & 1 | flags >> 6 & 2)),
        }
    }

    /// Sets the number of the transport protocol that sends this packet, from 1 to 4 (not TCP).
    #[inline]
    pub fn set_stream_transport(&mut self, number: u8) {
        let bits = number - 1;
        debug_assert!(bits < 4, "the number of a transport must be from 1 to 4");
        self.flags = self.flags & !rocev2::TRANSPORT | (bits & 1) << 5 | (bits & 2) << 6;
    }

    /// Returns the kind of this packet.
    pub fn kind(&self) -> PacketKind {
        PacketKind::of(self.payload, self.flags, self.notes)
    }

    /// Returns the 64-bit stream position nearest to `near` whose low 32 bits are those of
    /// `position`. The result is correct if the full position is less than 2 GiB from `near`, which
    /// holds for windows of up to 1 GiB (RFC 7323, section 2.3).
    #[inline]
    pub fn widen(position: u64, near: u64) -> u64 {
        let apart = (position as u32).wrapping_sub(near as u32) as i32;
        near.wrapping_add_signed(i64::from(apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_know_their_transport() {
        let mut packet = Packet::blank(HostId(0));
        assert_eq!(packet.stream_transport(), Some(0));
        packet.notes = Packet::DATAGRAM;
        assert_eq!(packet.stream_transport(), None);
        for (number, kind) in [(1, rocev2::AGAIN), (2, rocev2::ASKS), (3, rocev2::ACK), (4, 1)] {
            packet.flags = kind;
            packet.set_stream_transport(number);
            assert_eq!(packet.stream_transport(), Some(number));
            assert_eq!(packet.flags & !rocev2::TRANSPORT, kind);
        }
    }

    #[test]
    fn positions_widen_to_the_nearest() {
        for near in [0u64, 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40) + 12_345] {
            for apart in [0, 1, 1_448, 1 << 30, (1 << 31) - 1] {
                let (above, below) = (near + apart, near.saturating_sub(apart));
                assert_eq!(Packet::widen(above & 0xffff_ffff, near), above);
                assert_eq!(Packet::widen(below & 0xffff_ffff, near), below);
            }
        }
    }
}
