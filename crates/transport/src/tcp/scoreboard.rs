//! Scoreboard of a sender with [RACK](super::rack). It stores for each outstanding segment the time
//! of its last transmission, and whether it is SACKed, lost or retransmitted. A sender without RACK
//! stores only ranges of positions ([`recovery`](super::recovery)).
//!
//! Segments lie in the order of their first transmission. Retransmissions have a second list in the
//! order of their transmission, so that the oldest segments that may be lost are found without
//! scanning all segments.

use super::rack::{AckContext, Rack};
use super::range_set::RangeSet;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Flag: the segment is SACKed.
const SACKED: u64 = 1;
/// Flag: the segment is deemed lost.
const LOST: u64 = 2;
/// Flag: the segment has been sent more than once.
const RETRANSMITTED: u64 = 4;
/// Flag: a retransmission of the segment is assumed to be in flight.
const COPY_IN_FLIGHT: u64 = 8;
const FLAG_BITS: u32 = 4;
/// Number of segments for which the first transmission allocates memory.
const FIRST_SEGMENTS: usize = 16;
const FLAGS: u64 = SACKED | LOST | RETRANSMITTED | COPY_IN_FLIGHT;

/// An outstanding segment of a sender with RACK.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SentSegment {
    /// Stream position after the last byte of the segment (high bits), and flags (low 4 bits).
    end_flags: u64,
    /// Time of the last transmission of the segment.
    at: Time,
}

impl SentSegment {
    fn end(self) -> u64 {
        self.end_flags >> FLAG_BITS
    }

    fn has(self, flags: u64) -> bool {
        self.end_flags & flags != 0
    }
}

/// Properties of the data that an ACK has delivered, by its cumulative ACK or its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// Whether the data contains a segment that was sent once and ends at or below the recovery
    /// point.
    pub(super) original: bool,
    /// Lowest start of a segment that was sent once and arrived after a higher segment
    /// (reordering); `None` if there is no such segment.
    pub(super) reordered: Option<u64>,
}

/// Send times of the segments that an ACK newly delivers, all of which were sent only once. The
/// times give an RTT sample for each ACK, with or without timestamps (Linux,
/// `tcp_clean_rtx_queue`).
#[derive(Clone, Copy, Debug)]
pub(super) struct SendTimes {
    /// Send time of the first newly delivered segment.
    pub(super) first: Time,
    /// Send time of the last newly delivered segment.
    pub(super) last: Time,
}

/// Retransmissions in the order of sending, as (end of the segment, send time). The list is in a
/// box since most scoreboards have no retransmissions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Retransmissions {
    list: VecDeque<(u64, Time)>,
}

/// Outstanding segments of a sender with RACK: times of transmission, and whether they are SACKed,
/// lost or retransmitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scoreboard {
    segments: VecDeque<SentSegment>,
    /// Stream position of the first byte of the first outstanding segment.
    base: u64,
    /// Bytes deemed lost and not delivered since, including those already retransmitted.
    lost: u64,
    /// Bytes deemed lost of which no retransmission is in flight.
    lost_unsent: u64,
    /// Bytes of retransmissions in flight.
    retransmitted_in_flight: u64,
    /// Stream position below which no lost segment waits for its retransmission.
    retransmit_from: u64,
    /// Stream position below which all segments that were sent once have arrived or are lost.
    examined_to: u64,
    /// Number of outstanding segments that are SACKed.
    sacked_segments: u32,
    /// Retransmissions in the order of sending; `None` before the first one.
    retransmissions: Option<Box<Retransmissions>>,
    /// State of RACK (loss detection by send times).
    pub(super) rack: Rack,
    /// Expiry time of the RACK-TLP timer; meaningful only while the timer is armed.
    pub(super) rack_timer_at: Time,
}

impl Scoreboard {
    /// Returns a scoreboard without segments; `rtt` is the first RTT sample, if there is one.
    pub(super) fn new(now: Time, rtt: Option<Span>) -> Scoreboard {
        Scoreboard {
            segments: VecDeque::new(),
            base: 0,
            lost: 0,
            lost_unsent: 0,
            retransmitted_in_flight: 0,
            retransmit_from: 0,
            examined_to: 0,
            sacked_segments: 0,
            retransmissions: None,
            rack: Rack::new(now, rtt),
            rack_timer_at: Time::NEVER,
        }
    }

    /// Adds a new segment from position `start` to position `end`. `start` is used only if nothing
    /// is outstanding.
    #[inline]
    pub(super) fn on_transmit(&mut self, start: u64, end: u64, now: Time) {
        if self.segments.is_empty() {
            self.begin(start);
        }
        self.segments.push_back(SentSegment { end_flags: end << FLAG_BITS, at: now });
    }

    /// Prepares the list for a first segment that begins at `start`.
    #[inline(never)]
    fn begin(&mut self, start: u64) {
        self.base = start;
        // More segments will follow soon, so one allocation replaces three.
        self.segments.reserve(FIRST_SEGMENTS);
    }

    /// Whether the first outstanding segment has been sent more than once.
    pub(super) fn is_first_retransmitted(&self) -> bool {
        self.segments.front().is_some_and(|s| s.has(RETRANSMITTED))
    }

    /// Returns the index of the segment that contains `position`; the number of segments if there
    /// is none.
    fn index(&self, position: u64) -> usize {
        // Most segments have the length of the first, so this guess is usually right.
        if let Some(first) = self.segments.front()
            && position >= self.base
        {
            let guess = ((position - self.base) / (first.end() - self.base)) as usize;
            if let Some(s) = self.segments.get(guess)
                && s.end() > position
                && self.start(guess) <= position
            {
                return guess;
            }
        }
        self.segments.partition_point(|s| s.end() <= position)
    }

    fn start(&self, index: usize) -> u64 {
        if index == 0 { self.base } else { self.segments[index - 1].end() }
    }

    /// Subtracts a delivered segment of `len` bytes from the sums of lost and retransmitted bytes.
    fn deduct(&mut self, s: SentSegment, len: u64) {
        if s.has(LOST) {
            self.lost -= len;
            if !s.has(COPY_IN_FLIGHT) {
                self.lost_unsent -= len;
            }
        }
        if s.has(COPY_IN_FLIGHT) {
            self.retransmitted_in_flight -= len;
        }
    }

    fn on_delivery(&mut self, s: SentSegment, start: u64, c: AckContext, d: &mut Delivery) {
        if s.has(RETRANSMITTED) {
            self.deduct(s, s.end() - start);
        } else {
            if s.has(LOST) {
                self.deduct(s, s.end() - start);
            }
            d.original |= s.end() <= c.recover;
            if start < c.highest && d.reordered.is_none_or(|lowest| start < lowest) {
                d.reordered = Some(start);
            }
        }
        self.rack.on_delivery(s.has(RETRANSMITTED), s.end(), s.at, c);
    }

    /// Fast path of [`Scoreboard::acknowledge`]: removes the segments below `ack` while nothing is
    /// SACKed and no loss is known.
    #[inline]
    pub(super) fn acknowledge_fast_path(
        &mut self,
        ack: u64,
        now: Time,
        context: impl FnOnce() -> AckContext,
    ) -> Option<SendTimes> {
        let first = *self.segments.front()?;
        if first.end() > ack {
            return None;
        }
        let mut last = first;
        loop {
            if last.end_flags & FLAGS != 0 {
                let rest = self.acknowledge(ack, context(), &mut Delivery::default());
                return rest.map(|a| SendTimes { first: first.at, ..a });
            }
            self.segments.pop_front();
            self.base = last.end();
            match self.segments.front() {
                Some(&next) if next.end() <= ack => last = next,
                Some(_) => break,
                None => {
                    self.release_memory();
                    break;
                }
            }
        }
        self.rack.on_first_delivery(last.end(), last.at, now);
        Some(SendTimes { first: first.at, last: last.at })
    }

    /// Releases the memory of the lists. To be called when nothing is outstanding.
    #[inline(never)]
    fn release_memory(&mut self) {
        self.segments = VecDeque::new();
        self.retransmissions = None;
    }

    /// Removes the segments below `ack`, which have arrived. Returns the send times of the segments
    /// that were not SACKed before; `None` if one of these was retransmitted.
    pub(super) fn acknowledge(
        &mut self,
        ack: u64,
        c: AckContext,
        d: &mut Delivery,
    ) -> Option<SendTimes> {
        let mut send_times: Option<SendTimes> = None;
        let mut retransmitted_in_flight = false;
        while let Some(&s) = self.segments.front()
            && s.end() <= ack
        {
            self.segments.pop_front();
            let start = std::mem::replace(&mut self.base, s.end());
            if s.has(SACKED) {
                self.sacked_segments -= 1;
            } else {
                retransmitted_in_flight |= s.has(RETRANSMITTED);
                let first = send_times.map_or(s.at, |a| a.first);
                send_times = Some(SendTimes { first, last: s.at });
                self.on_delivery(s, start, c, d);
            }
        }
        if self.segments.is_empty() {
            self.release_memory();
        }
        send_times.filter(|_| !retransmitted_in_flight)
    }

    /// Marks the segments within `from..to` as SACKed; no SACK block has covered these positions
    /// before. Returns the range of whole segments in `from..to`, since a SACKed part of a segment
    /// does not count (Linux, `tcp_match_skb_to_sack`).
    pub(super) fn sack(
        &mut self,
        from: u64,
        to: u64,
        c: AckContext,
        d: &mut Delivery,
    ) -> (u64, u64) {
        let mut i = self.index(from);
        let mut covered = (from, from);
        while i < self.segments.len() && self.segments[i].end() <= to {
            let start = self.start(i);
            let s = self.segments[i];
            if start >= from && !s.has(SACKED) {
                self.on_delivery(s, start, c, d);
                self.segments[i].end_flags = (s.end_flags & !(LOST | COPY_IN_FLIGHT)) | SACKED;
                self.sacked_segments += 1;
                covered = (if covered.0 == covered.1 { start } else { covered.0 }, s.end());
            }
            i += 1;
        }
        covered
    }

    /// Returns the number of outstanding segments that are SACKed.
    pub(super) fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Returns the outstanding bytes deemed lost, including those already retransmitted.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the bytes in flight (RFC 6675, `pipe`): the outstanding bytes that are not SACKed
    /// (`not_sacked`), minus lost bytes, plus retransmissions in flight. A lost segment that is
    /// acknowledged in part still counts whole as lost, so the difference could be negative; then
    /// it is 0.
    pub(super) fn pipe(&self, not_sacked: u64) -> u64 {
        (not_sacked + self.retransmitted_in_flight).saturating_sub(self.lost)
    }

    /// Returns the bytes of retransmissions in flight.
    pub(super) fn retransmitted_in_flight(&self) -> u64 {
        self.retransmitted_in_flight
    }

    fn mark_lost(&mut self, i: usize) {
        let (start, s) = (self.start(i), self.segments[i]);
        let len = s.end() - start;
        if s.has(COPY_IN_FLIGHT) {
            self.retransmitted_in_flight -= len;
            self.lost_unsent += if s.has(LOST) { len } else { 0 };
        }
        if !s.has(LOST) {
            self.lost += len;
            self.lost_unsent += len;
        }
        self.segments[i].end_flags = (s.end_flags | LOST) & !COPY_IN_FLIGHT;
        self.retransmit_from = self.retransmit_from.min(start);
    }

    /// Returns the first segment (start, end) that is lost and must be retransmitted; `None` if
    /// there is none.
    pub(super) fn next_lost(&mut self) -> Option<(u64, u64)> {
        if self.lost_unsent == 0 {
            return None;
        }
        let mut i = self.index(self.retransmit_from.max(self.base));
        while let Some(s) = self.segments.get(i) {
            if s.has(LOST) && !s.has(COPY_IN_FLIGHT) {
                self.retransmit_from = self.start(i);
                return Some((self.retransmit_from, s.end()));
            }
            i += 1;
        }
        debug_assert!(false, "bytes are lost, but no segment is marked as lost");
        None
    }

    /// Returns the time at which the first outstanding segment was last sent; `None` if nothing is
    /// outstanding.
    pub(super) fn first_sent_at(&self) -> Option<Time> {
        self.segments.front().map(|s| s.at)
    }

    /// Returns the last outstanding segment as (start, end); `None` if nothing is outstanding.
    pub(super) fn last_segment(&self) -> Option<(u64, u64)> {
        let i = self.segments.len().checked_sub(1)?;
        Some((self.start(i), self.segments[i].end()))
    }

    /// Marks the segment that begins at position `start` as retransmitted at time `now`.
    pub(super) fn on_retransmit(&mut self, start: u64, now: Time) {
        let i = self.index(start);
        debug_assert_eq!(self.start(i), start);
        let s = self.segments[i];
        let len = s.end() - start;
        if !s.has(COPY_IN_FLIGHT) {
            self.retransmitted_in_flight += len;
            self.lost_unsent -= if s.has(LOST) { len } else { 0 };
        }
        self.segments[i] =
            SentSegment { end_flags: s.end_flags | RETRANSMITTED | COPY_IN_FLIGHT, at: now };
        self.retransmissions.get_or_insert_default().list.push_back((s.end(), now));
    }

    /// Marks segments as lost by RACK. A segment is lost if it was sent before some delivered
    /// segment, and `remaining(send time)`, the time in ps until the segment counts as lost, is not
    /// above zero. Returns whether a retransmission is newly lost, and the longest remaining time
    /// in ps of the segments that are not lost yet.
    pub(super) fn mark_lost_by_time(
        &mut self,
        sacked: &RangeSet,
        remaining: impl Fn(Time) -> i64,
    ) -> (bool, i64) {
        let mut longest = 0;
        let mut at = self.examined_to.max(self.base);
        let mut all_examined = true;
        'gaps: loop {
            let (start, gap_end) = sacked.gap_from(at);
            let mut i = self.index(start);
            while let Some(&s) = self.segments.get(i)
                && s.end() <= gap_end
            {
                if !s.has(RETRANSMITTED | LOST) {
                    if !self.rack.latest_was_sent_after(s.at, s.end()) {
                        break 'gaps;
                    }
                    let left = remaining(s.at);
                    if left <= 0 {
                        self.mark_lost(i);
                    } else {
                        longest = longest.max(left);
                        all_examined = false;
                    }
                }
                if all_examined {
                    self.examined_to = s.end();
                }
                i += 1;
            }
            if i >= self.segments.len() {
                break;
            }
            at = gap_end;
        }
        let (lost_again, left) = self.mark_lost_retransmissions(remaining);
        (lost_again, longest.max(left))
    }

    /// Marks retransmissions as lost by RACK, as [`Scoreboard::mark_lost_by_time`] does for
    /// segments sent once. Returns whether a retransmission is newly lost, and the longest
    /// remaining time of the others in ps.
    fn mark_lost_retransmissions(&mut self, remaining: impl Fn(Time) -> i64) -> (bool, i64) {
        let (mut lost_again, mut longest, mut k) = (false, 0, 0);
        while let Some(&(end, at)) = self.retransmissions.as_ref().and_then(|r| r.list.get(k)) {
            let i = self.index(end - 1);
            let there = end > self.base
                && self.segments.get(i).is_some_and(|s| s.has(COPY_IN_FLIGHT) && s.at == at);
            if !there {
                if k == 0 {
                    self.retransmissions.as_mut().and_then(|r| r.list.pop_front());
                } else {
                    k += 1;
                }
                continue;
            }
            if !self.rack.latest_was_sent_after(at, end) {
                break;
            }
            let left = remaining(at);
            if left <= 0 {
                self.mark_lost(i);
                lost_again = true;
                continue; // the next iteration drops this entry, which is no longer in flight
            }
            longest = longest.max(left);
            k += 1;
        }
        (lost_again, longest)
    }

    /// Marks segments as lost after a retransmission timeout: the first segment, and all for which
    /// `remaining(send time)`, the time until a segment is lost, is not above zero.
    pub(super) fn mark_lost_after_timeout(&mut self, remaining: impl Fn(Time) -> i64) {
        let mut spared = u64::MAX;
        for i in 0..self.segments.len() {
            let s = self.segments[i];
            if s.has(SACKED) || (s.has(LOST) && !s.has(COPY_IN_FLIGHT)) {
                continue;
            }
            if i == 0 || remaining(s.at) <= 0 {
                self.mark_lost(i);
            } else if !s.has(RETRANSMITTED) {
                spared = spared.min(self.start(i));
            }
        }
        self.examined_to =
            self.examined_to.max(self.segments.back().map_or(0, |s| s.end())).min(spared);
    }

    /// Clears the loss marks of all segments, since the losses have turned out to be spurious.
    pub(super) fn clear_lost_marks(&mut self) {
        for s in &mut self.segments {
            s.end_flags &= !LOST;
        }
        (self.lost, self.lost_unsent) = (0, 0);
        self.examined_to = 0;
        self.retransmit_from = self.base;
    }

    /// Returns the bytes of heap memory that the lists of segments and retransmissions occupy.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        let retransmissions = self
            .retransmissions
            .as_ref()
            .map_or(0, |r| size_of::<Retransmissions>() + 16 * r.list.capacity());
        16 * self.segments.capacity() + retransmissions
    }

    /// Checks the scoreboard's sums against its segments: bytes lost, lost but not retransmitted,
    /// and retransmitted, and the number of SACKed segments.
    #[cfg(test)]
    pub(super) fn check(&self, una: u64, next: u64, sacked: &RangeSet) {
        if self.segments.is_empty() {
            assert_eq!(
                (una, self.lost, self.lost_unsent, self.retransmitted_in_flight),
                (next, 0, 0, 0)
            );
            return;
        }
        assert_eq!((self.base, self.segments.back().map(|s| s.end())), (una, Some(next)));
        let (mut lost, mut lost_unsent, mut retransmitted_in_flight, mut n) = (0, 0, 0, 0);
        for (i, s) in self.segments.iter().enumerate() {
            let len = s.end() - self.start(i);
            assert!(len > 0);
            assert_eq!(s.has(SACKED), sacked.containing(self.start(i)).is_some());
            assert!(!s.has(SACKED) || !s.has(LOST | COPY_IN_FLIGHT));
            assert!(!s.has(COPY_IN_FLIGHT) || s.has(RETRANSMITTED));
            lost += if s.has(LOST) { len } else { 0 };
            lost_unsent += if s.has(LOST) && !s.has(COPY_IN_FLIGHT) { len } else { 0 };
            retransmitted_in_flight += if s.has(COPY_IN_FLIGHT) { len } else { 0 };
            n += u32::from(s.has(SACKED));
            assert!(!s.has(LOST) || s.has(COPY_IN_FLIGHT) || s.end() > self.retransmit_from);
        }
        assert_eq!(
            (lost, lost_unsent, retransmitted_in_flight, n),
            (self.lost, self.lost_unsent, self.retransmitted_in_flight, self.sacked_segments)
        );
    }
}
