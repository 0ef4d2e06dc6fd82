//! Handle of a packet, which moves from link to link in place of the packet.

use eastwest_types::{HostId, Packet, Time};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Handle of a packet: the properties of the packet that a link or switch needs. The handle moves
/// from link to link, while the packet stays in its slot of the [pool](crate::pool::PacketPool)
/// from creation to delivery, so that links and switches do not access the cache line of the
/// packet.
///
/// Properties that do not change are packed into two words: a hop copies three words and holds two
/// in registers. With five separate fields a hop needed 20 more instructions, most of them for
/// register spills.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PacketHandle {
    /// Time at which the last bit of the packet reaches the far end of its current link. While the
    /// packet is queued at a lazy or two-event port, the time at which it was enqueued.
    pub(crate) arrive: Time,
    packet: PacketWords,
}

/// Properties of a packet that do not change from link to link, in two words. Functions for every
/// hop pass a pair of words in registers, but a whole [`PacketHandle`] in memory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PacketWords {
    /// Slot of the packet in the pool (bits 0 to 31), and receiving host (bits 32 to 63).
    slot_and_dst: u64,
    /// Hash of sequence number, ACK and endpoint of the packet (bits 0 to 31), IP length in bytes
    /// (bits 32 to 47), and ECMP hash (bits 48 to 63).
    identity_length_hash: u64,
}

/// Slot number in the handle of a packet that is in the pool of another part of a partitioned fabric.
const ELSEWHERE: u32 = u32::MAX;

impl PacketHandle {
    /// Returns the handle of a packet that is stored in the slot `slot` of the pool.
    #[inline]
    pub fn new(slot: u32, packet: &Packet) -> PacketHandle {
        let what = packet.seq.rotate_left(32) ^ packet.ack ^ u64::from(packet.dst_endpoint.0) << 16;
        let identity = what.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let packet = PacketWords {
            slot_and_dst: u64::from(packet.dst.0) << 32 | u64::from(slot),
            identity_length_hash: u64::from(packet.hash) << 48
                | u64::from(packet.ip_len) << 32
                | identity,
        };
        packet.arriving(Time::NEVER)
    }

    /// Returns the properties that do not change from link to link.
    #[inline]
    pub(crate) fn words(&self) -> PacketWords {
        self.packet
    }

    fn with(self, packet: PacketWords) -> PacketHandle {
        PacketHandle { packet, ..self }
    }

    /// Returns the handle of the packet after it has moved to slot `slot` of another pool.
    pub(crate) fn in_slot(self, slot: u32) -> PacketHandle {
        let slot_and_dst = self.slot_and_dst >> 32 << 32 | u64::from(slot);
        self.with(PacketWords { slot_and_dst, ..self.packet })
    }

    /// Returns the handle of the packet after it has moved to another part of a partitioned fabric,
    /// for the port that has sent it there.
    pub(crate) fn elsewhere(self) -> PacketHandle {
        self.with(self.packet.elsewhere())
    }

    /// Returns the handle of the packet after a change of its length to `ip_len` IP bytes.
    pub(crate) fn with_ip_len(self, ip_len: u16) -> PacketHandle {
        let others = self.identity_length_hash & !(0xffff << 32);
        let identity_length_hash = others | u64::from(ip_len) << 32;
        self.with(PacketWords { identity_length_hash, ..self.packet })
    }

    /// Returns the handle with another destination address.
    pub(crate) fn to_address(self, dst: HostId) -> PacketHandle {
        let slot_and_dst = u64::from(dst.0) << 32 | u64::from(self.slot());
        self.with(PacketWords { slot_and_dst, ..self.packet })
    }

    /// Returns the time at which the last bit of the packet reaches the far end of its current link
    /// or, for a packet queued at a lazy or two-event port, the time at which it was enqueued.
    pub fn arrived(&self) -> Time {
        self.arrive
    }
}

impl Deref for PacketHandle {
    type Target = PacketWords;

    #[inline]
    fn deref(&self) -> &PacketWords {
        &self.packet
    }
}

impl PacketWords {
    /// Returns a handle of the packet with `arrive` as its arrival time, see
    /// [`PacketHandle::arrive`].
    #[inline]
    pub(crate) fn arriving(self, arrive: Time) -> PacketHandle {
        PacketHandle { arrive, packet: self }
    }

    /// Returns the properties of the packet after it has moved to another part of a partitioned
    /// fabric.
    #[inline]
    pub(crate) fn elsewhere(self) -> PacketWords {
        PacketWords { slot_and_dst: self.slot_and_dst | u64::from(ELSEWHERE), ..self }
    }

    /// Whether the packet is in another part of a partitioned fabric, see
    /// [`PacketWords::elsewhere`].
    #[inline]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.slot() == ELSEWHERE
    }

    /// Returns the slot of the packet in the pool.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.slot_and_dst as u32
    }

    /// Returns the destination address: the number of the host that receives the packet, or a
    /// larger number, the address of one of its cards, see
    /// [`Fabric::host_of`](crate::fabric::Fabric::host_of).
    #[inline]
    pub fn dst(&self) -> HostId {
        HostId((self.slot_and_dst >> 32) as u32)
    }

    /// Returns a hash of the properties that identify this packet; the digest of a run (a hash over
    /// all its events) contains it.
    #[inline]
    pub(crate) fn identity(&self) -> u32 {
        self.identity_length_hash as u32
    }

    /// Returns the IP bytes of the packet, see [`Packet::ip_len`].
    #[inline]
    pub fn ip_len(&self) -> u16 {
        (self.identity_length_hash >> 32) as u16
    }

    /// Returns [`PacketWords::ip_len`] as a number of 64 bits. A function that needs the length with
    /// 32 and with 64 bits uses one register for both if it converts this number.
    #[inline]
    pub(crate) fn ip_bytes(&self) -> u64 {
        self.identity_length_hash >> 32 & 0xffff
    }

    /// Returns the hash for the choice among equal paths, see [`Packet::hash`].
    #[inline]
    pub fn hash(&self) -> u16 {
        (self.identity_length_hash >> 48) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_hold_five_properties() {
        let packet =
            Packet { hash: 0xfedc, ip_len: 9_216, seq: 77, ..Packet::blank(HostId(u32::MAX)) };
        let handle = PacketHandle::new(0x89ab_cdef, &packet);
        let read = |h: &PacketHandle| (h.slot(), h.dst(), h.ip_len(), h.hash(), h.identity());
        let (_, dst, ip_len, hash, identity) = read(&handle);
        assert_eq!((handle.slot(), dst, ip_len, hash), (0x89ab_cdef, packet.dst, 9_216, 0xfedc));
        assert_ne!(identity, PacketHandle::new(0, &Packet { seq: 78, ..packet }).identity());
        assert_eq!(read(&handle.in_slot(3)), (3, dst, ip_len, hash, identity));
        let left = handle.elsewhere();
        assert_eq!((left.is_elsewhere(), handle.is_elsewhere()), (true, false));
        assert_eq!(read(&left), (u32::MAX, dst, ip_len, hash, identity));
        let cut = handle.with_ip_len(60);
        assert_eq!(read(&cut), (handle.slot(), dst, 60, hash, identity));
    }
}
