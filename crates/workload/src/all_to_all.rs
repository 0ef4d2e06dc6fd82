//! All to all: every host sends the same number of bytes to every other host.
//!
//! This is the pattern with the most flows; a shuffle and `MPI_Alltoall` have it. Host `i` sends to
//! `i + 1, i + 2, …` (mod N) in this order, so that with a limit on parallel flows the targets
//! differ at any time; MPI libraries order their pairwise exchange in this way too. Without a limit
//! all flows start within `[0, start_window)`.
//!
//! With `repeat` the flow of a pair is sent several times, one after the other and each over a new
//! connection, before the host continues with the next pair. With a request, each host fetches from
//! all others, as the reduces of a shuffle do: it connects to another host and sends a request, and
//! that host sends the flow.

use crate::demand::Objections;
use crate::flow_set::{FlowSet, FlowSetConfig, require_endpoints};
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of an all-to-all exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct AllToAllConfig {
    /// Payload bytes of each flow.
    pub bytes: u64,
    /// Number of times that a flow is sent from each host to each other host, one after the other.
    pub repeat: u32,
    /// Bytes of the request for a flow; 0 if flows are sent without a request.
    pub request_bytes: u64,
    /// Largest number of flows that a host has in progress at once; `None` for no limit.
    pub parallel: Option<u32>,
    /// Width of the interval in which the first flows start, at uniformly drawn times; the interval
    /// begins at time zero.
    pub start_window: Span,
    /// Traffic class of all packets of the exchange.
    pub class: ClassId,
}

impl AllToAllConfig {
    /// Default of `start_window`: 1 ms, the value in the standard performance scenarios.
    pub const START_WINDOW: Span = Span::from_ms(1);
}

/// State of an all-to-all exchange during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct AllToAll {
    flows: FlowSet,
    hosts: u64,
}

impl AllToAll {
    /// Returns the initial state of an all-to-all exchange, or the reasons why the settings are
    /// invalid.
    pub fn new(config: AllToAllConfig, cluster: &Cluster) -> Result<AllToAll, Vec<String>> {
        let hosts = cluster.rack_of.len() as u64;
        let mut no = Objections::new();
        no.require(hosts >= 2, || {
            format!("hosts: flows need two hosts, but the fabric has {hosts}")
        });
        let others = hosts.saturating_sub(1);
        let parallel = config.parallel.map_or(others, |limit| others.min(u64::from(limit)));
        require_endpoints(&mut no, hosts, parallel);
        no.unless_any(|| AllToAll {
            hosts,
            flows: FlowSet::new(
                FlowSetConfig {
                    hosts: hosts as u32,
                    per_host: others as u32,
                    parallel: parallel as u32,
                    bytes: config.bytes,
                    repeat: config.repeat,
                    request_bytes: config.request_bytes,
                    start_window: config.start_window,
                    class: config.class,
                },
                Stream::new(cluster.seed, "all-to-all/start"),
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

    /// Returns the number of flows; `None` if some flows start only after the end of other flows or
    /// after a request. See [`crate::Workload::local_flows`].
    pub fn local_flows(&self) -> Option<u64> {
        self.flows.local()
    }

    /// Returns client and server of the flow that starts at the wake-up with this token.
    pub fn opens(&self, token: u64) -> (HostId, HostId) {
        self.flows.opens(token, |host, k| receiver(host, k, self.hosts))
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        let hosts = self.hosts;
        self.flows.handle(now, event, out, |host, k| receiver(host, k, hosts));
    }
}

/// Returns the receiver of flow `k` of a host.
fn receiver(host: u32, k: u32, hosts: u64) -> u32 {
    ((u64::from(host) + u64::from(k) + 1) % hosts) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};
    use eastwest_types::{Purpose, Side};

    fn run(hosts: usize, parallel: Option<u32>) -> Ideal {
        let config = AllToAllConfig {
            bytes: 10,
            repeat: 1,
            request_bytes: 0,
            parallel,
            start_window: AllToAllConfig::START_WINDOW,
            class: ClassId(0),
        };
        let mut all = AllToAll::new(config, &cluster(hosts)).expect("possible");
        let run = Ideal::run(|now, event, out| all.handle(now, event, out));
        let flows = (hosts * (hosts - 1)) as u64;
        assert!(run.finished);
        assert_eq!((run.opened, run.open), (flows, 0));
        assert_eq!(all.progress(), (flows, flows));
        let mut pairs: Vec<(u32, u32)> = run.rows.iter().map(|r| (r.src.0, r.dst.0)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len() as u64, flows, "each ordered pair once");
        run
    }

    #[test]
    fn every_pair_exchanges_once() {
        run(7, None);
        run(2, None);
    }

    #[test]
    fn the_limit_on_parallel_flows_holds_for_every_host() {
        let run = run(9, Some(2));
        assert!(run.peak <= 18, "{} open at once", run.peak);
        for host in 0..9 {
            let mine: Vec<_> = run.rows.iter().filter(|r| r.src.0 == host).collect();
            for row in &mine {
                let at_once =
                    mine.iter().filter(|r| r.sent <= row.sent && row.sent < r.delivered).count();
                assert!(at_once <= 2, "host {host} has {at_once} flows under way");
            }
        }
    }

    #[test]
    fn every_pair_fetches_as_often_as_asked_one_after_the_other() {
        let config = AllToAllConfig {
            bytes: 10,
            repeat: 3,
            request_bytes: 5,
            parallel: None,
            start_window: Span::ZERO,
            class: ClassId(0),
        };
        let mut all = AllToAll::new(config, &cluster(4)).expect("possible");
        let run = Ideal::run(|now, event, out| all.handle(now, event, out));
        assert!(run.finished);
        assert_eq!((run.opened, run.open, run.peak), (36, 0, 12));
        assert_eq!(all.progress(), (36, 36));
        for client in 0..4 {
            for server in (0..4).filter(|&s| s != client) {
                let sent: Vec<u64> = run
                    .rows
                    .iter()
                    .filter(|r| r.src.0 == server && r.dst.0 == client)
                    .filter(|r| r.purpose == Purpose::Flow)
                    .inspect(|r| assert_eq!((r.from, r.payload), (Side::Server, 10)))
                    .map(|r| r.sent.since(Time::ZERO).0 / Ideal::LATENCY.0)
                    .collect();
                assert_eq!(sent, [1, 3, 5], "a request and an answer each time");
            }
        }
    }

    #[test]
    fn a_host_alone_is_refused() {
        let config = AllToAllConfig {
            bytes: 1,
            repeat: 1,
            request_bytes: 0,
            parallel: Some(1),
            start_window: Span::ZERO,
            class: ClassId(0),
        };
        let reasons = AllToAll::new(config, &cluster(1)).expect_err("impossible");
        assert_eq!(reasons, ["hosts: flows need two hosts, but the fabric has 1"]);
    }

    #[test]
    fn more_flows_at_once_than_endpoints_are_refused() {
        let config = |parallel| AllToAllConfig {
            bytes: 1,
            repeat: 1,
            request_bytes: 0,
            parallel,
            start_window: Span::ZERO,
            class: ClassId(0),
        };
        let reasons = AllToAll::new(config(None), &cluster(4000)).expect_err("16 million");
        assert!(reasons[0].contains("at most 8388608"), "{reasons:?}");
        assert!(AllToAll::new(config(Some(8)), &cluster(4000)).is_ok());
    }
}
