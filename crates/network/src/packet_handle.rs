//! What travels from link to link in the place of a packet.

use eastwest_types::{HostId, Packet, Time};
use serde::{Deserialize, Serialize};

/// What travels from link to link in a packet's place: all that a hop needs to know. The packet
/// itself stays where it is, untouched from its creation to its delivery, and with it the cache line
/// that would have to be fetched.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PacketHandle {
    /// When its last bit reaches the far end of the link it is on.
    pub(crate) arrive: Time,
    /// Where the packet lies.
    pub slot: u32,
    /// Receiving host.
    pub dst: HostId,
    /// A hash of what distinguishes this packet from others, for the digest.
    pub(crate) identity: u32,
    /// See [`Packet::ip_len`].
    pub(crate) ip_len: u16,
    /// See [`Packet::hash`].
    pub hash: u16,
}

impl PacketHandle {
    /// The passage of a packet that lies in `slot`.
    #[inline]
    pub fn new(slot: u32, packet: &Packet) -> PacketHandle {
        let what = packet.seq.rotate_left(32) ^ packet.ack ^ u64::from(packet.dst_endpoint.0) << 16;
        PacketHandle {
            arrive: Time::NEVER,
            slot,
            dst: packet.dst,
            identity: (what.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32,
            ip_len: packet.ip_len,
            hash: packet.hash,
        }
    }

    /// When its last bit has reached the far end of the link it is on.
    pub fn arrived(&self) -> Time {
        self.arrive
    }

    /// See [`Packet::ip_len`].
    pub fn ip_len(&self) -> u16 {
        self.ip_len
    }
}
