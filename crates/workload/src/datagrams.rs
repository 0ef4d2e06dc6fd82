//! Datagram traffic: packets without connection, at Poisson or equal gaps, from several hosts to
//! one host.
//!
//! With Poisson gaps and packets of one size, a link shared by the sources is an M/D/1 queue: mean
//! wait `ρ s / (2 (1 − ρ))` for load ρ and service time s. With equal gaps the sources are
//! constant-bit-rate senders with random phases.

use crate::arrivals::Arrivals;
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of datagram traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatagramsConfig {
    /// Hosts that send packets.
    pub sources: Vec<HostId>,
    /// Host that receives all packets.
    pub destination: HostId,
    /// IP bytes (header and payload) of each packet.
    pub bytes: u16,
    /// Distribution of the time between two packets of a source.
    pub arrivals: Arrivals,
    /// Mean time between two packets of one source.
    pub mean_gap: Span,
    /// Time from the start of the simulation at which the sources begin to send.
    pub start: Span,
    /// Number of packets that all sources together send; `None` for background traffic that never
    /// ends.
    pub packets: Option<u64>,
    /// Traffic class of the packets.
    pub class: ClassId,
}

/// State of datagram traffic during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Datagrams {
    config: DatagramsConfig,
    gaps: Stream,
    sent: u64,
}

impl Datagrams {
    /// Returns the initial state of datagram traffic, or the reasons why the settings are invalid.
    pub fn new(config: DatagramsConfig, cluster: &Cluster) -> Result<Datagrams, Vec<String>> {
        let mut no = Objections::new();
        no.require(!config.sources.is_empty(), || "sources: at least one host is needed".into());
        no.require_hosts("sources", &config.sources, cluster);
        no.require_hosts("destination", &[config.destination], cluster);
        no.require(!config.sources.contains(&config.destination), || {
            format!(
                "sources: host {} is the destination and cannot send to itself",
                config.destination.0
            )
        });
        no.unless_any(|| Datagrams {
            gaps: Stream::new(cluster.seed, "datagrams/gaps"),
            sent: 0,
            config,
        })
    }

    /// Returns the number of packets sent and the number of packets to send; the second is 0 for
    /// traffic that never ends.
    pub fn progress(&self) -> (u64, u64) {
        (self.sent, self.config.packets.unwrap_or(0))
    }

    /// Handles an event and appends the actions that follow from it to `out`. The workload finishes
    /// when all packets are sent, because it is not informed of their arrival.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => {
                let start = now + self.config.start;
                for source in 0..self.config.sources.len() as u64 {
                    let wait = self.config.arrivals.first(self.config.mean_gap, &mut self.gaps);
                    out.push(Action::Wake { at: start + wait, token: source });
                }
            }
            Event::Wake { token } if self.config.packets != Some(self.sent) => {
                out.push(Action::Datagram {
                    from: self.config.sources[token as usize],
                    to: self.config.destination,
                    bytes: self.config.bytes,
                    class: self.config.class,
                });
                self.sent += 1;
                if self.config.packets == Some(self.sent) {
                    out.push(Action::Finished);
                } else {
                    let gap = self.config.arrivals.gap(self.config.mean_gap, &mut self.gaps);
                    out.push(Action::Wake { at: now + gap, token });
                }
            }
            // Ignores wake-ups of other sources after the last packet; there are no deliveries.
            Event::Wake { .. } | Event::Delivered { .. } => {}
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Datagram, Ideal, cluster};

    fn config(arrivals: Arrivals) -> DatagramsConfig {
        DatagramsConfig {
            sources: vec![HostId(0), HostId(1), HostId(2)],
            destination: HostId(3),
            bytes: 1500,
            arrivals,
            mean_gap: Span::from_us(30),
            start: Span::from_ms(1),
            packets: Some(100_000),
            class: ClassId(0),
        }
    }

    fn run(config: DatagramsConfig) -> Vec<Datagram> {
        let mut datagrams = Datagrams::new(config, &cluster(4)).expect("possible");
        let run = Ideal::run(|now, event, out| datagrams.handle(now, event, out));
        assert!(run.finished);
        assert_eq!(datagrams.progress(), (100_000, 100_000));
        run.datagrams
    }

    #[test]
    fn poisson_sources_together_are_a_poisson_process() {
        let sent = run(config(Arrivals::Poisson));
        assert_eq!(sent.len(), 100_000);
        let gaps: Vec<f64> =
            sent.windows(2).map(|w| w[1].sent.since(w[0].sent).as_us_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>()
            / gaps.len() as f64
            / (mean * mean);
        assert!((mean - 10.0).abs() < 0.1, "mean gap {mean}");
        assert!((deviation - 1.0).abs() < 0.03, "squared coefficient of variation {deviation}");
        assert!(sent.iter().all(|d| d.to == HostId(3) && d.bytes == 1500));
    }

    #[test]
    fn this_input_waits_in_an_m_d_1_queue_as_the_textbook_says() {
        // Waits by Lindley's recursion for a server with a service time of 8 µs at a load of 0.8.
        let service = 8e6;
        let (mut free, mut waited) = (0.0f64, 0.0);
        let sent = run(config(Arrivals::Poisson));
        for datagram in &sent {
            let at = datagram.sent.0 as f64;
            waited += (free - at).max(0.0);
            free = free.max(at) + service;
        }
        let measured = waited / sent.len() as f64;
        let expected = 0.8 * service / (2.0 * (1.0 - 0.8));
        // With 100,000 packets at this load, the standard error of the mean is about 2.5 %.
        assert!((measured / expected - 1.0).abs() < 0.08, "{measured} for {expected}");
    }

    #[test]
    fn periodic_sources_keep_their_gap_and_differ_in_phase() {
        let sent = run(config(Arrivals::Periodic));
        let mut phases = Vec::new();
        for source in 0..3 {
            let times: Vec<Time> =
                sent.iter().filter(|d| d.from == HostId(source)).map(|d| d.sent).collect();
            assert!(times.windows(2).all(|w| w[1].since(w[0]) == Span::from_us(30)));
            assert!(times[0] >= Time::ZERO + Span::from_ms(1));
            phases.push(times[0]);
        }
        phases.dedup();
        assert_eq!(phases.len(), 3);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong = DatagramsConfig { sources: vec![HostId(3)], ..config(Arrivals::Poisson) };
        let reasons = Datagrams::new(wrong, &cluster(4)).expect_err("impossible");
        assert_eq!(reasons.len(), 1, "{reasons:?}");
    }
}
