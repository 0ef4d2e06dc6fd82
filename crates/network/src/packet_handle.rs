//! Handle of a packet, which travels from link to link in its place.

use eastwest_types::{HostId, Packet, Time};
use serde::{Deserialize, Serialize};

/// Handle of a packet: all that a hop needs to know. It travels from link to link; the packet itself stays in
/// its slot of the [pool](crate::pool::PacketPool) from creation to delivery, so that a hop does not touch its
/// cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PacketHandle {
    /// Time at which the last bit reaches the far end of the present link; for a queued packet, the
    /// time at which it was enqueued.
    pub(crate) arrive: Time,
    /// Slot of the packet in the pool.
    pub slot: u32,
    /// Host that receives the packet.
    pub dst: HostId,
    /// Hash of the properties that identify this packet, for the digest of a run.
    pub(crate) identity: u32,
    /// IP bytes of the packet, see [`Packet::ip_len`].
    pub(crate) ip_len: u16,
    /// Hash for the choice among equal paths, see [`Packet::hash`].
    pub hash: u16,
}

impl PacketHandle {
    /// Returns the handle of a packet that lies in `slot`.
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

    /// Returns the time at which the last bit of the packet reaches the far end of the present
    /// link.
    pub fn arrived(&self) -> Time {
        self.arrive
    }

    /// Returns the IP bytes of the packet, see [`Packet::ip_len`].
    pub fn ip_len(&self) -> u16 {
        self.ip_len
    }
}
