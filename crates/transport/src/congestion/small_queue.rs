//! TCP small queues (Linux, `tcp_small_queue_check`, 2012): limit of the bytes of one connection in
//! the queue of its host's NIC. The other data waits in the socket, where it delays no other
//! connection.
//!
//! A burst may be sent while the connection's bytes in the NIC are below this limit:
//!
//! ```text
//! limit = min(max(2 · truesize of the burst, rate / 2¹⁰), tcp_limit_output_bytes)
//! ```
//!
//! The rate is the [pacing](super::pacing) rate in bytes per second, so the second term is the
//! number of bytes sent in about a millisecond. The limit is doubled for retransmissions. The
//! truesize is the memory of a burst: its bytes plus [`OVERHEAD`]. After a burst is split, each
//! segment has this overhead. A sender with at most one burst outstanding is never throttled.
//!
//! There are three differences from Linux: every segment counts as a full one; ACKs do not count
//! (in Linux they count for two bytes); a segment that is still in the NIC may be retransmitted,
//! which Linux refuses.

use eastwest_settings::{Bytes, Section, key};
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Memory of a packet in addition to its payload on 64-bit Linux, in bytes: 256 of `sk_buff` and
/// 640 of a head with headers and `skb_shared_info`.
pub const OVERHEAD: u64 = 896;
/// Binary logarithm of 1024: one term of the limit is the number of bytes sent in 1/1024 s at the
/// pacing rate (Linux, `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;

/// Number of waiting segments for which the first of them allocates memory.
const FIRST_SEGMENTS: usize = 8;

/// Settings of TCP small queues: the limit of a connection's bytes in the queue of its host's NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallQueueRules {
    /// Whether the bytes of a connection in its host's NIC are limited.
    pub on: bool,
    /// Upper bound of the limit of a connection's bytes in the NIC, in bytes of memory (Linux,
    /// `tcp_limit_output_bytes`); above 0.
    pub most: u64,
}

impl SmallQueueRules {
    /// Reads the settings of TCP small queues from `[tcp]`.
    pub fn read(s: &mut Section) -> SmallQueueRules {
        let on = s.get(
            key(
                "small_queues",
                "Whether the backlog of a connection in the network card of its host is limited \
                 to two bursts, or to 1 ms at the pacing rate if that is more (Linux, TCP small \
                 queues: tcp_small_queue_check).",
            )
            .default("false"),
        );
        let most: Bytes = s.get(
            key(
                "limit_output_bytes",
                "With small_queues: upper limit of a connection's backlog in the network card \
                 (Linux, tcp_limit_output_bytes: 4 MiB, 1 MiB before 6.16).",
            )
            .default("4 MiB")
            .range("1 B", "1 GiB"),
        );
        SmallQueueRules { on, most: most.0 }
    }
}

impl Default for SmallQueueRules {
    fn default() -> SmallQueueRules {
        SmallQueueRules { on: false, most: 4 << 20 }
    }
}

/// Segments of a connection that wait in the queue of its host's NIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SmallQueue {
    /// Times at which the waiting segments leave the NIC, in ascending order.
    leave_at: VecDeque<Time>,
    /// Time at which a throttled burst may be sent; [`Time::NEVER`] if no burst is throttled.
    pub free_at: Time,
    /// Stream position of the first byte of the last burst.
    pub burst_from: u64,
}

impl Default for SmallQueue {
    fn default() -> SmallQueue {
        SmallQueue { leave_at: VecDeque::new(), free_at: Time::NEVER, burst_from: 0 }
    }
}

impl SmallQueue {
    /// Adds a segment that is handed to the NIC at `now` and leaves it at time `leaves`.
    #[inline]
    pub fn push(&mut self, now: Time, leaves: Time) {
        if leaves > now {
            if self.leave_at.len() == self.leave_at.capacity() {
                self.make_room(now);
            }
            let last = self.leave_at.back().copied().unwrap_or(now);
            self.leave_at.push_back(leaves.max(last));
        }
    }

    /// Makes room for one more segment in a full list: removes the segments that have left the NIC by
    /// `now`, so that the list is not much longer than the queue in the NIC, or allocates memory.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, now: Time) {
        self.take_left(now);
        if self.leave_at.capacity() == 0 {
            self.leave_at.reserve(FIRST_SEGMENTS);
        }
    }

    /// Removes the segments that have left the NIC by `now`.
    pub fn take_left(&mut self, now: Time) {
        while self.leave_at.front().is_some_and(|at| *at <= now) {
            self.leave_at.pop_front();
        }
    }

    /// Returns the number of segments that were in the NIC at the last [`Self::take_left`].
    pub fn waiting(&self) -> usize {
        self.leave_at.len()
    }

    /// Whether less than `limit` bytes of memory wait in the NIC, as segments of `segment` payload
    /// bytes. If not, `free_at` becomes the time from which there is room.
    pub fn has_room(&mut self, limit: u64, segment: u64) -> bool {
        // Linux counts the socket itself as 1 byte, so a limit of two packets blocks a third.
        let fit = limit.saturating_sub(1) / (segment + OVERHEAD);
        let waiting = self.leave_at.len() as u64;
        if waiting <= fit {
            return true;
        }
        let at = self.leave_at[(waiting - fit - 1) as usize];
        self.free_at = self.free_at.min(at);
        false
    }

    /// Returns the bytes of heap memory that the list of waiting segments occupies.
    pub fn room(&self) -> usize {
        self.leave_at.capacity() * size_of::<Time>()
    }
}

impl SmallQueueRules {
    /// Returns the limit in bytes of memory for a burst of `bytes` bytes; `rate`: pacing rate in
    /// bytes per second; `again`: whether the burst is a retransmission.
    pub fn limit(&self, bytes: u64, rate: u64, again: bool) -> u64 {
        let limit = (2 * (bytes + OVERHEAD)).max(rate >> PACING_SHIFT).min(self.most);
        limit << u32::from(again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::Span;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn two_packets_or_a_millisecond() {
        let rules = SmallQueueRules { on: true, ..SmallQueueRules::default() };
        assert_eq!(rules.limit(1448, 0, false), 4688);
        assert_eq!(rules.limit(1448, 0, true), 9376);
        assert_eq!(rules.limit(1448, 10_240_000, false), 10_000);
        assert_eq!(rules.limit(1448, u64::MAX, false), 4 << 20);
        let strict = SmallQueueRules { on: true, most: 3000 };
        assert_eq!(strict.limit(1448, 0, false), 3000);
    }

    #[test]
    fn a_third_packet_waits_until_one_has_left() {
        let limit = SmallQueueRules::default().limit(1448, 0, false);
        let mut queue = SmallQueue::default();
        assert!(queue.has_room(limit, 1448));
        queue.push(at(0), at(120));
        assert!(queue.has_room(limit, 1448));
        queue.push(at(0), at(240));
        assert!(!queue.has_room(limit, 1448));
        assert_eq!(queue.free_at, at(120));
        queue.take_left(at(120));
        assert!(queue.has_room(limit, 1448));
    }

    /// Reproduces a capture of Linux 6.18 (see papers/hadoop_real): with bursts of 45 segments, the
    /// next burst is sent when 56 segments are left in the NIC.
    #[test]
    fn bursts_of_45_follow_when_56_segments_wait() {
        let limit = SmallQueueRules::default().limit(45 * 1448, 6_000_000, false);
        let mut queue = SmallQueue::default();
        for n in 1..=90 {
            queue.push(at(0), at(240 * n));
        }
        assert!(!queue.has_room(limit, 1448));
        assert_eq!(queue.free_at, at(240 * 34));
        queue.take_left(queue.free_at);
        assert_eq!(queue.waiting(), 56);
    }

    #[test]
    fn what_nobody_keeps_waiting_takes_no_room() {
        let mut queue = SmallQueue::default();
        for us in 0..1000 {
            queue.push(at(us), at(us));
            queue.push(at(us), Time::ZERO);
        }
        assert_eq!((queue.waiting(), queue.room()), (0, 0));
    }
}
