//! Deployment of an application: passes events of the network to its processes, and actions of the
//! processes to the network.
//!
//! A process has one connection to each process to which it sends, or several, with different
//! numbers that the process chooses. A connection opens with its first message. A reply uses the
//! connection of its request. Messages and timers are numbered together. The number of a message is
//! the tag of its row in the flow table, equal for request and response, so that exchanges are
//! measured like the exchanges of a service.

use super::family::{Model, Program};
use super::process::{Act, Content, Kind, Message, Place, Process};
use super::requests::Requests;
use super::role::Role;
use super::tally::Tally;
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, ConnId, HostId, Purpose, Side, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Settings of an application, with the hosts of its processes.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationConfig {
    /// Kind of the application, with its settings.
    pub model: Model,
    /// Name of the workload, from which the random streams are derived.
    pub name: String,
    /// Roles of the application's processes.
    pub roles: Arc<[Role]>,
    /// Hosts of each role; each host of the list runs one process with this role.
    pub hosts: Vec<Vec<HostId>>,
    /// Simulated time at which all processes of the application start.
    pub start: Time,
    /// Traffic class of all packets of the application.
    pub class: ClassId,
}

impl ApplicationConfig {
    /// Largest number of processes of an application.
    pub const MAX_PROCESSES: usize = 100_000;
}

/// Largest number of bytes of a message.
const MOST_BYTES: u64 = 1_000_000_000_000_000;
/// Largest number of messages in flight and timers at one time, for all processes of an
/// application.
const MOST_PENDING: usize = 10_000_000;
/// Largest number of events of an application at one simulated time. More events mean that
/// processes react to each other without end.
const MOST_AT_ONCE: u64 = 10_000_000;

/// A process of an application, with its role and its random stream.
#[derive(Debug, Serialize, Deserialize)]
struct Running {
    program: Program,
    role: usize,
    random: Stream,
}

/// A connection from one process (client) to another (server).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    client: u32,
    server: u32,
    number: u16,
    /// Number of messages in flight on the connection, in both directions.
    on_the_way: u32,
    /// Whether the client has closed the connection; it ends when no message is in flight.
    closing: bool,
}

/// A message in flight to the process `to`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OnTheWay {
    to: u32,
    /// Number of the connection of the message; `None` if both processes run on one host.
    conn: Option<u32>,
    message: Message,
}

/// A timer of the process `of`, which gets `value` when the timer expires.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Timer {
    of: u32,
    value: u64,
}

/// A request whose reply has not been sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Asked {
    client: u32,
    server: u32,
    conn: Option<u32>,
}

/// Event that a process must handle.
enum Turn<'a> {
    Start,
    Message(&'a Message),
    Timer(u64),
    Close(u32, bool),
}

impl Turn<'_> {
    /// Returns the name of the method of an application that handles the event.
    fn hook(&self) -> &'static str {
        match self {
            Turn::Start => "on_start",
            Turn::Message(_) => "on_message",
            Turn::Timer(_) => "on_timer",
            Turn::Close(..) => "on_close",
        }
    }
}

/// An application in a simulation, with all its processes, connections, messages and timers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Deployment {
    processes: Vec<Running>,
    hosts: Vec<HostId>,
    /// Names of the roles, for messages.
    roles: Vec<String>,
    members: Vec<Vec<u32>>,
    start: Time,
    class: ClassId,
    tally: Tally,
    /// Number of the next message or timer of the application.
    next: u64,
    next_conn: u32,
    links: BTreeMap<u32, Link>,
    /// Number of the open connection from a process to another, by (client, server, connection
    /// number chosen by the client).
    between: BTreeMap<(u32, u32, u16), u32>,
    messages: BTreeMap<u64, OnTheWay>,
    timers: BTreeMap<u64, Timer>,
    asked: BTreeMap<u64, Asked>,
    /// Numbers of the requests whose connection has failed before their reply was sent.
    lost: BTreeSet<u64>,
    /// Numbers of the messages in flight between processes on one host, in the order of sending.
    local: VecDeque<u64>,
    /// Time of the last event, and number of events so far at this time.
    instant: (Time, u64),
    finished: bool,
    /// Numbers of requests by state; while the application runs, requests whose reply has not
    /// arrived are included in `sent` only.
    requests: Requests,
}

/// Token of the wake-up that starts all processes. The token of a timer is the timer's number,
/// which is always below this value.
const START: u64 = u64::MAX >> 16;
/// Token of the wake-ups for messages between processes on one host. Wake-ups of equal time have no
/// guaranteed order; the messages are delivered in the order of `local`.
const LOCAL: u64 = START - 1;

impl Deployment {
    /// Returns the initial state of an application, or the reasons why the settings are invalid.
    pub fn new(config: ApplicationConfig, cluster: &Cluster) -> Result<Deployment, Vec<String>> {
        let mut no = Objections::new();
        for (role, hosts) in config.roles.iter().zip(&config.hosts) {
            no.require(!hosts.is_empty(), || format!("{}: at least one host is needed", role.name));
            no.require_hosts(role.name, hosts, cluster);
        }
        let count: usize = config.hosts.iter().map(Vec::len).sum();
        no.require(count <= ApplicationConfig::MAX_PROCESSES, || {
            format!(
                "hosts: {count} processes, but an application has at most {}",
                ApplicationConfig::MAX_PROCESSES
            )
        });
        let members: Vec<usize> = config.hosts.iter().map(Vec::len).collect();
        config.model.problems(&members).into_iter().for_each(|why| no.require(false, || why));
        no.unless_any(|| Self::of(config, cluster.seed))
    }

    fn of(config: ApplicationConfig, seed: u64) -> Deployment {
        let hosts: Vec<HostId> = config.hosts.iter().flatten().copied().collect();
        let mut numbers = 0u32..;
        let members: Vec<Vec<u32>> =
            config.hosts.iter().map(|hosts| numbers.by_ref().take(hosts.len()).collect()).collect();
        let tally = Tally::new(&config.model.declared());
        let mut processes = Vec::with_capacity(hosts.len());
        for (role, numbers) in members.iter().enumerate() {
            for &number in numbers {
                let place = Place {
                    number,
                    role,
                    host: hosts[number as usize],
                    roles: &config.roles,
                    members: &members,
                    hosts: &hosts,
                    workload: &config.name,
                    seed,
                };
                let (program, random) = (config.model.start(&place), place.random(""));
                processes.push(Running { program, role, random });
            }
        }
        Deployment {
            processes,
            hosts,
            roles: config.roles.iter().map(|role| role.name.to_owned()).collect(),
            members,
            start: config.start,
            class: config.class,
            tally,
            next: 0,
            next_conn: 0,
            links: BTreeMap::new(),
            between: BTreeMap::new(),
            messages: BTreeMap::new(),
            timers: BTreeMap::new(),
            asked: BTreeMap::new(),
            lost: BTreeSet::new(),
            local: VecDeque::new(),
            instant: (Time::ZERO, 0),
            finished: false,
            requests: Requests::default(),
        }
    }

    /// Whether the application has ended: by itself, or because a process has called `stop`.
    pub fn has_ended(&self) -> bool {
        self.finished
    }

    /// Returns the numbers of requests by state, at this time or at the end of the application.
    pub fn requests(&self) -> Requests {
        let mut all = self.requests;
        if self.finished {
            return all;
        }
        for (request, asked) in &self.asked {
            let state = if self.messages.contains_key(request) {
                &mut all.request_in_flight
            } else if asked.conn.is_some_and(|conn| !self.links.contains_key(&conn)) {
                &mut all.connection_closed
            } else {
                &mut all.no_reply_sent
            };
            *state += 1;
        }
        let is_reply = |arriving: &&OnTheWay| matches!(arriving.message.kind, Kind::Reply(_));
        all.reply_in_flight = self.messages.values().filter(is_reply).count() as u64;
        all
    }

    /// Whether the application is one of a user, from another crate or a Python file.
    pub fn is_custom(&self) -> bool {
        self.processes.iter().any(|process| matches!(process.program, Program::Custom(_)))
    }

    /// Returns the numbers of completed and of planned units of work, as the application's
    /// processes have declared them; the second is 0 if they plan no work.
    pub fn progress(&self) -> (u64, u64) {
        (self.tally.completed, self.tally.planned)
    }

    /// Returns the counters and measured durations of the application.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        if self.finished {
            return;
        }
        self.instant = (now, if self.instant.0 == now { self.instant.1 + 1 } else { 1 });
        match event {
            Event::Begin => {
                return out.push(Action::Wake { at: self.start.max(now), token: START });
            }
            Event::Wake { token: START } => {
                for number in 0..self.processes.len() as u32 {
                    self.turn(now, number, &Turn::Start, out);
                }
            }
            Event::Wake { token: LOCAL } => {
                if let Some(tag) = self.local.pop_front() {
                    self.deliver(now, tag, out);
                }
            }
            Event::Wake { token } => {
                if let Some(timer) = self.timers.remove(&token) {
                    self.turn(now, timer.of, &Turn::Timer(timer.value), out);
                }
            }
            Event::Delivered { tag, .. } => self.deliver(now, tag, out),
            Event::Failed { conn } => self.fail(now, conn.0, out),
            Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!("this workload requests neither progress nor parcels")
            }
        }
        if self.finished {
            return;
        }
        if self.instant.1 > MOST_AT_ONCE {
            self.end(
                Action::Fail(format!(
                    "more than {MOST_AT_ONCE} events happen at the same simulated time, {now}: a \
                     process probably repeats an action without any delay"
                )),
                out,
            );
        } else if self.pending() == 0 {
            self.finish(out);
        }
    }

    /// Returns the number of messages in flight plus the number of timers.
    fn pending(&self) -> usize {
        self.messages.len() + self.timers.len()
    }

    fn end(&mut self, action: Action, out: &mut Vec<Action>) {
        self.finished = true;
        out.push(action);
    }

    fn finish(&mut self, out: &mut Vec<Action>) {
        self.requests = self.requests();
        let open = std::mem::take(&mut self.links);
        out.extend(open.keys().map(|&conn| Action::Close { conn: ConnId(conn) }));
        self.end(Action::Finished, out);
    }

    fn deliver(&mut self, now: Time, tag: u64, out: &mut Vec<Action>) {
        let Some(arrived) = self.messages.remove(&tag) else { return };
        if let Some(link) = arrived.conn.and_then(|conn| self.links.get_mut(&conn)) {
            link.on_the_way -= 1;
        }
        self.requests.answered += u64::from(arrived.message.answers().is_some());
        self.turn(now, arrived.to, &Turn::Message(&arrived.message), out);
        if let Some(conn) = arrived.conn {
            self.close_if_idle(now, conn, out);
        }
    }

    /// Closes a connection, if its client has closed it and no message is in flight on it.
    fn close_if_idle(&mut self, now: Time, conn: u32, out: &mut Vec<Action>) {
        let idle = |link: &Link| link.closing && link.on_the_way == 0;
        let Some(link) = self.links.get(&conn).copied().filter(idle) else { return };
        if self.finished {
            return;
        }
        self.links.remove(&conn);
        out.push(Action::Close { conn: ConnId(conn) });
        self.turn(now, link.server, &Turn::Close(link.client, false), out);
    }

    /// Handles the failure of a connection: its messages in flight are lost, and both processes are
    /// informed.
    fn fail(&mut self, now: Time, conn: u32, out: &mut Vec<Action>) {
        let Some(link) = self.links.remove(&conn) else { return };
        if !link.closing {
            self.between.remove(&(link.client, link.server, link.number));
        }
        let failed = |asked: &Asked| asked.conn == Some(conn);
        let numbers: Vec<u64> =
            self.asked.iter().filter(|(_, asked)| failed(asked)).map(|(&n, _)| n).collect();
        let mut lost = numbers.len() as u64;
        self.asked.retain(|_, asked| !failed(asked));
        self.lost.extend(numbers);
        self.messages.retain(|_, m| {
            let is_lost = m.conn == Some(conn);
            lost += u64::from(is_lost && m.message.answers().is_some());
            !is_lost
        });
        self.requests.connection_failed += lost;
        self.turn(now, link.client, &Turn::Close(link.server, true), out);
        self.turn(now, link.server, &Turn::Close(link.client, true), out);
    }

    /// Passes an event to a process, and executes the actions that the process requests.
    fn turn(&mut self, now: Time, number: u32, turn: &Turn, out: &mut Vec<Action>) {
        if self.finished {
            return;
        }
        let running = &mut self.processes[number as usize];
        let mut acts = Vec::new();
        let mut process = Process {
            now,
            number,
            role: running.role,
            members: &self.members,
            hosts: &self.hosts,
            random: &mut running.random,
            next: &mut self.next,
            tally: &mut self.tally,
            acts: &mut acts,
        };
        let application = running.program.application();
        match *turn {
            Turn::Start => application.on_start(&mut process),
            Turn::Message(message) => application.on_message(&mut process, message),
            Turn::Timer(value) => application.on_timer(&mut process, value),
            Turn::Close(peer, failed) => application.on_close(&mut process, peer, failed),
        }
        let role = running.role;
        let why = |this: &Self, problem: &str| {
            let (hook, role) = (turn.hook(), this.roles[role].as_str());
            Action::Fail(format!("{hook} of process {number} ({role}): {problem}"))
        };
        if let Some(problem) = self.tally.problem() {
            return self.end(why(self, &problem), out);
        }
        for act in acts {
            if self.pending() > MOST_PENDING {
                let problem = format!("more than {MOST_PENDING} messages and timers are pending");
                return self.end(why(self, &problem), out);
            }
            if let Err(problem) = self.carry_out(now, number, act, out) {
                return self.end(why(self, &problem), out);
            }
            if self.finished {
                return;
            }
        }
    }

    fn carry_out(
        &mut self,
        now: Time,
        number: u32,
        act: Act,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        match act {
            Act::Send { to, content, kind, tag } => {
                return self.send(now, (number, to), (content, kind, tag), out);
            }
            Act::Timer { id, delay, value } => {
                let at = now.0.checked_add(delay.0).filter(|&at| Time(at) < Time::NEVER);
                let at = at.ok_or_else(|| {
                    format!(
                        "started a timer of {delay}, which is too long: simulated time ends at {}",
                        Time::NEVER
                    )
                })?;
                self.timers.insert(id, Timer { of: number, value });
                out.push(Action::Wake { at: Time(at), token: id });
            }
            Act::Cancel(id) => {
                if self.timers.get(&id).is_some_and(|timer| timer.of == number) {
                    self.timers.remove(&id);
                }
            }
            Act::Close { peer, connection } => {
                if let Some(conn) = self.between.remove(&(number, peer, connection)) {
                    if let Some(link) = self.links.get_mut(&conn) {
                        link.closing = true;
                    }
                    self.close_if_idle(now, conn, out);
                }
            }
            Act::Stop => self.finish(out),
            Act::Fail(why) => return Err(why),
        }
        Ok(())
    }

    fn send(
        &mut self,
        now: Time,
        (from, to): (u32, u32),
        (content, kind, tag): (Content, Kind, u64),
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let count = self.processes.len();
        if to as usize >= count {
            return Err(format!("sent to process {to}; processes are 0 to {}", count - 1));
        }
        if content.bytes == 0 || content.bytes > MOST_BYTES {
            let bytes = content.bytes;
            return Err(format!("sent {bytes} bytes; a message has 1 to {MOST_BYTES}"));
        }
        let (to, conn) = match kind {
            Kind::Reply(request) => match self.asked.remove(&request) {
                Some(asked) if asked.server == from => (asked.client, asked.conn),
                Some(asked) => {
                    return Err(format!(
                        "replied to a request that was sent to process {}",
                        asked.server
                    ));
                }
                None if self.lost.remove(&request) => return Ok(()),
                None => return Err("replied to a request that already has a reply".to_owned()),
            },
            Kind::Plain | Kind::Request(_) => {
                (to, self.connection(from, to, content.connection, out))
            }
        };
        if let Kind::Request(request) = kind {
            self.requests.sent += 1;
            self.asked.insert(request, Asked { client: from, server: to, conn });
        }
        let arriving = OnTheWay { to, conn, message: Message { from, content, kind, sent: now } };
        let Some(conn) = conn else {
            self.messages.insert(tag, arriving);
            self.local.push_back(tag);
            out.push(Action::Wake { at: now, token: LOCAL });
            return Ok(());
        };
        let Some(link) = self.links.get_mut(&conn) else {
            // The client has closed the connection before the reply.
            self.requests.connection_closed += u64::from(matches!(kind, Kind::Reply(_)));
            return Ok(());
        };
        self.messages.insert(tag, arriving);
        link.on_the_way += 1;
        let side = if link.client == from { Side::Client } else { Side::Server };
        let purpose = match kind {
            Kind::Plain => Purpose::Flow,
            Kind::Request(_) => Purpose::Request,
            Kind::Reply(_) => Purpose::Response,
        };
        out.push(Action::Send {
            conn: ConnId(conn),
            from: side,
            payload: content.bytes,
            header: 0,
            tag,
            purpose,
            job: None,
            record: true,
        });
        Ok(())
    }

    /// Returns the connection over which the process `client` sends to the process `server`, and
    /// opens it if necessary; `None` if both run on one host. `number`: number of the connection
    /// among the connections from `client` to `server`.
    fn connection(
        &mut self,
        client: u32,
        server: u32,
        number: u16,
        out: &mut Vec<Action>,
    ) -> Option<u32> {
        let [from, to] = [client, server].map(|process| self.hosts[process as usize]);
        if from == to {
            return None;
        }
        if let Some(&conn) = self.between.get(&(client, server, number)) {
            return Some(conn);
        }
        let conn = self.next_conn;
        self.next_conn += 1;
        self.between.insert((client, server, number), conn);
        let link = Link { client, server, number, on_the_way: 0, closing: false };
        self.links.insert(conn, link);
        let class = self.class;
        out.push(Action::Open { conn: ConnId(conn), client: from, server: to, class, cards: None });
        Some(conn)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::declared::{Declared, Statistic};
    use super::super::interface::{Application, ApplicationModel};
    use super::*;
    use crate::ideal::{Ideal, cluster};
    use eastwest_types::Span;

    /// Results of an application that was run on the ideal network of the tests.
    pub struct Outcome {
        pub ideal: Ideal,
        pub counters: Vec<(String, u64)>,
        /// Number of values and mean in µs of each measure, by name.
        pub measures: BTreeMap<String, (u64, f64)>,
    }

    impl Outcome {
        pub fn counter(&self, name: &str) -> u64 {
            self.counters.iter().find(|c| c.0 == name).expect("a counter").1
        }
    }

    fn config(model: Model, roles: &[Role], hosts: &[&[u32]]) -> ApplicationConfig {
        let hosts = hosts.iter().map(|list| list.iter().map(|&h| HostId(h)).collect()).collect();
        let (name, roles) = ("application".to_owned(), roles.into());
        ApplicationConfig { model, name, roles, hosts, start: Time::ZERO, class: ClassId(0) }
    }

    /// Runs an application on the ideal network of the tests; `hosts` lists the hosts of each role.
    pub fn run(model: Model, roles: &[Role], hosts: &[&[u32]]) -> Outcome {
        let config = config(model, roles, hosts);
        let mut application = Deployment::new(config, &cluster(8)).expect("possible");
        let ideal = Ideal::run(|now, event, out| application.handle(now, event, out));
        let tally = application.tally();
        Outcome {
            ideal,
            counters: tally.counters().map(|(name, n)| (name.to_owned(), n)).collect(),
            measures: tally
                .durations()
                .map(|(name, h)| (name.to_owned(), (h.count(), h.mean_us())))
                .collect(),
        }
    }

    const PEERS: &[Role] = &[Role { name: "peers", doc: "All processes." }];

    /// Application for tests: each event of a process calls a given function.
    #[derive(Clone, Copy, Debug)]
    struct Script(fn(&mut Process, Option<&Message>, Option<u64>));

    impl ApplicationModel for Script {
        fn start(&self, _: &Place) -> Box<dyn Application> {
            Box::new(*self)
        }
    }

    impl Application for Script {
        fn on_start(&mut self, process: &mut Process) {
            self.0(process, None, None);
        }
        fn on_message(&mut self, process: &mut Process, message: &Message) {
            self.0(process, Some(message), None);
        }
        fn on_timer(&mut self, process: &mut Process, value: u64) {
            self.0(process, None, Some(value));
        }
        fn on_close(&mut self, process: &mut Process, peer: u32, failed: bool) {
            process.count(if failed { "failures" } else { "closes" }, u64::from(peer) + 1);
        }
    }

    fn script(hosts: &[u32], act: fn(&mut Process, Option<&Message>, Option<u64>)) -> Outcome {
        run(Model::Custom(Arc::new(Script(act))), PEERS, &[hosts])
    }

    #[test]
    fn a_connection_opens_with_the_first_message_and_again_after_its_end() {
        let outcome = script(&[4, 6], |p, message, timer| match (p.number(), message, timer) {
            (0, None, _) => {
                p.send(1, 100);
                p.send(1, 200);
                p.close(1, 0);
                if timer.is_none() {
                    p.timer(Span::from_ms(1), 7);
                }
            }
            (1, Some(message), None) => p.count("bytes", message.content.bytes),
            _ => {}
        });
        assert_eq!((outcome.ideal.opened, outcome.ideal.open), (2, 0));
        assert_eq!((outcome.counter("bytes"), outcome.counter("closes")), (600, 2));
        assert!(outcome.ideal.finished && outcome.ideal.rows.len() == 4);
        assert!(outcome.ideal.rows.iter().all(|r| (r.src, r.dst) == (HostId(4), HostId(6))));
    }

    #[test]
    fn connections_with_different_numbers_are_different() {
        let outcome = script(&[0, 1], |p, message, timer| {
            if p.number() == 0 && message.is_none() && timer.is_none() {
                for connection in [0, 1, 0] {
                    p.send(1, Content { bytes: 10, connection, ..Content::default() });
                }
            }
        });
        assert_eq!(outcome.ideal.opened, 2);
    }

    #[test]
    fn request_and_reply_have_one_tag() {
        let outcome = script(&[0, 1], |p, message, timer| match message {
            None if p.number() == 0 && timer.is_none() => {
                let number = p.request(1, Content { bytes: 10, words: [5, 6, 7], connection: 0 });
                p.count("number", number);
            }
            Some(message) if message.is_request() => {
                assert_eq!(message.content.words, [5, 6, 7]);
                p.reply(message, 30);
            }
            Some(message) => p.count("answered", 1 + message.answers().expect("a reply")),
            None => {}
        });
        assert_eq!((outcome.counter("number") + 1, outcome.counter("answered")), (1, 1));
        let rows = outcome.ideal.rows;
        let purposes: Vec<Purpose> = rows.iter().map(|r| r.purpose).collect();
        assert_eq!(purposes, [Purpose::Request, Purpose::Response]);
        assert_eq!(rows[0].tag, rows[1].tag);
    }

    #[test]
    fn processes_of_one_host_need_no_network() {
        let roles = &[Role { name: "a", doc: "" }, Role { name: "b", doc: "" }];
        let act: fn(&mut Process, Option<&Message>, Option<u64>) = |p, message, timer| {
            if p.role() == 0 && message.is_none() && timer.is_none() {
                let other = p.members(1)[0];
                p.request(other, 100);
            } else if let Some(message) = message.filter(|m| m.is_request()) {
                p.reply(message, 100);
            } else if message.is_some() {
                p.count("answers", 1);
                p.measure("took", Span(p.now().0));
            }
        };
        let outcome = run(Model::Custom(Arc::new(Script(act))), roles, &[&[3], &[3]]);
        assert_eq!((outcome.counter("answers"), outcome.ideal.opened), (1, 0));
        assert_eq!(outcome.measures["took"], (1, 0.0));
    }

    #[test]
    fn messages_within_a_host_keep_their_order() {
        let roles = &[Role { name: "a", doc: "" }, Role { name: "b", doc: "" }];
        let act: fn(&mut Process, Option<&Message>, Option<u64>) = |p, message, timer| {
            if p.role() == 0 && message.is_none() && timer.is_none() {
                let other = p.members(1)[0];
                (0..6).for_each(|n| {
                    p.send(other, Content { bytes: 1, words: [n, 0, 0], connection: 0 })
                });
                p.request(other, 1);
            } else if let Some(message) = message {
                // Counts each message that arrives.
                let n = p.number() as u64 * 100;
                p.count("sum", n + message.content.words[0]);
                if message.is_request() {
                    p.reply(message, 1);
                }
            }
        };
        let config = config(Model::Custom(Arc::new(Script(act))), roles, &[&[3], &[3]]);
        let mut application = Deployment::new(config, &cluster(8)).expect("possible");
        let (mut out, mut arrived) = (Vec::new(), Vec::new());
        application.handle(Time::ZERO, Event::Begin, &mut out);
        application.handle(Time::ZERO, Event::Wake { token: START }, &mut out);
        while let Some(&tag) = application.local.front() {
            arrived.push(tag);
            application.handle(Time::ZERO, Event::Wake { token: LOCAL }, &mut out);
        }
        assert_eq!(arrived, [0, 1, 2, 3, 4, 5, 6, 6]);
    }

    #[test]
    fn a_cancelled_timer_does_not_end_and_does_not_hold_the_application() {
        let outcome = script(&[0], |p, _, timer| match timer {
            None => {
                let late = p.timer(Span::from_ms(50), 1);
                p.timer(Span::from_ms(1), 2);
                p.cancel(late);
            }
            Some(value) => p.count("ended", value),
        });
        assert!(outcome.ideal.finished);
        assert_eq!(outcome.counter("ended"), 2);
    }

    #[test]
    fn wrong_actions_end_the_run_with_a_reason() {
        type Act = fn(&mut Process, Option<&Message>, Option<u64>);
        let wrong: [(Act, &str); 8] = [
            (
                |p, _, _| p.send(9, 1),
                "on_start of process 0 (peers): sent to process 9; processes are 0 to 1",
            ),
            (|p, _, _| p.send(1, 0), "sent 0 bytes; a message has 1 to"),
            (
                |p, message, _| match message {
                    None if p.number() == 0 => drop(p.request(1, 1)),
                    Some(request) if request.is_request() => {
                        p.reply(request, 1);
                        p.reply(request, 1);
                    }
                    _ => {}
                },
                "on_message of process 1 (peers): replied to a request that already has a reply",
            ),
            (
                |p, _, _| {
                    p.plan(3);
                    p.complete(5);
                },
                "5 operations are completed, but only 3 are planned",
            ),
            (|p, _, _| p.count("Late", 1), "\"Late\" is not the name of a counter"),
            (|p, _, _| p.measure("", Span(1)), "\"\" is not the name of a counter"),
            (
                |p, _, _| assert_eq!(p.timer(Span::MAX, 1), 0),
                "started a timer of 2305843.009213693951 s, which is too long: simulated time \
                 ends at 2305843.009213693951 s",
            ),
            (|p, _, _| p.fail("the user's reason".to_owned()), "(peers): the user's reason"),
        ];
        for (act, message) in wrong {
            let failed = script(&[0, 1], act).ideal.failed.expect("an error");
            assert!(failed.contains(message), "{failed}");
        }
    }

    #[test]
    fn requests_without_a_reply_are_counted_by_reason() {
        type Act = fn(&mut Process, Option<&Message>, Option<u64>);
        let cases: [(Act, Requests); 4] = [
            // The server sends no reply.
            (
                |p, message, _| {
                    if p.number() == 0 && message.is_none() {
                        p.request(1, 10);
                    }
                },
                Requests { sent: 1, no_reply_sent: 1, ..Requests::default() },
            ),
            // The client closes, and the server replies later.
            (
                |p, message, timer| match (p.number(), message, timer) {
                    (0, None, None) => {
                        p.request(1, 10);
                        p.close(1, 0);
                    }
                    (1, Some(request), None) => {
                        let Kind::Request(number) = request.kind else { return };
                        p.timer(Span::from_ms(1), number);
                    }
                    (1, None, Some(number)) => p.reply_to(number, 10),
                    _ => {}
                },
                Requests { sent: 1, connection_closed: 1, ..Requests::default() },
            ),
            // The client closes, and the server sends no reply.
            (
                |p, message, timer| {
                    if let (0, None, None) = (p.number(), message, timer) {
                        p.request(1, 10);
                        p.close(1, 0);
                    }
                },
                Requests { sent: 1, connection_closed: 1, ..Requests::default() },
            ),
            // The application stops while a reply and a request are in flight.
            (
                |p, message, timer| match (p.number(), message, timer) {
                    (0, None, None) => {
                        p.request(1, 10);
                    }
                    (1, Some(request), None) if request.is_request() => {
                        p.reply(request, 10);
                        p.request(0, 10);
                        p.stop();
                    }
                    _ => {}
                },
                Requests {
                    sent: 2,
                    request_in_flight: 1,
                    reply_in_flight: 1,
                    ..Requests::default()
                },
            ),
        ];
        for (act, expected) in cases {
            let config = config(Model::Custom(Arc::new(Script(act))), PEERS, &[&[0, 1]]);
            let mut application = Deployment::new(config, &cluster(2)).expect("possible");
            Ideal::run(|now, event, out| application.handle(now, event, out));
            assert!(application.has_ended());
            let found = application.requests();
            assert_eq!(found, expected);
            assert_eq!(found.unanswered(), found.numbers()[3..].iter().sum::<u64>());
        }
    }

    /// Application for tests that declares its counters and measures.
    #[derive(Clone, Copy, Debug)]
    struct Declares(fn(&mut Process));

    impl ApplicationModel for Declares {
        fn declared(&self) -> Declared {
            let one = |name| Statistic { name, doc: "" };
            Declared::all(&[one("begun"), one("late")], &[one("took")])
        }
        fn start(&self, _: &Place) -> Box<dyn Application> {
            Box::new(*self)
        }
    }

    impl Application for Declares {
        fn on_start(&mut self, process: &mut Process) {
            self.0(process);
        }
    }

    #[test]
    fn declared_counters_begin_at_zero_and_no_other_is_allowed() {
        let run =
            |act: fn(&mut Process)| run(Model::Custom(Arc::new(Declares(act))), PEERS, &[&[0]]);
        let outcome = run(|p| {
            p.count("begun", 2);
            p.measure("took", Span::from_ms(1));
        });
        assert_eq!((outcome.counter("begun"), outcome.counter("late")), (2, 0));
        let failed = run(|p| p.count("begin", 1)).ideal.failed.expect("an error");
        assert!(failed.contains("\"begin\" is not a declared counter"), "{failed}");
        assert!(failed.contains("declared are begun, late"), "{failed}");
        let failed = run(|p| p.measure("late", Span(1))).ideal.failed.expect("an error");
        assert!(failed.contains("\"late\" is not a declared measure"), "{failed}");
    }

    #[test]
    fn an_application_that_cannot_be_placed_is_refused() {
        let model = || Model::Custom(Arc::new(Script(|_, _, _| {})));
        let refused = |hosts: &[&[u32]]| {
            let config = config(model(), PEERS, hosts);
            Deployment::new(config, &cluster(8)).expect_err("a reason").join("; ")
        };
        assert!(refused(&[&[]]).starts_with("peers: at least one host"));
        assert!(refused(&[&[8]]).starts_with("peers: there is no host 8"));
        assert!(refused(&[&[1, 1]]).starts_with("peers: host 1 is named twice"));
    }

    /// Returns an application of two processes, which act by `act`.
    fn two_processes(act: fn(&mut Process, Option<&Message>, Option<u64>)) -> Deployment {
        let config = config(Model::Custom(Arc::new(Script(act))), PEERS, &[&[0, 1]]);
        Deployment::new(config, &cluster(2)).expect("possible")
    }

    /// Passes an event at `now`, in ps, to an application, and returns its actions.
    fn tell(application: &mut Deployment, now: u64, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        application.handle(Time(now), event, &mut out);
        out
    }

    #[test]
    fn a_reply_after_the_failure_of_its_connection_has_no_effect() {
        let act: fn(&mut Process, Option<&Message>, Option<u64>) = |p, message, timer| {
            if p.number() == 0 && message.is_none() && timer.is_none() {
                p.request(1, 10);
            } else if let Some(Kind::Request(number)) = message.map(|m| m.kind) {
                p.timer(Span::from_ms(1), number);
            } else if let Some(number) = timer {
                p.reply_to(number, 20);
            }
        };
        let mut application = two_processes(act);
        tell(&mut application, 0, Event::Begin);
        tell(&mut application, 0, Event::Wake { token: START });
        let served = tell(
            &mut application,
            5,
            Event::Delivered { conn: ConnId(0), from: Side::Client, tag: 0 },
        );
        let [Action::Wake { at, token }] = served[..] else { panic!("a timer") };
        tell(&mut application, 6, Event::Failed { conn: ConnId(0) });
        assert!(matches!(
            tell(&mut application, at.0, Event::Wake { token })[..],
            [Action::Finished]
        ));
    }

    #[test]
    fn a_failure_loses_what_is_on_the_way_and_tells_both_ends() {
        let act: fn(&mut Process, Option<&Message>, Option<u64>) = |p, message, timer| {
            if p.number() == 0 && message.is_none() && timer.is_none() {
                p.request(1, 10);
                p.timer(Span::from_ms(1), 0);
            } else if timer.is_some() {
                p.send(1, 20);
            } else if message.is_some() {
                p.count("arrived", 1);
            }
        };
        let mut application = two_processes(act);
        tell(&mut application, 0, Event::Begin);
        let sent = tell(&mut application, 0, Event::Wake { token: START });
        assert!(matches!(
            sent[..],
            [Action::Open { .. }, Action::Send { .. }, Action::Wake { .. }]
        ));
        tell(&mut application, 5, Event::Failed { conn: ConnId(0) });
        let Action::Wake { token, at } = sent[2] else { panic!("a timer") };
        let again = tell(&mut application, at.0, Event::Wake { token });
        assert!(matches!(again[..], [Action::Open { conn: ConnId(1), .. }, Action::Send { .. }]));
        tell(
            &mut application,
            at.0 + 1,
            Event::Delivered { conn: ConnId(1), from: Side::Client, tag: 2 },
        );
        let counters: Vec<(&str, u64)> = application.tally().counters().collect();
        assert_eq!(counters, [("arrived", 1), ("failures", 3)]);
        let expected = Requests { sent: 1, connection_failed: 1, ..Requests::default() };
        assert_eq!(application.requests(), expected);
    }
}
