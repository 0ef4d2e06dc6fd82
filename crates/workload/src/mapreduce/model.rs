//! The MapReduce cluster as a whole: dispatches events to its parts, and notes of lower parts to
//! higher ones.

use super::check;
use super::clients::StandAlone;
use super::config::{MapReduceConfig, SlowNode};
use super::connections::{Connections, Use};
use super::context::Context;
use super::control::Control;
use super::file::Owner;
use super::hardware::Hardware;
use super::hdfs::Hdfs;
use super::here::Here;
use super::nodes::Nodes;
use super::note::Note;
use super::racks::Racks;
use super::read_timeouts::ReadTimeouts;
use super::report::FailureCause;
use super::tasks::Tasks;
use super::timer::Timer;
use super::work::Work;
use crate::protocol::{Action, Cluster, Event};
use eastwest_types::{ConnId, Side, Time};
use serde::{Deserialize, Serialize};

/// A simulated MapReduce cluster with its jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MapReduce {
    pub(super) nodes: Nodes,
    pub(super) control: Control,
    read_timeouts: ReadTimeouts,
}

impl MapReduce {
    /// Returns the initial state of a MapReduce cluster, or all reasons why its settings are
    /// invalid.
    pub fn new(mut config: MapReduceConfig, cluster: &Cluster) -> Result<MapReduce, Vec<String>> {
        let (master, hosts) = check::check(&config, cluster)?;
        config.jobs.sort_by_key(|job| job.submit);
        let switch_of: Vec<u32> = hosts.iter().map(|h| cluster.rack_of[h.0 as usize]).collect();
        let racks = Racks::new(&switch_of);
        let slow = |node: &SlowNode| {
            let worker = hosts.iter().position(|&host| host == node.host);
            (worker.expect("it was checked") as u32, node.speed)
        };
        let speeds: Vec<(u32, f64)> = config.slow_nodes.iter().map(slow).collect();
        let control = Control::new(&config, hosts.len(), &racks, cluster.seed);
        let cx = Context {
            seed: cluster.seed,
            master,
            hardware: Hardware::new(&config, hosts.len(), &speeds),
            hosts,
            racks,
            conns: Connections::default(),
            by_messages: config.acts_by_messages(),
            now: Time::ZERO,
            here: Here::Anywhere,
            out: Vec::new(),
            notes: Vec::new(),
            config,
        };
        let hdfs = Hdfs::new(cx.hosts.len(), cluster.seed);
        let tasks = Tasks::new(cx.config.jobs.len());
        let nodes = Nodes { cx, hdfs, clients: StandAlone::default(), tasks };
        Ok(MapReduce { nodes, control, read_timeouts: ReadTimeouts::default() })
    }

    /// See [`crate::Workload::asks_at`].
    pub fn asks_at(&self, token: u64) -> bool {
        Timer::of(token) == Timer::ReadTimeouts
    }

    /// Returns the numbers of finished jobs and of all jobs.
    pub fn progress(&self) -> (u64, u64) {
        (u64::from(self.control.done), self.nodes.cx.config.jobs.len() as u64)
    }

    /// Yields the time of submission of each job, in the order of their numbers.
    pub fn submissions(&self) -> impl Iterator<Item = Time> + '_ {
        self.nodes.cx.config.jobs.iter().map(|job| job.submit)
    }

    /// Handles an event and appends the actions that follow from it to `out`. Events with equal
    /// times must be passed in the order in which the simulation executes them.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        if self.control.finished {
            // Answers to the last heartbeats may still arrive on connections that are being closed.
            return;
        }
        self.nodes.cx.now = now;
        self.nodes.cx.here = Here::Anywhere;
        std::mem::swap(&mut self.nodes.cx.out, out);
        match event {
            Event::Begin => self.begin(),
            Event::Wake { token } => self.woken(Timer::of(token)),
            Event::Delivered { conn, from, tag } => self.delivered(conn, from, tag),
            Event::Failed { conn } => self.connection_lost(conn),
            Event::Received { conn, bytes } => {
                if self.read_timeouts.received(&self.nodes.cx, conn, bytes) {
                    self.nodes.cx.out.push(Action::Abort { conn });
                    self.connection_lost(conn);
                }
            }
            Event::Arrived { .. } => unreachable!("it sends no parcels"),
        }
        self.settle();
        self.control.schedule_assignment(&mut self.nodes);
        std::mem::swap(&mut self.nodes.cx.out, out);
    }

    fn begin(&mut self) {
        self.control.workers.begin(&mut self.nodes.cx);
        if !self.nodes.cx.config.coarse.is_on() {
            self.control.look_later(&mut self.nodes);
            self.nodes.hdfs.replicas.recheck_later(&mut self.nodes.cx);
            self.read_timeouts.look_later(&mut self.nodes.cx);
        }
        self.control.begin(&mut self.nodes);
    }

    fn woken(&mut self, timer: Timer) {
        if self.is_stale(timer) {
            return;
        }
        if self.nodes.cx.by_messages {
            self.nodes.cx.here = self.nodes.host_of(timer);
        }
        let MapReduce { nodes: n, control, .. } = self;
        let Nodes { cx, hdfs, clients, tasks } = n;
        match timer {
            Timer::Commit(task) => tasks.task_step(cx, hdfs, task),
            Timer::Namenode(session) => hdfs.namenode_answers(cx, session),
            Timer::Block(writer) => hdfs.next_block(cx, writer),
            Timer::Client(client) => clients.client_start(cx, hdfs, client),
            Timer::Recheck => hdfs.replicas.recheck(cx),
            Timer::Replicate => hdfs.replicas.replicate(cx),
            Timer::Copy(copy) => hdfs.replicas.copy_due(cx, copy),
            Timer::Seek(task) => tasks.seek_split(cx, hdfs, task),
            Timer::Penalty { task, from } => tasks.penalty_over(cx, (task, from)),
            Timer::Cores(machine) => {
                let done = cx.hardware.cores_woken(cx.now, machine, &mut cx.out);
                self.all_done(done);
            }
            Timer::Disks(machine) => {
                let done = cx.hardware.disks_woken(cx.now, machine, &mut cx.out);
                self.all_done(done);
            }
            Timer::Dedicated(place) => {
                let work = cx.hardware.ended_alone(place);
                self.work_done(work);
            }
            Timer::ReadTimeouts => self.look_at_connections(),
            Timer::Submit => control.submit(n),
            Timer::Setup(job) => control.admit(n, job),
            Timer::Cleanup(job) => control.committed(n, job),
            Timer::Heartbeat(worker) => control.heartbeat_due(n, worker),
            Timer::Master(job) => {
                control.yarn.due(cx, job, tasks.jobs.table[job as usize].as_deref());
            }
            Timer::Container(task) => tasks.launch(cx, task),
            Timer::Poll(task) => control.ask_for_maps(n, task),
            Timer::Look => control.look(n),
            Timer::Speculate => control.speculation.look(cx, tasks),
            Timer::Answer(worker) => control.answer_due(n, worker),
            Timer::Ask => control.ask_takers(n),
        }
    }

    /// Whether a wake-up belongs to an attempt, client or copy of a block that does not exist any
    /// more.
    fn is_stale(&self, timer: Timer) -> bool {
        let Nodes { hdfs, clients, tasks, .. } = &self.nodes;
        match timer {
            Timer::Commit(task)
            | Timer::Container(task)
            | Timer::Poll(task)
            | Timer::Seek(task)
            | Timer::Penalty { task, .. } => tasks.attempts.find(task).is_none(),
            Timer::Copy(copy) => !hdfs.replicas.copies(copy),
            Timer::Namenode(session) => !hdfs.namenode.knows(session),
            Timer::Block(writer) => !hdfs.writes(writer),
            Timer::Client(client) => !clients.runs(client),
            _ => false,
        }
    }

    /// Whether a piece of work belongs to an attempt, client or copy of a block that does not exist
    /// any more.
    fn is_vain(&self, work: Work) -> bool {
        let Nodes { hdfs, clients, tasks, .. } = &self.nodes;
        match work {
            Work::Step(task)
            | Work::Read(task)
            | Work::Spill(task)
            | Work::MemoryMerge(task)
            | Work::DiskMerge(task)
            | Work::Split { task, .. } => tasks.attempts.find(task).is_none(),
            Work::Fetch { task, .. } => {
                tasks.attempts.find(task).is_none_or(|t| t.fetching.is_none())
            }
            Work::ClientRead { client, .. } => !clients.runs(client),
            Work::Local { writer, .. }
            | Work::Replica { writer, .. }
            | Work::Transfer { writer, .. } => !hdfs.writes(writer),
            Work::Copy(copy) => !hdfs.replicas.copies(copy),
            Work::Master(_) | Work::Flush(_) => false,
        }
    }

    fn all_done(&mut self, done: Vec<Work>) {
        for work in done {
            self.work_done(work);
            self.settle();
        }
    }

    /// Handles the end of a piece of work on cores or disks, unless its attempt, client or copy has
    /// ended.
    fn work_done(&mut self, work: Work) {
        if self.is_vain(work) {
            return;
        }
        let Nodes { cx, hdfs, clients, tasks } = &mut self.nodes;
        match work {
            Work::Step(task) => tasks.part_ended(cx, hdfs, task),
            Work::Read(task) => {
                tasks.file_read(cx.now, task);
                tasks.part_ended(cx, hdfs, task);
            }
            Work::Spill(task) => tasks.spill_part(cx, task),
            Work::MemoryMerge(task) => tasks.memory_merge_part(cx, task),
            Work::DiskMerge(task) => tasks.file_merge_part(cx, task),
            Work::Fetch { task, from, round } => tasks.fetch_work(cx, (task, from, round)),
            Work::Split { task, holder, round } => {
                tasks.split_read(cx, hdfs, (task, holder, round));
            }
            Work::ClientRead { client, round } => clients.block_read(cx, hdfs, (client, round)),
            Work::Local { writer, bytes } => hdfs.local_stored(cx, writer, bytes),
            Work::Replica { writer, pipe, hop, bytes } => {
                hdfs.chunk_stored(cx, (writer, pipe, hop), bytes);
            }
            Work::Transfer { writer, pipe } => hdfs.transfer_part(cx, (writer, pipe)),
            Work::Copy(copy) => hdfs.replicas.copy_part(cx, copy),
            Work::Master(job) => self.control.yarn.started(cx, job),
            Work::Flush(_) => unreachable!("flushers are the machine's own business"),
        }
    }

    fn delivered(&mut self, conn: ConnId, from: Side, tag: u64) {
        let MapReduce { nodes: n, control, .. } = self;
        let Nodes { cx, hdfs, clients, tasks } = n;
        let (purpose, host) = cx.conns.to(conn, from);
        if cx.by_messages {
            cx.here = Here::At(host);
        }
        match (purpose, from) {
            (Use::Heartbeat { worker }, Side::Client) => {
                let heartbeat = cx.conns.take(conn, from).heartbeat();
                hdfs.replicas.heard(cx, worker);
                self.settle();
                self.control.heartbeat_arrived(&mut self.nodes, worker, Some(conn), heartbeat);
            }
            (Use::Heartbeat { worker }, Side::Server) => {
                let answer = cx.conns.take(conn, from).answer();
                control.answer_arrived(n, worker, answer);
            }
            (Use::Split { task, holder }, Side::Client) => tasks.send_split(cx, task, holder, conn),
            (Use::Split { task, .. }, Side::Server) => {
                cx.close(conn);
                tasks.split_part(cx, hdfs, task);
            }
            (Use::Read { client, holder }, Side::Client) => {
                clients.send_block(cx, (client, holder), conn);
            }
            (Use::Read { client, .. }, Side::Server) => clients.read_part(cx, hdfs, client),
            (Use::Fetch { task, from }, Side::Client) => {
                tasks.send_outputs(cx, (task, from), conn, tag);
            }
            (Use::Fetch { task, from }, Side::Server) => tasks.arriving(cx, (task, from)),
            (Use::Pipeline { writer, hop }, Side::Client) => {
                hdfs.chunk_arrived(cx, (writer, hop), tag);
            }
            (Use::Pipeline { writer, hop }, Side::Server) => {
                hdfs.chunk_acknowledged(cx, (writer, hop), tag);
            }
            (Use::Transfer { writer }, _) => hdfs.transferred(cx, writer),
            (Use::Copy { copy }, _) => hdfs.replicas.copy_arrived(cx, copy),
            (Use::Namenode { session }, Side::Client) => hdfs.namenode.asked(cx, session),
            (Use::Namenode { session }, Side::Server) => hdfs.namenode_answered(cx, session),
            (Use::Master { job }, _) => {
                cx.close(conn);
                control.yarn.launched(cx, job);
            }
            (Use::Application { job }, Side::Client) => control.master_called(n, job),
            (Use::Application { job }, Side::Server) => control.master_answered(n, job),
            (Use::Launch { task }, _) => {
                cx.close(conn);
                control.container_launched(n, task);
            }
            (Use::Report { report }, _) => {
                cx.close(conn);
                control.report_arrived(n, report);
            }
            (Use::Events { task }, Side::Client) => {
                control.maps_asked(n, (task, tag as u32), conn);
            }
            (Use::Events { task }, Side::Server) => control.maps_told(n, task, tag as u32),
        }
    }

    /// Asks the simulator for the number of received bytes of all connections on which a process
    /// waits.
    fn look_at_connections(&mut self) {
        let open: Vec<(ConnId, Use)> = self.nodes.cx.conns.open_ones().collect();
        let waiting = open.into_iter().filter(|&(_, purpose)| self.is_awaited(purpose)).collect();
        self.read_timeouts.look(&mut self.nodes.cx, waiting);
    }

    fn is_awaited(&self, purpose: Use) -> bool {
        let Nodes { hdfs, tasks, .. } = &self.nodes;
        match purpose {
            Use::Heartbeat { worker } => self.control.workers.waits(worker),
            Use::Fetch { task, from } => tasks.fetch_waits(task, from),
            Use::Pipeline { writer, .. } => hdfs.writer_waits(writer),
            Use::Namenode { session } => hdfs.namenode.waits(session),
            Use::Application { job } => self.control.yarn.waits(job),
            _ => true,
        }
    }

    /// Handles the loss of a connection that is already aborted.
    fn connection_lost(&mut self, conn: ConnId) {
        let MapReduce { nodes: n, control, .. } = self;
        let Nodes { cx, hdfs, clients, tasks } = n;
        let (purpose, lost) = cx.conns.gone(conn);
        cx.failed();
        match purpose {
            Use::Heartbeat { worker } => control.workers.connection_lost(cx, worker, lost),
            Use::Split { task, holder } => tasks.split_lost(cx, (task, holder)),
            Use::Read { client, holder } => clients.read_lost(cx, (client, holder)),
            Use::Fetch { task, from } => tasks.fetch_lost(cx, (task, from)),
            Use::Pipeline { writer, hop } => hdfs.hop_lost(cx, (writer, hop)),
            Use::Transfer { writer } => hdfs.transfer_lost(cx, writer),
            Use::Copy { copy } => hdfs.replicas.copy_lost(cx, copy),
            Use::Namenode { session } => hdfs.namenode.lost(cx, session),
            Use::Master { job } => control.yarn.tell_to_launch(cx, job),
            Use::Application { job } => control.yarn.connection_lost(cx, job),
            Use::Launch { task } => control.launch_lost(n, task),
            Use::Report { report } => control.report_lost(n, report),
            Use::Events { task } => control.events_lost(n, task),
        }
    }

    /// Handles all pending notes in order. Notes written during the handling of one note are
    /// handled before the next one.
    fn settle(&mut self) {
        if !self.nodes.cx.notes.is_empty() {
            for note in std::mem::take(&mut self.nodes.cx.notes) {
                self.take(note);
                self.settle();
            }
        }
    }

    fn take(&mut self, note: Note) {
        let MapReduce { nodes: n, control, .. } = self;
        let Nodes { cx, hdfs, clients, tasks } = n;
        match note {
            Note::SplitLocated { task } => tasks.split_located(cx, hdfs, task),
            Note::ReaderLocated { client } => clients.client_located(cx, hdfs, client),
            Note::SplitMoved { job, map, replicas } => {
                tasks.jobs.split_moved(job, map, &replicas, &cx.racks);
            }
            Note::FileWritten { owner: Owner::Task(task), blocks } => {
                tasks.commit(cx, task, blocks);
            }
            Note::FileWritten { owner: Owner::Client(client), blocks } => {
                clients.client_done(cx, hdfs, client, blocks);
            }
            Note::FileFailed { owner: Owner::Task(task) } => {
                control.attempt_failed(n, task, FailureCause::Unwritten);
            }
            Note::FileFailed { owner: Owner::Client(client) } => {
                clients.client_failed(
                    cx,
                    client,
                    "an HDFS client had no datanode left to write to",
                );
            }
            Note::ClientThrough { job, assigned, read, written } => {
                control.client_through(n, job, assigned, (read, written));
            }
            Note::ClientFailed { job, reason } => control.fail_job(n, job, reason),
            Note::AskForMaps { task } => control.ask_for_maps(n, task),
            Note::FetchFailed { worker, output } => {
                control.workers.fetch_failed(cx, worker, output)
            }
            Note::AttemptThrough { task } => control.task_finished(n, task),
            Note::AttemptFailed { task, cause } => control.attempt_failed(n, task, cause),
        }
    }
}
