//! Bulk transfers of a fixed duration, like `iperf3 -t 20`.
//!
//! Each connection always has data to send, from its start until a time at which all connections
//! stop. Then its application writes no more: data that TCP has sent is delivered, unsent data is
//! dropped with the sender's buffer. The bytes of the flow are those that were sent, so its goodput
//! is these bytes divided by its duration.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, ConnId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// Bytes that a connection without end has to send: more than any link can carry in the longest
/// run.
pub(crate) const ENDLESS: u64 = 1 << 60;

/// Token of the wake-up at which all connections stop; smaller tokens are the numbers of
/// connections to start.
pub(crate) const STOP: u64 = u64::MAX;

/// Settings of bulk transfers, which send for a fixed time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkConfig {
    /// Sender and receiver of each pair of hosts.
    pub pairs: Vec<(HostId, HostId)>,
    /// Number of connections between the two hosts of each pair.
    pub connections: u32,
    /// Time from the start of the simulation to the earliest start of a connection.
    pub start: Span,
    /// Width of the interval after `start` in which connections open, at uniformly drawn times.
    pub start_window: Span,
    /// Time from `start` until all connections stop sending.
    pub duration: Span,
    /// Traffic class of all packets of the transfers.
    pub class: ClassId,
}

impl BulkConfig {
    /// Largest number of connections of a workload of bulk transfers.
    pub const MOST_CONNECTIONS: u64 = 1_000_000;
}

/// Bulk transfers in progress. Connection number `i` belongs to pair `i / connections` and has the
/// identifier `ConnId(i)`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bulk {
    config: BulkConfig,
    starts: Stream,
    done: u64,
}

impl Bulk {
    /// Returns the initial state of bulk transfers, or the reasons why the settings are invalid.
    pub fn new(config: BulkConfig, cluster: &Cluster) -> Result<Bulk, Vec<String>> {
        let hosts = cluster.rack_of.len();
        let mut no = Objections::new();
        no.require(!config.pairs.is_empty(), || "pairs: at least one pair is needed".into());
        let beyond = config.pairs.iter().find(|(a, b)| a.0.max(b.0) as usize >= hosts);
        no.require(beyond.is_none(), || {
            format!(
                "pairs: there is no host {}; the fabric has {hosts} hosts, numbered from 0",
                beyond.map_or(0, |(a, b)| a.0.max(b.0))
            )
        });
        no.require(config.pairs.iter().all(|(a, b)| a != b), || {
            "pairs: a host cannot send to itself".into()
        });
        let all = config.pairs.len() as u64 * u64::from(config.connections);
        no.require(all <= BulkConfig::MOST_CONNECTIONS, || {
            let most = BulkConfig::MOST_CONNECTIONS;
            format!(
                "connections: all pairs together have {all} connections; at most {most} are \
                     possible"
            )
        });
        no.require(config.start_window < config.duration, || {
            "duration: must be above start_window, so that each connection sends".into()
        });
        no.unless_any(|| Bulk { starts: Stream::new(cluster.seed, "bulk/start"), config, done: 0 })
    }

    fn all(&self) -> u64 {
        self.config.pairs.len() as u64 * u64::from(self.config.connections)
    }

    /// Returns the numbers of stopped connections and of all connections.
    pub fn progress(&self) -> (u64, u64) {
        (self.done, self.all())
    }

    /// Returns the time from the start until all connections stop sending.
    pub fn duration(&self) -> Span {
        self.config.duration
    }

    fn name(number: u64) -> ConnId {
        ConnId(u32::try_from(number).expect("there are fewer connections"))
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => {
                let start = now + self.config.start;
                for number in 0..self.all() {
                    let wait = self.starts.within(self.config.start_window);
                    out.push(Action::Wake { at: start + wait, token: number });
                }
                out.push(Action::Wake { at: start + self.config.duration, token: STOP });
            }
            Event::Wake { token: STOP } => {
                for number in 0..self.all() {
                    out.push(Action::Truncate { conn: Self::name(number), from: Side::Client });
                }
            }
            Event::Wake { token: number } => {
                let pair = usize::try_from(number / u64::from(self.config.connections));
                let (client, server) = self.config.pairs[pair.expect("a number of a connection")];
                let conn = Self::name(number);
                out.push(Action::Open {
                    conn,
                    client,
                    server,
                    class: self.config.class,
                    cards: None,
                });
                out.push(Action::Send {
                    conn,
                    from: Side::Client,
                    payload: ENDLESS,
                    header: 0,
                    tag: number,
                    purpose: Purpose::Flow,
                    job: None,
                    record: true,
                });
            }
            Event::Delivered { conn, .. } => {
                out.push(Action::Close { conn });
                self.done += 1;
                if self.done == self.all() {
                    out.push(Action::Finished);
                }
            }
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
    use crate::ideal::{Ideal, cluster};

    fn config() -> BulkConfig {
        BulkConfig {
            pairs: vec![(HostId(0), HostId(3)), (HostId(1), HostId(2))],
            connections: 2,
            start: Span::from_ms(5),
            start_window: Span::from_ms(1),
            duration: Span::from_ms(20),
            class: ClassId(0),
        }
    }

    #[test]
    fn connections_start_within_the_window_and_stop_together() {
        let mut bulk = Bulk::new(config(), &cluster(4)).expect("possible");
        let run = Ideal::run(|now, event, out| bulk.handle(now, event, out));
        assert!(run.finished);
        assert_eq!((run.opened, run.open, bulk.progress()), (4, 0, (4, 4)));
        let stop = Time::ZERO + Span::from_ms(25);
        for row in &run.rows {
            assert!(row.sent >= Time::ZERO + Span::from_ms(5));
            assert!(row.sent < Time::ZERO + Span::from_ms(6));
            assert_eq!(row.delivered, stop + Ideal::LATENCY, "what was sent last arrives after");
        }
        let pairs: Vec<_> = run.rows.iter().map(|r| (r.src.0, r.dst.0)).collect();
        assert_eq!(pairs, [(0, 3), (0, 3), (1, 2), (1, 2)]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_all_reasons() {
        let impossible = BulkConfig {
            pairs: vec![(HostId(0), HostId(0)), (HostId(1), HostId(9))],
            duration: Span::from_ms(1),
            ..config()
        };
        let reasons = Bulk::new(impossible, &cluster(4)).expect_err("impossible");
        assert_eq!(reasons.len(), 3, "{reasons:?}");
    }
}
