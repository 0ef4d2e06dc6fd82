//! The retransmission, delayed-ACK and linger timers.
//!
//! Deadlines live in the endpoint and move with every ACK; a wake-up is asked for only where the
//! pending one would come too late, and one that comes too early just asks again.

use super::config::TcpConfig;
use super::endpoint::{Endpoint, Linger, Probe, State};
use super::output::timestamp_us;
use super::rules::GiveUp;
use super::{Notice, Repair, Sink};
use eastwest_types::{Span, Time};

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

impl Endpoint {
    /// The timeout to arm now.
    #[inline]
    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        self.rtt.rto(self.backoff, config)
    }

    /// When a timer set now strikes.
    #[inline]
    pub(super) fn deadline(&self, now: Time, span: Span, config: &TcpConfig) -> Time {
        if !config.timers.ticks {
            return now + span;
        }
        let tick = config.granularity.0.max(1);
        // hosts boot at different moments, so that their ticks differ in phase
        let uptime = config.timers.uptime(self.local, tick);
        let struck = wheel((now.0 + uptime) / tick, span.0.div_ceil(tick)) * tick;
        Time(struck - uptime)
    }

    /// Takes a round-trip sample, which ends the backing off (RFC 6298, 5.7).
    #[inline]
    pub(super) fn take_sample(&mut self, rtt: Span, config: &TcpConfig) {
        self.backoff = 0;
        self.rtt.sample(rtt, self.snd_una, self.snd_max, config);
    }

    fn probe_at(&self) -> Time {
        self.board.as_ref().map_or(Time::NEVER, |b| b.probe_at)
    }

    /// Asks for a wake-up at the next deadline if none is pending before it.
    #[inline]
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let mut next = self.rto_at.min(self.ack_at);
        if self.probe != Probe::None {
            next = next.min(self.probe_at());
        }
        if self.is_controlled() {
            next = next.min(self.pace_at());
        }
        if next < self.armed_at {
            self.armed_at = next;
            sink.arm(next, self.id);
        }
    }

    /// Carries out the deadlines that have come.
    pub(super) fn on_timers(
        &mut self,
        now: Time,
        peer: &Endpoint,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        if self.ack_at <= now {
            self.on_ack_timer(now, config, sink);
        }
        if self.probe != Probe::None && self.probe_at() <= now {
            match std::mem::replace(&mut self.probe, Probe::None) {
                Probe::Tail => self.send_probe(now, config, sink),
                Probe::Reorder => self.on_reorder_timer(now, config, sink),
                Probe::None => {}
            }
        }
        if self.is_controlled() && self.pace_at() <= now {
            self.stop_waiting();
            self.transmit(now, config, sink);
        }
        if self.rto_at <= now {
            match self.linger {
                Linger::NotYet => self.on_timeout(now, peer, config, sink),
                Linger::Until | Linger::Over => {
                    self.linger = Linger::Over;
                    self.rto_at = Time::NEVER;
                }
            }
        }
    }

    fn on_timeout(&mut self, now: Time, peer: &Endpoint, config: &TcpConfig, sink: &mut impl Sink) {
        self.rto_at = Time::NEVER;
        if self.snd_una == self.snd_max && self.on_persist_timer(now, config, sink) {
            return;
        }
        self.count().timeouts += 1;
        let cause = self.cause_of_timeout(peer, config);
        let window = self.lost_window(peer, cause);
        self.count_cause(cause, window, timestamp_us(now));
        self.tell(Repair::Timeout(cause), self.snd_una, self.snd_max, sink);
        if self.gives_up(now, config) {
            self.give_up();
            sink.notify(self.id, Notice::Failed);
            return;
        }
        self.retries += 1;
        let linear = if self.state == State::SynSent { config.timers.linear_syns } else { 0 };
        if u32::from(self.retries) > linear {
            self.backoff = self.backoff.saturating_add(1);
        }
        match self.state {
            State::SynSent | State::SynReceived => self.send_syn(now, config, sink),
            State::Established => self.enter_loss(now, config, sink),
            State::Listen | State::Failed => {}
        }
    }

    /// Whether a timeout is the last.
    fn gives_up(&mut self, now: Time, config: &TcpConfig) -> bool {
        if !self.is_established() {
            // Linux, `tcp_write_timeout`: those that do not double come on top
            let linear = if self.state == State::SynSent { config.timers.linear_syns } else { 0 };
            let most = config.timers.syn_retries.unwrap_or(config.max_retries);
            return u32::from(self.retries) >= most + linear;
        }
        match config.timers.give_up {
            GiveUp::Count => u32::from(self.retries) >= config.max_retries,
            GiveUp::Time => {
                if self.retries == 0 {
                    self.rare().first_retry = now;
                }
                self.retries > 0 && now.since(self.rare().first_retry) >= patience(config)
            }
        }
    }
}

/// How long `max_retries` doublings from the minimum timeout take, none above the maximum (Linux,
/// `tcp_model_timeout`).
fn patience(config: &TcpConfig) -> Span {
    let doublings = (config.max_rto.0 / config.min_rto.0.max(1)).max(1).ilog2();
    let steep = config.max_retries.min(doublings);
    let flat = u64::from(config.max_retries - steep);
    let doubled = config.min_rto.0.saturating_mul((2 << steep) - 1);
    Span(doubled.saturating_add(config.max_rto.0.saturating_mul(flat)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Connect;
    use crate::tcp::config::test_config;
    use crate::tcp::rules::TimerRules;
    use eastwest_types::{EndpointId, HostId};

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
        let connect = |client, server| Connect {
            client: HostId(client),
            server: HostId(server),
            hashes: (0, 0),
            dscp: 0,
            class: 0,
            settings: (0, 0),
        };
        let config = TcpConfig {
            granularity: tick,
            timers: TimerRules { ticks: true, uptime_seed: Some(1), ..TimerRules::default() },
            ..test_config()
        };
        let end = |host| {
            let id = EndpointId::new(0, 0);
            Endpoint::new(id, HostId(host), HostId(9), 0, &connect(host, 9), (0, &config))
        };
        let now = Time::ZERO + Span::from_us(12_345);
        let mut phases = Vec::new();
        for host in 0..4 {
            let at = end(host).deadline(now, Span::from_ms(200), &config);
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
        let connect = Connect {
            client: HostId(0),
            server: HostId(1),
            hashes: (0, 0),
            dscp: 0,
            class: 0,
            settings: (0, 0),
        };
        let id = EndpointId::new(0, 0);
        let end = Endpoint::new(id, HostId(0), HostId(1), 0, &connect, (0, &config));
        let now = Time::ZERO + Span::from_us(12_345);
        assert_eq!(end.deadline(now, Span::from_ms(200), &config), now + Span::from_ms(200));
    }

    #[test]
    fn patience_is_that_of_linux() {
        // documented for tcp_retries2 = 15: 924.6 s; and for 8, the least that RFC 1122 allows, 102 s
        assert_eq!(patience(&test_config()), Span::from_ms(924_600));
        let eight = TcpConfig { max_retries: 8, ..test_config() };
        assert_eq!(patience(&eight), Span::from_ms(102_200));
    }
}
