//! Schedulers: they choose the job whose task gets the next free slot, and with delay scheduling
//! and Quincy also the map.
//!
//! A policy (`fifo`, `fair`, `capacity`) keeps jobs with waiting tasks in its order and is informed
//! of every change in the numbers of a job's tasks; a choice costs the logarithm of the number of
//! waiting jobs. `delay` follows a policy's order until a job accepts the worker with the free
//! slot; `quincy` uses a policy to decide how many maps of each job run, and assigns them to
//! workers by a minimum-cost flow.

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

/// Policy of a scheduler: the order in which jobs are served.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Policy {
    Fifo(Fifo),
    Fair(Fair),
    Capacity(Capacity),
}

impl Policy {
    /// Informs the policy that a job's numbers of tasks of a kind have changed from `was` to `now`.
    fn update(&mut self, kind: TaskKind, job: u32, was: Load, now: Load) {
        match self {
            Policy::Fifo(p) => p.update(kind, job, now),
            Policy::Fair(p) => p.update(kind, job, was, now),
            Policy::Capacity(p) => p.update(kind, job, was, now),
        }
    }

    /// Returns the first job with waiting tasks of a kind, in the order of the policy, for which
    /// `accept` returns true.
    fn find(&self, kind: TaskKind, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        match self {
            Policy::Fifo(p) => p.find(kind, accept),
            Policy::Fair(p) => p.find(kind, accept),
            Policy::Capacity(p) => p.find(kind, accept),
        }
    }
}

/// Scheduler of any kind: chooses the job whose task gets the next free slot or container; with
/// delay scheduling and Quincy also the map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    policy: Policy,
    /// Numbers of waiting and running tasks of each job: one list for maps, one for reduces.
    loads: [Vec<Load>; 2],
    /// Numbers of waiting and running tasks of all jobs together: for maps, for reduces.
    totals: [Load64; 2],
    delay: Option<Delay>,
    quincy: Option<Quincy>,
}

/// Numbers of waiting and running tasks of one kind (map or reduce), summed over all jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Load64 {
    waiting: u64,
    running: u64,
}

impl Scheduler {
    /// Returns a scheduler without tasks. `owners` is the list of the owners of all jobs; `slots`
    /// are the numbers of map and reduce slots of the cluster.
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

    /// Returns the number of waiting tasks of a kind, of all jobs together.
    pub fn waiting(&self, kind: TaskKind) -> u64 {
        self.totals[index(kind)].waiting
    }

    /// Returns the number of tasks of a kind, of all jobs together, that are assigned and whose end
    /// is not reported yet.
    pub fn running(&self, kind: TaskKind) -> u64 {
        self.totals[index(kind)].running
    }

    /// Returns the numbers of waiting and running tasks of a kind of one job.
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

    /// Adds `n` waiting tasks of a kind to a job.
    pub fn offer(&mut self, kind: TaskKind, job: u32, n: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting: waiting + n, running });
    }

    /// Removes all waiting tasks of a kind of a job from the scheduler.
    pub fn withdraw(&mut self, kind: TaskKind, job: u32) {
        let Load { running, .. } = self.load(kind, job);
        self.set(kind, job, Load { waiting: 0, running });
    }

    /// Counts a waiting task of a job as assigned.
    pub fn started(&mut self, kind: TaskKind, job: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting: waiting - 1, running: running + 1 });
    }

    /// Counts a second attempt of a running task as assigned: it uses a slot, but the number of
    /// waiting tasks does not change.
    pub fn also_started(&mut self, kind: TaskKind, job: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting, running: running + 1 });
    }

    /// Removes an assigned task of a job, whose end was reported, from the running tasks.
    pub fn finished(&mut self, kind: TaskKind, job: u32) {
        let Load { waiting, running } = self.load(kind, job);
        self.set(kind, job, Load { waiting, running: running - 1 });
    }

    /// Returns the job that gets the next free slot for a task of a kind, on any worker; `None` if
    /// no job may have the slot.
    pub fn pick(&self, kind: TaskKind) -> Option<u32> {
        self.policy.find(kind, &mut |_| true)
    }

    /// Informs the scheduler that a worker with `free_maps` free map slots asks for tasks. Delay
    /// scheduling uses the time, Quincy the number of slots.
    pub fn asked(&mut self, now: Time, worker: u32, free_maps: u32) {
        if let Some(delay) = &mut self.delay {
            delay.heartbeat(now);
        }
        if let Some(quincy) = &mut self.quincy {
            quincy.set_free(worker, free_maps);
        }
    }

    /// Removes a lost worker from Quincy's plan. Returns the maps that were planned for the worker,
    /// as (job, map); they count as assigned.
    pub fn lost(&mut self, worker: u32) -> Vec<(u32, u32)> {
        self.quincy.as_mut().map_or_else(Vec::new, |quincy| quincy.lost(worker))
    }

    /// Removes and returns the maps of a job that Quincy has planned for workers and that are not
    /// assigned yet; they count as assigned.
    pub fn take_back(&mut self, job: u32) -> Vec<u32> {
        self.quincy.as_mut().map_or_else(Vec::new, |quincy| quincy.take_back(job))
    }

    /// Removes all tasks of a kind of a job that has ended from the scheduler.
    pub fn forget(&mut self, kind: TaskKind, job: u32) {
        self.take_back(job);
        self.set(kind, job, Load::default());
    }

    /// Chooses the next map for a worker with a free slot, and counts it as assigned. Returns (job,
    /// map); `None` if there is no map for the worker.
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
