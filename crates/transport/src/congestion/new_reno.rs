//! NewReno, the congestion control of RFC 5681: the window grows by one segment for each window
//! acknowledged, and a loss halves the window.

use super::control::{Ack, BuiltIn, CongestionControl, SenderPlace};
use super::growth::{additive, slow_start};
use super::rules::{CongestionRules, Counting, ReducedFrom};
use super::window::Window;
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// NewReno (RFC 5681): the rules of one sender. It has no state beside the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewReno {
    counting: Counting,
    reduced_from: ReducedFrom,
}

impl NewReno {
    /// Returns NewReno with the given rules of growth and reduction.
    pub fn new(rules: &CongestionRules) -> NewReno {
        NewReno { counting: rules.counting, reduced_from: rules.reduced_from }
    }
}

impl BuiltIn for NewReno {
    const NAME: &'static str = "new-reno";
    const DOC: &'static str =
        "slow start and congestion avoidance of RFC 5681, with recovery by RFC 6675 or 6582";
    const IN_LINUX: &'static str = "reno";
    type Settings = ();

    fn read(_: &mut Section) {}

    fn start((): &(), place: &SenderPlace) -> NewReno {
        NewReno::new(&place.rules)
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        grow(window, ack.acked, ack.segment, ack.after_timeout, self.counting);
    }

    fn after_loss(&mut self, window: &Window, flight: u64, segment: u64) -> u64 {
        threshold_from(window, flight, segment, self.reduced_from)
    }
}

/// Grows the congestion window `w` after `acked` bytes were acknowledged; to be called only if the
/// window limited the sender.
#[inline]
pub fn on_ack(
    w: &mut Window,
    acked: u64,
    segment: u64,
    after_timeout: bool,
    rules: &CongestionRules,
) {
    grow(w, acked, segment, after_timeout, rules.counting);
}

#[inline]
fn grow(w: &mut Window, acked: u64, segment: u64, after_timeout: bool, counting: Counting) {
    let mut acked = acked;
    if w.in_slow_start() {
        acked = slow_start(w, acked, segment, after_timeout, counting);
        if acked == 0 {
            return;
        }
    }
    additive(w, acked, w.cwnd, segment, counting);
}

/// Returns the slow-start threshold after a loss in bytes: half of the `flight` outstanding bytes
/// (RFC 5681, equation 4) or, as in Linux, half of the window `w` in whole segments; at least two
/// segments. `rules` decide between the two.
pub fn threshold(w: &Window, flight: u64, segment: u64, rules: &CongestionRules) -> u64 {
    threshold_from(w, flight, segment, rules.reduced_from)
}

fn threshold_from(w: &Window, flight: u64, segment: u64, from: ReducedFrom) -> u64 {
    let half = match from {
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
