//! Replay of transactions: each call begins when the calls on which it depends are done.

use super::book::{Book, Call, Recorded};
use super::config::{Arrivals, TransactionsConfig};
use super::path;
use super::processors::Processors;
use super::running::{ARRIVE, Running, Step, Work, owner, step_of, wake};
use super::shape::Shape;
use crate::arrivals::exponential;
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{CallRecord, ConnId, HostId, Purpose, Side, Span, Time, TransactionRecord};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// State of a replay of transactions.
#[derive(Debug, Serialize, Deserialize)]
pub struct Transactions {
    pub(super) config: TransactionsConfig,
    /// Host of each component, by component number.
    hosts: Vec<HostId>,
    gaps: Stream,
    choices: Choices,
    /// Choice of each transaction that has arrived, by its number.
    pub(super) chosen: Vec<Chosen>,
    processors: Option<Processors>,
    /// Connections by (calling component, answering component). Client hosts have the numbers after
    /// the components.
    connections: BTreeMap<(u32, u32), Connection>,
    /// Transactions in progress, by number.
    pub(super) running: BTreeMap<u32, Running>,
    pub(super) completed: u64,
    /// By host: whether this part of a partitioned run simulates it; `None` in an undivided run.
    pub(super) own: Option<Vec<bool>>,
    /// Steps of calls that are due at the present time: (step, number of the transaction, call).
    /// Empty between two events.
    #[serde(skip)]
    due: VecDeque<(Step, u32, u32)>,
    /// Number of responses that have arrived in the present event. In a partitioned run, the part of
    /// the answering component counts a response. Zero between two events.
    #[serde(skip)]
    calls_done: u32,
}

/// A declared connection between two components.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Connection {
    name: ConnId,
    /// Whether the calling component has opened it.
    is_open: bool,
}

/// Choice of the recorded transaction and of the client, for a transaction that arrives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Chosen {
    /// Index of the recorded transaction in [`Book::transactions`].
    pub(super) recorded: u32,
    /// Client host that sends the first request: index into the list of clients; `None` if there
    /// are no clients.
    pub(super) client: Option<u32>,
}

/// Random choices at the arrivals of transactions. They do not depend on the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Choices {
    draws: Stream,
    origins: Stream,
}

impl Choices {
    /// Returns the choice for the transaction with this number, the next one to arrive.
    fn next(&mut self, number: u64, config: &TransactionsConfig) -> Chosen {
        let recorded = config.book.transactions.len() as u64;
        let which = match config.drawn {
            true => self.draws.below(recorded),
            false => number % recorded,
        };
        let client = match config.clients.len() as u64 {
            0 => None,
            clients => Some(self.origins.below(clients) as u32),
        };
        Chosen { recorded: which as u32, client }
    }
}

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
            choices: Choices {
                draws: Stream::new(cluster.seed, "transactions/draws"),
                origins: Stream::new(cluster.seed, "transactions/clients"),
            },
            chosen: Vec::new(),
            connections: BTreeMap::new(),
            running: BTreeMap::new(),
            completed: 0,
            own: None,
            due: VecDeque::new(),
            calls_done: 0,
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
            Event::Wake { token } => match step_of(token) {
                None => self.arrive(now, out),
                Some((step, number, call)) => self.computed(step, number, call),
            },
            Event::Delivered { from, tag, .. } => {
                let (number, call) = ((tag >> 32) as u32, tag as u32);
                let (asks, answers) = self.hosts_of(self.chosen[number as usize], call);
                let (step, at) = match from {
                    Side::Client => (Step::Arrived, answers),
                    Side::Server => (Step::Done, asks),
                };
                if self.acts_at(at) {
                    self.enter(number);
                    self.due.push_back((step, number, call));
                } else {
                    // a part of a partitioned run also learns when its own messages arrive
                    self.calls_done += u32::from(step == Step::Done);
                }
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
        let calls = std::mem::take(&mut self.calls_done);
        if self.own.is_some() && calls > 0 {
            out.push(Action::CallsDone { calls });
        }
    }

    /// Declares the connections that a transaction will use and that no earlier one uses, in the order
    /// of its calls.
    fn declare(&mut self, chosen: Chosen, out: &mut Vec<Action>) {
        for call in 0..self.calls_of(chosen).len() as u32 {
            let Some((pair, (client, server))) = self.way(chosen, call) else { continue };
            let name = ConnId(self.connections.len() as u32);
            if let Entry::Vacant(entry) = self.connections.entry(pair) {
                entry.insert(Connection { name, is_open: false });
                let class = self.config.class;
                out.push(Action::Declare { conn: name, client, server, class, cards: None });
            }
        }
    }

    /// Returns the number of calls of all transactions of the run.
    pub fn calls_of_all(&self) -> u64 {
        let TransactionsConfig { book, count, drawn, .. } = &self.config;
        let calls = |recorded: u64| book.transactions[recorded as usize].calls.len() as u64;
        let recorded = book.transactions.len() as u64;
        if *drawn {
            let mut draws = self.choices.draws.clone();
            return (0..*count).map(|_| calls(draws.below(recorded))).sum();
        }
        count / recorded * (0..recorded).map(calls).sum::<u64>()
            + (0..count % recorded).map(calls).sum::<u64>()
    }

    /// Handles the end of the computing time before a step of a call: the step is due now.
    fn computed(&mut self, step: Step, number: u32, call: u32) {
        self.due.push_back((step, number, call));
        if let Some(processors) = &mut self.processors {
            let chosen = self.chosen[number as usize];
            let calls = &self.config.book.transactions[chosen.recorded as usize].calls;
            let owner = owner(calls, step, call);
            let running = self.running.get_mut(&number).expect("a transaction under way");
            processors.passed(calls[owner as usize].component, number, owner, running);
        }
    }

    /// Schedules the arrival of the next transaction; `from` is the time of the last arrival, or
    /// the start.
    fn await_next(&mut self, from: Time, now: Time, out: &mut Vec<Action>) {
        let arrived = self.chosen.len();
        if arrived as u64 == self.config.count {
            return;
        }
        let at = match self.config.arrivals {
            Arrivals::Recorded => {
                let next = &self.config.book.transactions[arrived];
                Time::ZERO + self.config.start + next.start
            }
            Arrivals::Poisson(mean) => from + exponential(mean, &mut self.gaps),
            Arrivals::Periodic(gap) if arrived > 0 => from + gap,
            Arrivals::Periodic(_) => from,
        };
        out.push(Action::Wake { at: at.max(now), token: ARRIVE });
    }

    /// Starts the next transaction with its first call.
    fn arrive(&mut self, now: Time, out: &mut Vec<Action>) {
        let number = self.chosen.len() as u32;
        let chosen = self.choices.next(u64::from(number), &self.config);
        self.chosen.push(chosen);
        self.declare(chosen, out);
        if self.acts_at(self.hosts_of(chosen, 0).0) {
            self.enter(number);
            self.due.push_back((Step::Send, number, 0));
        }
        self.await_next(now, now, out);
    }

    /// Creates the state of a transaction, unless it exists.
    fn enter(&mut self, number: u32) {
        if self.running.contains_key(&number) {
            return;
        }
        let chosen = self.chosen[number as usize];
        let calls = self.calls_of(chosen);
        let all = 2 * calls.len() as u32;
        let left = match &self.own {
            None => all,
            Some(_) => {
                let hosts = (0..calls.len() as u32).map(|call| self.hosts_of(chosen, call));
                let own = |host| u32::from(self.acts_at(host));
                hosts.map(|(asks, answers)| own(asks) + own(answers)).sum()
            }
        };
        let running = Running {
            shape: Shape::new(calls),
            calls: vec![CallRecord::default(); calls.len()],
            left,
            is_whole: left == all,
            work: vec![Work::default(); self.processors.as_ref().map_or(0, |_| calls.len())],
        };
        self.running.insert(number, running);
    }

    /// Returns the state of a transaction, and its recording.
    fn at(&mut self, number: u32) -> (&mut Running, &Recorded) {
        let running = self.running.get_mut(&number).expect("a transaction under way");
        let recorded = self.chosen[number as usize].recorded;
        (running, &self.config.book.transactions[recorded as usize])
    }

    /// Returns the recorded calls of a transaction.
    pub(super) fn calls_of(&self, chosen: Chosen) -> &[Call] {
        &self.config.book.transactions[chosen.recorded as usize].calls
    }

    /// Returns the calling and the answering component of a call. Client hosts have the numbers after
    /// the components. A transaction without clients begins in the component of its first call.
    fn components_of(&self, chosen: Chosen, call: u32) -> (u32, u32) {
        let calls = self.calls_of(chosen);
        let answers = calls[call as usize].component;
        let asks = match (calls[call as usize].parent, chosen.client) {
            (Some(parent), _) => calls[parent as usize].component,
            (None, Some(client)) => self.hosts.len() as u32 + client,
            (None, None) => answers,
        };
        (asks, answers)
    }

    /// Returns the hosts of the calling and the answering component of a call.
    fn hosts_of(&self, chosen: Chosen, call: u32) -> (HostId, HostId) {
        let (asks, answers) = self.components_of(chosen, call);
        let to = self.hosts[answers as usize];
        let clients = || self.config.clients[asks as usize - self.hosts.len()];
        (self.hosts.get(asks as usize).copied().unwrap_or_else(clients), to)
    }

    /// Returns the calling and the answering component of a call, and the hosts of both; `None` if
    /// both are on one host, so that the call needs no network.
    fn way(&self, chosen: Chosen, call: u32) -> Option<((u32, u32), (HostId, HostId))> {
        let hosts = self.hosts_of(chosen, call);
        (hosts.0 != hosts.1).then(|| (self.components_of(chosen, call), hosts))
    }

    /// Sends the request of a call to the answering component.
    fn send(&mut self, now: Time, number: u32, call: u32, out: &mut Vec<Action>) {
        let (running, recorded) = self.at(number);
        running.calls[call as usize].sent = now;
        let bytes = recorded.calls[call as usize].request_bytes;
        let Some((pair, _)) = self.way(self.chosen[number as usize], call) else {
            self.due.push_back((Step::Arrived, number, call));
            return;
        };
        let connection = self.connections.get_mut(&pair).expect("declared at the arrival");
        if !std::mem::replace(&mut connection.is_open, true) {
            out.push(Action::Connect { conn: connection.name });
        }
        out.push(message(connection.name, Side::Client, bytes, number, call));
    }

    /// Sends the response of a call to its caller.
    fn answer(&mut self, now: Time, number: u32, call: u32, out: &mut Vec<Action>) {
        let (running, recorded) = self.at(number);
        running.calls[call as usize].answered = now;
        running.left -= 1;
        let over = running.left == 0;
        let bytes = recorded.calls[call as usize].response_bytes;
        match self.way(self.chosen[number as usize], call) {
            Some((pair, _)) => {
                let conn = self.connections[&pair].name;
                out.push(message(conn, Side::Server, bytes, number, call));
            }
            None => self.due.push_back((Step::Done, number, call)),
        }
        if over {
            self.leave(number, out);
        }
    }

    /// Handles the arrival of a call's request: schedules the steps that depend on it.
    fn request_arrived(&mut self, now: Time, number: u32, call: u32, out: &mut Vec<Action>) {
        let mut ready = Vec::new();
        let (running, recorded) = self.at(number);
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
        self.schedule(now, number, &ready, out);
    }

    /// Handles the arrival of a call's response: schedules the steps that depend on it, and ends
    /// the transaction after its last call.
    fn done(&mut self, now: Time, number: u32, call: u32, out: &mut Vec<Action>) {
        let answers_here = self.acts_at(self.hosts_of(self.chosen[number as usize], call).1);
        let mut ready = Vec::new();
        let (running, recorded) = self.at(number);
        running.calls[call as usize].done = now;
        running.left -= 1;
        let over = running.left == 0;
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
        self.calls_done += u32::from(answers_here);
        self.schedule(now, number, &ready, out);
        if over {
            self.leave(number, out);
        }
    }

    /// Schedules each step of a call for the end of the computing time that precedes it.
    fn schedule(
        &mut self,
        now: Time,
        number: u32,
        steps: &[(Step, u32, Span)],
        out: &mut Vec<Action>,
    ) {
        for &(step, call, wait) in steps {
            if wait == Span::ZERO {
                self.due.push_back((step, number, call));
            } else if let Some(processors) = &mut self.processors {
                let running = self.running.get_mut(&number).expect("a transaction under way");
                let chosen = self.chosen[number as usize];
                let calls = &self.config.book.transactions[chosen.recorded as usize].calls;
                let owner = owner(calls, step, call);
                let component = calls[owner as usize].component;
                let at = (component, number, owner);
                processors.compute(now, at, (step, call, wait), running, out);
            } else {
                out.push(wake(now + wait, step, number, call));
            }
        }
    }

    /// Ends a transaction after all its calls. In one part of a partitioned run, its hosts have no
    /// more calls of the transaction to make or to answer.
    fn leave(&mut self, number: u32, out: &mut Vec<Action>) {
        let (running, _) = self.at(number);
        if !running.is_whole {
            running.shape = Shape::default();
            out.push(Action::TransactionPart { number });
            return;
        }
        self.complete(number, out);
        if self.completed == self.config.count && self.own.is_none() {
            self.finish(out);
        }
    }

    /// Writes the record of a transaction whose calls are done, in all parts of a partitioned run.
    pub fn complete(&mut self, number: u32, out: &mut Vec<Action>) {
        let Chosen { recorded, client } = self.chosen[number as usize];
        let Running { mut calls, work, .. } =
            self.running.remove(&number).expect("a transaction under way");
        let book = &self.config.book.transactions[recorded as usize];
        let path::Sums { network, compute, queued } = path::trace(&book.calls, &work, &mut calls);
        let client = client.map(|c| self.config.clients[c as usize]);
        let record =
            TransactionRecord { number, recorded, client, network, compute, queued, calls };
        out.push(Action::Transaction(Box::new(record)));
        self.completed += 1;
    }

    /// Closes all connections after the last transaction.
    pub(crate) fn finish(&self, out: &mut Vec<Action>) {
        out.extend(self.connections.values().map(|c| Action::Close { conn: c.name }));
        out.push(Action::Finished);
    }
}

/// Returns the action that sends a request or response of a call. Its row in the flow table has the
/// number of the transaction as job.
fn message(conn: ConnId, from: Side, payload: u64, number: u32, call: u32) -> Action {
    Action::Send {
        conn,
        from,
        payload,
        header: 0,
        tag: u64::from(number) << 32 | u64::from(call),
        purpose: if from == Side::Client { Purpose::Request } else { Purpose::Response },
        job: Some(number),
        record: true,
    }
}
