//! Whether the window was the limit: only then may it grow (Linux, `tcp_cwnd_validate` and
//! `tcp_is_cwnd_limited`; RFC 7661).
//!
//! In a window of data it counts whether the window was ever filled, and else how much was out at most:
//! in slow start the window grows to twice that.

use super::window::Window;
use serde::{Deserialize, Serialize};

/// How the window of the present round of data was used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    filled: bool,
    /// Most bytes outstanding; windows are well below 4 GiB.
    most: u32,
    /// Position whose acknowledgement ends the round.
    until: u64,
}

impl Usage {
    /// Something has been sent: `una..next` is outstanding, and the window is `filled` or not.
    pub fn sent(&mut self, una: u64, next: u64, filled: bool) {
        let out = u32::try_from(next - una).unwrap_or(u32::MAX);
        if una >= self.until || filled || (!self.filled && out > self.most) {
            *self = Usage { filled, most: out, until: next };
        }
    }

    /// Whether an ACK may grow the window.
    pub fn allows_growth(&self, w: &Window) -> bool {
        self.filled || (w.in_slow_start() && w.cwnd < 2 * u64::from(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_grows_to_twice_what_was_out() {
        let mut usage = Usage::default();
        usage.sent(1, 6_001, false);
        assert!(usage.allows_growth(&Window::new(10_000)));
        assert!(!usage.allows_growth(&Window::new(12_000)));
        // less is out while the round lasts: the most counts
        usage.sent(2_001, 7_001, false);
        assert!(usage.allows_growth(&Window::new(11_000)));
        usage.sent(7_001, 8_001, false);
        assert!(!usage.allows_growth(&Window::new(10_000)));
    }

    #[test]
    fn a_filled_window_may_grow_until_the_round_is_over() {
        let above = Window { cwnd: 10_000, ssthresh: 5_000, credit: 0 };
        let mut usage = Usage::default();
        usage.sent(1, 10_001, true);
        usage.sent(5_001, 11_001, false);
        assert!(usage.allows_growth(&above));
        usage.sent(10_001, 12_001, false);
        assert!(!usage.allows_growth(&above));
    }
}
