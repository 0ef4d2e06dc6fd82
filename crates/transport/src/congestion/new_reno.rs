//! Congestion control of RFC 5681: the window grows by a segment for each window acknowledged and is
//! halved by a loss.

use super::Window;
use super::growth::{additive, slow_start};
use super::rules::{CongestionRules, ReducedFrom};

/// `acked` bytes were acknowledged while the window was the limit.
#[inline]
pub fn on_ack(
    w: &mut Window,
    acked: u64,
    segment: u64,
    after_timeout: bool,
    rules: &CongestionRules,
) {
    let mut acked = acked;
    if w.in_slow_start() {
        acked = slow_start(w, acked, segment, after_timeout, rules.counting);
        if acked == 0 {
            return;
        }
    }
    additive(w, acked, w.cwnd, segment, rules.counting);
}

/// RFC 5681, equation (4), of what was outstanding or, as in Linux, of the window in whole segments.
pub fn threshold(w: &Window, flight: u64, segment: u64, rules: &CongestionRules) -> u64 {
    let half = match rules.reduced_from {
        ReducedFrom::Flight => flight / 2,
        ReducedFrom::Window => w.cwnd / segment / 2 * segment,
    };
    half.max(2 * segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_half_of_flight_or_window_and_at_least_two_segments() {
        let flight = CongestionRules::default();
        let window = CongestionRules { reduced_from: ReducedFrom::Window, ..flight };
        let w = Window::new(61_000);
        assert_eq!(threshold(&w, 100_000, 1_000, &flight), 50_000);
        assert_eq!(threshold(&w, 1_000, 1_000, &flight), 2_000);
        assert_eq!(threshold(&w, 100_000, 1_000, &window), 30_000);
    }
}
