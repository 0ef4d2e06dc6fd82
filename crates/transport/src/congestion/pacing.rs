//! Pacing: segments, or with [offload](crate::tcp::offload) bursts, are sent at intervals given by
//! a rate (Linux's internal pacing, `tcp_update_skb_after_send`).
//!
//! The congestion control may set the rate. Otherwise the rate is 200 % of cwnd/SRTT while the
//! window is below half of the slow-start threshold, and then 120 % (Linux,
//! `tcp_update_pacing_rate`). The first ten segments of a connection are not paced. If a segment is
//! sent late, the next interval is shorter, by at most half its length.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Number of segments at the begin of a connection that are not paced.
const UNPACED: u8 = 10;

/// Pacing state of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// Pacing rate in bytes per second; 0 while unknown.
    pub rate: u64,
    /// Earliest time of the sender's next transmission.
    pub next: Time,
    /// Whether a segment waits until the time `next`.
    pub waits: bool,
    /// Number of segments sent since the connection began; it stops at 255.
    sent: u8,
    /// Number of segments of the current burst that may be sent without waiting for `next`.
    pub burst_left: u16,
    /// Whether a burst is deferred until the congestion window has more room.
    pub held_by_window: bool,
    /// Part of the delay of the last late burst for which later, shorter intervals have not yet
    /// made up.
    late: Span,
}

impl Pacing {
    /// Sets the pacing rate to 200 % (in early slow start) or 120 % of `cwnd`/`srtt`. `under_way`:
    /// bytes in flight, which replace `cwnd` if they are more.
    pub fn set_rate_from_window(&mut self, cwnd: u64, ssthresh: u64, under_way: u64, srtt: Span) {
        let percent = if cwnd < ssthresh / 2 { 200 } else { 120 };
        let (window, srtt) = (cwnd.max(under_way), srtt.0.max(1));
        // A division of 64 bits is enough for windows below 9 MB.
        self.rate = match window.checked_mul(percent * 10_000_000_000) {
            Some(bytes) => bytes / srtt,
            None => {
                let bytes = u128::from(window) * u128::from(percent * 10_000_000_000);
                u64::try_from(bytes / u128::from(srtt)).unwrap_or(u64::MAX)
            }
        };
    }

    /// Records the transmission of `bytes` bytes, and sets the time of the next transmission.
    pub fn sent(&mut self, now: Time, bytes: u64) {
        self.sent = self.sent.saturating_add(1);
        if self.rate == 0 || self.sent < UNPACED {
            return;
        }
        // A division of 64 bits is enough for less than 18 MB.
        let takes = match bytes.checked_mul(1_000_000_000_000) {
            Some(scaled) => scaled / self.rate,
            None => (u128::from(bytes) * 1_000_000_000_000 / u128::from(self.rate)) as u64,
        };
        if now >= self.next {
            self.late = now.since(self.next);
        }
        let late = self.late.0.min(takes / 2);
        self.late = Span(self.late.0 - late);
        self.next = self.next.max(now) + Span(takes - late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_spaced_by_the_rate() {
        let mut p = Pacing { rate: 1_000_000, ..Pacing::default() };
        let start = Time::ZERO + Span::from_ms(5);
        for _ in 0..9 {
            p.sent(start, 1000);
            assert!(p.next <= start);
        }
        p.next = start;
        for n in 1..=5 {
            p.sent(p.next, 1000);
            assert_eq!(p.next, start + Span::from_ms(n));
        }
        // One segment is late by half a segment's time, and the next by the time of ten segments.
        let late = p.next + Span::from_us(500);
        p.sent(late, 1000);
        assert_eq!(p.next, late + Span::from_us(500));
        let late = p.next + Span::from_ms(10);
        p.sent(late, 1000);
        assert_eq!(p.next, late + Span::from_us(500));
        // A burst of two segments counts as one of its length: 2 ms minus the 700 µs by which it is
        // late.
        let late = p.next + Span::from_us(700);
        p.sent(late, 1000);
        p.sent(late, 1000);
        assert_eq!(p.next, late + Span::from_us(1300));
    }

    #[test]
    fn the_rate_is_twice_the_windows_in_slow_start_and_six_fifths_later() {
        let mut p = Pacing::default();
        p.set_rate_from_window(100_000, u64::MAX, 0, Span::from_ms(100));
        assert_eq!(p.rate, 2_000_000);
        p.set_rate_from_window(100_000, 150_000, 0, Span::from_ms(100));
        assert_eq!(p.rate, 1_200_000);
        // A window for which the product does not fit into 64 bits.
        p.set_rate_from_window(100_000_000, u64::MAX, 0, Span::from_ms(100));
        assert_eq!(p.rate, 2_000_000_000);
    }
}
