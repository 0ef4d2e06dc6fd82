//! The retransmission, delayed-ACK and linger timers, and what their lengths follow from.
//!
//! Deadlines live in the endpoint and move with every ACK; a wake-up is asked for only where the
//! pending one would come too late, and one that comes too early just asks again.

use super::config::TcpConfig;
use super::phases::{Linger, Probe};
use super::rtt::RttEstimator;
use super::stream::Stream;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Levels of Linux's timer wheel: each holds 63 units ahead, and its unit is eight of the level below.
const WHEEL_LEVELS: u32 = 9;

/// The tick at which Linux's timer wheel strikes for a timer of `ticks` set during tick `now`
/// (`calc_wheel_index`): after the tick asked for, at a whole unit of the level it falls into.
fn wheel(now: u64, ticks: u64) -> u64 {
    let mut level = 0;
    while level + 1 < WHEEL_LEVELS && ticks >= 63 << (3 * level) {
        level += 1;
    }
    (((now + ticks) >> (3 * level)) + 1) << (3 * level)
}

/// Returns when a timer expires that a host sets now, in whole ticks of its kernel where it has such.
#[inline]
pub(super) fn deadline(now: Time, span: Span, host: HostId, config: &TcpConfig) -> Time {
    if !config.timers.ticks {
        return now + span;
    }
    let tick = config.granularity.0.max(1);
    // hosts boot at different moments, so that their ticks differ in phase
    let uptime = config.timers.uptime(host, tick);
    let struck = wheel((now.0 + uptime) / tick, span.0.div_ceil(tick)) * tick;
    Time(struck - uptime)
}

/// Deadlines of a sender, and round trips.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timers {
    /// When the retransmission timer strikes; also for the [probe of a closed window](super::persist) and
    /// for [`Linger`].
    pub(super) rto_at: Time,
    /// The earliest wake-up that is pending.
    pub(super) armed_at: Time,
    /// Round trips so far.
    pub(super) rtt: RttEstimator,
    /// A segment timed without timestamps: its end (0: none) and when it was sent.
    pub(super) timed_end: u64,
    /// See `timed_end`.
    pub(super) timed_at: Time,
    /// Timeouts since an ACK last moved on.
    pub(super) retries: u16,
    /// How often the timeout has been doubled since the last good sample (RFC 6298, 5.5).
    pub(super) backoff: u8,
    /// What the timer of the [board](super::board) is for.
    pub(super) probe: Probe,
    /// State of the connection once both FINs are acknowledged.
    pub(super) linger: Linger,
}

impl Timers {
    /// Nothing is awaited.
    pub(super) fn new() -> Timers {
        Timers {
            rto_at: Time::NEVER,
            armed_at: Time::NEVER,
            rtt: RttEstimator::default(),
            timed_end: 0,
            timed_at: Time::ZERO,
            retries: 0,
            backoff: 0,
            probe: Probe::None,
            linger: Linger::NotYet,
        }
    }

    /// Returns the timeout to arm now.
    #[inline]
    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        self.rtt.rto(self.backoff, config)
    }

    /// Takes a round-trip sample, which ends the backing off (RFC 6298, 5.7).
    #[inline]
    pub(super) fn take_sample(&mut self, rtt: Span, stream: &Stream, config: &TcpConfig) {
        self.backoff = 0;
        self.rtt.sample(rtt, stream.una, stream.next, config);
    }

    /// Times the segment up to `end`, unless another is timed.
    #[inline]
    pub(super) fn time_segment(&mut self, now: Time, end: u64) {
        if self.timed_end == 0 {
            (self.timed_end, self.timed_at) = (end, now);
        }
    }

    /// Stays for a while to answer a FIN that comes again (TIME-WAIT).
    pub(super) fn begin_linger(&mut self, until: Time) {
        self.linger = Linger::Until;
        self.rto_at = until;
    }
}

/// How long `max_retries` doublings from the minimum timeout take, none above the maximum (Linux,
/// `tcp_model_timeout`).
pub(super) fn patience(config: &TcpConfig) -> Span {
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

    #[test]
    fn the_wheel_strikes_after_the_tick_and_ever_more_coarsely() {
        assert_eq!(wheel(1000, 1), 1002);
        assert_eq!(wheel(1000, 62), 1063);
        // eight ticks from 63 on: 1063 / 8 is 132.9
        assert_eq!(wheel(1000, 63), 133 * 8);
        assert_eq!(wheel(1000, 200), 151 * 8);
        assert_eq!(wheel(1000, 504), (1504 / 64 + 1) * 64);
        for (now, ticks) in [(7, 1), (12_345, 250), (99, 30_000), (1 << 30, 1 << 40)] {
            assert!(wheel(now, ticks) > now + ticks);
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
        // the same for all connections of a host, another with another seed
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
            // 200 ms are 50 ticks, and the wheel strikes at the tick after: never early, at most a tick late
            assert_eq!((at.0 + uptime) % tick.0, 0);
            assert!(at > now + Span::from_ms(200) && at <= now + Span::from_ms(204));
            phases.push(at.0 % tick.0);
        }
        phases.sort_unstable();
        phases.dedup();
        assert_eq!(phases.len(), 4, "no two hosts tick in phase");
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
        // documented for tcp_retries2 = 15: 924.6 s; and for 8, the least that RFC 1122 allows, 102 s
        assert_eq!(patience(&test_config()), Span::from_ms(924_600));
        let eight = TcpConfig { max_retries: 8, ..test_config() };
        assert_eq!(patience(&eight), Span::from_ms(102_200));
    }
}
