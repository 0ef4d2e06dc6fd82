//! Congestion window validation: the window may grow only while it limits the sender (Linux,
//! `tcp_cwnd_validate` and `tcp_is_cwnd_limited`; RFC 7661).
//!
//! [`CwndUsage`] records for each window of data whether the congestion window was ever filled, and
//! if not, the largest number of bytes outstanding. In slow start the window may grow to twice this
//! number.

use super::window::Window;
use serde::{Deserialize, Serialize};

/// Use of the congestion window in the current window of data, for congestion window validation
/// (RFC 7661).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CwndUsage {
    /// Whether the congestion window was filled in the current window of data.
    filled: bool,
    /// Largest number of bytes outstanding in the current window of data; windows are well below 4
    /// GiB.
    most: u32,
    /// Stream position whose acknowledgement ends the current window of data.
    until: u64,
}

impl CwndUsage {
    /// Records a transmission, after which the positions `una..next` are outstanding. `filled`:
    /// whether the congestion window is full.
    pub fn sent(&mut self, una: u64, next: u64, filled: bool) {
        let out = u32::try_from(next - una).unwrap_or(u32::MAX);
        if una >= self.until || filled || (!self.filled && out > self.most) {
            *self = CwndUsage { filled, most: out, until: next };
        }
    }

    /// Whether an ACK may grow the congestion window, because the window has limited the sender.
    pub fn allows_growth(&self, w: &Window) -> bool {
        self.filled || (w.in_slow_start() && w.cwnd < 2 * u64::from(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_grows_to_twice_what_was_out() {
        let mut cwnd_usage = CwndUsage::default();
        cwnd_usage.sent(1, 6_001, false);
        assert!(cwnd_usage.allows_growth(&Window::new(10_000)));
        assert!(!cwnd_usage.allows_growth(&Window::new(12_000)));
        // Later transmissions of the round leave fewer bytes outstanding, but the maximum counts.
        cwnd_usage.sent(2_001, 7_001, false);
        assert!(cwnd_usage.allows_growth(&Window::new(11_000)));
        cwnd_usage.sent(7_001, 8_001, false);
        assert!(!cwnd_usage.allows_growth(&Window::new(10_000)));
    }

    #[test]
    fn a_filled_window_may_grow_until_the_round_is_over() {
        let above = Window { cwnd: 10_000, ssthresh: 5_000, credit: 0 };
        let mut cwnd_usage = CwndUsage::default();
        cwnd_usage.sent(1, 10_001, true);
        cwnd_usage.sent(5_001, 11_001, false);
        assert!(cwnd_usage.allows_growth(&above));
        cwnd_usage.sent(10_001, 12_001, false);
        assert!(!cwnd_usage.allows_growth(&above));
    }
}
