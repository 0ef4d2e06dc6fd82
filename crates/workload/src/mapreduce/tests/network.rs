//! Ideal network for tests. Each direction of a connection has its own pipe with a rate and a
//! latency, and messages arrive in order. The network checks that the model keeps the rules of the
//! interface.

use crate::mapreduce::{FailureConfig, MapReduce, MapReduceConfig};
use crate::protocol::{Action, Cluster, Event};
use eastwest_types::{
    ConnId, HostId, JobRecord, Purpose, Rate, Side, Span, TaskKind, TaskRecord, Time,
};
use std::collections::BTreeMap;

const RATE: Rate = Rate::gbit(1);
const LATENCY: Span = Span::from_us(100);

/// Time without progress after which TCP aborts a connection.
const GIVE_UP: Span = Span::from_secs(900);

/// Interval during which a host is unreachable.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub host: HostId,
    pub from: Time,
    pub to: Time,
}

struct Pipe {
    /// Serial number of the connection; distinguishes connections that had the same number one
    /// after another.
    opened: u64,
    ends: [HostId; 2],
    free_at: [Time; 2],
    /// Number of messages delivered to the client and to the server.
    delivered: [u64; 2],
    /// End of the present outage in each direction of the connection.
    stuck: [Time; 2],
    in_flight: u32,
    unanswered: u32,
}

/// Result of a run on the ideal network: records of jobs and tasks, bytes moved, all actions.
#[derive(Default)]
pub struct Outcome {
    pub jobs: Vec<JobRecord>,
    pub tasks: Vec<TaskRecord>,
    /// Payload bytes sent over the network, by purpose and job.
    pub payload: BTreeMap<(&'static str, u32), u128>,
    /// Copies of blocks requested by the namenode, each as (from, to, bytes).
    pub copies: Vec<(HostId, HostId, u64)>,
    /// Payload bytes of HDFS replicas, by sender and receiver.
    pub replicas: BTreeMap<(HostId, HostId), u64>,
    /// Largest number of outstanding requests of a host for map outputs.
    pub most_fetches: u32,
    /// Largest number of connections that were open at one time.
    pub most_connections: usize,
    /// Arrival times of the heartbeats of each worker.
    pub heartbeats: BTreeMap<HostId, Vec<Time>>,
    /// Application bytes of all answers to heartbeats together.
    pub answer_bytes: u64,
    /// Requests for map outputs in order, each as (reduce's host, serving host).
    pub requests: Vec<(HostId, HostId)>,
    pub end: Time,
    /// Every action of the model in order, with its time.
    pub log: Vec<(Time, Action)>,
    /// Largest number of entries in the table of running tasks at one time.
    pub most_tasks: usize,
}

impl Outcome {
    pub fn payload(&self, purpose: Purpose, job: u32) -> u128 {
        self.payload.get(&(purpose.name(), job)).copied().unwrap_or(0)
    }

    pub fn tasks_of(&self, job: u32, kind: TaskKind) -> Vec<&TaskRecord> {
        self.tasks.iter().filter(|t| t.job == job && t.kind == kind).collect()
    }

    pub fn job(&self, job: u32) -> &JobRecord {
        self.jobs.iter().find(|j| j.job == job).expect("the job finished")
    }
}

/// Returns a cluster of `hosts` hosts with `per_rack` hosts in each rack.
pub fn cluster(hosts: u32, per_rack: u32, seed: u64) -> Cluster {
    Cluster { rack_of: (0..hosts).map(|h| h / per_rack).collect(), seed }
}

struct World {
    now: Time,
    outages: Vec<Outage>,
    /// Pending events, by time and serial number; each with the serial number of its connection.
    events: BTreeMap<(Time, u64), (Event, Option<u64>)>,
    next: u64,
    conns: BTreeMap<u32, Pipe>,
    fetches: BTreeMap<HostId, u32>,
    fetch_request: u64,
    master: HostId,
    seen: Outcome,
    finished: bool,
}

impl World {
    fn post(&mut self, at: Time, event: Event) {
        assert!(at >= self.now, "{event:?} is in the past");
        let conn = match event {
            Event::Delivered { conn, .. } | Event::Failed { conn } => Some(conn),
            _ => None,
        };
        let opened = conn.map(|conn| self.conns[&conn.0].opened);
        self.events.insert((at, self.next), (event, opened));
        self.next += 1;
    }

    /// Returns the first time from `at` on at which no outage affects the two hosts.
    fn reachable(&self, ends: [HostId; 2], mut at: Time) -> Time {
        while let Some(outage) =
            self.outages.iter().find(|o| ends.contains(&o.host) && o.from <= at && at < o.to)
        {
            at = outage.to;
        }
        at
    }

    /// Whether an event belongs to a connection that is closed or was replaced by another one.
    fn is_late(&self, event: Event, opened: Option<u64>) -> bool {
        match event {
            Event::Delivered { conn, .. } | Event::Failed { conn } => {
                self.conns.get(&conn.0).map(|pipe| pipe.opened) != opened
            }
            _ => false,
        }
    }

    fn carry_out(&mut self, action: Action) {
        assert!(!self.finished, "{action:?} after the end");
        match action {
            Action::Wake { at, token } => self.post(at, Event::Wake { token }),
            Action::Open { conn, client, server, .. } => {
                assert_ne!(client, server);
                let pipe = Pipe {
                    opened: self.next,
                    delivered: [0; 2],
                    stuck: [Time::ZERO; 2],
                    ends: [client, server],
                    free_at: [self.now; 2],
                    in_flight: 0,
                    unanswered: 0,
                };
                assert!(self.conns.insert(conn.0, pipe).is_none(), "{conn:?} is open");
                self.seen.most_connections = self.seen.most_connections.max(self.conns.len());
            }
            Action::Send { .. } => self.send(action),
            Action::Close { conn } => {
                let pipe = self.conns.remove(&conn.0).expect("only open connections close");
                let heartbeat = pipe.ends[1] == self.master || !self.outages.is_empty();
                assert!(heartbeat || pipe.in_flight == 0, "{conn:?} closes with bytes on the way");
            }
            Action::Job(job) => self.seen.jobs.push(*job),
            Action::Task(task) => self.seen.tasks.push(*task),
            Action::Finished => {
                assert!(self.conns.is_empty(), "connections are left open");
                self.finished = true;
            }
            Action::Abort { conn } => {
                let pipe = self.conns.remove(&conn.0).expect("only open connections end");
                if pipe.unanswered > 0 {
                    *self.fetches.get_mut(&pipe.ends[0]).expect("it asked") -= 1;
                }
            }
            Action::Ask { conn } => {
                let pipe = &self.conns[&conn.0];
                let moves = |to: usize| {
                    let from = 1 - to;
                    pipe.free_at[from] > self.now && pipe.stuck[from] <= self.now
                };
                let arrived = |to| if moves(to) { self.now.0 } else { pipe.delivered[to] };
                self.post(self.now, Event::Received { conn, bytes: [arrived(0), arrived(1)] });
            }
            other => panic!("MapReduce does not ask for {other:?}"),
        }
    }

    fn send(&mut self, action: Action) {
        let Action::Send { conn, from, payload, header, tag, purpose, job, record } = action else {
            unreachable!()
        };
        let bytes = payload + u64::from(header);
        assert!(bytes > 0, "an empty message never arrives");
        assert_eq!(record, purpose != Purpose::Control);
        let pipe = self.conns.get_mut(&conn.0).expect("messages need a connection");
        let side = usize::from(from == Side::Server);
        pipe.in_flight += 1;
        pipe.free_at[side] = pipe.free_at[side].max(self.now) + RATE.time_for(bytes);
        let (ends, sent) = (pipe.ends, pipe.free_at[side] + LATENCY);
        let arrival = self.reachable(ends, self.reachable(ends, self.now).max(sent));
        let pipe = self.conns.get_mut(&conn.0).expect("messages need a connection");
        if arrival > sent {
            (pipe.stuck[side], pipe.free_at[side]) = (arrival, arrival);
        }
        match (purpose, job) {
            (Purpose::Control, None) if from == Side::Client => {
                self.seen.heartbeats.entry(pipe.ends[0]).or_default().push(self.now);
            }
            (Purpose::Control, None) => self.seen.answer_bytes += payload,
            (Purpose::Control, Some(_))
                if payload == self.fetch_request && from == Side::Client =>
            {
                self.seen.requests.push((pipe.ends[0], pipe.ends[1]));
                pipe.unanswered += 1;
                assert_eq!(pipe.unanswered, 1, "one request at a time on a connection");
                let open = self.fetches.entry(pipe.ends[0]).or_default();
                *open += 1;
                self.seen.most_fetches = self.seen.most_fetches.max(*open);
            }
            (_, Some(job)) => {
                *self.seen.payload.entry((purpose.name(), job)).or_default() += u128::from(payload);
                if purpose == Purpose::Replica {
                    *self.seen.replicas.entry((pipe.ends[0], pipe.ends[1])).or_default() += payload;
                }
                if purpose == Purpose::Shuffle && pipe.unanswered > 0 {
                    // The response to a fetch counts as outstanding until it is delivered.
                    pipe.unanswered = 2;
                }
            }
            (Purpose::Rereplication, None) => {
                self.seen.copies.push((pipe.ends[0], pipe.ends[1], payload));
            }
            (_, None) => panic!("data belongs to a job"),
        }
        if arrival > self.now + GIVE_UP && arrival > sent {
            self.post(self.now + GIVE_UP, Event::Failed { conn });
        } else {
            self.post(arrival, Event::Delivered { conn, from, tag });
        }
    }

    /// Counts a message as arrived at the other end of its connection.
    fn arrived(&mut self, conn: ConnId, from: Side) {
        let pipe = self.conns.get_mut(&conn.0).expect("closed connections are empty");
        pipe.in_flight -= 1;
        pipe.delivered[usize::from(from == Side::Client)] += 1;
        if from == Side::Server && pipe.unanswered == 2 {
            pipe.unanswered = 0;
            *self.fetches.get_mut(&pipe.ends[0]).expect("it asked") -= 1;
        }
    }
}

/// Runs the model with these settings to its end on the ideal network.
pub fn run(config: &MapReduceConfig, cluster: &Cluster) -> Outcome {
    run_with(config, cluster, &[])
}

/// Runs the model with these settings to its end on the ideal network, with outages of hosts.
pub fn run_with(config: &MapReduceConfig, cluster: &Cluster, outages: &[Outage]) -> Outcome {
    let mut model = MapReduce::new(config.clone(), cluster).expect("the demands can be met");
    let mut world = World {
        now: Time::ZERO,
        outages: outages.to_vec(),
        events: BTreeMap::new(),
        next: 0,
        conns: BTreeMap::new(),
        fetches: BTreeMap::new(),
        fetch_request: u64::from(config.shuffle.fetch_request_bytes),
        master: model.nodes.cx.master,
        seen: Outcome::default(),
        finished: false,
    };
    world.post(Time::ZERO, Event::Begin);
    let mut out = Vec::new();
    while let Some(((now, _), (event, opened))) = world.events.pop_first() {
        assert!(
            world.finished || now < Time::ZERO + Span::from_secs(200_000),
            "it goes on for ever"
        );
        if !world.finished && world.is_late(event, opened) {
            continue;
        }
        if world.finished {
            model.handle(now, event, &mut out);
            assert!(out.is_empty(), "the end is the end");
            continue;
        }
        world.now = now;
        assert!(now < Time::ZERO + Span::from_secs(400_000), "it never ends");
        if let Event::Delivered { conn, from, .. } = event {
            world.arrived(conn, from);
        }
        if let Event::Failed { conn } = event {
            let pipe = world.conns.remove(&conn.0).expect("it was open");
            if pipe.unanswered > 0 {
                *world.fetches.get_mut(&pipe.ends[0]).expect("it asked") -= 1;
            }
        }
        model.handle(now, event, &mut out);
        for action in out.drain(..) {
            world.seen.log.push((now, action.clone()));
            world.carry_out(action);
        }
    }
    assert!(world.finished, "it stopped before the end");
    assert_eq!(model.progress(), (config.jobs.len() as u64, config.jobs.len() as u64));
    assert!(
        model.nodes.tasks.jobs.table.iter().all(Option::is_none),
        "finished jobs are forgotten"
    );
    for kind in [TaskKind::Map, TaskKind::Reduce] {
        assert_eq!(
            (model.control.scheduler.waiting(kind), model.control.scheduler.running(kind)),
            (0, 0)
        );
    }
    let copies = config.speculation.maps || config.speculation.reduces;
    let killed = copies || !outages.is_empty() || config.failures != FailureConfig::default();
    assert!(killed || model.nodes.cx.hardware.idle(), "work is left on a machine");
    let left =
        (model.nodes.hdfs.count(), model.nodes.hdfs.namenode.count(), model.nodes.clients.count());
    assert_eq!(
        (left, model.control.yarn.count()),
        ((0, 0, 0), 0),
        "writers, sessions and clients are gone"
    );
    model.nodes.hdfs.replicas.check(&model.nodes.cx);
    let (used, slots) = model.nodes.tasks.attempts.count();
    assert_eq!(used, 0);
    world.seen.most_tasks = slots;
    assert_eq!(model.nodes.cx.conns.most(), world.seen.most_connections);
    world.seen.end = world.now;
    world.seen
}
