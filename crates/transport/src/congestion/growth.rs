//! Growth of the congestion window, which several algorithms share: slow start, and growth by one
//! segment for a number of acknowledged bytes.
//!
//! With [`Counting::Bytes`] (appropriate byte counting, RFC 3465) an ACK counts for the bytes that
//! it acknowledges, in slow start for at most L segments and after a timeout for one.
//! [`Counting::Acks`] follows RFC 5681, equations (2) and (3). [`Counting::Segments`] follows
//! Linux, in which slow start ends exactly at the threshold.

use super::rules::Counting;
use super::window::Window;

/// Grows the window `w` in slow start by the rule `counting`. With [`Counting::Segments`], returns
/// how many of the `acked` bytes, rounded up to whole segments, remain for congestion avoidance
/// above the threshold; otherwise returns 0. `segment`: payload bytes of a full segment;
/// `after_timeout`: whether the sender recovers from a timeout.
#[inline]
pub fn slow_start(
    w: &mut Window,
    acked: u64,
    segment: u64,
    after_timeout: bool,
    counting: Counting,
) -> u64 {
    match counting {
        Counting::Bytes { limit } => {
            let limit = if after_timeout { 1 } else { u64::from(limit) };
            w.cwnd += acked.min(limit * segment);
            0
        }
        Counting::Acks => {
            w.cwnd += acked.min(segment);
            0
        }
        Counting::Segments => {
            let acked = acked.div_ceil(segment) * segment;
            let room = w.ssthresh - w.cwnd;
            w.cwnd += acked.min(room);
            acked - acked.min(room)
        }
    }
}

/// Grows the window `w` in congestion avoidance by one segment (`segment` payload bytes) for each
/// `every` bytes acknowledged. If `every` is the window in bytes, this is the byte-counting form of
/// RFC 5681 (3.1), without division.
#[inline]
pub fn additive(w: &mut Window, acked: u64, every: u64, segment: u64, counting: Counting) {
    match counting {
        Counting::Bytes { .. } => {
            w.credit += acked;
            if w.credit >= every {
                w.credit -= every;
                w.cwnd += segment;
            }
        }
        Counting::Acks => {
            // Growth is SMSS·SMSS/cwnd for each ACK (RFC 5681, equation 3).
            w.credit += acked.min(segment);
            if w.credit >= every {
                w.credit -= every;
                w.cwnd += segment;
            }
        }
        Counting::Segments => {
            // A credit that remains from a larger window counts for one segment only.
            if w.credit >= every {
                w.credit = 0;
                w.cwnd += segment;
            }
            w.credit += acked.div_ceil(segment) * segment;
            if w.credit >= every {
                w.cwnd += w.credit / every * segment;
                w.credit %= every;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000;
    const BYTES: Counting = Counting::Bytes { limit: 2 };

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd, ssthresh, credit: 0 }
    }

    #[test]
    fn slow_start_doubles_ten_segments_after_ten_single_acks() {
        for counting in [BYTES, Counting::Acks, Counting::Segments] {
            let mut w = Window::new(10 * S);
            for _ in 0..10 {
                slow_start(&mut w, S, S, false, counting);
            }
            assert_eq!(w.cwnd, 20 * S);
        }
    }

    #[test]
    fn an_ack_counts_for_two_segments_at_most_and_for_one_after_a_timeout() {
        for (after_timeout, growth) in [(false, 2 * S), (true, S)] {
            let mut w = window(2 * S, 50 * S);
            slow_start(&mut w, 4 * S, S, after_timeout, BYTES);
            assert_eq!(w.cwnd, 2 * S + growth);
        }
    }

    #[test]
    fn an_ack_counts_for_one_segment_or_for_all_where_so_set() {
        for (counting, growth) in [
            (Counting::Acks, S),
            (Counting::Bytes { limit: 1 }, S),
            (Counting::Bytes { limit: 8 }, 4 * S),
            (Counting::Segments, 4 * S),
        ] {
            let mut w = window(10 * S, 50 * S);
            slow_start(&mut w, 4 * S, S, false, counting);
            assert_eq!(w.cwnd, 10 * S + growth, "{counting:?}");
        }
    }

    #[test]
    fn counting_segments_slow_start_stops_at_the_threshold() {
        let mut w = window(10 * S, 12 * S);
        assert_eq!(slow_start(&mut w, 5 * S, S, false, Counting::Segments), 3 * S);
        assert_eq!(w.cwnd, 12 * S);
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_window() {
        for counting in [BYTES, Counting::Acks, Counting::Segments] {
            let mut w = window(20 * S, 10 * S);
            for _ in 0..20 {
                additive(&mut w, S, 20 * S, S, counting);
            }
            assert_eq!(w.cwnd, 21 * S);
        }
    }

    #[test]
    fn counting_acks_a_delayed_ack_halves_the_growth() {
        for (counting, cwnd) in
            [(Counting::Acks, 20 * S), (BYTES, 21 * S), (Counting::Segments, 21 * S)]
        {
            let mut w = window(20 * S, 10 * S);
            for _ in 0..10 {
                additive(&mut w, 2 * S, 20 * S, S, counting);
            }
            assert_eq!(w.cwnd, cwnd, "{counting:?}");
        }
    }

    #[test]
    fn counting_segments_growth_may_be_more_than_one_a_time() {
        let mut w = window(20 * S, 10 * S);
        additive(&mut w, 9 * S, 4 * S, S, Counting::Segments);
        assert_eq!((w.cwnd, w.credit), (22 * S, S));
    }
}
