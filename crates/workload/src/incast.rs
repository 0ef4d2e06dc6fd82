//! Synchronized reads: the traffic pattern that causes TCP incast.
//!
//! One receiver requests a block from each of N senders; when every block has arrived it requests
//! the next ones (Phanishayee et al. 2008; Chen et al. 2012, "Understanding TCP Incast and Its
//! Implications for Big Data Workloads"). Goodput of a round is its bytes divided by the time from
//! its start to the arrival of its last byte.
//!
//! The first round starts at `warm_up`, after the handshakes, as in the ns-3 program used for
//! comparison; connections that last for all rounds open at seeded times in the first half of the
//! warm-up, so that the SYNs do not overflow a shallow buffer. Difference from the papers: their
//! servers write as soon as the request is read; here each sender waits an additional seeded time
//! below `start_jitter`, which stands for processing time, so that no sender is always first.

use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, ConnId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of a synchronized read (incast): a host reads blocks from many senders at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncastConfig {
    /// Host that reads blocks from all senders.
    pub receiver: HostId,
    /// Hosts that send one block each in every round.
    pub senders: Vec<HostId>,
    /// Number of rounds; in each round the receiver reads one block from every sender.
    pub rounds: u32,
    /// Size of a block: bytes that each sender sends in a round.
    pub block_bytes: u64,
    /// Bytes of the request to each sender; 0: the senders send without a request when a round
    /// starts.
    pub request_bytes: u64,
    /// Whether one connection per sender is used for all rounds; otherwise each round opens new
    /// connections.
    pub persistent: bool,
    /// Time from the start of the simulation to the first round.
    pub warm_up: Span,
    /// Upper bound of a sender's delay, which is uniformly distributed from 0. The delay lasts from
    /// the arrival of the request (without requests: from the start of the round) until the sender
    /// sends its block.
    pub start_jitter: Span,
    /// Traffic class of all packets of the reads.
    pub class: ClassId,
}

impl IncastConfig {
    /// Default of `warm_up`: 5 ms, the value of the ns-3 program that produced the reference
    /// numbers.
    pub const WARM_UP: Span = Span::from_ms(5);
    /// Default of `start_jitter`: 10 µs, since the wake-up of a server process takes some
    /// microseconds.
    pub const START_JITTER: Span = Span::from_us(10);
    /// Default of `request_bytes`: 0, so that senders send without a request.
    pub const REQUEST_BYTES: u64 = 0;
}

/// State of a synchronized read (incast) during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Incast {
    config: IncastConfig,
    opening: Stream,
    jitter: Stream,
    /// Number of the round in progress, from 0; equal to `rounds` after the last round.
    round: u32,
    started: Time,
    /// Number of senders whose block of the present round has not arrived.
    missing: usize,
}

/// Purpose of a wake-up: a sender's connection is opened. The token of a wake-up is its purpose
/// plus the number of the sender.
const OPEN: u64 = 0;
/// Purpose of a wake-up: the next round starts.
const ROUND: u64 = 1 << 32;
/// Purpose of a wake-up: a sender sends its block of the present round.
const WRITE: u64 = 2 << 32;

impl Incast {
    /// Returns the initial state of a synchronized read, or the reasons why the settings are
    /// invalid.
    pub fn new(config: IncastConfig, cluster: &Cluster) -> Result<Incast, Vec<String>> {
        let mut no = Objections::new();
        no.require(!config.senders.is_empty(), || "senders: at least one host is needed".into());
        no.require_hosts("receiver", &[config.receiver], cluster);
        no.require_hosts("senders", &config.senders, cluster);
        no.require(!config.senders.contains(&config.receiver), || {
            format!("senders: host {} is the receiver and cannot send to itself", config.receiver.0)
        });
        let total = u128::from(config.block_bytes) * config.senders.len() as u128;
        no.require(total <= u128::from(u64::MAX), || {
            format!("block_bytes: a round of {total} bytes cannot be counted in 64 bits")
        });
        no.unless_any(|| Incast {
            opening: Stream::new(cluster.seed, "incast/open"),
            jitter: Stream::new(cluster.seed, "incast/start"),
            round: 0,
            started: Time::ZERO,
            missing: 0,
            config,
        })
    }

    /// Returns the numbers of finished rounds and of all rounds.
    pub fn progress(&self) -> (u64, u64) {
        (u64::from(self.round), u64::from(self.config.rounds))
    }

    /// Returns the number of rows in the table of flows at the end of the workload: one for each
    /// block of each round.
    pub fn recorded_flows(&self) -> u64 {
        self.progress().1 * self.config.senders.len() as u64
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => self.begin(now, out),
            Event::Wake { token: ROUND } => self.start_round(now, out),
            Event::Wake { token } if token >= WRITE => self.write((token - WRITE) as u32, out),
            Event::Wake { token } => self.open((token - OPEN) as u32, out),
            Event::Delivered { conn, from, .. } if from == self.sender_side() => {
                self.part_arrived(now, conn, out);
            }
            Event::Delivered { conn, .. } => self.write_soon(now, conn.0, out),
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
    }

    fn begin(&mut self, now: Time, out: &mut Vec<Action>) {
        if self.config.persistent {
            let window = Span(self.config.warm_up.0 / 2);
            for sender in 0..self.config.senders.len() as u32 {
                let at = now + self.opening.within(window);
                if window == Span::ZERO {
                    // the first round may begin at this time, so the connection must be open
                    self.open(sender, out);
                } else {
                    out.push(Action::Wake { at, token: OPEN + u64::from(sender) });
                }
            }
        }
        out.push(Action::Wake { at: now + self.config.warm_up, token: ROUND });
    }

    /// Returns the side of the sender on its connections; the side that sends first opens the
    /// connection.
    fn sender_side(&self) -> Side {
        if self.config.request_bytes > 0 { Side::Server } else { Side::Client }
    }

    fn open(&mut self, sender: u32, out: &mut Vec<Action>) {
        let (host, receiver) = (self.config.senders[sender as usize], self.config.receiver);
        let (client, server) = match self.sender_side() {
            Side::Client => (host, receiver),
            Side::Server => (receiver, host),
        };
        out.push(Action::Open {
            conn: ConnId(sender),
            client,
            server,
            class: self.config.class,
            cards: None,
        });
    }

    fn start_round(&mut self, now: Time, out: &mut Vec<Action>) {
        self.started = now;
        self.missing = self.config.senders.len();
        for sender in 0..self.config.senders.len() as u32 {
            if self.config.request_bytes > 0 {
                if !self.config.persistent {
                    self.open(sender, out);
                }
                out.push(Action::Send {
                    conn: ConnId(sender),
                    from: Side::Client,
                    payload: self.config.request_bytes,
                    header: 0,
                    tag: u64::from(self.round),
                    purpose: Purpose::Request,
                    job: None,
                    record: false,
                });
            } else {
                self.write_soon(now, sender, out);
            }
        }
    }

    fn write_soon(&mut self, now: Time, sender: u32, out: &mut Vec<Action>) {
        let at = now + self.jitter.within(self.config.start_jitter);
        out.push(Action::Wake { at, token: WRITE + u64::from(sender) });
    }

    fn write(&mut self, sender: u32, out: &mut Vec<Action>) {
        if !self.config.persistent && self.config.request_bytes == 0 {
            self.open(sender, out);
        }
        out.push(Action::Send {
            conn: ConnId(sender),
            from: self.sender_side(),
            payload: self.config.block_bytes,
            header: 0,
            tag: u64::from(self.round),
            purpose: Purpose::Incast,
            job: None,
            record: true,
        });
    }

    fn part_arrived(&mut self, now: Time, conn: ConnId, out: &mut Vec<Action>) {
        if !self.config.persistent {
            out.push(Action::Close { conn });
        }
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        out.push(Action::Round {
            round: self.round,
            started: self.started,
            bytes: self.config.block_bytes * self.config.senders.len() as u64,
        });
        self.round += 1;
        if self.round < self.config.rounds {
            self.start_round(now, out);
            return;
        }
        if self.config.persistent {
            for sender in 0..self.config.senders.len() as u32 {
                out.push(Action::Close { conn: ConnId(sender) });
            }
        }
        out.push(Action::Finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};

    fn config() -> IncastConfig {
        IncastConfig {
            receiver: HostId(4),
            senders: (0..4).map(HostId).collect(),
            rounds: 3,
            block_bytes: 1000,
            request_bytes: 0,
            persistent: true,
            warm_up: IncastConfig::WARM_UP,
            start_jitter: IncastConfig::START_JITTER,
            class: ClassId(0),
        }
    }

    fn run(config: IncastConfig) -> Ideal {
        let mut incast = Incast::new(config, &cluster(5)).expect("possible");
        let run = Ideal::run(|now, event, out| incast.handle(now, event, out));
        assert_eq!(incast.progress(), (3, 3));
        run
    }

    #[test]
    fn a_round_starts_when_the_last_part_of_the_one_before_has_arrived() {
        let run = run(config());
        assert!(run.finished);
        assert_eq!((run.opened, run.open), (4, 0));
        assert_eq!(run.rounds.len(), 3);
        assert_eq!(run.rounds[0].started, Time::ZERO + IncastConfig::WARM_UP);
        for (i, round) in run.rounds.iter().enumerate() {
            assert_eq!((round.round, round.bytes), (i as u32, 4000));
            let wait = round.finished.since(round.started);
            assert!(wait > Ideal::LATENCY, "{wait}");
            assert!(wait < Ideal::LATENCY + IncastConfig::START_JITTER, "{wait}");
        }
        for pair in run.rounds.windows(2) {
            assert_eq!(pair[1].started, pair[0].finished);
        }
        let starts: Vec<Time> = run.rows.iter().map(|r| r.sent).collect();
        assert_eq!(starts.len(), 12);
        assert!(starts.windows(2).any(|w| w[0] != w[1]), "all senders start together");
    }

    #[test]
    fn requests_travel_from_the_receiver_and_cost_half_a_round_trip() {
        let run = run(IncastConfig { request_bytes: 64, ..config() });
        assert!(run.clients.iter().all(|&c| c == HostId(4)));
        for round in &run.rounds {
            let wait = round.finished.since(round.started);
            assert!(wait > Ideal::LATENCY * 2, "{wait}");
        }
        assert_eq!(run.rows.len(), 12, "requests leave no rows");
        assert!(run.rows.iter().all(|r| r.from == Side::Server && r.payload == 1000));
    }

    #[test]
    fn fresh_connections_are_opened_once_a_round_and_all_closed() {
        for request_bytes in [0, 64] {
            let run = run(IncastConfig { persistent: false, request_bytes, ..config() });
            assert_eq!((run.opened, run.open), (12, 0));
            assert!(run.finished);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_every_reason() {
        let wrong =
            IncastConfig { senders: vec![HostId(1), HostId(9), HostId(1), HostId(4)], ..config() };
        let reasons = Incast::new(wrong, &cluster(5)).expect_err("impossible");
        assert_eq!(
            reasons,
            [
                "senders: there is no host 9; the fabric has hosts 0 to 4",
                "senders: host 1 is named twice",
                "senders: host 4 is the receiver and cannot send to itself",
            ]
        );
    }
}
