//! Stride: host `i` sends to hosts `(i + k · stride) mod N`, `k = 1 … count`.
//!
//! It is a pattern of interconnection studies (Al-Fares et al. 2008). It spreads load evenly and,
//! if the stride is at least the number of hosts in a rack, mostly across racks. With stride 19,
//! count 8, 4,000,000 bytes and starts within 1 ms it is the standard performance scenario S1. All
//! flows start at seeded times in `[0, start_window)`, each over its own connection.

use crate::demand::Objections;
use crate::flow_set::{FlowSet, FlowSetConfig, require_endpoints};
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of a stride pattern: host `i` sends to hosts `i + stride`, `i + 2 · stride`, and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct StrideConfig {
    /// Distance between two successive receivers of a host, as number of hosts.
    pub stride: u32,
    /// Number of flows of each host, each to another receiver.
    pub count: u32,
    /// Payload bytes of each flow.
    pub bytes: u64,
    /// Width of the interval in which the flows start, at uniformly drawn times; the interval
    /// begins at time zero.
    pub start_window: Span,
    /// Traffic class of all packets of the pattern.
    pub class: ClassId,
}

impl StrideConfig {
    /// Default of `start_window`: 1 ms, the value in the standard performance scenarios.
    pub const START_WINDOW: Span = Span::from_ms(1);
}

/// State of a stride pattern during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stride {
    flows: FlowSet,
    hosts: u64,
    stride: u64,
}

impl Stride {
    /// Returns the initial state of a stride pattern, or the reasons why the settings are invalid.
    pub fn new(config: StrideConfig, cluster: &Cluster) -> Result<Stride, Vec<String>> {
        let hosts = cluster.rack_of.len() as u64;
        let mut no = Objections::new();
        no.require(hosts >= 2, || {
            format!("hosts: flows need two hosts, but the fabric has {hosts}")
        });
        // The multiples of the stride reach the sending host after N / gcd(N, stride) steps.
        let cycle = if hosts == 0 { 0 } else { hosts / gcd(hosts, u64::from(config.stride)) };
        no.require(hosts < 2 || u64::from(config.count) < cycle, || {
            format!(
                "stride: with {hosts} hosts, step {cycle} of width {} leads back to the sending host; \
                 count can be at most {}",
                config.stride,
                cycle.saturating_sub(1)
            )
        });
        require_endpoints(&mut no, hosts, u64::from(config.count));
        no.unless_any(|| Stride {
            hosts,
            stride: u64::from(config.stride),
            flows: FlowSet::new(
                FlowSetConfig {
                    hosts: hosts as u32,
                    per_host: config.count,
                    parallel: config.count,
                    bytes: config.bytes,
                    repeat: 1,
                    request_bytes: 0,
                    start_window: config.start_window,
                    class: config.class,
                },
                Stream::new(cluster.seed, "stride/start"),
            ),
        })
    }

    /// Returns the numbers of finished flows and of all flows.
    pub fn progress(&self) -> (u64, u64) {
        self.flows.progress()
    }

    /// Returns the number of rows in the table of flows at the end of the workload.
    pub fn recorded_flows(&self) -> u64 {
        self.flows.recorded()
    }

    /// Returns the number of flows; all flows start at drawn times. See
    /// [`crate::Workload::local_flows`].
    pub fn local_flows(&self) -> Option<u64> {
        self.flows.local()
    }

    /// Returns client and server of the flow that starts at the wake-up with this token.
    pub fn opens(&self, token: u64) -> (HostId, HostId) {
        self.flows.opens(token, |host, k| receiver(host, k, self.stride, self.hosts))
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        let (stride, hosts) = (self.stride, self.hosts);
        self.flows.handle(now, event, out, |host, k| receiver(host, k, stride, hosts));
    }
}

/// Returns the receiver of flow `k` of a host.
fn receiver(host: u32, k: u32, stride: u64, hosts: u64) -> u32 {
    ((u64::from(host) + stride * (u64::from(k) + 1)) % hosts) as u32
}

/// Returns the greatest common divisor of `a` and `b`; `gcd(n, 0) = n`.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};
    use eastwest_types::HostId;

    fn s1() -> StrideConfig {
        StrideConfig {
            stride: 19,
            count: 8,
            bytes: 4_000_000,
            start_window: StrideConfig::START_WINDOW,
            class: ClassId(0),
        }
    }

    #[test]
    fn s1_has_1280_flows_of_the_stated_pattern() {
        let mut stride = Stride::new(s1(), &cluster(160)).expect("possible");
        let run = Ideal::run(|now, event, out| stride.handle(now, event, out));
        assert!(run.finished);
        assert_eq!((run.opened, run.open), (1280, 0));
        assert_eq!(stride.progress(), (1280, 1280));
        let mut pairs: Vec<(u32, u32)> = run.rows.iter().map(|r| (r.src.0, r.dst.0)).collect();
        pairs.sort_unstable();
        let mut expected: Vec<(u32, u32)> =
            (0..160).flat_map(|i| (1..=8).map(move |k| (i, (i + 19 * k) % 160))).collect();
        expected.sort_unstable();
        assert_eq!(pairs, expected);
        assert!(run.rows.iter().all(|r| r.payload == 4_000_000));
        let starts = run.rows.iter().map(|r| r.sent.0 as f64 / 1e9);
        let mean = starts.sum::<f64>() / 1280.0;
        assert!((mean - 0.5).abs() < 0.03, "mean start {mean} ms");
        assert!(run.rows.iter().all(|r| r.sent < Time::ZERO + Span::from_ms(1)));
        let row = run.rows.iter().find(|r| r.tag == 8 * 159).expect("flow 0 of host 159");
        assert_eq!((row.src, row.dst), (HostId(159), HostId(18)));
    }

    #[test]
    fn a_stride_that_comes_round_to_the_sender_is_refused() {
        let reasons = Stride::new(StrideConfig { stride: 40, count: 4, ..s1() }, &cluster(160))
            .expect_err("host i would send to itself");
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].contains("count can be at most 3"), "{reasons:?}");
        assert!(Stride::new(StrideConfig { stride: 40, count: 3, ..s1() }, &cluster(160)).is_ok());
        assert!(Stride::new(StrideConfig { stride: 0, count: 1, ..s1() }, &cluster(160)).is_err());
        assert!(Stride::new(s1(), &cluster(1)).is_err());
        assert!(Stride::new(s1(), &cluster(0)).is_err());
    }
}
