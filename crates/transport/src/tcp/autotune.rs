//! Receive window autotuning: the window grows with the data received in a round trip, as in Linux
//! 6.18 (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`, `tcp_grow_window`; after dynamic right-sizing,
//! Fisk and Feng 2001).
//!
//! Once in each round trip, which the receiver measures, the bytes received in it are compared with
//! `before`, the largest number in an earlier round trip. If these bytes are more, the upper bound
//! of the window becomes `w = 2·bytes` plus `2·w·(bytes − before)/before`. Out-of-order data fills
//! the buffer and cannot be read yet. The bound is therefore raised by the distance from the data
//! in order to the end of the out-of-order data, so that a recovery does not stall at a full
//! window. Bytes stored out of order are subtracted from the offered window. The bound never
//! exceeds the largest window of the settings.
//!
//! The offered window approaches the bound by two segments for each segment that arrives. Without
//! SACK it grows only with segments in order, since an ACK with another window does not count as a
//! duplicate. The right edge of the window never moves back. The first bound is five quarters of
//! the first window: Linux sets the first window to half of the receive buffer, and full Ethernet
//! segments fill five eighths of the buffer (`tcp_measure_rcv_mss`). Bytes in order count as read
//! when they arrive. Linux bounds the memory and converts it to a window; here the window itself is
//! bounded.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// State of the autotuning of a receiver's window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Autotune {
    window: u64,
    bound: u64,
    /// Largest number of payload bytes received in one round trip so far.
    most: u64,
    /// Stream position at which the current round trip began.
    from: u64,
    /// Time at which the current round trip began.
    since: Time,
    rtt: Span,
    /// Without timestamps, the receiver measures how long one window of data takes to arrive:
    /// stream position at which this window of data ends.
    window_end: u64,
    /// Without timestamps: time at which the window of data that ends at `window_end` began to
    /// arrive.
    window_since: Time,
}

impl Autotune {
    #[cold]
    pub(super) fn new(now: Time, next: u64, initial: u64, segment: u64) -> Autotune {
        Autotune {
            window: initial,
            bound: initial / 4 * 5,
            most: initial.min(10 * segment),
            from: next,
            since: now,
            rtt: Span::ZERO,
            window_end: next + initial,
            window_since: now,
        }
    }

    /// Returns the receive window to offer in bytes, while `stored` bytes are stored out of order.
    pub(super) fn window(&self, stored: u64) -> u64 {
        self.window.min(self.bound.saturating_sub(stored))
    }

    /// Handles data in order up to position `next`. `span`: bytes from `next` to the end of the
    /// out-of-order data; `echoed`: RTT sample from the echoed timestamp, if there is one;
    /// `segment`: payload bytes of a full segment; `largest`: maximum window in bytes. Returns
    /// whether the offered window has grown.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        (next, span): (u64, u64),
        echoed: Option<Span>,
        segment: u64,
        largest: u64,
    ) -> bool {
        match echoed {
            Some(rtt) if self.rtt == Span::ZERO || rtt < self.rtt => self.rtt = rtt,
            Some(rtt) => self.rtt = Span(self.rtt.0 - self.rtt.0 / 8 + rtt.0 / 8),
            None if next >= self.window_end => {
                // The arrival of a whole window of data takes at least a round trip.
                let took = now.since(self.window_since);
                if self.rtt == Span::ZERO || took < self.rtt {
                    self.rtt = took;
                }
                (self.window_end, self.window_since) = (next + self.window, now);
            }
            None => {}
        }
        let grown = self.follow(segment);
        if self.rtt > Span::ZERO && now.since(self.since) >= self.rtt {
            self.end_round(now, (next, span), largest);
        }
        grown
    }

    /// Adapts the bound of the window to the bytes received in the round trip that ends, and begins
    /// the next one. For the parameters see [`Autotune::on_data`].
    #[inline(never)]
    fn end_round(&mut self, now: Time, (next, span): (u64, u64), largest: u64) {
        let bytes = next - self.from;
        if bytes > self.most {
            let twice = 2 * bytes;
            let phase = u128::from(twice) * u128::from(bytes - self.most) / u128::from(self.most);
            let wanted = twice.saturating_add(2 * phase.min(u128::from(largest)) as u64);
            self.bound = self.bound.max(wanted.saturating_add(span).min(largest));
            self.most = bytes;
        }
        (self.from, self.since) = (next, now);
    }

    /// Handles out-of-order data, whose end is `span` bytes above the data in order. The offered
    /// window grows, up to `largest` bytes, only if `follow`; otherwise it stays constant, so that
    /// the ACKs are duplicates. Returns whether the offered window has grown.
    pub(super) fn on_late_data(
        &mut self,
        span: u64,
        segment: u64,
        largest: u64,
        follow: bool,
    ) -> bool {
        self.bound = self.bound.max((2 * self.most).saturating_add(span).min(largest));
        follow && self.follow(segment)
    }

    /// Grows the offered window by two segments, up to the bound. Returns whether it has grown.
    fn follow(&mut self, segment: u64) -> bool {
        let before = self.window;
        self.window = (before + 2 * segment).min(self.bound).max(before);
        self.window > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1000;

    /// Simulates round trips of 10 ms, in which `rounds[i]` segments arrive. Returns the offered
    /// window at the end of each round trip, in segments.
    fn windows(rounds: &[u64], timestamps: bool) -> Vec<u64> {
        let mut tune = Autotune::new(Time::ZERO, 1, 64 * S, S);
        let mut next = 1;
        let mut all = Vec::new();
        for (round, &segments) in rounds.iter().enumerate() {
            for i in 0..segments {
                next += S;
                let at = Time::ZERO
                    + Span::from_ms(10 * (1 + round as u64))
                    + Span::from_us(i * 10_000 / segments);
                let echoed = timestamps.then_some(Span::from_ms(10));
                tune.on_data(at, (next, 0), echoed, S, 1000 * S);
            }
            all.push(tune.window(0) / S);
        }
        all
    }

    #[test]
    fn the_window_stays_ahead_of_a_sender_in_slow_start() {
        let rounds = [10, 20, 40, 80, 160, 320, 640];
        let offered = windows(&rounds, true);
        for (next, window) in rounds[1..].iter().zip(&offered) {
            assert!(window >= next, "{offered:?}");
        }
        assert!(offered.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!(*offered.last().unwrap(), 1000, "up to the largest");
    }

    #[test]
    fn it_stays_at_the_first_bound_where_nothing_more_arrives() {
        assert_eq!(windows(&[5, 5, 10, 8, 10, 10], true), [74, 80, 80, 80, 80, 80]);
    }

    #[test]
    fn what_arrives_out_of_order_raises_the_bound_and_takes_room() {
        let mut tune = Autotune::new(Time::ZERO, 1, 64 * S, S);
        for n in 1..=60 {
            tune.on_late_data((n + 1) * S, S, 1000 * S, true);
        }
        // The bound is twice the 10 segments of the first round trip, plus the span of 61 segments.
        assert_eq!(tune.window(0), 81 * S);
        assert_eq!(tune.window(60 * S), 21 * S);
        tune.on_late_data(5000 * S, S, 1000 * S, false);
        assert_eq!(tune.window(0), 81 * S);
        assert_eq!(tune.bound, 1000 * S, "up to the largest");
    }

    #[test]
    fn without_timestamps_a_windows_worth_is_the_round_trip() {
        let offered = windows(&[64, 64, 64, 64, 64], false);
        assert!(*offered.last().unwrap() > 100, "{offered:?}");
    }
}
