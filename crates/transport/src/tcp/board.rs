//! The sender's scoreboard by segment, for [RACK](super::rack): when each outstanding segment was last
//! sent and what is known of it. Without RACK a sender needs no such list; ranges of positions do
//! ([`recovery`](super::recovery)).
//!
//! Segments that have been sent once lie in the order of sending, those sent again are listed beside
//! it in theirs. So the oldest unjudged segments are found without looking at all of them.

use super::rack::{AckContext, Rack};
use super::ranges::Ranges;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Known to have arrived.
const SACKED: u64 = 1;
/// Deemed lost.
const LOST: u64 = 2;
/// Sent more than once.
const RESENT: u64 = 4;
/// Its latest copy, not the first, is deemed under way.
const OUT: u64 = 8;
const FLAG_BITS: u32 = 4;
const FLAGS: u64 = SACKED | LOST | RESENT | OUT;

/// An outstanding segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sent {
    /// One past its last position, and flags in the low bits.
    end_flags: u64,
    /// When it was last sent.
    at: Time,
}

impl Sent {
    fn end(self) -> u64 {
        self.end_flags >> FLAG_BITS
    }

    fn has(self, flags: u64) -> bool {
        self.end_flags & flags != 0
    }
}

/// What an acknowledgement or SACK block delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// A segment that was sent once and ends at or below the position of interest.
    pub(super) original: bool,
    /// The lowest start of such a segment, wherever it ends, that a later one had overtaken.
    pub(super) overtaken: Option<u64>,
}

/// When what an ACK acknowledges was sent, if all of it was sent once: each ACK times a round trip, with
/// or without timestamps (Linux, `tcp_clean_rtx_queue`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// The first segment.
    pub(super) first: Time,
    /// The last one.
    pub(super) last: Time,
}

/// Segments sent again, in the order of sending: end and time. Its box spares most boards two words.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Resends {
    list: VecDeque<(u64, Time)>,
}

/// The outstanding segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Board {
    segments: VecDeque<Sent>,
    /// First position of the first of them.
    base: u64,
    /// Bytes deemed lost and not SACKed since, sent again or not.
    lost: u64,
    /// Bytes of `lost` that are not sent again.
    unsent: u64,
    /// Bytes whose latest copy is a second or later one and under way.
    resent: u64,
    /// Below this nothing waits to be sent again.
    resend_from: u64,
    /// All segments that have been sent once are judged (arrived or lost) below this.
    judged: u64,
    /// Segments SACKed.
    sacked_segments: u32,
    /// Those sent again, in the order of sending: end and time.
    resends: Option<Box<Resends>>,
    pub(super) rack: Rack,
    /// When the tail loss probe is due, or what may have been overtaken is judged.
    pub(super) probe_at: Time,
}

impl Board {
    /// Nothing outstanding; `rtt` is the first round trip if there was one.
    pub(super) fn new(now: Time, rtt: Option<Span>) -> Board {
        Board {
            segments: VecDeque::new(),
            base: 0,
            lost: 0,
            unsent: 0,
            resent: 0,
            resend_from: 0,
            judged: 0,
            sacked_segments: 0,
            resends: None,
            rack: Rack::new(now, rtt),
            probe_at: Time::NEVER,
        }
    }

    /// A new segment up to `end` leaves; `start` is the first position if nothing is outstanding.
    #[inline]
    pub(super) fn push(&mut self, start: u64, end: u64, now: Time) {
        if self.segments.is_empty() {
            self.base = start;
        }
        self.segments.push_back(Sent { end_flags: end << FLAG_BITS, at: now });
    }

    /// Whether the first outstanding segment has been sent more than once.
    pub(super) fn first_was_resent(&self) -> bool {
        self.segments.front().is_some_and(|s| s.has(RESENT))
    }

    /// Index of the segment that holds `position`, or one past the last.
    fn index(&self, position: u64) -> usize {
        // most segments are as long as the first
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

    /// Takes what is known of a segment that arrives off the sums.
    fn forget(&mut self, s: Sent, len: u64) {
        if s.has(LOST) {
            self.lost -= len;
            if !s.has(OUT) {
                self.unsent -= len;
            }
        }
        if s.has(OUT) {
            self.resent -= len;
        }
    }

    fn arrived(&mut self, s: Sent, start: u64, c: AckContext, d: &mut Delivery) {
        if s.has(RESENT) {
            self.forget(s, s.end() - start);
        } else {
            if s.has(LOST) {
                self.forget(s, s.end() - start);
            }
            d.original |= s.end() <= c.recover;
            if start < c.highest && d.overtaken.is_none_or(|lowest| start < lowest) {
                d.overtaken = Some(start);
            }
        }
        self.rack.advance(s.has(RESENT), s.end(), s.at, c);
    }

    /// As [`Board::acknowledge`], where nothing is SACKed and no loss is known.
    #[inline]
    pub(super) fn acknowledge_plain(&mut self, ack: u64, c: AckContext) -> Option<Answered> {
        let mut last = None;
        let first = self.segments.front().map(|s| s.at);
        while let Some(&s) = self.segments.front()
            && s.end() <= ack
        {
            if s.end_flags & FLAGS != 0 {
                let rest = self.acknowledge(ack, c, &mut Delivery::default());
                return rest.map(|a| Answered { first: first.unwrap_or(a.first), ..a });
            }
            self.segments.pop_front();
            self.base = s.end();
            last = Some(s);
        }
        if let Some(s) = last {
            self.rack.advance(false, s.end(), s.at, c);
        }
        if self.segments.is_empty() {
            self.drop_room();
        }
        first.zip(last).map(|(first, last)| Answered { first, last: last.at })
    }

    /// Nothing is outstanding: gives room back.
    #[inline(never)]
    fn drop_room(&mut self) {
        self.segments = VecDeque::new();
        self.resends = None;
    }

    /// Everything below `ack` has arrived.
    pub(super) fn acknowledge(
        &mut self,
        ack: u64,
        c: AckContext,
        d: &mut Delivery,
    ) -> Option<Answered> {
        let mut answered: Option<Answered> = None;
        let mut resent = false;
        while let Some(&s) = self.segments.front()
            && s.end() <= ack
        {
            self.segments.pop_front();
            let start = std::mem::replace(&mut self.base, s.end());
            if s.has(SACKED) {
                self.sacked_segments -= 1;
            } else {
                resent |= s.has(RESENT);
                let first = answered.map_or(s.at, |a| a.first);
                answered = Some(Answered { first, last: s.at });
                self.arrived(s, start, c, d);
            }
        }
        if self.segments.is_empty() {
            self.drop_room();
        }
        answered.filter(|_| !resent)
    }

    /// The positions `from..to`, SACKed by none before, have arrived. Returns those that whole segments
    /// cover: a part of a segment counts for nothing (Linux, `tcp_match_skb_to_sack`).
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
                self.arrived(s, start, c, d);
                self.segments[i].end_flags = (s.end_flags & !(LOST | OUT)) | SACKED;
                self.sacked_segments += 1;
                covered = (if covered.0 == covered.1 { start } else { covered.0 }, s.end());
            }
            i += 1;
        }
        covered
    }

    /// Segments SACKed.
    pub(super) fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Bytes deemed lost, sent again or not.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// What the sums add to the outstanding bytes that are not SACKed, to give those under way: less
    /// what is lost, plus what was sent again. A lost segment that is acknowledged in part stays lost as
    /// a whole, so that the sum may fall short.
    pub(super) fn pipe_of(&self, not_sacked: u64) -> u64 {
        (not_sacked + self.resent).saturating_sub(self.lost)
    }

    /// Bytes whose latest copy is not the first and under way.
    pub(super) fn resent(&self) -> u64 {
        self.resent
    }

    fn mark_lost(&mut self, i: usize) {
        let (start, s) = (self.start(i), self.segments[i]);
        let len = s.end() - start;
        if s.has(OUT) {
            self.resent -= len;
            self.unsent += if s.has(LOST) { len } else { 0 };
        }
        if !s.has(LOST) {
            self.lost += len;
            self.unsent += len;
        }
        self.segments[i].end_flags = (s.end_flags | LOST) & !OUT;
        self.resend_from = self.resend_from.min(start);
    }

    /// The first segment that is lost and not sent again.
    pub(super) fn next_lost(&mut self) -> Option<(u64, u64)> {
        if self.unsent == 0 {
            return None;
        }
        let mut i = self.index(self.resend_from.max(self.base));
        while let Some(s) = self.segments.get(i) {
            if s.has(LOST) && !s.has(OUT) {
                self.resend_from = self.start(i);
                return Some((self.resend_from, s.end()));
            }
            i += 1;
        }
        debug_assert!(false, "a lost segment that is not there");
        None
    }

    /// When the first outstanding segment was last sent.
    pub(super) fn first_sent(&self) -> Option<Time> {
        self.segments.front().map(|s| s.at)
    }

    /// The last outstanding segment.
    pub(super) fn last(&self) -> Option<(u64, u64)> {
        let i = self.segments.len().checked_sub(1)?;
        Some((self.start(i), self.segments[i].end()))
    }

    /// The segment from `start` on has been sent again.
    pub(super) fn resend(&mut self, start: u64, now: Time) {
        let i = self.index(start);
        debug_assert_eq!(self.start(i), start);
        let s = self.segments[i];
        let len = s.end() - start;
        if !s.has(OUT) {
            self.resent += len;
            self.unsent -= if s.has(LOST) { len } else { 0 };
        }
        self.segments[i] = Sent { end_flags: s.end_flags | RESENT | OUT, at: now };
        self.resends.get_or_insert_default().list.push_back((s.end(), now));
    }

    /// Deems lost what RACK does: everything sent before the latest segment known to have arrived for
    /// which `remaining(at)` is not above zero. Returns whether a copy sent again was among it, and the
    /// longest time that remains for one that is still spared, picoseconds.
    pub(super) fn judge(
        &mut self,
        sacked: &Ranges,
        remaining: impl Fn(Time) -> i64,
    ) -> (bool, i64) {
        let mut longest = 0;
        let mut at = self.judged.max(self.base);
        let mut all_judged = true;
        'gaps: loop {
            let (start, gap_end) = sacked.gap_from(at);
            let mut i = self.index(start);
            while let Some(&s) = self.segments.get(i)
                && s.end() <= gap_end
            {
                if !s.has(RESENT | LOST) {
                    if !self.rack.is_after(s.at, s.end()) {
                        break 'gaps;
                    }
                    let left = remaining(s.at);
                    if left <= 0 {
                        self.mark_lost(i);
                    } else {
                        longest = longest.max(left);
                        all_judged = false;
                    }
                }
                if all_judged {
                    self.judged = s.end();
                }
                i += 1;
            }
            if i >= self.segments.len() {
                break;
            }
            at = gap_end;
        }
        let (lost_again, left) = self.judge_resends(remaining);
        (lost_again, longest.max(left))
    }

    /// Judges retransmitted segments as lost or not, like [`Board::judge`].
    fn judge_resends(&mut self, remaining: impl Fn(Time) -> i64) -> (bool, i64) {
        let (mut lost_again, mut longest, mut k) = (false, 0, 0);
        while let Some(&(end, at)) = self.resends.as_ref().and_then(|r| r.list.get(k)) {
            let i = self.index(end - 1);
            let there =
                end > self.base && self.segments.get(i).is_some_and(|s| s.has(OUT) && s.at == at);
            if !there {
                if k == 0 {
                    self.resends.as_mut().and_then(|r| r.list.pop_front());
                } else {
                    k += 1;
                }
                continue;
            }
            if !self.rack.is_after(at, end) {
                break;
            }
            let left = remaining(at);
            if left <= 0 {
                self.mark_lost(i);
                lost_again = true;
                continue; // it is not under way any more: the next look drops the entry
            }
            longest = longest.max(left);
            k += 1;
        }
        (lost_again, longest)
    }

    /// After a timeout the first segment is lost, and of the others those for which `remaining(at)` is
    /// not above zero.
    pub(super) fn judge_after_timeout(&mut self, remaining: impl Fn(Time) -> i64) {
        let mut spared = u64::MAX;
        for i in 0..self.segments.len() {
            let s = self.segments[i];
            if s.has(SACKED) || (s.has(LOST) && !s.has(OUT)) {
                continue;
            }
            if i == 0 || remaining(s.at) <= 0 {
                self.mark_lost(i);
            } else if !s.has(RESENT) {
                spared = spared.min(self.start(i));
            }
        }
        self.judged = self.judged.max(self.segments.back().map_or(0, |s| s.end())).min(spared);
    }

    /// Nothing was lost after all.
    pub(super) fn unmark_lost(&mut self) {
        for s in &mut self.segments {
            s.end_flags &= !LOST;
        }
        (self.lost, self.unsent) = (0, 0);
        self.judged = 0;
        self.resend_from = self.base;
    }

    /// Bytes taken beside the board itself.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        let resends =
            self.resends.as_ref().map_or(0, |r| size_of::<Resends>() + 16 * r.list.capacity());
        16 * self.segments.capacity() + resends
    }

    /// The sums counted afresh must be those kept: lost, unsent and resent bytes, SACKed segments.
    #[cfg(test)]
    pub(super) fn check(&self, una: u64, next: u64, sacked: &Ranges) {
        if self.segments.is_empty() {
            assert_eq!((una, self.lost, self.unsent, self.resent), (next, 0, 0, 0));
            return;
        }
        assert_eq!((self.base, self.segments.back().map(|s| s.end())), (una, Some(next)));
        let (mut lost, mut unsent, mut resent, mut n) = (0, 0, 0, 0);
        for (i, s) in self.segments.iter().enumerate() {
            let len = s.end() - self.start(i);
            assert!(len > 0);
            assert_eq!(s.has(SACKED), sacked.containing(self.start(i)).is_some());
            assert!(!s.has(SACKED) || !s.has(LOST | OUT));
            assert!(!s.has(OUT) || s.has(RESENT));
            lost += if s.has(LOST) { len } else { 0 };
            unsent += if s.has(LOST) && !s.has(OUT) { len } else { 0 };
            resent += if s.has(OUT) { len } else { 0 };
            n += u32::from(s.has(SACKED));
            assert!(!s.has(LOST) || s.has(OUT) || s.end() > self.resend_from);
        }
        assert_eq!(
            (lost, unsent, resent, n),
            (self.lost, self.unsent, self.resent, self.sacked_segments)
        );
    }
}
