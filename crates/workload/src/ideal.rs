//! Ideal network for the tests of this crate: every message takes [`Ideal::LATENCY`], independent
//! of its size, or as a function of its size if hosts have a rate. It runs a workload to its end and
//! checks the rules of [`Action`].

use crate::bulk::ENDLESS;
use crate::protocol::{Action, Cluster, Event, Parcel};
use eastwest_types::{
    ConnId, HostId, MpiCollective, MpiIteration, MpiMessage, MpiRank, MpiState, Purpose, Rate,
    Side, Span, Time, TransactionRecord,
};
use std::collections::BTreeMap;

/// Returns a cluster of `hosts` hosts in one rack.
pub(crate) fn cluster(hosts: usize) -> Cluster {
    Cluster { rack_of: vec![0; hosts], seed: 1 }
}

/// Row of the flow table for a delivered message.
#[derive(Debug, PartialEq, Clone)]
pub(crate) struct Row {
    pub sent: Time,
    pub delivered: Time,
    pub src: HostId,
    pub dst: HostId,
    pub from: Side,
    pub payload: u64,
    pub tag: u64,
    pub purpose: Purpose,
}

/// A finished round of a synchronized read (incast).
#[derive(Debug)]
pub(crate) struct Round {
    pub round: u32,
    pub started: Time,
    pub finished: Time,
    pub bytes: u64,
}

/// An IP packet or Ethernet frame that was sent without a connection.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) struct Datagram {
    pub sent: Time,
    pub from: HostId,
    pub to: HostId,
    pub bytes: u16,
}

/// State of the ideal network, and result of a run on it.
#[derive(Debug, Default)]
pub(crate) struct Ideal {
    pub finished: bool,
    pub ended: Time,
    pub opened: u64,
    pub open: usize,
    /// Largest number of connections that were open at one time.
    pub peak: usize,
    /// Largest number of wake-ups and messages that were pending at one time.
    pub pending: usize,
    pub clients: Vec<HostId>,
    pub rows: Vec<Row>,
    pub rounds: Vec<Round>,
    pub datagrams: Vec<Datagram>,
    pub parcels: Vec<Parcel>,
    pub transactions: Vec<TransactionRecord>,
    pub ranks: Vec<MpiRank>,
    pub states: Vec<MpiState>,
    pub messages: Vec<MpiMessage>,
    pub collectives: Vec<MpiCollective>,
    pub iterations: Vec<MpiIteration>,
    /// Reason why the workload could not continue; `None` if there was no failure.
    pub failed: Option<String>,
    conns: BTreeMap<ConnId, (HostId, HostId)>,
    /// Connections that are declared and not open.
    declared: BTreeMap<ConnId, (HostId, HostId)>,
    /// Messages without an end, which are delivered only after [`Action::Truncate`].
    endless: BTreeMap<(ConnId, Side), (Event, Option<Row>)>,
    /// Connections and sides on which no more data may be sent.
    shut: Vec<(ConnId, Side)>,
    queue: BTreeMap<(Time, u64), (Event, Option<Row>)>,
    order: u64,
    /// Time of messages by their size; `None`: the size of a message takes no time.
    rate: Option<Limit>,
    /// Time at which each port has sent all its messages, and has received all that have begun to
    /// arrive.
    sent: BTreeMap<Port, Time>,
    received: BTreeMap<Port, Time>,
    /// Messages in flight by the time at which they begin to arrive: destination, time that they
    /// take to arrive, event.
    arriving: BTreeMap<(Time, u64), (Port, Span, Event)>,
}

/// Rate of messages on the ideal network. A message of n bytes that meets no other message takes
/// the latency and the time of n bytes at the rate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// A host sends one message and receives one message at a time.
    Host(Rate),
    /// Each connection has a link, which carries one message at a time in each direction.
    Connection(Rate),
}

/// Place where one message is sent or received at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Port {
    Host(HostId),
    Connection(ConnId, Side),
}

impl Ideal {
    /// Time from the sending of a message to its delivery.
    pub(crate) const LATENCY: Span = Span::from_us(50);

    /// Runs a workload on the ideal network to its end.
    pub(crate) fn run(workload: impl FnMut(Time, Event, &mut Vec<Action>)) -> Ideal {
        Self::run_until(Time::NEVER, workload)
    }

    /// Runs a workload on the ideal network until no event before `end` is left.
    pub(crate) fn run_until(
        end: Time,
        workload: impl FnMut(Time, Event, &mut Vec<Action>),
    ) -> Ideal {
        Ideal::default().go(end, workload)
    }

    /// Runs a workload to its end on a network with rates.
    pub(crate) fn run_at(
        rate: Limit,
        workload: impl FnMut(Time, Event, &mut Vec<Action>),
    ) -> Ideal {
        Ideal { rate: Some(rate), ..Ideal::default() }.go(Time::NEVER, workload)
    }

    fn go(self, end: Time, mut workload: impl FnMut(Time, Event, &mut Vec<Action>)) -> Ideal {
        let mut ideal = self;
        ideal.push(Time::ZERO, Event::Begin, None);
        let mut out = Vec::new();
        while let Some(((now, _), (event, row))) = ideal.next() {
            if now >= end {
                break;
            }
            ideal.ended = now;
            if let Some(row) = row {
                ideal.rows.push(row);
            }
            workload(now, event, &mut out);
            for action in out.drain(..) {
                ideal.carry_out(now, action);
            }
            ideal.pending = ideal.pending.max(ideal.queue.len());
        }
        ideal.open = ideal.conns.len();
        ideal
    }

    /// Returns the next event; before it, all messages that begin to arrive earlier.
    #[allow(clippy::type_complexity)]
    fn next(&mut self) -> Option<((Time, u64), (Event, Option<Row>))> {
        while let Some(arrival) = self.arriving.first_entry() {
            let next = self.queue.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let begins = arrival.key().0;
            if begins > next {
                break;
            }
            let (port, takes, event) = arrival.remove();
            let free = self.received.entry(port).or_insert(Time::ZERO);
            *free = begins.max(*free) + takes;
            let at = *free;
            self.push(at, event, None);
        }
        self.queue.pop_first()
    }

    fn push(&mut self, at: Time, event: Event, row: Option<Row>) {
        self.order += 1;
        self.queue.insert((at, self.order), (event, row));
    }

    fn carry_out(&mut self, now: Time, action: Action) {
        assert!(!self.finished, "{action:?} after Finished");
        match action {
            Action::Wake { at, token } => {
                assert!(at >= now, "a wake-up in the past");
                self.push(at, Event::Wake { token }, None);
            }
            Action::Open { conn, client, server, .. } => self.open(conn, client, server),
            Action::Declare { conn, client, server, .. } => {
                self.declared.insert(conn, (client, server));
            }
            Action::Connect { conn } => {
                let (client, server) = self.declared.remove(&conn).expect("declared and not open");
                self.open(conn, client, server);
            }
            Action::Send { conn, from, payload, header, tag, .. } if self.rate.is_some() => {
                let (client, server) = self.conns[&conn];
                let (src, dst) =
                    if from == Side::Client { (client, server) } else { (server, client) };
                let (rate, out_of, into) = match self.rate.expect("checked above") {
                    Limit::Host(rate) => (rate, Port::Host(src), Port::Host(dst)),
                    Limit::Connection(rate) => {
                        let port = Port::Connection(conn, from);
                        (rate, port, port)
                    }
                };
                let takes = rate.time_for(payload + u64::from(header));
                let free = self.sent.entry(out_of).or_insert(Time::ZERO);
                let begins = now.max(*free);
                *free = begins + takes;
                self.order += 1;
                let arrival = (into, takes, Event::Delivered { conn, from, tag });
                self.arriving.insert((begins + Self::LATENCY, self.order), arrival);
            }
            Action::Send { conn, from, payload, tag, purpose, record, .. } => {
                assert!(!self.shut.contains(&(conn, from)), "{conn:?} written after its end");
                let (client, server) = self.conns[&conn];
                let (src, dst) =
                    if from == Side::Client { (client, server) } else { (server, client) };
                let delivered = now + Self::LATENCY;
                let row = Row { sent: now, delivered, src, dst, from, payload, tag, purpose };
                let event = Event::Delivered { conn, from, tag };
                if payload >= ENDLESS {
                    self.endless.insert((conn, from), (event, record.then_some(row)));
                } else {
                    self.push(delivered, event, record.then_some(row));
                }
            }
            Action::Truncate { conn, from } => {
                let (event, row) =
                    self.endless.remove(&(conn, from)).expect("a message without end");
                let delivered = now + Self::LATENCY;
                self.push(delivered, event, row.map(|row| Row { delivered, ..row }));
            }
            Action::Shutdown { conn, from } => {
                assert!(self.conns.contains_key(&conn), "{conn:?} is not open");
                self.shut.push((conn, from));
            }
            Action::Close { conn } => {
                self.shut.retain(|s| s.0 != conn);
                assert!(self.conns.remove(&conn).is_some(), "{conn:?} was not open");
            }
            Action::Datagram { from, to, bytes, .. } | Action::Frame { from, to, bytes, .. } => {
                assert_ne!(from, to);
                self.datagrams.push(Datagram { sent: now, from, to, bytes });
            }
            Action::Parcel(parcel) => {
                assert_ne!(parcel.from, parcel.to);
                self.parcels.push(parcel);
                self.push(now + Self::LATENCY, Event::Arrived { tag: parcel.tag }, None);
            }
            Action::Round { round, started, bytes } => {
                self.rounds.push(Round { round, started, finished: now, bytes });
            }
            Action::Transaction(record) => self.transactions.push(*record),
            Action::Job(_) | Action::Task(_) => {}
            Action::MpiRank(rank) => self.ranks.push(*rank),
            Action::MpiState(state) => self.states.push(state),
            Action::MpiMessage(message) => self.messages.push(*message),
            Action::MpiCollective(call) => self.collectives.push(*call),
            Action::MpiIteration(iteration) => self.iterations.push(*iteration),
            Action::Fail(why) => self.failed = Some(why),
            Action::Abort { .. } | Action::Ask { .. } => panic!("{action:?} without failures"),
            Action::Finished => self.finished = true,
            Action::MpiEntry(_)
            | Action::MpiLeft { .. }
            | Action::MpiSent { .. }
            | Action::MpiReceived { .. }
            | Action::MpiNextRound
            | Action::TransactionPart { .. }
            | Action::CallsDone { .. } => {
                panic!("{action:?} in an undivided run")
            }
        }
    }

    fn open(&mut self, conn: ConnId, client: HostId, server: HostId) {
        assert_ne!(client, server);
        assert!(self.conns.insert(conn, (client, server)).is_none(), "{conn:?} in use");
        self.opened += 1;
        self.clients.push(client);
        self.peak = self.peak.max(self.conns.len());
    }
}
