//! Replay of transactions: each call begins when the calls on which it depends are done.

use super::book::{Book, Recorded};
use super::config::{Arrivals, TransactionsConfig};
use super::path;
use super::processors::Processors;
use super::running::{ARRIVE, Running, SEND, Step, Work, owner, wake};
use super::shape::Shape;
use crate::arrivals::exponential;
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{CallRecord, ConnId, HostId, Purpose, Side, Span, Time, TransactionRecord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// State of a replay of transactions.
#[derive(Debug, Serialize, Deserialize)]
pub struct Transactions {
    config: TransactionsConfig,
    /// Host of each component, by component number.
    hosts: Vec<HostId>,
    gaps: Stream,
    draws: Stream,
    origins: Stream,
    processors: Option<Processors>,
    /// Connections by (calling component, answering component). Client hosts have the numbers after
    /// the components.
    connections: BTreeMap<(u32, u32), ConnId>,
    running: Vec<Option<Running>>,
    free: Vec<u32>,
    arrived: u64,
    completed: u64,
    /// Steps of calls that are due at the present time: (step, slot of the transaction, call).
    /// Empty between two events.
    #[serde(skip)]
    due: VecDeque<(Step, u32, u32)>,
}

/// Largest number of transactions in progress at one time.
const MOST_RUNNING: usize = 1 << 30;

impl Transactions {
    /// Largest number of transactions of a replay: their numbers have 32 bits.
    pub const MOST: u64 = 1 << 31;

    /// Returns the initial state of a replay of transactions, or the reasons why the settings are
    /// invalid.
    pub fn new(config: TransactionsConfig, cluster: &Cluster) -> Result<Transactions, Vec<String>> {
        let mut no = Objections::new();
        let recorded = config.book.transactions.len() as u64;
        no.require(recorded > 0, || "file: must contain at least one transaction".into());
        if config.arrivals == Arrivals::Recorded {
            no.require(!config.drawn, || {
                "pick: \"random\" needs arrivals = \"poisson\" or \"periodic\"".into()
            });
            no.require(config.count <= recorded.max(1), || {
                format!(
                    "transactions: the file has only {recorded}; a larger number needs arrivals = \
                         \"poisson\" or \"periodic\""
                )
            });
        }
        if let Arrivals::Poisson(gap) | Arrivals::Periodic(gap) = config.arrivals {
            no.require(gap > Span::ZERO, || "mean_gap: must be above 0".into());
        }
        no.require_hosts("clients", &config.clients, cluster);
        let hosts = match config.placement.hosts(config.book.components.len(), cluster) {
            Ok(hosts) => hosts,
            Err(reason) => {
                no.require(false, || reason);
                Vec::new()
            }
        };
        no.unless_any(|| Transactions {
            processors: config.processors.map(|each| Processors::new(each, hosts.len())),
            hosts,
            gaps: Stream::new(cluster.seed, "transactions/gaps"),
            draws: Stream::new(cluster.seed, "transactions/draws"),
            origins: Stream::new(cluster.seed, "transactions/clients"),
            connections: BTreeMap::new(),
            running: Vec::new(),
            free: Vec::new(),
            arrived: 0,
            completed: 0,
            due: VecDeque::new(),
            config,
        })
    }

    /// Returns the numbers of finished transactions and of all transactions.
    pub fn progress(&self) -> (u64, u64) {
        (self.completed, self.config.count)
    }

    /// Returns the recorded transactions that are replayed.
    pub fn book(&self) -> &Book {
        &self.config.book
    }

    /// Returns the host of each component, by component number.
    pub fn hosts(&self) -> &[HostId] {
        &self.hosts
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => self.await_next(Time::ZERO + self.config.start, now, out),
            Event::Wake { token } => {
                let (slot, call) = ((token >> 32) as u32 & (MOST_RUNNING as u32 - 1), token as u32);
                match token >> 62 {
                    ARRIVE => self.arrive(now, out),
                    SEND => self.computed(Step::Send, slot, call),
                    _ => self.computed(Step::Answer, slot, call),
                }
            }
            Event::Delivered { from, tag, .. } => {
                let step = if from == Side::Client { Step::Arrived } else { Step::Done };
                self.due.push_back((step, (tag >> 32) as u32, tag as u32));
            }
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
        while let Some((step, slot, call)) = self.due.pop_front() {
            match step {
                Step::Send => self.send(now, slot, call, out),
                Step::Arrived => self.request_arrived(now, slot, call, out),
                Step::Answer => self.answer(now, slot, call, out),
                Step::Done => self.done(now, slot, call, out),
            }
        }
        if let Some(processors) = &mut self.processors {
            processors.hand_on(now, &mut self.running, out);
        }
    }

    /// Handles the end of the computing time before a step of a call: the step is due now.
    fn computed(&mut self, step: Step, slot: u32, call: u32) {
        self.due.push_back((step, slot, call));
        let running = self.running[slot as usize].as_mut().expect("a transaction under way");
        if let Some(processors) = &mut self.processors {
            let calls = &self.config.book.transactions[running.recorded as usize].calls;
            let owner = owner(calls, step, call);
            processors.passed(calls[owner as usize].component, slot, owner, running);
        }
    }

    /// Schedules the arrival of the next transaction; `from` is the time of the last arrival, or
    /// the start.
    fn await_next(&mut self, from: Time, now: Time, out: &mut Vec<Action>) {
        if self.arrived == self.config.count {
            return;
        }
        let at = match self.config.arrivals {
            Arrivals::Recorded => {
                let next = &self.config.book.transactions[self.arrived as usize];
                Time::ZERO + self.config.start + next.start
            }
            Arrivals::Poisson(mean) => from + exponential(mean, &mut self.gaps),
            Arrivals::Periodic(gap) if self.arrived > 0 => from + gap,
            Arrivals::Periodic(_) => from,
        };
        out.push(Action::Wake { at: at.max(now), token: ARRIVE });
    }

    /// Starts the next transaction with its first call.
    fn arrive(&mut self, now: Time, out: &mut Vec<Action>) {
        let recorded = self.config.book.transactions.len() as u64;
        let which = match self.config.drawn {
            true => self.draws.below(recorded),
            false => self.arrived % recorded,
        };
        let client = match self.config.clients.len() as u64 {
            0 => None,
            clients => Some(self.origins.below(clients) as u32),
        };
        let calls = &self.config.book.transactions[which as usize].calls;
        let running = Running {
            number: self.arrived as u32,
            recorded: which as u32,
            client,
            shape: Shape::new(calls),
            calls: vec![CallRecord::default(); calls.len()],
            left: calls.len() as u32,
            work: vec![Work::default(); self.processors.as_ref().map_or(0, |_| calls.len())],
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                assert!(self.running.len() < MOST_RUNNING, "places have 30 bits");
                self.running.push(None);
                self.running.len() as u32 - 1
            }
        };
        self.running[slot as usize] = Some(running);
        self.arrived += 1;
        self.due.push_back((Step::Send, slot, 0));
        self.await_next(now, now, out);
    }

    /// Returns the state of the transaction at a slot, and its recording.
    fn at(&mut self, slot: u32) -> (&mut Running, &Recorded) {
        let running = self.running[slot as usize].as_mut().expect("a transaction under way");
        let recorded = &self.config.book.transactions[running.recorded as usize];
        (running, recorded)
    }

    /// Returns the calling and the answering component of a call, and the hosts of both; `None` if
    /// both are on one host, so that the call needs no network.
    fn way(&self, slot: u32, call: u32) -> Option<((u32, u32), (HostId, HostId))> {
        let running = self.running[slot as usize].as_ref().expect("a transaction under way");
        let calls = &self.config.book.transactions[running.recorded as usize].calls;
        let answers = calls[call as usize].component;
        let to = self.hosts[answers as usize];
        let (asks, from) = match calls[call as usize].parent {
            Some(parent) => {
                let asks = calls[parent as usize].component;
                (asks, self.hosts[asks as usize])
            }
            None => {
                let client = running.client?;
                (self.hosts.len() as u32 + client, self.config.clients[client as usize])
            }
        };
        (from != to).then_some(((asks, answers), (from, to)))
    }

    /// Sends the request of a call to the answering component.
    fn send(&mut self, now: Time, slot: u32, call: u32, out: &mut Vec<Action>) {
        let (running, recorded) = self.at(slot);
        running.calls[call as usize].sent = now;
        let (bytes, number) = (recorded.calls[call as usize].request_bytes, running.number);
        let Some((pair, (client, server))) = self.way(slot, call) else {
            self.due.push_back((Step::Arrived, slot, call));
            return;
        };
        let name = ConnId(self.connections.len() as u32);
        let conn = *self.connections.entry(pair).or_insert_with(|| {
            out.push(Action::Open {
                conn: name,
                client,
                server,
                class: self.config.class,
                cards: None,
            });
            name
        });
        out.push(message(conn, Side::Client, bytes, (slot, call), number));
    }

    /// Sends the response of a call to its caller.
    fn answer(&mut self, now: Time, slot: u32, call: u32, out: &mut Vec<Action>) {
        let (running, recorded) = self.at(slot);
        running.calls[call as usize].answered = now;
        let (bytes, number) = (recorded.calls[call as usize].response_bytes, running.number);
        match self.way(slot, call) {
            Some((pair, _)) => {
                let conn = self.connections[&pair];
                out.push(message(conn, Side::Server, bytes, (slot, call), number));
            }
            None => self.due.push_back((Step::Done, slot, call)),
        }
    }

    /// Handles the arrival of a call's request: schedules the steps that depend on it.
    fn request_arrived(&mut self, now: Time, slot: u32, call: u32, out: &mut Vec<Action>) {
        let mut ready = Vec::new();
        let (running, recorded) = self.at(slot);
        running.calls[call as usize].arrived = now;
        for &child in running.shape.children(call) {
            let next = &recorded.calls[child as usize];
            if next.after.is_empty() {
                ready.push((Step::Send, child, next.gap));
            }
        }
        if running.shape.awaited[call as usize] == 0 {
            ready.push((Step::Answer, call, recorded.calls[call as usize].rest));
        }
        self.schedule(now, slot, &ready, out);
    }

    /// Handles the arrival of a call's response: schedules the steps that depend on it, and ends
    /// the transaction after its last call.
    fn done(&mut self, now: Time, slot: u32, call: u32, out: &mut Vec<Action>) {
        let mut ready = Vec::new();
        let (running, recorded) = self.at(slot);
        running.calls[call as usize].done = now;
        running.left -= 1;
        for i in running.shape.followers_range(call) {
            let next = running.shape.follower(i);
            let before = &mut running.shape.before[next as usize];
            *before -= 1;
            if *before == 0 {
                ready.push((Step::Send, next, recorded.calls[next as usize].gap));
            }
        }
        let this = &recorded.calls[call as usize];
        if let (Some(parent), true) = (this.parent, this.waited) {
            let awaited = &mut running.shape.awaited[parent as usize];
            *awaited -= 1;
            if *awaited == 0 {
                ready.push((Step::Answer, parent, recorded.calls[parent as usize].rest));
            }
        }
        let over = running.left == 0;
        self.schedule(now, slot, &ready, out);
        if over {
            self.complete(slot, out);
        }
    }

    /// Schedules each step of a call for the end of the computing time that precedes it.
    fn schedule(
        &mut self,
        now: Time,
        slot: u32,
        steps: &[(Step, u32, Span)],
        out: &mut Vec<Action>,
    ) {
        for &(step, call, wait) in steps {
            if wait == Span::ZERO {
                self.due.push_back((step, slot, call));
            } else if let Some(processors) = &mut self.processors {
                let running =
                    self.running[slot as usize].as_mut().expect("a transaction under way");
                let calls = &self.config.book.transactions[running.recorded as usize].calls;
                let owner = owner(calls, step, call);
                let component = calls[owner as usize].component;
                let at = (component, slot, owner);
                processors.compute(now, at, (step, call, wait), running, out);
            } else {
                out.push(wake(now + wait, step, slot, call));
            }
        }
    }

    /// Ends a transaction after all its calls, and writes its record.
    fn complete(&mut self, slot: u32, out: &mut Vec<Action>) {
        let running = self.running[slot as usize].take().expect("a transaction under way");
        self.free.push(slot);
        let Running { number, recorded, client, mut calls, work, .. } = running;
        let book = &self.config.book.transactions[recorded as usize];
        let path::Sums { network, compute, queued } = path::trace(&book.calls, &work, &mut calls);
        let client = client.map(|c| self.config.clients[c as usize]);
        let record =
            TransactionRecord { number, recorded, client, network, compute, queued, calls };
        out.push(Action::Transaction(Box::new(record)));
        self.completed += 1;
        if self.completed == self.config.count {
            out.extend(self.connections.values().map(|&conn| Action::Close { conn }));
            out.push(Action::Finished);
        }
    }
}

/// Returns the action that sends a request or response of a call. Its row in the flow table has the
/// number of the transaction as job.
fn message(
    conn: ConnId,
    from: Side,
    payload: u64,
    (slot, call): (u32, u32),
    number: u32,
) -> Action {
    Action::Send {
        conn,
        from,
        payload,
        header: 0,
        tag: u64::from(slot) << 32 | u64::from(call),
        purpose: if from == Side::Client { Purpose::Request } else { Purpose::Response },
        job: Some(number),
        record: true,
    }
}
