//! The packet, the same for every layer.

use crate::ids::{EndpointId, HostId};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// TCP header flags (RFC 9293, section 3.1).
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement field is meaningful.
    pub const ACK: u8 = 0x10;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// What a packet of a RoCEv2 queue pair is, in the place of TCP flags. Such a packet is a datagram with one of
/// them; other datagrams have none.
pub mod rocev2 {
    /// Carries payload.
    pub const DATA: u8 = 0x01;
    /// The payload was sent before.
    pub const AGAIN: u8 = 0x02;
    /// Acknowledges all before [`ack`](super::Packet::ack).
    pub const ACK: u8 = 0x04;
    /// Acknowledges all before [`ack`](super::Packet::ack), and says that later packets were dropped.
    pub const NAK: u8 = 0x08;
    /// A congestion notification packet (CNP).
    pub const NOTIFICATION: u8 = 0x10;
    /// Asks for an acknowledgement.
    pub const ASKS: u8 = 0x40;
}

/// The ECN field of the IP header, the low two bits of [`Packet::tos`] (RFC 3168, section 5).
pub mod ecn {
    /// The transport does not understand marks.
    pub const NOT_ECT: u8 = 0;
    /// ECN-capable transport, codepoint 0.
    pub const ECT0: u8 = 2;
    /// Congestion experienced.
    pub const CE: u8 = 3;
    /// The two bits of the field.
    pub const MASK: u8 = 3;
}

/// `sack` of a packet without SACK blocks.
pub const NO_SACK: u32 = u32::MAX;

/// A packet as its sender makes it and its receiver gets it. On the way, a 32-byte record of it lies
/// in the network's pool.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packet {
    /// When the sending host created it; also what TCP timestamps carry.
    pub born: Time,
    /// Position of the first payload byte in the sender's stream (the SYN is position 0). Only the
    /// low 32 bits travel, as in a real header; see [`Packet::widen`].
    pub seq: u64,
    /// Next byte the sender of this packet expects; 32 bits travel. Of datagrams of no queue pair, the
    /// number of the stream of frames they belong to, from 1, or 0.
    pub ack: u64,
    /// Receiving end of the connection or queue pair; for other datagrams the number of their class.
    pub dst_endpoint: EndpointId,
    /// Receiving host: switches route on it.
    pub dst: HostId,
    /// Receive window in bytes; of datagrams, which have none, the number of the sending host.
    pub window: u32,
    /// TCP timestamp echo, microseconds; 0 where nothing is echoed.
    pub ts_echo_us: u32,
    /// Index of SACK blocks in their side table, or [`NO_SACK`].
    pub sack: u32,
    /// Seeded hash of the five-tuple, for ECMP.
    pub hash: u16,
    /// IP length in bytes: headers and payload, without link framing.
    pub ip_len: u16,
    /// TCP payload in bytes.
    pub payload: u16,
    /// TCP flags, see [`flag`]; of a packet of a queue pair, see [`rocev2`].
    pub flags: u8,
    /// The byte of the IP header that was once called type of service: bits 0–1 ECN (RFC 3168), bits
    /// 2–7 the differentiated services codepoint (RFC 2474).
    pub tos: u8,
    /// What stands in no header, see [`Packet::RETRANSMISSION`] and [`Packet::DATAGRAM`].
    pub notes: u8,
}

/// Up to four SACK blocks, as (first byte, byte after the last); unused ones are (0, 0).
pub type SackBlocks = [(u64, u64); 4];

/// What a packet is to someone who counts drops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum PacketKind {
    /// Carries payload for the first time.
    Data = 0,
    /// Carries payload again.
    Retransmission = 1,
    /// Acknowledgement without payload that tells of no mark.
    Ack = 2,
    /// Acknowledgement without payload that tells of one (RFC 3168, the ECE bit).
    EceAck = 3,
    /// Connection request.
    Syn = 4,
    /// Answer to a connection request.
    SynAck = 5,
    /// End of a byte stream, without payload.
    Fin = 6,
    /// A packet without connection.
    Datagram = 7,
}

impl PacketKind {
    /// How many kinds there are.
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
    /// What a packet with these fields is, see [`Packet`].
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

    /// What a datagram is: a packet of a queue pair counts as what it is to that.
    fn of_datagram(flags: u8) -> PacketKind {
        match flags {
            0 => PacketKind::Datagram,
            _ if flags & rocev2::AGAIN != 0 => PacketKind::Retransmission,
            _ if flags & rocev2::DATA != 0 => PacketKind::Data,
            _ if flags & rocev2::NOTIFICATION != 0 => PacketKind::EceAck,
            _ => PacketKind::Ack,
        }
    }

    /// The name used in tables and JSON.
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
    /// Bit of `notes` set on retransmitted payload.
    pub const RETRANSMISSION: u8 = 1;
    /// Bit of `notes` set on packets without connection.
    pub const DATAGRAM: u8 = 2;
    /// `notes` of a congestion notification message (IEEE 802.1Q, clause 30): no datagram is sent again.
    pub const CONGESTION_NOTE: u8 = Packet::DATAGRAM | Packet::RETRANSMISSION;

    /// A packet to `dst` with nothing in it.
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

    /// What this packet is.
    pub fn kind(&self) -> PacketKind {
        PacketKind::of(self.payload, self.flags, self.notes)
    }

    /// The position nearest to `near` that has the low 32 bits of `position`. Right as long as both
    /// are less than 2 GiB apart, which windows of up to 1 GiB make sure of (RFC 7323, section 2.3).
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
