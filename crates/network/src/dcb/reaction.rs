//! Reaction points of QCN (IEEE 802.1Q, clause 32): rate limiters of hosts, one for each flow for
//! which a CNM has arrived. A flow consists of the packets that a host sends to one destination in
//! one priority.
//!
//! On a CNM with feedback F, the target rate TR is set to the current rate CR, and CR is then
//! reduced to `CR·(1 − G_d·F)`, by half at most (63/128 with the values of the standard). The rate
//! recovers in cycles. A cycle of the byte counter ends when `byte_limit` bytes have been sent, and
//! a cycle of the timer when the time `timer` has passed. The byte counter and the timer each count
//! their own cycles (five is the default of `threshold`):
//!
//! * *fast recovery*, in the first five cycles of byte counter and timer: `CR ← (CR + TR)/2`;
//! * *active increase*, when one of the two has completed five cycles: `TR ← TR + 5 Mbit/s` before
//!   each step;
//! * *hyperactive increase*, when each of the two has completed five cycles: `TR ← TR + i·50
//!   Mbit/s` in the i-th cycle.
//!
//! Cycles after the fifth are half as long. With *extra fast recovery*, feedback before the end of
//! the first cycle of the byte counter reduces the current rate, but neither changes the target
//! rate nor restarts this cycle. If the target rate is more than ten times the current rate at the
//! end of a first cycle, the target rate is divided by eight. When the current rate reaches the
//! line rate, the limiter is removed.

use super::qcn::QcnConfig;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Reaction point (rate limiter) of one flow. Rates are in bit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReactionPoint {
    current: u64,
    target: u64,
    line: u64,
    byte_cycles: u32,
    time_cycles: u32,
    bytes_left: i64,
    /// Time at which the current cycle of the rate increase timer ends.
    pub timer_at: Time,
}

impl ReactionPoint {
    /// Returns the reaction point of a flow at the line rate `line`, before its first congestion
    /// notification message (CNM).
    pub fn new(line: Rate) -> ReactionPoint {
        ReactionPoint {
            current: line.0,
            target: line.0,
            line: line.0,
            // The counters start as if a cycle had ended, so that the first CNM sets the target
            // rate.
            byte_cycles: 1,
            time_cycles: 1,
            bytes_left: 0,
            timer_at: Time::NEVER,
        }
    }

    /// Returns the current rate limit of the flow.
    pub fn rate(&self) -> Rate {
        Rate(self.current)
    }

    /// Whether the current rate is the line rate, so that the flow is no longer limited.
    pub fn is_at_line_rate(&self) -> bool {
        self.current >= self.line
    }

    /// Decreases the current rate after a congestion notification message (CNM) with feedback `fb`
    /// (1 to 63).
    pub fn decrease_rate(&mut self, now: Time, fb: u8, c: &QcnConfig, random: &mut Stream) {
        if self.byte_cycles > 0 || !c.extra_fast_recovery {
            self.target = self.current;
            self.bytes_left = c.around(c.byte_limit, random);
        }
        let left = (1.0 - c.gain * f64::from(fb)).max(c.min_decrease);
        self.current = ((self.current as f64 * left) as u64).max(c.min_rate.0).min(self.line);
        (self.byte_cycles, self.time_cycles) = (0, 0);
        self.timer_at = now + jittered(c.timer, c, random);
    }

    /// Counts the bytes of a packet whose transmission starts. At the end of a cycle of the byte
    /// counter, increases the rate.
    pub fn on_transmit(&mut self, bytes: u32, c: &QcnConfig, random: &mut Stream) {
        self.bytes_left -= i64::from(bytes);
        if self.bytes_left <= 0 {
            self.byte_cycles = self.byte_cycles.saturating_add(1);
            let late = self.byte_cycles >= c.threshold;
            self.bytes_left = c.around(if late { c.byte_limit / 2 } else { c.byte_limit }, random);
            self.recover(self.byte_cycles == 1, c);
        }
    }

    /// Ends a cycle of the rate increase timer: increases the rate and starts the next cycle.
    pub fn on_timer(&mut self, now: Time, c: &QcnConfig, random: &mut Stream) {
        self.time_cycles = self.time_cycles.saturating_add(1);
        let late = self.time_cycles >= c.threshold;
        let cycle = if late { Span(c.timer.0 / 2) } else { c.timer };
        self.timer_at = now + jittered(cycle, c, random);
        self.recover(self.time_cycles == 1, c);
    }

    /// Increases the rate at the end of a cycle. `first` means that the ended cycle was the first
    /// cycle of the byte counter or the timer.
    fn recover(&mut self, first: bool, c: &QcnConfig) {
        let (least, most) =
            (self.byte_cycles.min(self.time_cycles), self.byte_cycles.max(self.time_cycles));
        if first && self.target > self.current.saturating_mul(10) {
            self.target /= 8;
        } else if least > c.threshold {
            let more = c.hyper_increase.0.saturating_mul(u64::from(least - c.threshold));
            self.target = self.target.saturating_add(more);
        } else if most > c.threshold {
            self.target = self.target.saturating_add(c.active_increase.0);
        }
        self.target = self.target.min(self.line);
        self.current = (self.current + self.target).div_ceil(2);
    }
}

/// Returns a time with random variation, see [`QcnConfig::around`].
fn jittered(span: Span, c: &QcnConfig, random: &mut Stream) -> Span {
    Span(c.around(span.0, random) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::qcn::tests::config;
    use super::*;

    const LINE: Rate = Rate::gbit(10);

    fn slowed(fb: u8) -> (ReactionPoint, Stream) {
        let mut random = Stream::new(1, "rp");
        let mut point = ReactionPoint::new(LINE);
        point.decrease_rate(Time::ZERO, fb, &config(), &mut random);
        (point, random)
    }

    #[test]
    fn the_worst_cut_is_63_of_128() {
        let (point, _) = slowed(63);
        assert_eq!(point.current, 10_000_000_000 * 65 / 128);
        let cut = 1.0 - point.current as f64 / 1e10;
        assert!((cut - 0.492).abs() < 5e-4, "{cut}");
    }

    #[test]
    fn five_cycles_of_fast_recovery_regain_all_but_a_thirty_second_of_a_cut() {
        let (mut point, mut random) = slowed(63);
        let cut = LINE.0 - point.current;
        for _ in 0..5 {
            // 100 packets of 1500 B are one cycle of the byte counter, 150 kB.
            (0..100).for_each(|_| point.on_transmit(1500, &config(), &mut random));
        }
        let regained = 1.0 - (LINE.0 - point.current) as f64 / cut as f64;
        assert!((regained - 0.96875).abs() < 1e-6, "{regained}");
        assert_eq!(LINE.time_for(150_000), Span::from_us(120));
    }

    #[test]
    fn after_fast_recovery_the_target_grows_by_5_and_then_by_50_megabits() {
        let (c, mut random) = (config(), Stream::new(1, "rp"));
        let mut point = ReactionPoint::new(LINE);
        for _ in 0..3 {
            point.decrease_rate(Time::ZERO, 63, &c, &mut random);
            // One cycle of the byte counter ends between two CNMs, so that the second CNM sets the
            // target rate again.
            (0..100).for_each(|_| point.on_transmit(1500, &c, &mut random));
        }
        point.decrease_rate(Time::ZERO, 63, &c, &mut random);
        let target = point.target;
        (0..500).for_each(|_| point.on_transmit(1500, &c, &mut random));
        assert_eq!((point.byte_cycles, point.target), (5, target));
        // The sixth cycle of the byte counter has half as many bytes as the first.
        (0..50).for_each(|_| point.on_transmit(1500, &c, &mut random));
        assert_eq!((point.byte_cycles, point.target), (6, target + 5_000_000));
        for cycle in 1..=5 {
            point.on_timer(Time::ZERO, &c, &mut random);
            assert_eq!(point.target, target + 5_000_000 * (1 + cycle));
        }
        point.on_timer(Time::ZERO, &c, &mut random);
        assert_eq!(point.target, target + 30_000_000 + 50_000_000);
        // The smaller of the two numbers of cycles (bytes and timer) decides on the increase: a
        // seventh cycle of the timer alone adds the same increase again.
        point.on_timer(Time::ZERO, &c, &mut random);
        assert_eq!(point.target, target + 30_000_000 + 100_000_000);
    }

    #[test]
    fn extra_fast_recovery_keeps_the_target_through_messages_in_a_row() {
        let (mut point, mut random) = slowed(63);
        point.decrease_rate(Time(1), 63, &config(), &mut random);
        assert_eq!(point.target, LINE.0);
        let plain = QcnConfig { extra_fast_recovery: false, ..config() };
        let (mut point, mut random) = slowed(63);
        let once = point.current;
        point.decrease_rate(Time(1), 63, &plain, &mut random);
        assert_eq!(point.target, once);
    }

    #[test]
    fn bytes_of_the_first_cycle_count_on_and_the_timer_does_not_end_it() {
        let (c, (mut point, mut random)) = (config(), slowed(63));
        (0..66).for_each(|_| point.on_transmit(1500, &c, &mut random));
        point.on_timer(Time::ZERO, &c, &mut random);
        point.decrease_rate(Time(1), 63, &c, &mut random);
        // 99 kB before the CNM and 51 kB after it together are one cycle of the byte counter, 150
        // kB.
        assert_eq!((point.byte_cycles, point.target), (0, LINE.0));
        (0..34).for_each(|_| point.on_transmit(1500, &c, &mut random));
        assert_eq!(point.byte_cycles, 1);
        let rate = point.current;
        point.decrease_rate(Time(2), 63, &c, &mut random);
        assert_eq!(point.target, rate);
    }

    #[test]
    fn no_rate_falls_below_its_least_and_far_targets_come_down_first() {
        let (mut point, mut random) = slowed(63);
        for _ in 0..100 {
            point.decrease_rate(Time::ZERO, 63, &config(), &mut random);
        }
        assert_eq!((point.current, point.target), (100_000, LINE.0));
        point.on_timer(Time::ZERO, &config(), &mut random);
        assert_eq!(point.target, LINE.0 / 8);
    }
}
