//! DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010): the window is reduced in proportion to the
//! fraction of bytes that were marked.
//!
//! Once per window of data α ← (1 − g)·α + g·M, with M the share of the newly acknowledged bytes
//! that ACKs with ECE have acknowledged (RFC 8257, 3.3, step 6; g = 1/16, α = 1 at first). On the
//! first ECE of a window cwnd ← cwnd·(1 − α/2) (3.3, step 9). A window without ECE is not reduced.
//! A lost packet halves the window as in Reno (3.4), and growth is Reno's. Linux counts packets and
//! stores α in units of 2⁻¹⁰, so that a small α becomes 0. Here bytes are counted, and the unit is
//! 2⁻²⁰.

use super::control::{Ack, BuiltIn, CongestionControl, Seen, SenderPlace};
use super::new_reno::NewReno;
use super::window::Window;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::{Fraction, Section, key};
use serde::{Deserialize, Serialize};

/// Value that stands for α = 1, where α is DCTCP's moving average of the share of marked bytes, in
/// units of 2⁻²⁰.
pub const ONE: u32 = 1 << 20;

/// Settings of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DctcpRules {
    /// Exponent n of the gain g = 2⁻ⁿ, the weight of a new observation in the moving average α of
    /// the share of marked bytes.
    pub gain_shift: u32,
    /// Value of α, the moving average of the share of marked bytes, at the begin of a connection,
    /// in units of 2⁻²⁰.
    pub initial_alpha: u32,
}

impl Default for DctcpRules {
    fn default() -> DctcpRules {
        DctcpRules { gain_shift: 4, initial_alpha: ONE }
    }
}

/// State of a DCTCP sender beside its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dctcp {
    /// Moving average α of the share of marked bytes, in units of 1/[`ONE`].
    pub alpha: u32,
    /// Stream position whose acknowledgement ends the current observation window.
    window_end: u64,
    /// Bytes acknowledged in the current observation window.
    acked: u64,
    /// Bytes that ACKs with ECE have acknowledged in the current observation window; a part of
    /// `acked`.
    marked: u64,
    rules: DctcpRules,
    reno: NewReno,
}

impl Dctcp {
    /// Returns the window in bytes after a reduction of `cwnd` by ECN marks: cwnd·(1 − α/2).
    fn reduced(&self, cwnd: u64) -> u64 {
        cwnd - ((u128::from(cwnd) * u128::from(self.alpha)) >> 21) as u64
    }
}

impl BuiltIn for Dctcp {
    const NAME: &'static str = "dctcp";
    const DOC: &'static str = "the window falls with the share of marked bytes (RFC 8257)";
    const IN_LINUX: &'static str = "dctcp";
    const ECHOES_EACH_MARK: bool = true;
    const NEEDS_ECN: bool = true;
    // A loss also reduces the window after ECN marks (Linux, `dctcp_react_to_loss`).
    const CUTS_AFTER_MARKS: bool = true;
    type Settings = DctcpRules;

    fn read(s: &mut Section) -> DctcpRules {
        let alpha: Fraction = s.get(
            key("dctcp_alpha", "With dctcp: initial value of α of a connection (RFC 8257, 4.2).")
                .default("1.0")
                .range("0.0", "1.0"),
        );
        DctcpRules {
            gain_shift: s.get(
                key(
                    "dctcp_gain_shift",
                    "With dctcp: exponent n of the gain g = 2^-n in the moving average α (RFC \
                     8257, 4.2: g = 1/16).",
                )
                .default("4")
                .range("0", "10"),
            ),
            initial_alpha: at_most(whole_part(alpha.0 * f64::from(ONE))),
        }
    }

    fn start(rules: &DctcpRules, place: &SenderPlace) -> Dctcp {
        let reno = NewReno::new(&place.rules);
        let alpha = rules.initial_alpha;
        Dctcp { alpha, window_end: 0, acked: 0, marked: 0, rules: *rules, reno }
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.on_ack(window, ack);
    }

    fn after_loss(&mut self, window: &Window, flight: u64, segment: u64) -> u64 {
        self.reno.after_loss(window, flight, segment)
    }

    fn after_marks(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        self.reduced(window.cwnd)
    }

    fn observe(&mut self, seen: &Seen) {
        self.acked += seen.delivered;
        self.marked += if seen.marked { seen.delivered } else { 0 };
        if seen.una < self.window_end {
            return;
        }
        if self.acked > 0 {
            let share = u128::from(self.marked) * u128::from(ONE) / u128::from(self.acked);
            let shift = self.rules.gain_shift;
            self.alpha = self.alpha - (self.alpha >> shift) + (share as u32 >> shift);
        }
        (self.acked, self.marked, self.window_end) = (0, 0, seen.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::Time;

    fn sender() -> Dctcp {
        Dctcp::start(&DctcpRules::default(), &SenderPlace::default())
    }

    fn rounds(d: &mut Dctcp, marked: u64, n: u64) {
        for _ in 0..n {
            // Ten segments of one byte each, of which the last ends the window of data.
            let end = d.window_end.max(10);
            for i in 1..=10 {
                d.observe(&Seen {
                    now: Time::ZERO,
                    delivered: 1,
                    marked: i <= marked,
                    una: end + i - 10,
                    next: end + 10,
                    rtt: None,
                });
            }
        }
    }

    #[test]
    fn alpha_starts_at_one_and_follows_the_marked_share() {
        let mut d = Dctcp { window_end: 10, ..sender() };
        assert_eq!(d.alpha, ONE);
        rounds(&mut d, 0, 1);
        assert_eq!(d.alpha, ONE - ONE / 16);
        rounds(&mut d, 0, 200);
        assert!(d.alpha <= 16, "{}", d.alpha);
        rounds(&mut d, 5, 200);
        assert!(d.alpha.abs_diff(ONE / 2) < ONE / 1_000, "{}", d.alpha);
        rounds(&mut d, 10, 200);
        assert!(d.alpha > ONE - 32 && d.alpha <= ONE);
    }

    #[test]
    fn the_cut_is_half_of_alpha() {
        let with = |alpha| Dctcp { alpha, ..sender() };
        assert_eq!(with(ONE).reduced(100_000), 50_000);
        assert_eq!(with(ONE / 4).reduced(100_000), 87_500);
        assert_eq!(with(0).reduced(100_000), 100_000);
    }
}
