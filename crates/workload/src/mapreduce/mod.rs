//! Hadoop MapReduce: jobs whose every byte between nodes goes through the network.
//!
//! A master gives map and reduce tasks to the slots of workers in its answers to their heartbeats.
//! Maps read splits of HDFS, compute and spill; reduces fetch their partitions from every map, merge,
//! compute and write replicated output. The model follows Hadoop 1 (Dean and Ghemawat 2004 for the
//! principle; JobTracker, TaskTracker and ReduceTask for the protocol) and is described with its
//! equations, parameters and limits in `docs/mechanisms/mapreduce.md`.
//!
//! One file per concern: `control` (heartbeats, life of a job), `scheduler` (whose turn it is),
//! `assign` (what an answer gives out), `owners` (pools, queues and users by number), `job` (how far
//! it is), `waiting` (maps that wait, where splits are), `map`, `shuffle`, `reduce`, `write` (the stages of
//! tasks), `hdfs` (placement), `shares` (exact splits of bytes), `check` (impossible demands).

mod assign;
mod check;
mod config;
mod connections;
mod control;
pub mod hdfs;
mod job;
mod map;
mod owners;
mod reduce;
pub mod scheduler;
mod shares;
mod shuffle;
mod task;
#[cfg(test)]
mod tests;
pub mod waiting;
mod write;

pub use config::{
    Clients, ControlConfig, CostConfig, Framework, HdfsConfig, JobBytes, JobSpec, MAX_ALL_TASKS,
    MAX_TASKS, MapReduceConfig, NodeConfig, ShuffleConfig, SizeRule, SortConfig, YarnConfig,
};
pub use scheduler::{
    DelayConfig, PoolConfig, PoolOrder, QueueConfig, QuincyConfig, SchedulerKind, Scheduling, WHOLE,
};

use crate::{Action, Cluster, Event};
use connections::{Connections, Use};
use control::Worker;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Side, TaskKind, Time};
use hdfs::Racks;
use job::Job;
use scheduler::{Jobs, Scheduler};
use task::{Stage, Tasks};

/// A MapReduce cluster with its jobs.
#[derive(Clone, Debug)]
pub struct MapReduce {
    config: MapReduceConfig,
    seed: u64,
    master: HostId,
    workers: Vec<Worker>,
    racks: Racks,
    scheduler: Scheduler,
    conns: Connections,
    tasks: Tasks,
    /// Jobs that can have running tasks, by number.
    jobs: Vec<Option<Box<Job>>>,
    /// Jobs submitted so far: the number of the next one.
    submitted: u32,
    done: u32,
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
    /// A task has done what it waited for.
    Task(u32),
}

impl Timer {
    fn token(self) -> u64 {
        let (kind, of) = match self {
            Timer::Submit => (0, 0),
            Timer::Setup(job) => (1, job),
            Timer::Cleanup(job) => (2, job),
            Timer::Heartbeat(worker) => (3, worker),
            Timer::Task(task) => (4, task),
        };
        kind << 56 | u64::from(of)
    }

    fn of(token: u64) -> Timer {
        let of = token as u32;
        match token >> 56 {
            0 => Timer::Submit,
            1 => Timer::Setup(of),
            2 => Timer::Cleanup(of),
            3 => Timer::Heartbeat(of),
            4 => Timer::Task(of),
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
        let all_slots = slots.map(|n| u64::from(n) * hosts.len() as u64);
        let scheduler =
            Scheduler::new(config.scheduler, &config.scheduling, owners, all_slots, &racks);
        Ok(MapReduce {
            seed: cluster.seed,
            master,
            workers: hosts.into_iter().map(|host| Worker::new(host, slots)).collect(),
            racks,
            scheduler,
            conns: Connections::default(),
            tasks: Tasks::default(),
            jobs: vec![None; config.jobs.len()],
            submitted: 0,
            done: 0,
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
            Event::Wake { token } => match Timer::of(token) {
                Timer::Submit => self.submit(now, out),
                Timer::Setup(job) => self.admit(job),
                Timer::Cleanup(job) => self.retire(now, job, out),
                Timer::Heartbeat(worker) => self.heartbeat_due(now, worker, out),
                Timer::Task(task) => self.task_step(now, task, out),
            },
            Event::Delivered { conn, from, tag } => self.delivered(now, conn, from, tag, out),
        }
    }

    /// A task's wake-up: the stage says what is over.
    fn task_step(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        match &t.stage {
            Stage::Starting => {
                t.started = now;
                let (job, kind) = (t.job, t.kind);
                self.job(job).started.get_or_insert(now);
                match kind {
                    TaskKind::Map => self.map_start(now, task, out),
                    TaskKind::Reduce => self.shuffle_start(now, task, out),
                }
            }
            Stage::Mapping => self.mapped(now, task, out),
            Stage::Spilling => self.task_finished(now, task, out),
            Stage::Shuffling => self.copied_locally(now, task, out),
            Stage::Reducing => self.reduced(now, task, out),
            Stage::Writing(_) => self.block_on_disk(now, task, out),
            stage => unreachable!("no wake-up was asked for in {stage:?}"),
        }
    }

    fn delivered(&mut self, now: Time, conn: ConnId, from: Side, tag: u64, out: &mut Vec<Action>) {
        match (self.conns.purpose(conn), from) {
            (Use::Heartbeat { worker }, Side::Client) => self.heartbeat_arrived(now, worker, out),
            (Use::Heartbeat { worker }, Side::Server) => self.answer_arrived(now, worker, out),
            (Use::Split { task }, Side::Client) => self.send_split(task, conn, out),
            (Use::Split { task }, Side::Server) => self.split_arrived(now, task, conn, out),
            (Use::Fetch { task, .. }, Side::Client) => self.send_outputs(task, conn, tag, out),
            (Use::Fetch { task, from }, Side::Server) => self.fetched(now, task, from, out),
            (Use::Pipeline { task, hop }, Side::Client) => self.chunk_arrived(task, hop, tag, out),
            (Use::Pipeline { task, hop }, Side::Server) => {
                self.chunk_acknowledged(now, task, hop, tag, out);
            }
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
