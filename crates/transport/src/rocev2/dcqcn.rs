//! DCQCN (Zhu et al., *Congestion Control for Large-Scale RDMA Deployments*, SIGCOMM 2015): rate
//! control of RDMA flows by ECN marks. Switches are the congestion point and mark as RED does (a
//! queue of `kind = "red"` with `weight = 1`, `even = false` and `gentle = false`). This file has
//! the behaviour of both ends.
//!
//! * [`NotificationPoint`], at the receiver: for a marked packet it sends a congestion notification
//!   packet (CNP), at most one for each flow in `cnp_interval` (section 3.1, "NP algorithm").
//! * [`ReactionPoint`], at the sender. Every CNP reduces the current rate R_C, and sets the target
//!   rate R_T (equation 1):
//!
//!   ```text
//!   R_T = R_C        R_C = R_C (1 − α/2)        α = (1 − g) α + g
//!   ```
//!
//! After every `alpha_timer` without a CNP, `α = (1 − g) α` (equation 2). A flow starts at the rate
//! of its link with α = 1. The rate recovers in cycles of a timer and in cycles of a byte counter,
//! both counted from the last CNP. While both are in their first F cycles, fast recovery sets `R_C
//! = (R_T + R_C)/2` (equation 3). Once one of them is past F cycles, additive increase first adds
//! R_AI to R_T (equation 4). Once both are past F cycles, hyper increase adds `i · R_HAI` in the
//! i-th cycle, as in QCN (IEEE 802.1Q, 30.3), to which the paper refers.
//!
//! The code updates α only at a CNP, because between two CNPs α only decays and affects nothing.

use super::rate_control::RateControl;
use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of DCQCN at the sender and the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DcqcnConfig {
    /// Minimum time between two congestion notification packets (CNPs) of a flow (N).
    pub cnp_interval: Span,
    /// Gain g of the moving average α: the weight of one CNP in this average.
    pub gain: f64,
    /// Time without a CNP after which α decays (K).
    pub alpha_timer: Span,
    /// Length of a cycle of the rate increase timer (T).
    pub increase_timer: Span,
    /// Length of a cycle of the byte counter in bytes on the link, with framing (B).
    pub byte_counter: u64,
    /// Number of cycles of fast recovery before the target rate is increased (F).
    pub fast_recovery: u32,
    /// Increment of the target rate in each cycle of additive increase (R_AI).
    pub additive_increase: Rate,
    /// Increment of the target rate in hyper increase, multiplied by the number of the cycle
    /// (R_HAI).
    pub hyper_increase: Rate,
    /// Lower limit of the sending rate of a flow.
    pub min_rate: Rate,
}

/// Notification point: decides at the receiver when to send a congestion notification packet (CNP).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct NotificationPoint {
    /// Time at which the last CNP was sent; `None` before the first one.
    last: Option<Time>,
}

impl NotificationPoint {
    /// Handles a packet with a CE mark. Returns whether to send a congestion notification packet
    /// (CNP).
    pub fn sends_cnp(&mut self, now: Time, c: &DcqcnConfig) -> bool {
        let due = self.last.is_none_or(|last| now >= last + c.cnp_interval);
        if due {
            self.last = Some(now);
        }
        due
    }
}

/// Reaction point: controls the rate of a flow at its sender.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReactionPoint {
    /// Current sending rate (R_C) in bits per second.
    current: u64,
    /// Target rate (R_T), to which the current rate returns, in bits per second.
    target: u64,
    /// Rate of the link in bits per second.
    line: u64,
    alpha: f64,
    /// Time up to which α is updated, which is the time of the last CNP; `None` before the first
    /// CNP.
    alpha_from: Option<Time>,
    timer_cycles: u32,
    byte_cycles: u32,
    bytes_left: u64,
    /// Time at which the timer's current cycle ends; [`Time::NEVER`] while the rate is that of the
    /// link.
    pub timer_at: Time,
}

impl ReactionPoint {
    /// Returns the state of a new flow, whose rate is that of its link.
    pub fn new(line: Rate) -> ReactionPoint {
        ReactionPoint {
            current: line.0,
            target: line.0,
            line: line.0,
            alpha: 1.0,
            alpha_from: None,
            timer_cycles: 0,
            byte_cycles: 0,
            bytes_left: 0,
            timer_at: Time::NEVER,
        }
    }

    /// Returns the current sending rate of the flow (R_C).
    pub fn rate(&self) -> Rate {
        Rate(self.current)
    }

    /// Whether the rate is that of the link, so that DCQCN does not limit the flow.
    pub fn is_free(&self) -> bool {
        self.current >= self.line
    }

    /// Handles a CNP: reduces the rate of the flow (equation 1 of Zhu et al. 2015).
    pub fn on_cnp(&mut self, now: Time, c: &DcqcnConfig) {
        if let Some(last) = self.alpha_from {
            let decays = now.since(last).0 / c.alpha_timer.0.max(1);
            self.alpha *= power(1.0 - c.gain, decays);
        }
        self.target = self.current;
        let cut = self.current as f64 * (1.0 - self.alpha / 2.0);
        self.current = (cut as u64).max(c.min_rate.0).min(self.line);
        self.alpha = (1.0 - c.gain) * self.alpha + c.gain;
        self.alpha_from = Some(now);
        (self.timer_cycles, self.byte_cycles) = (0, 0);
        self.bytes_left = c.byte_counter;
        self.timer_at = if self.is_free() { Time::NEVER } else { now + c.increase_timer };
    }

    /// Counts `bytes` bytes sent on the link. Increases the rate if a cycle of the byte counter
    /// ends.
    pub fn on_sent(&mut self, bytes: u64, c: &DcqcnConfig) {
        if self.is_free() {
            return;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.bytes_left == 0 {
            self.bytes_left = c.byte_counter;
            self.byte_cycles = self.byte_cycles.saturating_add(1);
            self.increase(c);
        }
    }

    /// Handles the end of a cycle of the timer: increases the rate.
    pub fn on_timer(&mut self, now: Time, c: &DcqcnConfig) {
        self.timer_at = now + c.increase_timer;
        self.timer_cycles = self.timer_cycles.saturating_add(1);
        self.increase(c);
    }

    fn increase(&mut self, c: &DcqcnConfig) {
        let (least, most) =
            (self.timer_cycles.min(self.byte_cycles), self.timer_cycles.max(self.byte_cycles));
        if least > c.fast_recovery {
            let cycle = u64::from(least - c.fast_recovery);
            self.target = self.target.saturating_add(c.hyper_increase.0.saturating_mul(cycle));
        } else if most > c.fast_recovery {
            self.target = self.target.saturating_add(c.additive_increase.0);
        }
        self.target = self.target.min(self.line);
        self.current = (self.current + self.target).div_ceil(2);
        if self.is_free() {
            self.timer_at = Time::NEVER;
        }
    }
}

/// DCQCN at one end of a queue pair: the reaction point of its sender and the notification point of
/// its receiver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Dcqcn {
    reaction: ReactionPoint,
    notification: NotificationPoint,
}

impl RateControl for Dcqcn {
    const NAME: &'static str = "dcqcn";
    const DOC: &'static str = "DCQCN: the receiver notifies the sender of marked packets (Zhu et \
                               al. 2015)";
    const TABLE: &'static str = "Settings of DCQCN at the hosts (Zhu et al. 2015).";
    type Settings = DcqcnConfig;

    /// Reads the settings of DCQCN. Defaults are values of figure 14 of the paper (Zhu et al.
    /// 2015); where the figure has none, of IEEE 802.1Q or of Mellanox's cards.
    fn read(s: &mut Section) -> DcqcnConfig {
        let span = |s: &mut Section, name, doc, default| -> Span {
            s.get(key(name, doc).default(default).range("1 us", "10 s"))
        };
        let rate = |s: &mut Section, name, doc, default| {
            s.get(key::<Rate>(name, doc).default(default).range("1 kbit/s", "1 Tbit/s"))
        };
        let gain: Ratio = s.get(
            key(
                "gain",
                "Gain of alpha's moving average at each notification (g; Zhu et al. 2015: \
                         1/256).",
            )
            .default("0.00390625")
            .range("0.000001", "1"),
        );
        let byte_counter: Bytes = s.get(
            key(
                "byte_counter",
                "Length of a cycle of the byte counter, in bytes (B; Zhu et al. \
                                 2015).",
            )
            .default("10 MB")
            .range("1 KB", "1000 GB"),
        );
        DcqcnConfig {
            cnp_interval: span(
                s,
                "cnp_interval",
                "Minimum time between two notifications for a flow (N; Zhu et al. 2015).",
                "50 us",
            ),
            gain: gain.0,
            alpha_timer: span(
                s,
                "alpha_timer",
                "Time without notification after which alpha is reduced (K; Zhu et al. 2015).",
                "55 us",
            ),
            increase_timer: span(
                s,
                "increase_timer",
                "Length of a cycle of the rate increase timer (T; Zhu et al. 2015).",
                "55 us",
            ),
            byte_counter: byte_counter.0,
            fast_recovery: s.get(
                key(
                    "fast_recovery",
                    "Number of cycles of fast recovery before the target rate is \
                                      increased (F; Zhu et al. 2015).",
                )
                .default("5")
                .range("1", "1000"),
            ),
            additive_increase: rate(
                s,
                "additive_increase",
                "Increase of the target rate in each cycle of additive increase (R_AI; Zhu et al. \
                 2015).",
                "40 Mbit/s",
            ),
            hyper_increase: rate(
                s,
                "hyper_increase",
                "Increase of the target rate in hyper increase, multiplied by the number of the \
                 cycle (R_HAI; IEEE 802.1Q and ns3-rdma).",
                "50 Mbit/s",
            ),
            min_rate: rate(
                s,
                "min_rate",
                "Lowest rate of a flow (Mellanox, rpg_min_rate).",
                "1 Mbit/s",
            ),
        }
    }

    fn start(line: Rate) -> Dcqcn {
        let notification = NotificationPoint::default();
        Dcqcn { reaction: ReactionPoint::new(line), notification }
    }

    fn rate(&self) -> Rate {
        self.reaction.rate()
    }

    fn is_free(&self) -> bool {
        self.reaction.is_free()
    }

    fn timer_at(&self) -> Time {
        self.reaction.timer_at
    }

    fn after_sending(&mut self, bytes: u64, settings: &DcqcnConfig) {
        self.reaction.on_sent(bytes, settings);
    }

    fn after_notification(&mut self, now: Time, settings: &DcqcnConfig) {
        self.reaction.on_cnp(now, settings);
    }

    fn after_timer(&mut self, now: Time, settings: &DcqcnConfig) {
        self.reaction.on_timer(now, settings);
    }

    fn notifies(&mut self, now: Time, settings: &DcqcnConfig) -> bool {
        self.notification.sends_cnp(now, settings)
    }
}

/// Returns `base` to the power `exponent`. The function squares repeatedly, so that the result has
/// the same bits on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const LINE: Rate = Rate::gbit(40);

    /// Returns the default settings of DCQCN (Zhu et al. 2015, figure 14).
    pub(crate) fn config() -> DcqcnConfig {
        DcqcnConfig {
            cnp_interval: Span::from_us(50),
            gain: 1.0 / 256.0,
            alpha_timer: Span::from_us(55),
            increase_timer: Span::from_us(55),
            byte_counter: 10_000_000,
            fast_recovery: 5,
            additive_increase: Rate::mbit(40),
            hyper_increase: Rate::mbit(50),
            min_rate: Rate::mbit(1),
        }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn the_first_notification_halves_and_five_cycles_regain_all_but_a_64th() {
        let (c, mut point) = (config(), ReactionPoint::new(LINE));
        point.on_cnp(at(100), &c);
        assert_eq!((point.current, point.target, point.alpha), (LINE.0 / 2, LINE.0, 1.0));
        for cycle in 1..=5u64 {
            assert_eq!(point.timer_at, at(100 + 55 * cycle));
            point.on_timer(point.timer_at, &c);
        }
        // Equation 3 is applied five times: 1 − (1/2)/2⁵.
        assert_eq!(LINE.0 - point.current, LINE.0 / 64);
    }

    #[test]
    fn alpha_follows_equations_one_and_two() {
        let (c, mut point) = (config(), ReactionPoint::new(LINE));
        point.on_cnp(at(100), &c);
        // Seven whole intervals pass without a CNP, and then a CNP arrives.
        point.on_cnp(at(100 + 7 * 55 + 54), &c);
        let g = 1.0 / 256.0;
        let decayed = (0..7).fold(1.0, |alpha, _| alpha * (1.0 - g));
        assert!((point.alpha - ((1.0 - g) * decayed + g)).abs() < 1e-12, "{}", point.alpha);
        let cut = LINE.0 as f64 / 2.0 * (1.0 - decayed / 2.0);
        assert!((point.current as f64 - cut).abs() < 2.0, "{}", point.current);
    }

    #[test]
    fn after_fast_recovery_the_target_grows_by_r_ai_and_then_by_r_hai() {
        let (c, mut point) = (config(), ReactionPoint::new(LINE));
        (0..4).for_each(|n| point.on_cnp(at(100 + n), &c));
        let target = point.target;
        (0..5).for_each(|_| point.on_timer(at(200), &c));
        assert_eq!(point.target, target);
        for cycle in 1..=3 {
            point.on_timer(at(200), &c);
            assert_eq!(point.target, target + 40_000_000 * cycle);
        }
        (0..5).for_each(|_| point.on_sent(10_000_000, &c));
        assert_eq!(point.target, target + 40_000_000 * 8);
        point.on_sent(10_000_000, &c);
        assert_eq!(point.target, target + 40_000_000 * 8 + 50_000_000);
        point.on_sent(9_999_999, &c);
        assert_eq!(point.byte_cycles, 6);
        point.on_sent(1, &c);
        assert_eq!(point.target, target + 40_000_000 * 8 + 150_000_000);
    }

    #[test]
    fn rates_stay_between_the_least_and_the_link_and_timers_rest_at_the_link() {
        let (c, mut point) = (config(), ReactionPoint::new(LINE));
        (0..200).for_each(|n| point.on_cnp(at(100 + 50 * n), &c));
        assert_eq!(point.rate(), c.min_rate);
        let mut cycles = 0;
        while !point.is_free() {
            point.on_timer(point.timer_at, &c);
            cycles += 1;
            assert!(point.target <= LINE.0);
        }
        // The rate rises to 40 Gbit/s in steps of 40 Mbit/s, and a few cycles more approach the
        // target.
        assert!((1_000..1_100).contains(&cycles), "{cycles}");
        assert_eq!((point.current, point.timer_at), (LINE.0, Time::NEVER));
    }

    #[test]
    fn notifications_keep_their_distance() {
        let (c, mut point) = (config(), NotificationPoint::default());
        let nak_sent: Vec<u64> = (0..200).filter(|us| point.sends_cnp(at(*us), &c)).collect();
        assert_eq!(nak_sent, [0, 50, 100, 150]);
    }
}
