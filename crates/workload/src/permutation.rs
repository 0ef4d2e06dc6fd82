//! Random permutation: every host sends one flow to one other host and receives one flow.
//!
//! This is the usual test of path diversity (Al-Fares et al. 2008, 2010): no two flows share a host
//! link, so losses occur within the fabric only. Receivers are a uniformly random derangement. With
//! `repeat`, a host whose flow has ended starts the next one at once, in a new derangement and
//! without waiting for other hosts; so a host can receive flows of two successive derangements at
//! one time.

use crate::demand::Objections;
use crate::flow_set::{FlowSet, FlowSetConfig};
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings of permutation traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct PermutationConfig {
    /// Payload bytes of each flow.
    pub bytes: u64,
    /// Number of flows that each host sends, one after the other, each in a new derangement.
    pub repeat: u32,
    /// Width of the interval in which the first flows start, at uniformly drawn times; the interval
    /// begins at time zero.
    pub start_window: Span,
    /// Traffic class of all packets of the flows.
    pub class: ClassId,
}

impl PermutationConfig {
    /// Default of `start_window`: 1 ms, the value in the standard performance scenarios.
    pub const START_WINDOW: Span = Span::from_ms(1);
}

/// State of permutation traffic during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Permutation {
    flows: FlowSet,
    derangements: Derangements,
}

/// Derangements (permutations in which no host sends to itself) that at least one host still needs.
#[derive(Debug, Serialize, Deserialize)]
struct Derangements {
    hosts: u32,
    stream: Stream,
    /// Number of the first derangement in `kept`; earlier derangements are no longer needed.
    first: u32,
    /// Derangements, each with the number of hosts that have not used it yet.
    kept: VecDeque<(Vec<u32>, u32)>,
}

impl Derangements {
    /// Returns the receiver of `host` in derangement `k`, which at least one host must still need.
    fn look_up(&mut self, host: u32, k: u32) -> u32 {
        while self.first + self.kept.len() as u32 <= k {
            let next = derangement(self.hosts, &mut self.stream);
            self.kept.push_back((next, self.hosts));
        }
        self.kept[(k - self.first) as usize].0[host as usize]
    }

    /// Returns the receiver of `host` in derangement `k`. Must be called once for each host and
    /// `k`, with rising `k`.
    fn receiver(&mut self, host: u32, k: u32) -> u32 {
        let receiver = self.look_up(host, k);
        self.kept[(k - self.first) as usize].1 -= 1;
        while self.kept.front().is_some_and(|(_, unused)| *unused == 0) {
            self.kept.pop_front();
            self.first += 1;
        }
        receiver
    }
}

/// Returns a uniformly random permutation in which no host sends to itself; needs at least two
/// hosts. Shuffles until the condition holds, 2.7 times on average.
fn derangement(hosts: u32, stream: &mut Stream) -> Vec<u32> {
    let mut order: Vec<u32> = (0..hosts).collect();
    loop {
        stream.shuffle(&mut order);
        if order.iter().enumerate().all(|(i, &to)| i as u32 != to) {
            return order;
        }
    }
}

impl Permutation {
    /// Returns the initial state of permutation traffic, or the reasons why the settings are
    /// invalid.
    pub fn new(config: PermutationConfig, cluster: &Cluster) -> Result<Permutation, Vec<String>> {
        let hosts = cluster.rack_of.len() as u32;
        let mut no = Objections::new();
        no.require(hosts >= 2, || {
            format!("hosts: flows need two hosts, but the fabric has {hosts}")
        });
        no.unless_any(|| Permutation {
            derangements: Derangements {
                hosts,
                stream: Stream::new(cluster.seed, "permutation/receivers"),
                first: 0,
                kept: VecDeque::new(),
            },
            flows: FlowSet::new(
                FlowSetConfig {
                    hosts,
                    per_host: config.repeat,
                    parallel: 1,
                    bytes: config.bytes,
                    repeat: 1,
                    request_bytes: 0,
                    start_window: config.start_window,
                    class: config.class,
                },
                Stream::new(cluster.seed, "permutation/start"),
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

    /// Returns the number of flows; `None` if some flows start only after the end of other flows.
    /// See [`crate::Workload::local_flows`].
    pub fn local_flows(&self) -> Option<u64> {
        self.flows.local()
    }

    /// Returns client and server of the flow that starts at the wake-up with this token.
    pub fn opens(&mut self, token: u64) -> (HostId, HostId) {
        let derangements = &mut self.derangements;
        self.flows.opens(token, |host, k| derangements.look_up(host, k))
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        let derangements = &mut self.derangements;
        self.flows.handle(now, event, out, |host, k| derangements.receiver(host, k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};

    fn config(repeat: u32) -> PermutationConfig {
        PermutationConfig {
            bytes: 1000,
            repeat,
            start_window: PermutationConfig::START_WINDOW,
            class: ClassId(0),
        }
    }

    #[test]
    fn each_repeat_is_a_derangement_of_its_own() {
        let mut permutation = Permutation::new(config(5), &cluster(50)).expect("possible");
        let run = Ideal::run(|now, event, out| permutation.handle(now, event, out));
        assert!(run.finished);
        assert_eq!(permutation.progress(), (250, 250));
        let mut receivers: Vec<Vec<u32>> = Vec::new();
        for k in 0..5 {
            let mut to = vec![u32::MAX; 50];
            for row in run.rows.iter().filter(|r| r.tag % 5 == k) {
                to[row.src.0 as usize] = row.dst.0;
                assert_ne!(row.src, row.dst);
            }
            let mut sorted = to.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..50).collect::<Vec<_>>(), "every host receives once");
            assert!(!receivers.contains(&to), "repeat {k} is new");
            receivers.push(to);
        }
        assert!(permutation.derangements.kept.is_empty(), "used derangements are dropped");
    }

    #[test]
    fn all_derangements_are_equally_likely() {
        let mut stream = Stream::new(5, "t");
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..9000 {
            *seen.entry(derangement(4, &mut stream)).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 9, "there are nine derangements of four");
        assert!(seen.values().all(|&n| (880..1120).contains(&n)), "{seen:?}");
    }

    #[test]
    fn one_host_cannot_be_permuted() {
        let reasons = Permutation::new(config(1), &cluster(1)).expect_err("impossible");
        assert_eq!(reasons.len(), 1, "{reasons:?}");
    }
}
