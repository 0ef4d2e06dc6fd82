//! Deadlines of a sender's timers: retransmission, tail loss probe, TIME-WAIT. Also the ticks of
//! Linux's timer wheel.
//!
//! Expiry is handled in [`timer_expiry`](super::timer_expiry); the length of the retransmission
//! timeout is computed in [`rtt`](super::rtt). Deadlines are fields of the endpoint and move with
//! every ACK. A new timer event of the simulator is requested only if the pending event would be
//! too late. An event that is too early arms the next one.

use super::config::TcpConfig;
use super::rtt::RttEstimator;
use super::states::{RackTimer, TimeWait};
use super::stream::Stream;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Number of levels of Linux's timer wheel. Each level covers 63 units, and its unit is eight units
/// of the level below.
const WHEEL_LEVELS: u32 = 9;

/// Returns the tick at which a timer of `ticks` ticks, set during tick `now`, expires in Linux's
/// timer wheel (`calc_wheel_index`). The tick is after `now + ticks`, at a whole unit of the
/// wheel's level.
fn wheel_expiry(now: u64, ticks: u64) -> u64 {
    let mut level = 0;
    while level + 1 < WHEEL_LEVELS && ticks >= 63 << (3 * level) {
        level += 1;
    }
    (((now + ticks) >> (3 * level)) + 1) << (3 * level)
}

/// Returns the expiry time of a timer of length `span` that `host` arms at `now`. If timers have
/// ticks, the time is a tick of the host's kernel.
#[inline]
pub(super) fn deadline(now: Time, span: Span, host: HostId, config: &TcpConfig) -> Time {
    match config.timers.ticks {
        true => tick_deadline(now, span, host, config),
        false => now + span,
    }
}

/// Returns the tick of the kernel of `host` at which a timer of length `span` expires that is armed
/// at `now`.
#[inline(never)]
fn tick_deadline(now: Time, span: Span, host: HostId, config: &TcpConfig) -> Time {
    let tick = config.granularity.0.max(1);
    // Hosts boot at different times, so their ticks differ in phase.
    let uptime = config.timers.uptime(host, tick);
    let struck = wheel_expiry((now.0 + uptime) / tick, span.0.div_ceil(tick)) * tick;
    Time(struck - uptime)
}

/// Returns the expiry time of a retransmission timer of length `rto` that `host` arms at `now`;
/// `before`: its expiry time if it was armed earlier, [`Time::NEVER`] otherwise.
#[inline]
pub(super) fn rto_deadline(
    before: Time,
    now: Time,
    rto: Span,
    host: HostId,
    config: &TcpConfig,
) -> Time {
    if !config.timers.ticks {
        return now + rto;
    }
    // With a minimum of 63 ticks, earlier timeouts have expired at whole units of at least eight
    // ticks; a timeout of 63 to 503 ticks expires at a whole unit of eight.
    let tick = config.granularity.0.max(1);
    let least = config.min_rto.0.min(rto.0);
    let unit = if least >= 63 * tick && rto.0 < 504 * tick { 8 * tick } else { 0 };
    wheel_deadline(before, unit, now, rto, host, config)
}

/// Returns the expiry time of a tail loss probe timer of length `timeout` that `host` arms at `now`;
/// `before`: its expiry time if it was armed earlier, [`Time::NEVER`] otherwise.
#[inline]
pub(super) fn probe_deadline(
    before: Time,
    now: Time,
    timeout: Span,
    host: HostId,
    config: &TcpConfig,
) -> Time {
    if !config.timers.ticks {
        return now + timeout;
    }
    let tick = config.granularity.0.max(1);
    let ticks = timeout.0.div_ceil(tick);
    let unit = if ticks < 63 { tick } else { 0 };
    wheel_deadline(before, unit, now, Span(ticks * tick), host, config)
}

/// Returns the expiry time of a timer of length `span`, a whole number of ticks, that `host` arms at
/// `now`. If the timer expires at a whole unit of `unit` ps, as it did at the time `before`, and
/// `before` is the first such time after `now + span`, then it is the result; this comparison takes
/// far fewer instructions. `unit` is 0 if the unit is not known.
#[inline]
fn wheel_deadline(
    before: Time,
    unit: u64,
    now: Time,
    span: Span,
    host: HostId,
    config: &TcpConfig,
) -> Time {
    let from = now.0.saturating_add(span.0);
    if from < before.0 && before.0 - from <= unit {
        debug_assert_eq!(before, tick_deadline(now, span, host, config));
        return before;
    }
    tick_deadline(now, span, host, config)
}

/// Timers and round-trip times of a sender.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timers {
    /// Expiry of the retransmission timer, which also serves as [persist timer](super::persist) and
    /// as timer of [`TimeWait`]; [`Time::NEVER`] if it is not armed.
    pub(super) rto_at: Time,
    /// Time of the earliest timer event of the endpoint that is pending in the simulator.
    pub(super) armed_at: Time,
    /// Smoothed round-trip time and its variation.
    pub(super) rtt: RttEstimator,
    /// Without timestamps: end position of the segment whose RTT is being measured; 0 if there is
    /// none.
    pub(super) timed_end: u64,
    /// Time at which the segment whose RTT is being measured was sent.
    pub(super) timed_at: Time,
    /// Number of retransmission timeouts since SND.UNA last advanced, or of window probes without
    /// an answer.
    pub(super) retries: u16,
    /// Number of times that the retransmission timeout is currently doubled (RFC 6298, 5.5).
    pub(super) backoff: u8,
    /// Purpose for which the RACK-TLP timer of the [scoreboard](super::scoreboard) is armed.
    pub(super) rack_timer: RackTimer,
    /// State of TIME-WAIT, in which a closed endpoint answers late packets.
    pub(super) time_wait: TimeWait,
}

impl Timers {
    /// Returns the timers of a new connection, of which none is armed.
    pub(super) fn new() -> Timers {
        Timers {
            rto_at: Time::NEVER,
            armed_at: Time::NEVER,
            rtt: RttEstimator::default(),
            timed_end: 0,
            timed_at: Time::ZERO,
            retries: 0,
            backoff: 0,
            rack_timer: RackTimer::Off,
            time_wait: TimeWait::NotYet,
        }
    }

    /// Returns the retransmission timeout with the current backoff.
    #[inline(never)]
    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        self.rtt.rto(self.backoff, config)
    }

    /// Adds an RTT sample, which ends the backoff of the retransmission timeout (RFC 6298, 5.7).
    #[inline(always)]
    pub(super) fn add_rtt_sample(&mut self, rtt: Span, stream: &Stream, config: &TcpConfig) {
        self.backoff = 0;
        self.rtt.sample(rtt, stream.una, stream.next, config);
    }

    /// Starts to measure the RTT of the segment that ends before stream position `end`, unless
    /// another segment is being measured.
    #[inline]
    pub(super) fn time_segment(&mut self, now: Time, end: u64) {
        if self.timed_end == 0 {
            (self.timed_end, self.timed_at) = (end, now);
        }
    }

    /// Starts TIME-WAIT, in which retransmitted FINs are answered until the time `until`.
    pub(super) fn start_time_wait(&mut self, until: Time) {
        self.time_wait = TimeWait::Running;
        self.rto_at = until;
    }
}

/// Returns the time after which a connection without progress fails: the sum of `max_retries` + 1
/// timeouts that double from the minimum up to the maximum (Linux, `tcp_model_timeout`).
pub(super) fn give_up_after(config: &TcpConfig) -> Span {
    let doublings = (config.max_rto.0 / config.min_rto.0.max(1)).max(1).ilog2();
    let steep = config.max_retries.min(doublings);
    let flat = u64::from(config.max_retries - steep);
    let doubled = config.min_rto.0.saturating_mul((2 << steep) - 1);
    Span(doubled.saturating_add(config.max_rto.0.saturating_mul(flat)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::test_config;
    use crate::tcp::rules::TimerRules;
    use eastwest_engine::random::Stream;

    #[test]
    fn the_wheel_strikes_after_the_tick_and_ever_more_coarsely() {
        assert_eq!(wheel_expiry(1000, 1), 1002);
        assert_eq!(wheel_expiry(1000, 62), 1063);
        // From 63 ticks on the unit is eight ticks: 1063 / 8 is 132.9.
        assert_eq!(wheel_expiry(1000, 63), 133 * 8);
        assert_eq!(wheel_expiry(1000, 200), 151 * 8);
        assert_eq!(wheel_expiry(1000, 504), (1504 / 64 + 1) * 64);
        for (now, ticks) in [(7, 1), (12_345, 250), (99, 30_000), (1 << 30, 1 << 40)] {
            assert!(wheel_expiry(now, ticks) > now + ticks);
        }
    }

    #[test]
    fn the_uptimes_of_hosts_spread_over_the_tick_and_the_units_of_the_wheel() {
        let tick = Span::from_ms(1).0;
        let rules = TimerRules { ticks: true, uptime_seed: Some(7), ..TimerRules::default() };
        assert_eq!(TimerRules::default().uptime(HostId(3), tick), 0);
        for unit in [tick, 8 * tick, 64 * tick] {
            let mut tenths = [0u32; 10];
            for host in 0..10_000 {
                let phase = rules.uptime(HostId(host), tick) % unit;
                tenths[(phase * 10 / unit) as usize] += 1;
            }
            assert!(tenths.iter().all(|&n| (850..1150).contains(&n)), "{tenths:?}");
        }
        // The uptime is equal for all connections of a host, and different with another seed.
        let other = TimerRules { uptime_seed: Some(8), ..rules.clone() };
        assert_ne!(rules.uptime(HostId(3), tick), other.uptime(HostId(3), tick));
        let late = rules.uptime(HostId(3), Span::from_secs(10).0);
        assert!(late < Span::from_secs(10).0 << 18);
    }

    #[test]
    fn a_timer_strikes_on_a_tick_of_its_own_host() {
        let tick = Span::from_ms(4);
        let config = TcpConfig {
            granularity: tick,
            timers: TimerRules { ticks: true, uptime_seed: Some(1), ..TimerRules::default() },
            ..test_config()
        };
        let now = Time::ZERO + Span::from_us(12_345);
        let mut phases = Vec::new();
        for host in 0..4 {
            let at = deadline(now, Span::from_ms(200), HostId(host), &config);
            let uptime = config.timers.uptime(HostId(host), tick.0);
            // 200 ms are 50 ticks, and the wheel expires at the next tick: never early, and at most
            // one tick late.
            assert_eq!((at.0 + uptime) % tick.0, 0);
            assert!(at > now + Span::from_ms(200) && at <= now + Span::from_ms(204));
            phases.push(at.0 % tick.0);
        }
        phases.sort_unstable();
        phases.dedup();
        assert_eq!(phases.len(), 4, "no two hosts tick in phase");
    }

    /// Arms a timer again and again with `arm` (earlier expiry, time, length, settings), for lengths
    /// of `ticks` to `ticks` + `spread` ticks. Returns in how many of 2,000 cases the expiry stayed.
    fn arm_often(
        (ticks, spread): (u64, u64),
        arm: impl Fn(Time, Time, Span, &TcpConfig) -> Time,
    ) -> u32 {
        let tick = Span::from_ms(1);
        let config = TcpConfig {
            granularity: tick,
            min_rto: Span(ticks * tick.0),
            timers: TimerRules { ticks: true, uptime_seed: Some(5), ..TimerRules::default() },
            ..test_config()
        };
        let (mut now, mut before, mut stayed) = (Time::ZERO, Time::NEVER, 0);
        let mut random = Stream::new(ticks, "timers");
        for _ in 0..2_000 {
            now += Span(random.below(tick.0 * 3 / 2));
            let length = Span((ticks + random.below(spread + 1)) * tick.0);
            let at = arm(before, now, length, &config);
            assert_eq!(at, deadline(now, length, HostId(2), &config), "{length:?} at {now:?}");
            stayed += u32::from(at == before);
            before = at;
        }
        stayed
    }

    #[test]
    fn a_timer_that_is_armed_again_expires_as_one_that_is_armed_first() {
        let rto = |before, now, length, config: &TcpConfig| {
            rto_deadline(before, now, length, HostId(2), config)
        };
        let probe = |before, now, length, config: &TcpConfig| {
            probe_deadline(before, now, length, HostId(2), config)
        };
        // Lengths on both sides of the limits of the wheel's levels, 63 and 504 ticks.
        for spread in [0, 1, 12, 600] {
            for ticks in [1, 40, 55, 62, 63, 64, 200, 480, 503, 504, 3_000] {
                arm_often((ticks, spread), rto);
                arm_often((ticks, spread), probe);
            }
        }
        assert!(arm_often((200, 0), rto) > 1_500);
    }

    #[test]
    fn without_ticks_hosts_have_no_phase() {
        let timers = TimerRules { uptime_seed: Some(1), ..TimerRules::default() };
        let config = TcpConfig { timers, ..test_config() };
        let now = Time::ZERO + Span::from_us(12_345);
        assert_eq!(deadline(now, Span::from_ms(200), HostId(0), &config), now + Span::from_ms(200));
    }

    #[test]
    fn patience_is_that_of_linux() {
        // Linux documents 924.6 s for tcp_retries2 = 15, and 102 s for 8, the minimum of RFC 1122.
        assert_eq!(give_up_after(&test_config()), Span::from_ms(924_600));
        let eight = TcpConfig { max_retries: 8, ..test_config() };
        assert_eq!(give_up_after(&eight), Span::from_ms(102_200));
    }
}
