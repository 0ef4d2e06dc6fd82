//! CUBIC (RFC 9438): after a reduction the window follows a cubic function of time around the window at
//! which the loss was.
//!
//! W(t) = C·(t − K)³ + W_max in segments with t in seconds, K = ∛((W_max − cwnd_epoch)/C), C = 0.4
//! (4.2). An ACK for one segment adds (target − cwnd)/cwnd of one, with the target W(t + RTT) no more
//! than half a window above cwnd (4.4). Where Reno with the same mean would be faster the window
//! follows its estimate W_est, which grows by α = 3(1 − β)/(1 + β) segments for each window
//! acknowledged (4.3). A loss multiplies by β = 0.7 (4.6); with fast convergence a window that was
//! smaller than the last one's remembers only (1 + β)/2 of itself (4.7). A timeout forgets all (4.8).
//!
//! Everything is integer: bytes, microseconds, a digit-by-digit cube root. Where [`Variant`] says so
//! it is Linux's (`tcp_cubic.c`): the smallest delay stands for the RTT, α stays where RFC 9438 makes
//! it 1 once W_est has come back to the window before the loss, and while no loss is known the window
//! grows by at least 5 % in a round trip; and curve and estimate are looked at when the window has
//! changed or 1/32 s has passed. The clock of Linux (jiffies and 1/1024 s) is not copied.

use super::Window;
use super::growth::{additive, slow_start};
use super::root::cube_root;
use super::rules::{CongestionRules, CubicRules, ReducedFrom, Variant};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Samples so soon after a reduction do not count for the smallest delay (Linux).
const UNSETTLED: Span = Span::from_secs(1);
/// For so long the curve is not looked at again while the window stays (Linux, HZ/32).
const LOOK_EVERY: Span = Span::from_us(31_250);
/// So many microseconds from K the cube is far above every window.
const FAR_US: u64 = 10_000_000_000;

/// What a CUBIC sender keeps beside its window. Windows in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cubic {
    /// W_max; 0 where no loss is known.
    pub last_max: u64,
    /// Window before the last reduction.
    prior: u64,
    /// When the epoch began; never before the first ACK in congestion avoidance.
    epoch: Time,
    /// Where the curve is flat, and how long after the beginning, in microseconds.
    origin: u64,
    k_us: u64,
    /// W_est and the bytes acknowledged since it last grew.
    estimate: u64,
    estimate_credit: u64,
    /// Smallest round-trip time seen.
    delay_min: Span,
    /// Linux: when the curve was last looked at, at which window, and what that gave.
    looked: (Time, u64, u64),
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            last_max: 0,
            prior: 0,
            epoch: Time::NEVER,
            origin: 0,
            k_us: 0,
            estimate: 0,
            estimate_credit: 0,
            delay_min: Span::MAX,
            looked: (Time::ZERO, 0, 0),
        }
    }
}

/// `bytes` times a share in units of 1/1024.
fn share(bytes: u64, of_1024: u64) -> u64 {
    ((u128::from(bytes) * u128::from(of_1024)) >> 10) as u64
}

/// Microseconds.
fn us(span: Span) -> u64 {
    span.0 / 1_000_000
}

impl Cubic {
    /// A round-trip sample.
    pub fn sample(&mut self, now: Time, rtt: Span) {
        if self.epoch == Time::NEVER || now.since(self.epoch) >= UNSETTLED {
            self.delay_min = self.delay_min.min(rtt);
        }
    }

    /// `acked` bytes were acknowledged while the window was the limit.
    pub fn on_ack(&mut self, w: &mut Window, ack: &Ack, rules: &CongestionRules) {
        let mut acked = ack.acked;
        if w.in_slow_start() {
            acked = slow_start(w, acked, ack.segment, ack.after_timeout, rules.counting);
            if acked == 0 {
                return;
            }
        }
        let every = self.every(w.cwnd, Ack { acked, ..*ack }, &rules.cubic);
        additive(w, acked, every, ack.segment, rules.counting);
    }

    /// After how many acknowledged bytes the window grows by a segment.
    fn every(&mut self, cwnd: u64, ack: Ack, rules: &CubicRules) -> u64 {
        let segment = ack.segment;
        self.estimate_credit += ack.acked;
        let (at, window, before) = self.looked;
        if rules.variant == Variant::Linux && window == cwnd && ack.now.since(at) <= LOOK_EVERY {
            return before;
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
            self.advance_estimate(cwnd, &ack, rules);
            if self.estimate > cwnd {
                every = every.min(per(self.estimate - cwnd));
            }
        }
        let every = every.max(2 * segment);
        self.looked = (ack.now, cwnd, every);
        every
    }

    fn begin(&mut self, now: Time, cwnd: u64, acked: u64, segment: u64) {
        self.epoch = now;
        (self.estimate, self.estimate_credit) = (cwnd, acked);
        if self.last_max <= cwnd {
            (self.k_us, self.origin) = (0, cwnd);
        } else {
            // K³ = (W_max − cwnd)/(0.4·S) s³
            let apart = u128::from(self.last_max - cwnd) * 5 * 1_000_000_000_000_000_000;
            self.k_us = cube_root(apart / (2 * u128::from(segment)));
            self.origin = self.last_max;
        }
    }

    /// W after so many microseconds of the epoch.
    fn curve(&self, t_us: u64, segment: u64) -> u64 {
        let apart = u128::from(t_us.abs_diff(self.k_us).min(FAR_US));
        let delta = 2 * u128::from(segment) * apart * apart * apart;
        let delta = (delta / 5_000_000_000_000_000_000).min(1 << 40) as u64;
        if t_us < self.k_us { self.origin.saturating_sub(delta) } else { self.origin + delta }
    }

    fn advance_estimate(&mut self, cwnd: u64, ack: &Ack, rules: &CubicRules) {
        // 1/α = (1 + β)/(3(1 − β)); Linux rounds it to eighths
        let beta = u64::from(rules.beta);
        let window = match rules.variant {
            Variant::Linux => cwnd * (8 * (1024 + beta) / 3 / (1024 - beta)) / 8,
            Variant::Rfc9438 if self.estimate >= self.prior => cwnd,
            Variant::Rfc9438 => cwnd * (1024 + beta) / (3 * (1024 - beta)),
        };
        while self.estimate_credit > window {
            self.estimate_credit -= window;
            self.estimate += ack.segment;
        }
    }

    /// The threshold after a loss or mark with `flight` bytes outstanding.
    pub fn threshold(
        &mut self,
        w: &Window,
        flight: u64,
        segment: u64,
        rules: &CongestionRules,
    ) -> u64 {
        self.epoch = Time::NEVER;
        let beta = u64::from(rules.cubic.beta);
        let converge = rules.cubic.fast_convergence && w.cwnd < self.last_max;
        self.last_max = if converge { share(w.cwnd, (1024 + beta) / 2) } else { w.cwnd };
        self.prior = w.cwnd;
        let reduced = match rules.reduced_from {
            ReducedFrom::Flight => share(flight, beta),
            ReducedFrom::Window => share(w.cwnd / segment, beta) * segment,
        };
        reduced.max(2 * segment)
    }

    /// A timeout: what was known of the path is forgotten.
    pub fn forget(&mut self) {
        *self = Cubic::default();
    }

    /// Nothing was under way for this time: the curve waits (RFC 9438, 5.8; Linux).
    pub fn shift(&mut self, now: Time, idle: Span) {
        if self.epoch != Time::NEVER {
            self.epoch = (self.epoch + idle).min(now);
        }
    }
}

/// What an ACK tells.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Bytes it acknowledges.
    pub acked: u64,
    /// Payload of a full segment.
    pub segment: u64,
    /// Whether a timeout is being recovered from.
    pub after_timeout: bool,
    /// Smoothed round-trip time.
    pub srtt: Span,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::rules::Counting;

    const S: u64 = 1_000;

    fn rules(variant: Variant, friendly: bool) -> CongestionRules {
        let cubic = CubicRules { variant, friendly, ..CubicRules::default() };
        CongestionRules { cubic, counting: Counting::Bytes { limit: 2 }, ..Default::default() }
    }

    /// Acknowledges windows of data a round trip after the other; the window after each.
    fn rounds(c: &mut Cubic, w: &mut Window, rtt: Span, n: u64, r: &CongestionRules) -> Vec<u64> {
        let mut windows = Vec::new();
        for round in 0..n {
            let segments = w.cwnd / S;
            for i in 0..segments {
                let now = Time::ZERO + rtt * round + Span(rtt.0 / segments * i);
                c.sample(now, rtt);
                let ack = Ack { now, acked: S, segment: S, after_timeout: false, srtt: rtt };
                c.on_ack(w, &ack, r);
            }
            windows.push(w.cwnd / S);
        }
        windows
    }

    #[test]
    fn the_window_follows_the_cubic_of_check_8() {
        // W_max 1000 segments, cwnd 700: K = ∛(300/0.4) = 9.086 s
        for variant in [Variant::Linux, Variant::Rfc9438] {
            let r = rules(variant, false);
            let mut c = Cubic::default();
            let before = Window { cwnd: 1000 * S, ssthresh: 0, credit: 0 };
            let threshold = c.threshold(&before, 1000 * S, S, &r);
            assert!(threshold.abs_diff(700 * S) <= S, "{threshold}");
            let mut w = Window { cwnd: threshold, ssthresh: threshold, credit: 0 };
            let windows = rounds(&mut c, &mut w, Span::from_ms(100), 160, &r);
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
        // one segment a round trip for Reno from half; 9/17 of one from seven tenths
        for (variant, expected) in [(Variant::Linux, 70.0 + 53.3), (Variant::Rfc9438, 70.0 + 55.0)]
        {
            let r = rules(variant, true);
            let mut c = Cubic::default();
            let before = Window { cwnd: 100 * S, ssthresh: 0, credit: 0 };
            let threshold = c.threshold(&before, 100 * S, S, &r);
            let mut w = Window { cwnd: threshold, ssthresh: threshold, credit: 0 };
            let windows = rounds(&mut c, &mut w, Span::from_ms(1), 100, &r);
            let last = *windows.last().expect("a round") as f64;
            // RFC 9438: once 100 is reached again, a whole segment a round trip
            let expected = if variant == Variant::Rfc9438 { expected + 20.0 } else { expected };
            assert!((last - expected).abs() < 22.0 && last > 110.0, "{last} and {expected}");
        }
    }

    #[test]
    fn fast_convergence_gives_room_to_others() {
        let (on, mut off) = (rules(Variant::Linux, true), rules(Variant::Linux, true));
        off.cubic.fast_convergence = false;
        for (r, expected) in [(on, 80 * S * 870 / 1024), (off, 80 * S)] {
            let mut c = Cubic::default();
            c.threshold(&Window { cwnd: 100 * S, ssthresh: 0, credit: 0 }, 0, S, &r);
            assert_eq!(c.last_max, 100 * S);
            c.threshold(&Window { cwnd: 80 * S, ssthresh: 0, credit: 0 }, 0, S, &r);
            assert_eq!(c.last_max, expected);
        }
    }

    #[test]
    fn without_a_known_loss_linux_grows_by_a_twentieth_a_round_trip() {
        let r = rules(Variant::Linux, false);
        let mut w = Window { cwnd: 100 * S, ssthresh: 100 * S, credit: 0 };
        let windows = rounds(&mut Cubic::default(), &mut w, Span::from_ms(1), 10, &r);
        assert!(windows[9] >= 155 && windows[9] <= 165, "{windows:?}");
    }

    #[test]
    fn while_the_window_stays_linux_looks_at_the_curve_32_times_a_second() {
        let r = rules(Variant::Linux, false);
        let mut c = Cubic::default();
        c.threshold(&Window { cwnd: 1000 * S, ssthresh: 0, credit: 0 }, 0, S, &r);
        let mut w = Window { cwnd: 700 * S, ssthresh: 700 * S, credit: 0 };
        let mut every = |ms: u64| {
            let now = Time::ZERO + Span::from_ms(ms);
            let ack = Ack { now, acked: S, segment: S, after_timeout: false, srtt: Span::ZERO };
            c.on_ack(&mut w, &ack, &r);
            c.looked.2
        };
        let first = every(1_000);
        assert_eq!(every(1_031), first);
        assert!(every(1_032) < first, "it has moved on since");
    }

    #[test]
    fn an_idle_time_does_not_count() {
        let r = rules(Variant::Linux, false);
        let mut c = Cubic::default();
        c.threshold(&Window { cwnd: 100 * S, ssthresh: 0, credit: 0 }, 0, S, &r);
        let mut w = Window { cwnd: 70 * S, ssthresh: 70 * S, credit: 0 };
        rounds(&mut c, &mut w, Span::from_ms(10), 10, &r);
        let epoch = c.epoch;
        c.shift(Time::ZERO + Span::from_secs(20), Span::from_secs(15));
        assert_eq!(c.epoch, epoch + Span::from_secs(15));
        c.shift(Time::ZERO + Span::from_secs(20), Span::from_secs(15));
        assert_eq!(c.epoch, Time::ZERO + Span::from_secs(20));
    }
}
