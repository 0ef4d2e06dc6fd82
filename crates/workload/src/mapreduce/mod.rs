//! Hadoop MapReduce: jobs whose every byte between nodes goes through the network.
//!
//! A master gives map and reduce tasks to the slots of workers in its answers to their heartbeats.
//! Maps read splits of HDFS, compute and spill; reduces fetch their partitions from every map, merge,
//! compute and write replicated output. The model follows Hadoop 1 (Dean and Ghemawat 2004 for the
//! principle; JobTracker, TaskTracker and ReduceTask for the protocol) and is described with its
//! equations, parameters and limits in `docs/mechanisms/mapreduce.md`.
//!
//! One file per concern: `control` (heartbeats, life of a job), `scheduler` (whose turn it is),
//! `beats` (heartbeats that are no messages), `alone` (work that shares nothing), `assign` (what an answer gives out), `owners` (pools, queues and users by number), `job` (how far
//! it is), `waiting` (maps that wait, where splits are), `map`, `shuffle`, `reduce`, `write` (the
//! stages of tasks), `hdfs` (placement), `blocks` and `replication` (where blocks are, and copying
//! them anew), `speculate` (second attempts), `shares` (exact splits of bytes), `check` (impossible
//! demands).

mod alone;
mod assign;
mod beats;
mod blocks;
mod check;
mod clients;
mod config;
mod connections;
mod control;
mod counters;
mod failure;
mod hardware;
pub mod hdfs;
mod job;
mod lost;
mod map;
mod memory;
mod merge;
mod namenode;
mod output;
mod owners;
mod reduce;
mod replication;
mod resource;
pub mod scheduler;
mod shares;
mod shuffle;
mod slab;
mod speculate;
mod task;
#[cfg(test)]
mod tests;
pub mod waiting;
mod watch;
mod write;
mod yarn;

pub use config::{
    Clients, CoarseConfig, ControlConfig, CostConfig, FailingTask, FailureConfig, Framework,
    HdfsConfig, JobBytes, JobSpec, MAX_ALL_TASKS, MAX_TASKS, MapReduceConfig, NodeConfig,
    RecoveryConfig, ReplaceDatanode, ShuffleConfig, SizeRule, SlowNode, SortConfig,
    SpeculationConfig, YarnConfig,
};
pub use scheduler::{
    DelayConfig, PoolConfig, PoolOrder, QueueConfig, QuincyConfig, SchedulerKind, Scheduling, WHOLE,
};
use serde::{Deserialize, Serialize};

use crate::{Action, Cluster, Event};
use clients::Client;
use connections::{Connections, Use};
use control::{Report, Worker};
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Side, Time};
use hardware::{Hardware, Work};
use hdfs::Racks;
use job::Job;
use namenode::Session;
use scheduler::{Jobs, Scheduler};
use slab::Slab;
use task::Task;
use write::Writer;
use yarn::Yarn;

/// A MapReduce cluster with its jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MapReduce {
    config: MapReduceConfig,
    seed: u64,
    master: HostId,
    workers: Vec<Worker>,
    racks: Racks,
    scheduler: Scheduler,
    conns: Connections,
    hardware: Hardware,
    /// Tasks that are given out and not through.
    tasks: Slab<Task>,
    /// Files being written.
    writers: Slab<Writer>,
    /// Clients of the namenode.
    sessions: Slab<Session>,
    /// Where the namenode knows blocks to be.
    blocks: blocks::Blocks,
    replication: replication::Replication,
    /// Stand-alone clients of HDFS.
    clients: Slab<Client>,
    /// Finished tasks on their way to their application masters.
    reports: Slab<Report>,
    /// Heartbeats, where they are no messages.
    beats: Option<beats::Beats>,
    yarn: Yarn,
    /// Jobs that can have running tasks, by number.
    jobs: Vec<Option<Box<Job>>>,
    /// Jobs submitted so far: the number of the next one.
    submitted: u32,
    done: u32,
    watch: watch::Watch,
    speculation: speculate::Speculation,
    finished: bool,
}

/// What a wake-up is for, in the high byte of its token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timer {
    /// Submit the jobs that are due.
    Submit,
    /// A job's maps can be given out.
    Setup(u32),
    /// A job has finished.
    Cleanup(u32),
    /// A worker's heartbeat is due.
    Heartbeat(u32),
    /// A task has committed.
    Commit(u32),
    /// Work on the cores of a machine may be through.
    Cores(u32),
    /// Work on the disks of a machine may be through.
    Disks(u32),
    /// The namenode's answer to a client is ready.
    Namenode(u32),
    /// A writer may begin its next block.
    Block(u32),
    /// A stand-alone client of HDFS runs.
    Client(u32),
    /// An application master starts, or calls the resource manager.
    Master(u32),
    /// A task's container runs.
    Container(u32),
    /// A reduce asks for finished maps.
    Poll(u32),
    /// The master looks for workers that are not heard of.
    Look,
    /// Connections are looked at.
    Watch,
    /// Running tasks are looked at: slow ones are copied.
    Speculate,
    /// The namenode looks for datanodes that are dead.
    Recheck,
    /// The namenode has blocks copied.
    Replicate,
    /// A copy of a block is begun, or given up.
    Copy(u32),
    /// A map looks again for a replica of its split.
    Seek(u32),
    /// An answer to a heartbeat that is no message arrives.
    Answer(u32),
    /// A worker may take waiting tasks.
    Ask,
    /// Work that shares nothing is through.
    Alone(u32),
    /// A reduce may ask a worker again.
    Penalty {
        /// The reduce.
        task: u32,
        /// The worker, below 2²⁴.
        from: u32,
    },
}

impl Timer {
    fn token(self) -> u64 {
        let (kind, of) = match self {
            Timer::Submit => (0, 0),
            Timer::Setup(job) => (1, job),
            Timer::Cleanup(job) => (2, job),
            Timer::Heartbeat(worker) => (3, worker),
            Timer::Commit(task) => (4, task),
            Timer::Cores(machine) => (5, machine),
            Timer::Disks(machine) => (6, machine),
            Timer::Namenode(session) => (7, session),
            Timer::Block(writer) => (8, writer),
            Timer::Client(client) => (9, client),
            Timer::Master(job) => (10, job),
            Timer::Container(task) => (11, task),
            Timer::Poll(task) => (12, task),
            Timer::Look => (13, 0),
            Timer::Watch => (14, 0),
            Timer::Penalty { task, .. } => (15, task),
            Timer::Speculate => (16, 0),
            Timer::Recheck => (17, 0),
            Timer::Replicate => (18, 0),
            Timer::Copy(copy) => (19, copy),
            Timer::Seek(task) => (20, task),
            Timer::Answer(worker) => (21, worker),
            Timer::Ask => (22, 0),
            Timer::Alone(place) => (23, place),
        };
        let from = if let Timer::Penalty { from, .. } = self { u64::from(from) } else { 0 };
        kind << 56 | from << 32 | u64::from(of)
    }

    fn of(token: u64) -> Timer {
        let of = token as u32;
        let from = (token >> 32) as u32 & 0x00ff_ffff;
        match token >> 56 {
            0 => Timer::Submit,
            1 => Timer::Setup(of),
            2 => Timer::Cleanup(of),
            3 => Timer::Heartbeat(of),
            4 => Timer::Commit(of),
            5 => Timer::Cores(of),
            6 => Timer::Disks(of),
            7 => Timer::Namenode(of),
            8 => Timer::Block(of),
            9 => Timer::Client(of),
            10 => Timer::Master(of),
            11 => Timer::Container(of),
            12 => Timer::Poll(of),
            13 => Timer::Look,
            14 => Timer::Watch,
            15 => Timer::Penalty { task: of, from },
            16 => Timer::Speculate,
            17 => Timer::Recheck,
            18 => Timer::Replicate,
            19 => Timer::Copy(of),
            20 => Timer::Seek(of),
            21 => Timer::Answer(of),
            22 => Timer::Ask,
            23 => Timer::Alone(of),
            kind => unreachable!("no timer has kind {kind}"),
        }
    }

    fn at(self, at: Time) -> Action {
        Action::Wake { at, token: self.token() }
    }
}

impl MapReduce {
    /// A cluster before its first event, or all reasons why it cannot run.
    pub fn new(mut config: MapReduceConfig, cluster: &Cluster) -> Result<MapReduce, Vec<String>> {
        let (master, hosts) = check::check(&config, cluster)?;
        config.jobs.sort_by_key(|job| job.submit);
        let switch_of: Vec<u32> = hosts.iter().map(|h| cluster.rack_of[h.0 as usize]).collect();
        let slots = [config.map_slots, config.reduce_slots];
        let racks = Racks::new(&switch_of);
        let owners = owners::owners(&config);
        let each = match config.framework {
            Framework::Mr1 => slots,
            Framework::Yarn => config.yarn.slots(),
        };
        let all_slots = each.map(|n| u64::from(n) * hosts.len() as u64);
        let scheduler =
            Scheduler::new(config.scheduler, &config.scheduling, owners, all_slots, &racks);
        let beats = beats::Beats::new(&config, hosts.len(), cluster.seed);
        let slow = |node: &SlowNode| {
            let worker = hosts.iter().position(|&host| host == node.host);
            (worker.expect("it was checked") as u32, node.speed)
        };
        let speeds: Vec<(u32, f64)> = config.slow_nodes.iter().map(slow).collect();
        Ok(MapReduce {
            seed: cluster.seed,
            master,
            workers: hosts.into_iter().map(|host| Worker::new(host, slots)).collect(),
            racks,
            scheduler,
            conns: Connections::default(),
            hardware: Hardware::new(&config, switch_of.len(), &speeds),
            tasks: Slab::default(),
            writers: Slab::default(),
            sessions: Slab::default(),
            beats,
            blocks: blocks::Blocks::default(),
            replication: replication::Replication::new(switch_of.len(), cluster.seed),
            clients: Slab::default(),
            reports: Slab::default(),
            yarn: Yarn::default(),
            jobs: vec![None; config.jobs.len()],
            submitted: 0,
            done: 0,
            watch: watch::Watch::default(),
            speculation: speculate::Speculation::default(),
            finished: false,
            config,
        })
    }

    /// Finished jobs and all jobs.
    pub fn progress(&self) -> (u32, u32) {
        (self.done, self.jobs.len() as u32)
    }

    /// Takes in an event and appends what should happen next. Events at one time are taken in the
    /// order given.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        if self.finished {
            // Answers to the last heartbeats still arrive on connections that are closing.
            return;
        }
        match event {
            Event::Begin => self.begin(now, out),
            Event::Wake { token } if self.is_stale(Timer::of(token)) => {}
            Event::Wake { token } => match Timer::of(token) {
                Timer::Submit => self.submit(now, out),
                Timer::Setup(job) => self.admit(now, job, out),
                Timer::Cleanup(job) => self.committed(now, job, out),
                Timer::Heartbeat(worker) => self.heartbeat_due(now, worker, out),
                Timer::Commit(task) => self.task_step(now, task, out),
                Timer::Cores(machine) => {
                    for work in self.hardware.cores_woken(now, machine, out) {
                        self.work_done(now, work, out);
                    }
                }
                Timer::Disks(machine) => {
                    for work in self.hardware.disks_woken(now, machine, out) {
                        self.work_done(now, work, out);
                    }
                }
                Timer::Namenode(session) => self.namenode_answers(now, session, out),
                Timer::Block(writer) => self.next_block(now, writer, out),
                Timer::Client(client) => self.client_start(now, client, out),
                Timer::Master(job) => self.master_due(now, job, out),
                Timer::Container(task) => self.launch(now, task, out),
                Timer::Poll(task) => self.ask_for_maps(now, task, out),
                Timer::Look => self.look(now, out),
                Timer::Watch => self.watch(now, out),
                Timer::Speculate => self.speculate(now, out),
                Timer::Recheck => self.recheck(now, out),
                Timer::Replicate => self.replicate(now, out),
                Timer::Copy(copy) => self.copy_due(now, copy, out),
                Timer::Seek(task) => self.seek_split(now, task, out),
                Timer::Answer(worker) => self.answer_arrived(now, worker, out),
                Timer::Ask => self.ask_takers(now, out),
                Timer::Alone(place) => {
                    let work = self.hardware.ended_alone(place);
                    self.work_done(now, work, out);
                }
                Timer::Penalty { task, from } => self.penalty_over(now, (task, from), out),
            },
            Event::Delivered { conn, from, tag } => self.delivered(now, conn, from, tag, out),
            Event::Failed { conn } => self.connection_failed(now, conn, out),
            Event::Received { conn, bytes } => self.received(now, conn, bytes, out),
            Event::Arrived { .. } => unreachable!("it sends no parcels"),
        }
        self.seek_takers(now, out);
    }

    /// Whether a wake-up is for something that was killed meanwhile.
    fn is_stale(&self, timer: Timer) -> bool {
        match timer {
            Timer::Commit(task) | Timer::Container(task) | Timer::Poll(task) => {
                self.tasks.find(task).is_none()
            }
            Timer::Seek(task) => self.tasks.find(task).is_none(),
            Timer::Copy(copy) => self.replication.copies.find(copy).is_none(),
            Timer::Penalty { task, .. } => self.tasks.find(task).is_none(),
            Timer::Namenode(session) => self.sessions.find(session).is_none(),
            Timer::Block(writer) => self.writers.find(writer).is_none(),
            Timer::Client(client) => self.clients.find(client).is_none(),
            _ => false,
        }
    }

    /// Whether work is for something that was killed meanwhile.
    fn is_vain(&self, work: Work) -> bool {
        match work {
            Work::Step(task) | Work::Read(task) | Work::Spill(task) | Work::MemoryMerge(task) => {
                self.tasks.find(task).is_none()
            }
            Work::DiskMerge(task) | Work::Split { task, .. } => self.tasks.find(task).is_none(),
            Work::Fetch { task, .. } => self.tasks.find(task).is_none_or(|t| t.fetching.is_none()),
            Work::ClientRead { client, .. } => self.clients.find(client).is_none(),
            Work::Local { writer, .. } | Work::Replica { writer, .. } => {
                self.writers.find(writer).is_none()
            }
            Work::Transfer { writer, .. } => self.writers.find(writer).is_none(),
            Work::Copy(copy) => self.replication.copies.find(copy).is_none(),
            Work::Master(_) | Work::Flush(_) => false,
        }
    }

    /// A piece of work on cores or disks is through.
    fn work_done(&mut self, now: Time, work: Work, out: &mut Vec<Action>) {
        if self.is_vain(work) {
            return;
        }
        match work {
            Work::Step(task) => self.part_ended(now, task, out),
            Work::Read(task) => {
                self.file_read(now, task);
                self.part_ended(now, task, out);
            }
            Work::Spill(task) => self.spill_part(now, task, out),
            Work::MemoryMerge(task) => self.memory_merge_part(now, task, out),
            Work::DiskMerge(task) => self.file_merge_part(now, task, out),
            Work::Fetch { task, from, round } => self.fetch_work(now, (task, from, round), out),
            Work::Split { task, holder, round } => self.split_read(now, (task, holder, round), out),
            Work::ClientRead { client, round } => self.block_read(now, (client, round), out),
            Work::Local { writer, bytes } => self.local_stored(now, writer, bytes, out),
            Work::Replica { writer, pipe, hop, bytes } => {
                self.chunk_stored(now, (writer, pipe, hop), bytes, out);
            }
            Work::Transfer { writer, pipe } => self.transfer_part(now, (writer, pipe), out),
            Work::Copy(copy) => self.copy_part(now, copy, out),
            Work::Master(job) => self.master_started(now, job, out),
            Work::Flush(_) => unreachable!("flushers are the machine's own business"),
        }
    }

    fn delivered(&mut self, now: Time, conn: ConnId, from: Side, tag: u64, out: &mut Vec<Action>) {
        match (self.conns.purpose(conn), from) {
            (Use::Heartbeat { worker }, Side::Client) => self.heartbeat_arrived(now, worker, out),
            (Use::Heartbeat { worker }, Side::Server) => self.answer_arrived(now, worker, out),
            (Use::Split { task, holder }, Side::Client) => {
                self.send_split(now, task, holder, conn, out);
            }
            (Use::Split { task, .. }, Side::Server) => {
                self.conns.close(conn, out);
                self.split_part(now, task, out);
            }
            (Use::Read { client, holder }, Side::Client) => {
                self.send_block(now, (client, holder), conn, out);
            }
            (Use::Read { client, .. }, Side::Server) => self.read_part(now, client, out),
            (Use::Fetch { task, from }, Side::Client) => {
                self.send_outputs(now, (task, from), conn, tag, out);
            }
            (Use::Fetch { task, from }, Side::Server) => self.arriving(now, (task, from), out),
            (Use::Pipeline { writer, hop }, Side::Client) => {
                self.chunk_arrived(now, (writer, hop), tag, out);
            }
            (Use::Pipeline { writer, hop }, Side::Server) => {
                self.chunk_acknowledged(now, (writer, hop), tag, out);
            }
            (Use::Transfer { writer }, _) => self.transferred(now, writer, out),
            (Use::Copy { copy }, _) => self.copy_arrived(now, copy, out),
            (Use::Master { job }, _) => {
                self.conns.close(conn, out);
                self.master_launched(now, job, out);
            }
            (Use::Application { job }, Side::Client) => self.master_called(job, out),
            (Use::Application { job }, Side::Server) => self.master_answered(now, job, out),
            (Use::Launch { task }, _) => {
                self.conns.close(conn, out);
                self.container_launched(now, task, out);
            }
            (Use::Report { report }, _) => {
                self.conns.close(conn, out);
                self.report_arrived(now, report, out);
            }
            (Use::Events { task }, Side::Client) => self.maps_asked(task, conn, out),
            (Use::Events { task }, Side::Server) => self.maps_told(now, task, tag as u32, out),
            (Use::Namenode { session }, Side::Client) => self.namenode_asked(now, session, out),
            (Use::Namenode { session }, Side::Server) => self.namenode_answered(now, session, out),
        }
    }

    fn job(&mut self, job: u32) -> &mut Job {
        self.jobs[job as usize].as_mut().expect("the job runs")
    }

    fn spec(&self, job: u32) -> &JobSpec {
        &self.config.jobs[job as usize]
    }

    fn host(&self, worker: u32) -> HostId {
        self.workers[worker as usize].host
    }

    /// The random stream of one decision of one job or task: what others draw never shifts it.
    fn stream(&self, what: &str, job: u32, task: u32) -> Stream {
        Stream::new(self.seed, &format!("mapreduce/{what}/{job}/{task}"))
    }
}

impl Jobs for Vec<Option<Box<Job>>> {
    fn maps(&mut self, job: u32) -> &mut waiting::WaitingMaps {
        &mut self[job as usize].as_mut().expect("an offered job runs").maps
    }
}
