//! DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010): the window falls in proportion to the share of
//! bytes that met a long queue.
//!
//! Once per window of data, M being the share of newly acknowledged bytes that ACKs with ECE have
//! acknowledged: α ← (1 − g)·α + g·M (RFC 8257, 3.3, step 6; g = 1/16, α = 1 at first). On the first
//! ECE of a window: cwnd ← cwnd·(1 − α/2) (3.3, step 9). Without ECE the window is never cut. A lost
//! packet halves it as in Reno (3.4), and growth is Reno's. Linux counts packets and keeps α in
//! 2⁻¹⁰, which sets a small α to 0; here it is bytes and 2⁻²⁰.

use super::rules::DctcpRules;
use serde::{Deserialize, Serialize};

/// 1 in the unit of α.
pub const ONE: u32 = 1 << 20;

/// What a DCTCP sender keeps beside its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dctcp {
    /// The estimate of the marked share, in units of 1/[`ONE`].
    pub alpha: u32,
    /// Once this is acknowledged the window of observation is over.
    window_end: u64,
    /// Bytes acknowledged in it, and those of them by ACKs with ECE.
    acked: u64,
    marked: u64,
}

impl Dctcp {
    /// The state of a new connection.
    pub fn new(rules: &DctcpRules) -> Dctcp {
        Dctcp { alpha: rules.initial_alpha, window_end: 0, acked: 0, marked: 0 }
    }

    /// An ACK has reported `delivered` bytes, with ECE or without; `una` is acknowledged now and
    /// `next` will be sent next.
    pub fn observe(&mut self, delivered: u64, ece: bool, una: u64, next: u64, rules: &DctcpRules) {
        self.acked += delivered;
        self.marked += if ece { delivered } else { 0 };
        if una < self.window_end {
            return;
        }
        if self.acked > 0 {
            let share = u128::from(self.marked) * u128::from(ONE) / u128::from(self.acked);
            let shift = rules.gain_shift;
            self.alpha = self.alpha - (self.alpha >> shift) + (share as u32 >> shift);
        }
        (self.acked, self.marked, self.window_end) = (0, 0, next);
    }

    /// The window after marks.
    pub fn reduced(&self, cwnd: u64) -> u64 {
        cwnd - ((u128::from(cwnd) * u128::from(self.alpha)) >> 21) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(d: &mut Dctcp, rules: &DctcpRules, marked: u64, n: u64) {
        for _ in 0..n {
            // ten segments of one byte each, the last of which ends the window
            let end = d.window_end.max(10);
            for i in 1..=10 {
                d.observe(1, i <= marked, end + i - 10, end + 10, rules);
            }
        }
    }

    #[test]
    fn alpha_starts_at_one_and_follows_the_marked_share() {
        let rules = DctcpRules::default();
        let mut d = Dctcp { window_end: 10, ..Dctcp::new(&rules) };
        assert_eq!(d.alpha, ONE);
        rounds(&mut d, &rules, 0, 1);
        assert_eq!(d.alpha, ONE - ONE / 16);
        rounds(&mut d, &rules, 0, 200);
        assert!(d.alpha <= 16, "{}", d.alpha);
        rounds(&mut d, &rules, 5, 200);
        assert!(d.alpha.abs_diff(ONE / 2) < ONE / 1_000, "{}", d.alpha);
        rounds(&mut d, &rules, 10, 200);
        assert!(d.alpha > ONE - 32 && d.alpha <= ONE);
    }

    #[test]
    fn the_cut_is_half_of_alpha() {
        let rules = DctcpRules::default();
        let with = |alpha| Dctcp { alpha, ..Dctcp::new(&rules) };
        assert_eq!(with(ONE).reduced(100_000), 50_000);
        assert_eq!(with(ONE / 4).reduced(100_000), 87_500);
        assert_eq!(with(0).reduced(100_000), 100_000);
    }
}
