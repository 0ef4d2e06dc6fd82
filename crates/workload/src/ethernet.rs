//! Raw Ethernet traffic: frames without a transport protocol, each in a stream from one host to
//! another.
//!
//! Every source is open loop: bursts of frames arrive at the source at Poisson or equal gaps,
//! independent of the network. Frames that the network cannot accept wait at the source. The
//! latency of a frame counts from its arrival at the source, so that this wait is included. The
//! study *Benchmarking the Ethernet-federated data centre* (Gusat et al. 2009) uses this traffic:
//! *uniform*, where each frame goes to any other host, and *congesting*, where given pairs of hosts
//! send at a high load.
//!
//! Traffic hierarchy of the study: a burst is a number of frames (fixed or geometric) that arrive
//! at one time for one destination; gaps between bursts give the requested mean rate, in bytes of
//! frames without the framing of a link.

use crate::arrivals::Arrivals;
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rule by which each source chooses the destination of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Pattern {
    /// Each burst goes to a uniformly drawn destination other than the source itself.
    Uniform,
    /// The first source sends to the first destination, the second source to the second
    /// destination, and so on.
    Pairs,
}

/// Distribution of the number of frames in a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BurstSpread {
    /// Constant: every burst has `burst` frames.
    Fixed,
    /// Geometric distribution with the mean `burst`.
    Geometric,
}

/// Settings of raw Ethernet traffic: frames without a transport protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EthernetConfig {
    /// Hosts that send frames.
    pub sources: Vec<HostId>,
    /// Hosts that receive frames.
    pub destinations: Vec<HostId>,
    /// Rule by which each source chooses the destination of a burst.
    pub pattern: Pattern,
    /// Bytes of each frame, without the framing on the link.
    pub bytes: u16,
    /// Mean rate of each source, in bytes of frames without the framing on the link.
    pub rate: Rate,
    /// Distribution of the time between two bursts of a source.
    pub arrivals: Arrivals,
    /// Mean number of frames in a burst.
    pub burst: u32,
    /// Distribution of the number of frames in a burst.
    pub burst_spread: BurstSpread,
    /// Time from the start of the simulation at which the sources begin to send.
    pub start: Span,
    /// Duration of the traffic from `start`; `None`: the traffic has no end.
    pub duration: Option<Span>,
    /// Number of frames that all sources together send; `None`: no limit.
    pub frames: Option<u64>,
    /// Traffic class of the frames.
    pub class: ClassId,
}

impl EthernetConfig {
    /// Smallest number of bytes of a frame: Ethernet's smallest payload (IEEE 802.3).
    pub const MIN_BYTES: u16 = 46;
    /// Largest number of streams (pairs of a source and a destination) of a workload.
    pub const MOST_STREAMS: usize = 1_000_000;

    /// Returns sender and receiver of every stream. With [`Pattern::Uniform`] there is a stream
    /// from each source to each destination; the stream from a host to itself has no frames.
    pub fn streams(&self) -> Vec<(HostId, HostId)> {
        match self.pattern {
            Pattern::Pairs => {
                self.sources.iter().copied().zip(self.destinations.iter().copied()).collect()
            }
            Pattern::Uniform => {
                let to = |from| self.destinations.iter().map(move |&dst| (from, dst));
                self.sources.iter().flat_map(|&from| to(from)).collect()
            }
        }
    }

    fn object(&self, no: &mut Objections, cluster: &Cluster) {
        no.require(!self.sources.is_empty(), || "sources: at least one host is needed".into());
        for (role, hosts) in [("sources", &self.sources), ("destinations", &self.destinations)] {
            let mut hosts = hosts.clone();
            if self.pattern == Pattern::Pairs {
                // a host may occur in several pairs, so each host is checked once
                hosts.sort_unstable();
                hosts.dedup();
            }
            no.require_hosts(role, &hosts, cluster);
        }
        let (from, to) = (self.sources.len(), self.destinations.len());
        match self.pattern {
            Pattern::Pairs => {
                no.require(from == to, || {
                    format!(
                        "destinations: there are {to} destinations for {from} sources; \
                             pattern = \"pairs\" needs equal numbers"
                    )
                });
                for (a, b) in self.sources.iter().zip(&self.destinations) {
                    no.require(a != b, || {
                        format!("destinations: host {} would send to itself", a.0)
                    });
                }
            }
            Pattern::Uniform => {
                no.require(
                    to >= 2 || (to == 1 && !self.sources.contains(&self.destinations[0])),
                    || "destinations: a source has no destination other than itself".into(),
                );
                no.require(from.saturating_mul(to) <= EthernetConfig::MOST_STREAMS, || {
                    format!(
                        "destinations: {from} sources and {to} destinations need too many \
                         streams: at most {} are possible",
                        EthernetConfig::MOST_STREAMS
                    )
                });
            }
        }
        no.require(self.mean_gap() > Span::ZERO, || {
            "rate: is too high: there would be more than one burst each picosecond".into()
        });
    }

    fn mean_gap(&self) -> Span {
        self.rate.time_for(u64::from(self.bytes) * u64::from(self.burst))
    }
}

/// State of raw Ethernet traffic during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ethernet {
    config: EthernetConfig,
    mean_gap: Span,
    end: Time,
    /// Random stream of each source, independent of the streams of other sources.
    random: Vec<Stream>,
    /// For each source: its index among the destinations, if it is one of them.
    own: Vec<Option<usize>>,
    sent: u64,
    /// Number of sources that will send further frames.
    active: usize,
}

impl Ethernet {
    /// Returns the initial state of raw Ethernet traffic, or the reasons why the settings are
    /// invalid.
    pub fn new(config: EthernetConfig, cluster: &Cluster) -> Result<Ethernet, Vec<String>> {
        let mut no = Objections::new();
        config.object(&mut no, cluster);
        let mut places = BTreeMap::new();
        for (place, host) in config.destinations.iter().enumerate() {
            places.entry(*host).or_insert(place);
        }
        no.unless_any(|| Ethernet {
            mean_gap: config.mean_gap(),
            own: config.sources.iter().map(|source| places.get(source).copied()).collect(),
            end: config.duration.map_or(Time::NEVER, |d| Time::ZERO + config.start + d),
            random: (0..config.sources.len())
                .map(|source| Stream::new(cluster.seed, &format!("ethernet/{source}")))
                .collect(),
            sent: 0,
            active: config.sources.len(),
            config,
        })
    }

    /// Returns the settings of the traffic.
    pub fn config(&self) -> &EthernetConfig {
        &self.config
    }

    /// Returns the number of frames sent and the number of frames to send; the second is 0 if the
    /// settings do not limit it.
    pub fn progress(&self) -> (u64, u64) {
        (self.sent, self.config.frames.unwrap_or(0))
    }

    fn enough(&self) -> bool {
        self.config.frames.is_some_and(|frames| self.sent >= frames)
    }

    /// Handles an event and appends the actions that follow from it to `out`. The workload finishes
    /// when all frames are handed to the network cards; the simulation waits for their arrival.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => {
                let start = now + self.config.start;
                for source in 0..self.config.sources.len() {
                    let wait = self.config.arrivals.first(self.mean_gap, &mut self.random[source]);
                    self.wait_until(start + wait, source, out);
                }
            }
            Event::Wake { token } if !self.enough() => {
                let source = token as usize;
                self.burst(source, out);
                if self.enough() {
                    out.push(Action::Finished);
                    return;
                }
                let gap = self.config.arrivals.gap(self.mean_gap, &mut self.random[source]);
                self.wait_until(now + gap, source, out);
            }
            // Ignores wake-ups of other sources after the last frame.
            Event::Wake { .. } => {}
            Event::Delivered { .. }
            | Event::Failed { .. }
            | Event::Received { .. }
            | Event::Arrived { .. } => {
                unreachable!("it opens no connections")
            }
        }
    }

    fn wait_until(&mut self, at: Time, source: usize, out: &mut Vec<Action>) {
        if at < self.end {
            return out.push(Action::Wake { at, token: source as u64 });
        }
        self.active -= 1;
        if self.active == 0 {
            out.push(Action::Finished);
        }
    }

    fn burst(&mut self, source: usize, out: &mut Vec<Action>) {
        let c = &self.config;
        let random = &mut self.random[source];
        let from = c.sources[source];
        let stream = match c.pattern {
            Pattern::Pairs => source,
            Pattern::Uniform => {
                let own = self.own[source];
                let others = c.destinations.len() - usize::from(own.is_some());
                let drawn = random.below(others as u64) as usize;
                let at = drawn + usize::from(own.is_some_and(|own| drawn >= own));
                source * c.destinations.len() + at
            }
        };
        let to = match c.pattern {
            Pattern::Pairs => c.destinations[source],
            Pattern::Uniform => c.destinations[stream % c.destinations.len()],
        };
        let frames = match c.burst_spread {
            BurstSpread::Fixed => u64::from(c.burst),
            BurstSpread::Geometric => geometric(c.burst, random),
        };
        let left = c.frames.map_or(u64::MAX, |frames| frames - self.sent);
        for _ in 0..frames.min(left) {
            let (bytes, class) = (c.bytes, c.class);
            out.push(Action::Frame { from, to, bytes, class, stream: stream as u32 });
            self.sent += 1;
        }
    }
}

/// Draws a geometrically distributed integer with the mean `mean`, at least 1.
fn geometric(mean: u32, random: &mut Stream) -> u64 {
    if mean <= 1 {
        return 1;
    }
    let (u, p) = (1.0 - random.unit(), 1.0 / f64::from(mean));
    // at most 64 times the mean, so that a single draw cannot fill the memory
    (1.0 + libm::floor(libm::log(u) / libm::log1p(-p))).min(64.0 * f64::from(mean)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};

    fn config() -> EthernetConfig {
        let hosts: Vec<HostId> = (0..6).map(HostId).collect();
        EthernetConfig {
            sources: hosts.clone(),
            destinations: hosts,
            pattern: Pattern::Uniform,
            bytes: 1500,
            rate: Rate::gbit(6),
            arrivals: Arrivals::Poisson,
            burst: 1,
            burst_spread: BurstSpread::Fixed,
            start: Span::from_us(100),
            duration: None,
            frames: Some(60_000),
            class: ClassId(0),
        }
    }

    fn run(config: EthernetConfig) -> Ideal {
        let mut ethernet = Ethernet::new(config, &cluster(8)).expect("possible");
        let run = Ideal::run(|now, event, out| ethernet.handle(now, event, out));
        assert!(run.finished);
        run
    }

    #[test]
    fn uniform_traffic_goes_to_all_others_alike_at_the_rate_asked_for() {
        for (burst, burst_spread) in
            [(1, BurstSpread::Fixed), (8, BurstSpread::Fixed), (8, BurstSpread::Geometric)]
        {
            let sent = run(EthernetConfig { burst, burst_spread, ..config() }).datagrams;
            assert_eq!(sent.len(), 60_000);
            let span = sent.last().unwrap().sent.since(Time::ZERO + Span::from_us(100));
            let rate = 60_000.0 * 12_000.0 / span.as_secs_f64() / 6.0;
            assert!((rate / 6e9 - 1.0).abs() < 0.03, "burst {burst}: {rate}");
            for from in 0..6 {
                for to in (0..6).filter(|to| *to != from) {
                    let n = sent.iter().filter(|d| d.from.0 == from && d.to.0 == to).count();
                    assert!((1_500..2_500).contains(&n), "{from} to {to}: {n} of about 2000");
                }
                assert!(!sent.iter().any(|d| d.from == d.to));
            }
        }
    }

    #[test]
    fn pairs_keep_to_themselves_and_a_duration_ends_all_sources() {
        let sent = run(EthernetConfig {
            sources: vec![HostId(0), HostId(1)],
            destinations: vec![HostId(5), HostId(0)],
            pattern: Pattern::Pairs,
            arrivals: Arrivals::Periodic,
            rate: Rate::gbit(12),
            frames: None,
            duration: Some(Span::from_us(100)),
            ..config()
        })
        .datagrams;
        // two sources with one frame of 1,500 bytes each µs, for 100 µs
        assert_eq!(sent.len(), 200);
        let to = |from| if from == 0 { 5 } else { 0 };
        assert!(sent.iter().all(|d| d.to.0 == to(d.from.0)));
    }

    #[test]
    fn bursts_have_the_mean_asked_for() {
        let mut random = Stream::new(1, "bursts");
        let drawn: Vec<u64> = (0..100_000).map(|_| geometric(10, &mut random)).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean - 10.0).abs() < 0.15, "{mean}");
        assert_eq!(drawn.iter().min(), Some(&1));
        let ones = drawn.iter().filter(|n| **n == 1).count() as f64 / 1e5;
        assert!((ones - 0.1).abs() < 0.01, "{ones}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong =
            EthernetConfig { sources: vec![HostId(3)], destinations: vec![HostId(3)], ..config() };
        let reasons = Ethernet::new(wrong, &cluster(4)).expect_err("impossible");
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        let odd =
            EthernetConfig { destinations: vec![HostId(0)], pattern: Pattern::Pairs, ..config() };
        let reasons = Ethernet::new(odd, &cluster(8)).expect_err("impossible");
        assert_eq!(reasons.len(), 2, "{reasons:?}");
    }
}
