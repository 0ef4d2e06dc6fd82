//! Slow start and congestion avoidance of RFC 5681 with appropriate byte counting (RFC 3465):
//! an ACK counts for the bytes it acknowledges, in slow start for at most two segments
//! (L = 2; L = 1 after a timeout, RFC 3465 section 2.3).

use super::Window;

pub fn on_ack(w: &mut Window, acked: u64, segment: u64, after_timeout: bool) {
    if w.in_slow_start() {
        let limit = if after_timeout { segment } else { 2 * segment };
        w.cwnd += acked.min(limit);
        return;
    }
    // One segment per window acknowledged: RFC 5681 (3.1), the byte-counting form without division.
    w.credit += acked;
    if w.credit >= w.cwnd {
        w.credit -= w.cwnd;
        w.cwnd += segment;
    }
}

/// RFC 5681, equation (4).
pub fn threshold_after_loss(flight: u64, segment: u64) -> u64 {
    (flight / 2).max(2 * segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_ten_segments_after_ten_single_acks() {
        let mut w = Window::new(10 * 1448);
        for _ in 0..10 {
            on_ack(&mut w, 1448, 1448, false);
        }
        assert_eq!(w.cwnd, 20 * 1448);
    }

    #[test]
    fn an_ack_counts_for_two_segments_at_most_and_for_one_after_a_timeout() {
        for (after_timeout, growth) in [(false, 2_000), (true, 1_000)] {
            let mut w = Window { cwnd: 2_000, ssthresh: 50_000, credit: 0 };
            on_ack(&mut w, 4_000, 1_000, after_timeout);
            assert_eq!(w.cwnd, 2_000 + growth);
        }
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_window() {
        let mut w = Window { cwnd: 20_000, ssthresh: 10_000, credit: 0 };
        for _ in 0..20 {
            on_ack(&mut w, 1_000, 1_000, false);
        }
        assert_eq!(w.cwnd, 21_000);
    }

    #[test]
    fn the_threshold_is_half_the_flight_and_at_least_two_segments() {
        assert_eq!(threshold_after_loss(100_000, 1_000), 50_000);
        assert_eq!(threshold_after_loss(1_000, 1_000), 2_000);
    }
}
