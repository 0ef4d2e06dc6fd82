//! Counts of a link: packets and bytes that have arrived, bytes in the ring, and the longest waiting
//! time. Every packet changes only short fields in the first cache line of the link.

use super::{Counters, Link, PacketHandle};
use crate::ring::Ring;
use eastwest_types::Span;

impl Ring<PacketHandle> {
    /// Adds the bytes of a packet to those that [`Link::held_bytes`] returns.
    #[inline(always)]
    pub(crate) fn hold(&mut self, ip_len: u32) {
        self.note = self.note.wrapping_add(ip_len);
    }

    /// Subtracts the bytes of a packet from those that [`Link::held_bytes`] returns.
    #[inline(always)]
    pub(crate) fn release(&mut self, ip_len: u32) {
        self.note = self.note.wrapping_sub(ip_len);
    }
}

impl Link {
    /// Returns the counters of the link: packets, bytes, and a running hash over all events.
    pub fn counters(&self) -> Counters {
        Counters {
            packets: self.packets + u64::from(self.new_packets),
            bytes: self.bytes + u64::from(self.new_bytes),
            trail: self.trail,
        }
    }

    /// Counts packets that have arrived at the far end, with their bytes, framing included.
    pub fn add_counts(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }

    /// Sets the numbers of packets and bytes that have arrived at the far end, framing included.
    pub fn set_counts(&mut self, packets: u64, bytes: u64) {
        (self.packets, self.bytes) = (packets, bytes);
        (self.new_packets, self.new_bytes) = (0, 0);
    }

    /// Counts a packet of `ip_len` IP bytes that has arrived at the far end.
    #[inline(always)]
    pub(super) fn count_arrival(&mut self, ip_len: u32) {
        self.new_bytes += self.kind.wire_bytes(ip_len);
        self.new_packets = self.new_packets.wrapping_add(1);
        if self.new_packets == 0 {
            self.carry_counts();
        }
    }

    /// Adds 65,536 packets, which `new_packets` has counted, and their bytes to the counters.
    #[cold]
    #[inline(never)]
    fn carry_counts(&mut self) {
        let bytes = std::mem::take(&mut self.new_bytes);
        self.add_counts(1 << 16, u64::from(bytes));
    }

    /// Returns the IP bytes of the packets in `on_wire`. In modes `Eager` and `Lazy` they include
    /// queued packets. In a partitioned fabric they include packets to other parts.
    #[inline]
    pub(crate) fn held_bytes(&self) -> u64 {
        // A packet has fewer than 2¹⁶ bytes, so that 2¹⁶ packets have fewer than 2³² bytes.
        if self.on_wire.len() <= 1 << 16 {
            return u64::from(self.on_wire.note);
        }
        self.count_held_bytes()
    }

    /// Returns the bytes that [`Link::held_bytes`] returns, from the packets themselves.
    #[cold]
    #[inline(never)]
    fn count_held_bytes(&self) -> u64 {
        self.on_wire.iter().map(|handle| handle.ip_bytes()).sum()
    }

    /// Returns the longest time from the arrival of a packet at the port until its first bit can be
    /// sent.
    pub fn longest_wait(&self) -> Span {
        self.longest_wait
    }

    /// Sets the time that [`Link::longest_wait`] returns.
    pub(super) fn set_longest_wait(&mut self, wait: Span) {
        self.longest_wait = wait;
        self.longest_wait_units =
            u32::try_from(wait.0.div_ceil(1 << 16)).unwrap_or(u32::MAX).max(1);
    }

    /// Records the waiting time of a packet for [`Link::longest_wait`].
    #[inline(always)]
    pub(crate) fn note_wait(&mut self, wait: Span) {
        if (wait.0.wrapping_add((1 << 16) - 1)) >> 16 >= u64::from(self.longest_wait_units) {
            self.note_long_wait(wait);
        }
    }

    /// Records a waiting time that may be longer than all earlier ones.
    #[cold]
    #[inline(never)]
    fn note_long_wait(&mut self, wait: Span) {
        if wait > self.longest_wait {
            self.set_longest_wait(wait);
        }
    }
}
