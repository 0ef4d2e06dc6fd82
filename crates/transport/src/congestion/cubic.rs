//! CUBIC (RFC 9438): after a reduction, the congestion window is a cubic function of time, which is
//! flat at the window before the loss.
//!
//! W(t) = C·(t − K)³ + W_max in segments with t in seconds, K = ∛((W_max − cwnd_epoch)/C), C = 0.4
//! (section 4.2). An ACK of one segment adds (target − cwnd)/cwnd segments. The target is W(t +
//! RTT), at most half a window above cwnd (4.4). If Reno with the same mean would be faster, the
//! window follows W_est, the estimate of Reno's window, which grows by α = 3(1 − β)/(1 + β)
//! segments for each window acknowledged (4.3). A loss multiplies the window by β = 0.7 (4.6). With
//! fast convergence, if the window was smaller than at the last loss, W_max is only (1 + β)/2 times
//! the window (4.7). A timeout resets the state (4.8).
//!
//! All computations use integers: bytes, microseconds, a digit-by-digit cube root.
//! [`Variant::Linux`] follows Linux (`tcp_cubic.c`) in four points. The smallest RTT replaces the
//! current RTT. α stays constant, while RFC 9438 sets it to 1 once W_est has reached the window
//! before the loss. While no loss is known, the window grows by at least 5 % in a round trip. Curve
//! and estimate are computed again only when the window has changed or 1/32 s has passed. The clock
//! of Linux (jiffies and 1/1024 s) is not copied.

use super::control::{Ack, BuiltIn, CongestionControl, Seen, SenderPlace};
use super::cube_root::cube_root;
use super::growth::{additive, slow_start};
use super::rules::{Counting, ReducedFrom};
use super::window::Window;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::{Fraction, Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Time from the begin of an epoch (first ACK in congestion avoidance after a reduction) in which
/// RTT samples do not count for the smallest RTT (Linux).
const UNSETTLED: Span = Span::from_secs(1);
/// Time for which the curve is not computed again while the window stays constant (Linux, HZ/32).
const RECOMPUTE_AFTER: Span = Span::from_us(31_250);
/// Time distance from K in µs at which the cubic function exceeds every window.
const FAR_US: u64 = 10_000_000_000;

/// Implementation of CUBIC that determines the details in which RFC 9438 and Linux differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variant {
    /// CUBIC as in Linux (`tcp_cubic.c`).
    #[default]
    Linux,
    /// CUBIC as in RFC 9438.
    Rfc9438,
}

/// Settings of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CubicRules {
    /// Implementation that determines the details in which RFC 9438 and Linux differ.
    pub variant: Variant,
    /// Share β of the window that remains after a loss, in units of 1/1024 (Linux: 717).
    pub beta: u16,
    /// Whether a loss at a window below the last W_max reduces W_max further (fast convergence, RFC
    /// 9438, 4.7).
    pub fast_convergence: bool,
    /// Whether the window is at least as large as the window of Reno would be (RFC 9438, 4.3).
    pub friendly: bool,
}

impl Default for CubicRules {
    fn default() -> CubicRules {
        CubicRules { variant: Variant::Linux, beta: 717, fast_convergence: true, friendly: true }
    }
}

/// State of a CUBIC sender beside its window. Windows are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cubic {
    rules: CubicRules,
    counting: Counting,
    reduced_from: ReducedFrom,
    /// Window W_max in bytes at which the curve is flat; 0 before the first loss.
    last_max: u64,
    /// Congestion window in bytes before the last reduction.
    prior: u64,
    /// Begin of the epoch: the first ACK in congestion avoidance after a reduction; [`Time::NEVER`]
    /// until this ACK.
    epoch: Time,
    /// Window in bytes at which the curve of this epoch is flat.
    origin: u64,
    /// Time K from the begin of the epoch until the curve reaches `origin`, in µs.
    k_us: u64,
    /// Estimate W_est of the window that Reno would have, in bytes.
    estimate: u64,
    /// Bytes acknowledged since the estimate of Reno's window last grew.
    estimate_credit: u64,
    /// Smallest round-trip time since the connection began or had its last timeout.
    delay_min: Span,
    /// In the Linux variant: time at which the curve was last computed.
    computed_at: Time,
    /// In the Linux variant: window in bytes (below 4 GiB) at the last computation of the curve.
    computed_window: u32,
    /// In the Linux variant: result of the last computation of the curve, the number of
    /// acknowledged bytes after which the window grows by one segment.
    computed_every: u64,
}

impl Cubic {
    /// Returns the state of a CUBIC sender before its first loss.
    fn new(rules: CubicRules, counting: Counting, reduced_from: ReducedFrom) -> Cubic {
        Cubic {
            rules,
            counting,
            reduced_from,
            last_max: 0,
            prior: 0,
            epoch: Time::NEVER,
            origin: 0,
            k_us: 0,
            estimate: 0,
            estimate_credit: 0,
            delay_min: Span::MAX,
            computed_at: Time::ZERO,
            computed_window: 0,
            computed_every: 0,
        }
    }
}

/// Returns `bytes` multiplied by the share `of_1024`, in units of 1/1024.
fn share(bytes: u64, of_1024: u64) -> u64 {
    ((u128::from(bytes) * u128::from(of_1024)) >> 10) as u64
}

/// Returns a time span in whole microseconds.
fn us(span: Span) -> u64 {
    span.0 / 1_000_000
}

impl BuiltIn for Cubic {
    const NAME: &'static str = "cubic";
    const DOC: &'static str = "the window is a cubic function of the time since a loss (RFC 9438)";
    const IN_LINUX: &'static str = "cubic";
    const HYSTART_IN_LINUX: bool = true;
    type Settings = CubicRules;

    fn read(s: &mut Section) -> CubicRules {
        let variant = s.choice(
            "cubic_variant",
            "With cubic: which implementation decides the details.",
            Some("linux"),
            &[
                ("linux", Variant::Linux, "as Linux does it, in tcp_cubic.c"),
                ("rfc9438", Variant::Rfc9438, "as RFC 9438 describes it"),
            ],
        );
        let beta: Fraction = s.get(
            key(
                "cubic_beta",
                "With cubic: share of the window that remains after a loss (RFC \
                               9438, 4.6).",
            )
            .default("0.7")
            .range("0.5", "0.95"),
        );
        CubicRules {
            variant,
            beta: at_most(whole_part(beta.0 * 1024.0 + 0.5)),
            fast_convergence: s.get(
                key(
                    "cubic_fast_convergence",
                    "With cubic: whether fast convergence reduces W_max further when a loss \
                     occurs below the last W_max (RFC 9438, 4.7).",
                )
                .default("true"),
            ),
            friendly: s.get(
                key(
                    "cubic_friendly",
                    "With cubic: whether the window is at least as large as \
                                       with Reno (RFC 9438, 4.3).",
                )
                .default("true"),
            ),
        }
    }

    fn start(rules: &CubicRules, place: &SenderPlace) -> Cubic {
        Cubic::new(*rules, place.rules.counting, place.rules.reduced_from)
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        let mut acked = ack.acked;
        if w.in_slow_start() {
            acked = slow_start(w, acked, ack.segment, ack.after_timeout, self.counting);
            if acked == 0 {
                return;
            }
        }
        let every = self.every(w.cwnd, Ack { acked, ..*ack });
        additive(w, acked, every, ack.segment, self.counting);
    }

    fn after_loss(&mut self, w: &Window, flight: u64, segment: u64) -> u64 {
        let beta = u64::from(self.rules.beta);
        self.epoch = Time::NEVER;
        let converge = self.rules.fast_convergence && w.cwnd < self.last_max;
        self.last_max = if converge { share(w.cwnd, (1024 + beta) / 2) } else { w.cwnd };
        self.prior = w.cwnd;
        let reduced = match self.reduced_from {
            ReducedFrom::Flight => share(flight, beta),
            ReducedFrom::Window => share(w.cwnd / segment, beta) * segment,
        };
        reduced.max(2 * segment)
    }

    fn observe(&mut self, seen: &Seen) {
        let Some(rtt) = seen.rtt else { return };
        if self.epoch == Time::NEVER || seen.now.since(self.epoch) >= UNSETTLED {
            self.delay_min = self.delay_min.min(rtt);
        }
    }

    fn after_timeout(&mut self, _: u64) {
        *self = Cubic::new(self.rules, self.counting, self.reduced_from);
    }

    /// Shifts the begin of the epoch by the idle time, so that idle time does not count (RFC 9438,
    /// 5.8; Linux).
    fn after_idle(&mut self, now: Time, idle: Span) {
        if self.epoch != Time::NEVER {
            self.epoch = (self.epoch + idle).min(now);
        }
    }
}

impl Cubic {
    /// Returns the number of acknowledged bytes after which the window, now `cwnd` bytes, grows by
    /// one segment.
    fn every(&mut self, cwnd: u64, ack: Ack) -> u64 {
        let rules = self.rules;
        let segment = ack.segment;
        self.estimate_credit += ack.acked;
        let same = u64::from(self.computed_window) == cwnd;
        if rules.variant == Variant::Linux
            && same
            && ack.now.since(self.computed_at) <= RECOMPUTE_AFTER
        {
            return self.computed_every;
        }
        if self.epoch == Time::NEVER {
            self.begin(ack.now, cwnd, ack.acked, segment);
        }
        let ahead = match rules.variant {
            Variant::Linux => self.delay_min,
            Variant::Rfc9438 => ack.srtt,
        };
        let ahead = if ahead == Span::MAX { Span::ZERO } else { ahead };
        let target = self.curve(us(ack.now.since(self.epoch) + ahead), segment);
        let per =
            |above: u64| ((u128::from(cwnd) * u128::from(segment)) / u128::from(above)) as u64;
        let mut every = if target > cwnd { per(target - cwnd) } else { 100 * cwnd };
        if rules.variant == Variant::Linux && self.last_max == 0 {
            every = every.min(20 * segment);
        }
        if rules.friendly {
            self.advance_estimate(cwnd, &ack);
            if self.estimate > cwnd {
                every = every.min(per(self.estimate - cwnd));
            }
        }
        let every = every.max(2 * segment);
        (self.computed_at, self.computed_every) = (ack.now, every);
        self.computed_window = u32::try_from(cwnd).unwrap_or(u32::MAX);
        every
    }

    fn begin(&mut self, now: Time, cwnd: u64, acked: u64, segment: u64) {
        self.epoch = now;
        (self.estimate, self.estimate_credit) = (cwnd, acked);
        if self.last_max <= cwnd {
            (self.k_us, self.origin) = (0, cwnd);
        } else {
            // K³ = (W_max − cwnd)/(0.4·S) in s³, with the segment size S.
            let apart = u128::from(self.last_max - cwnd) * 5 * 1_000_000_000_000_000_000;
            self.k_us = cube_root(apart / (2 * u128::from(segment)));
            self.origin = self.last_max;
        }
    }

    /// Returns the cubic function W(t) in bytes, `t_us` µs after the begin of the epoch.
    fn curve(&self, t_us: u64, segment: u64) -> u64 {
        let apart = u128::from(t_us.abs_diff(self.k_us).min(FAR_US));
        let delta = 2 * u128::from(segment) * apart * apart * apart;
        let delta = (delta / 5_000_000_000_000_000_000).min(1 << 40) as u64;
        if t_us < self.k_us { self.origin.saturating_sub(delta) } else { self.origin + delta }
    }

    fn advance_estimate(&mut self, cwnd: u64, ack: &Ack) {
        // 1/α = (1 + β)/(3(1 − β)); Linux rounds it to eighths.
        let beta = u64::from(self.rules.beta);
        let window = match self.rules.variant {
            Variant::Linux => cwnd * (8 * (1024 + beta) / 3 / (1024 - beta)) / 8,
            Variant::Rfc9438 if self.estimate >= self.prior => cwnd,
            Variant::Rfc9438 => cwnd * (1024 + beta) / (3 * (1024 - beta)),
        };
        while self.estimate_credit > window {
            self.estimate_credit -= window;
            self.estimate += ack.segment;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::rules::CongestionRules;

    const S: u64 = 1_000;

    fn sender(rules: CubicRules) -> Cubic {
        let general = CongestionRules::default();
        assert_eq!(general.counting, Counting::Bytes { limit: 2 });
        Cubic::start(&rules, &SenderPlace { rules: general, ..SenderPlace::default() })
    }

    fn rules(variant: Variant, friendly: bool) -> CubicRules {
        CubicRules { variant, friendly, ..CubicRules::default() }
    }

    /// Acknowledges `n` windows of data, one per RTT. Returns the window in segments after each of
    /// them.
    fn rounds(c: &mut Cubic, w: &mut Window, rtt: Span, n: u64) -> Vec<u64> {
        let mut windows = Vec::new();
        for round in 0..n {
            let segments = w.cwnd / S;
            for i in 0..segments {
                let now = Time::ZERO + rtt * round + Span(rtt.0 / segments * i);
                let seen =
                    Seen { now, delivered: S, marked: false, una: 0, next: 0, rtt: Some(rtt) };
                c.observe(&seen);
                let ack = Ack { now, acked: S, segment: S, after_timeout: false, srtt: rtt };
                c.on_ack(w, &ack);
            }
            windows.push(w.cwnd / S);
        }
        windows
    }

    #[test]
    fn the_window_follows_the_cubic_of_check_8() {
        // W_max is 1000 segments and cwnd 700 segments: K = ∛(300/0.4) = 9.086 s.
        for variant in [Variant::Linux, Variant::Rfc9438] {
            let r = rules(variant, false);
            let mut c = sender(r);
            let before = Window { cwnd: 1000 * S, ssthresh: 0, credit: 0 };
            let threshold = c.after_loss(&before, 1000 * S, S);
            assert!(threshold.abs_diff(700 * S) <= S, "{threshold}");
            let mut w = Window { cwnd: threshold, ssthresh: threshold, credit: 0 };
            let windows = rounds(&mut c, &mut w, Span::from_ms(100), 160);
            assert!(c.k_us.abs_diff(9_086_000) < 10_000, "{}", c.k_us);
            for (round, window) in windows.iter().enumerate() {
                let t = (round + 1) as f64 * 0.1;
                let expected = 1000.0 + 0.4 * (t - 9.086) * (t - 9.086) * (t - 9.086);
                assert!(
                    (*window as f64 - expected).abs() < 12.0,
                    "{window} and {expected} at {t} s"
                );
            }
        }
    }

    #[test]
    fn with_a_short_round_trip_it_is_as_fast_as_reno() {
        // Reno gains one segment per RTT from half the window; with β = 0.7 CUBIC's estimate gains
        // 9/17 of a segment.
        for (variant, expected) in [(Variant::Linux, 70.0 + 53.3), (Variant::Rfc9438, 70.0 + 55.0)]
        {
            let r = rules(variant, true);
            let mut c = sender(r);
            let before = Window { cwnd: 100 * S, ssthresh: 0, credit: 0 };
            let threshold = c.after_loss(&before, 100 * S, S);
            let mut w = Window { cwnd: threshold, ssthresh: threshold, credit: 0 };
            let windows = rounds(&mut c, &mut w, Span::from_ms(1), 100);
            let last = *windows.last().expect("a round") as f64;
            // In RFC 9438, once 100 segments are reached again, the estimate gains a whole segment
            // per RTT.
            let expected = if variant == Variant::Rfc9438 { expected + 20.0 } else { expected };
            assert!((last - expected).abs() < 22.0 && last > 110.0, "{last} and {expected}");
        }
    }

    #[test]
    fn fast_convergence_gives_room_to_others() {
        let (on, mut off) = (rules(Variant::Linux, true), rules(Variant::Linux, true));
        off.fast_convergence = false;
        for (r, expected) in [(on, 80 * S * 870 / 1024), (off, 80 * S)] {
            let mut c = sender(r);
            c.after_loss(&Window { cwnd: 100 * S, ssthresh: 0, credit: 0 }, 0, S);
            assert_eq!(c.last_max, 100 * S);
            c.after_loss(&Window { cwnd: 80 * S, ssthresh: 0, credit: 0 }, 0, S);
            assert_eq!(c.last_max, expected);
        }
    }

    #[test]
    fn without_a_known_loss_linux_grows_by_a_twentieth_a_round_trip() {
        let r = rules(Variant::Linux, false);
        let mut w = Window { cwnd: 100 * S, ssthresh: 100 * S, credit: 0 };
        let windows = rounds(&mut sender(r), &mut w, Span::from_ms(1), 10);
        assert!(windows[9] >= 155 && windows[9] <= 165, "{windows:?}");
    }

    #[test]
    fn while_the_window_stays_linux_looks_at_the_curve_32_times_a_second() {
        let r = rules(Variant::Linux, false);
        let mut c = sender(r);
        c.after_loss(&Window { cwnd: 1000 * S, ssthresh: 0, credit: 0 }, 0, S);
        let mut w = Window { cwnd: 700 * S, ssthresh: 700 * S, credit: 0 };
        let mut every = |ms: u64| {
            let now = Time::ZERO + Span::from_ms(ms);
            let ack = Ack { now, acked: S, segment: S, after_timeout: false, srtt: Span::ZERO };
            c.on_ack(&mut w, &ack);
            c.computed_every
        };
        let first = every(1_000);
        assert_eq!(every(1_031), first);
        assert!(every(1_032) < first, "it has moved on since");
    }

    #[test]
    fn an_idle_time_does_not_count() {
        let r = rules(Variant::Linux, false);
        let mut c = sender(r);
        c.after_loss(&Window { cwnd: 100 * S, ssthresh: 0, credit: 0 }, 0, S);
        let mut w = Window { cwnd: 70 * S, ssthresh: 70 * S, credit: 0 };
        rounds(&mut c, &mut w, Span::from_ms(10), 10);
        let epoch = c.epoch;
        c.after_idle(Time::ZERO + Span::from_secs(20), Span::from_secs(15));
        assert_eq!(c.epoch, epoch + Span::from_secs(15));
        c.after_idle(Time::ZERO + Span::from_secs(20), Span::from_secs(15));
        assert_eq!(c.epoch, Time::ZERO + Span::from_secs(20));
    }
}
