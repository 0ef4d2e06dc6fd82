//! Which job the next free slot goes to, and with delay scheduling and Quincy which map.
//!
//! A policy (`fifo`, `fair`, `capacity`) keeps jobs with waiting tasks in its order and is told of
//! every change of a job's counts; a choice costs the logarithm of what waits, not a look at all jobs.
//! `delay` walks a policy's order until a job accepts the asking worker; `quincy` takes from a policy
//! how many tasks of which jobs run, and places them by a flow of least cost.

mod capacity;
mod config;
mod delay;
mod fair;
mod fifo;
mod load;
mod quincy;
#[cfg(test)]
mod tests;

pub use config::{
    DelayConfig, PoolConfig, PoolOrder, QueueConfig, QuincyConfig, SchedulerKind, Scheduling, WHOLE,
};
pub use load::{Jobs, Load, Owner, index};
use serde::{Deserialize, Serialize};

use super::racks::Racks;
use capacity::Capacity;
use delay::Delay;
use eastwest_types::{TaskKind, Time};
use fair::Fair;
use fifo::Fifo;
use quincy::Quincy;

/// The order in which jobs are served.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Policy {
    Fifo(Fifo),
    Fair(Fair),
    Capacity(Capacity),
}

impl Policy {
    /// The counts of a job have changed.
    fn update(&mut self, kind: TaskKind, job: u32, was: Load, now: Load) {
        match self {
            Policy::Fifo(p) => p.update(kind, job, now),
            Policy::Fair(p) => p.update(kind, job, was, now),
            Policy::Capacity(p) => p.update(kind, job, was, now),
        }
    }

    /// The first job in order, of those with waiting tasks, that is accepted.
    fn find(&self, kind: TaskKind, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        match self {
            Policy::Fifo(p) => p.find(kind, accept),
            Policy::Fair(p) => p.find(kind, accept),
            Policy::Capacity(p) => p.find(kind, accept),
        }
    }
}

/// A scheduler of any kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    policy: Policy,
    /// By kind and job.
    loads: [Vec<Load>; 2],
    /// By kind, over all jobs.
    totals: [Load64; 2],
    delay: Option<Delay>,
    quincy: Option<Quincy>,
}

/// [`Load`] of all jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Load64 {
    waiting: u64,
    running: u64,
}

impl Scheduler {
    /// A scheduler that knows of no task. `owners` are those of all jobs by number; `slots` those of
    /// the whole cluster for maps and reduces.
    pub fn new(
        kind: SchedulerKind,
        config: &Scheduling,
        owners: Vec<Owner>,
        slots: [u64; 2],
        racks: &Racks,
    ) -> Scheduler {
        let jobs = owners.len();
        let policy = match kind {
            SchedulerKind::Fifo => Policy::Fifo(Fifo::default()),
            SchedulerKind::Fair => Policy::Fair(Fair::new(&config.pools, owners)),
            SchedulerKind::Capacity => {
                Policy::Capacity(Capacity::new(&config.queues, owners, slots))
            }
            SchedulerKind::Quincy if config.quincy.fair => {
                Policy::Fair(Fair::new(&config.pools, owners))
            }
            SchedulerKind::Quincy => Policy::Fifo(Fifo::default()),
        };
        let quincy = (kind == SchedulerKind::Quincy).then(|| Quincy::new(&config.quincy, racks));
        let delay = config.delay.as_ref().map(|delay| Delay::new(delay, jobs));
        Scheduler {
            policy,
            loads: [vec![Load::default(); jobs], vec![Load::default(); jobs]],
            totals: Default::default(),
            delay,
            quincy,
        }
    }

    /// Maps or reduces of all jobs that may be given out and were not.
    pub fn waiting(&self, kind: TaskKind) -> u64 {
        self.totals[index(kind)].waiting
    }

    /// Maps or reduces of all jobs that were given out and not reported to have ended.
    pub fn running(&self, kind: TaskKind) -> u64 {
        self.totals[index(kind)].running
    }

    /// The counts of one job.
    pub fn load(&self, kind: TaskKind, job: u32) -> Load {
        self.loads[index(kind)][job as usize]
    }

    fn set(&mut self, kind: TaskKind, job: u32, now: Load) {
        let was = std::mem::replace(&mut self.loads[index(kind)][job as usize], now);
        let total = &mut self.totals[index(kind)];
        total.waiting = total.waiting + u64::from(now.waiting) - u64::from(was.waiting);
        total.running = total.running + u64::from(now.running) - u64::from(was.running);
        self.policy.update(kind, job, was, now);
    }

    /// The job has `n` more tasks of this kind to give out.
    pub fn offer(&mut self, kind: TaskKind, job: u32, n: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting: waiting + n, running });
    }

    /// The job gives up its waiting tasks of this kind.
    pub fn withdraw(&mut self, kind: TaskKind, job: u32) {
        let Load { running, .. } = self.load(kind, job);
        self.set(kind, job, Load { waiting: 0, running });
    }

    /// A task of the job was given out.
    pub fn started(&mut self, kind: TaskKind, job: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting: waiting - 1, running: running + 1 });
    }

    /// A second attempt at a running task was given out: it takes a slot but leaves the queue as it is.
    pub fn also_started(&mut self, kind: TaskKind, job: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting, running: running + 1 });
    }

    /// A task of the job was reported to have ended.
    pub fn finished(&mut self, kind: TaskKind, job: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting, running: running - 1 });
    }

    /// The job the next slot goes to, wherever it is.
    pub fn pick(&self, kind: TaskKind) -> Option<u32> {
        self.policy.find(kind, &mut |_| true)
    }

    /// A worker asks with this many free map slots: the time for delays, the slots for Quincy.
    pub fn asked(&mut self, now: Time, worker: u32, free_maps: u32) {
        if let Some(delay) = &mut self.delay {
            delay.heartbeat(now);
        }
        if let Some(quincy) = &mut self.quincy {
            quincy.set_free(worker, free_maps);
        }
    }

    /// A worker is lost. Returns maps that were meant for it, with their jobs: they are counted as
    /// started.
    pub fn lost(&mut self, worker: u32) -> Vec<(u32, u32)> {
        self.quincy.as_mut().map_or_else(Vec::new, |quincy| quincy.lost(worker))
    }

    /// Takes back maps of a job that were meant for workers: they are counted as started.
    pub fn take_back(&mut self, job: u32) -> Vec<u32> {
        self.quincy.as_mut().map_or_else(Vec::new, |quincy| quincy.take_back(job))
    }

    /// A job is given up: it has no tasks any more.
    pub fn forget(&mut self, kind: TaskKind, job: u32) {
        self.take_back(job);
        self.set(kind, job, Load::default());
    }

    /// The next map for a worker that asks, given out: (job, map). Counts it as started.
    pub fn next_map(
        &mut self,
        worker: u32,
        racks: &Racks,
        jobs: &mut impl Jobs,
    ) -> Option<(u32, u32)> {
        const MAP: TaskKind = TaskKind::Map;
        if self.quincy.is_some() {
            return self.planned_map(worker, racks, jobs);
        }
        let rack = racks.of(worker);
        let job = match &mut self.delay {
            Some(delay) => self.policy.find(MAP, &mut |job| {
                let (_, near) =
                    jobs.maps(job).nearest(worker, rack).expect("an offered job has maps");
                delay.accepts(job, near)
            })?,
            None => self.pick(MAP)?,
        };
        let maps = jobs.maps(job);
        let (map, _) = maps.nearest(worker, rack).expect("an offered job has maps");
        maps.take(map);
        self.started(MAP, job);
        Some((job, map))
    }

    fn planned_map(
        &mut self,
        worker: u32,
        racks: &Racks,
        jobs: &mut impl Jobs,
    ) -> Option<(u32, u32)> {
        let mut quincy = self.quincy.take()?;
        while let Some(room) = quincy.room() {
            let mut quotas = quincy::Quotas::default();
            for _ in 0..room {
                let Some(job) = self.pick(TaskKind::Map) else { break };
                self.started(TaskKind::Map, job);
                quotas.add(job);
            }
            if quotas.is_empty() {
                break;
            }
            quincy.place(&quotas, racks, jobs);
        }
        let next = quincy.next_for(worker);
        self.quincy = Some(quincy);
        next
    }
}
