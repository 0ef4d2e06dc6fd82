//! Equal shares: a free slot goes to the pool with the fewest running tasks of its kind, in it to
//! the job with the fewest; ties go to the lower pool and the earlier job.
//!
//! This is the Fair scheduler of Zaharia et al. (EuroSys 2010), section 2, with pools of equal
//! weight, without minimum shares, preemption and delay scheduling. Serving whoever runs least
//! fills a cluster as max–min fairness would: pools that need less than their share are satisfied
//! and the others level out.

use super::index;
use eastwest_types::TaskKind;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs and pools for one kind of task.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Running tasks of jobs that have some.
    job_running: BTreeMap<u32, u32>,
    /// Running tasks of pools that have some.
    pool_running: BTreeMap<u32, u32>,
    /// Of every pool with tasks to give out: its jobs with some, as (running tasks, job).
    jobs: BTreeMap<u32, BTreeSet<(u32, u32)>>,
    /// Those pools as (running tasks, pool).
    pools: BTreeSet<(u32, u32)>,
}

fn running(of: &BTreeMap<u32, u32>, key: u32) -> u32 {
    of.get(&key).copied().unwrap_or(0)
}

fn set_running(of: &mut BTreeMap<u32, u32>, key: u32, n: u32) {
    if n == 0 {
        of.remove(&key);
    } else {
        of.insert(key, n);
    }
}

impl Queue {
    fn offer(&mut self, pool: u32, job: u32) {
        self.jobs.entry(pool).or_default().insert((running(&self.job_running, job), job));
        self.pools.insert((running(&self.pool_running, pool), pool));
    }

    fn withdraw(&mut self, pool: u32, job: u32) {
        let Some(jobs) = self.jobs.get_mut(&pool) else { return };
        jobs.remove(&(running(&self.job_running, job), job));
        if jobs.is_empty() {
            self.jobs.remove(&pool);
            self.pools.remove(&(running(&self.pool_running, pool), pool));
        }
    }

    /// Counts a task more or less, and moves job and pool to where they now belong.
    fn count(&mut self, pool: u32, job: u32, change: i32) {
        let was = (running(&self.pool_running, pool), running(&self.job_running, job));
        let now = was.0.checked_add_signed(change).zip(was.1.checked_add_signed(change));
        let now = now.expect("tasks finish after they have started");
        set_running(&mut self.pool_running, pool, now.0);
        set_running(&mut self.job_running, job, now.1);
        if self.pools.remove(&(was.0, pool)) {
            self.pools.insert((now.0, pool));
        }
        if let Some(jobs) = self.jobs.get_mut(&pool) {
            if jobs.remove(&(was.1, job)) {
                jobs.insert((now.1, job));
            }
        }
    }

    fn pick(&self) -> Option<u32> {
        let (_, pool) = self.pools.first()?;
        self.jobs[pool].first().map(|&(_, job)| job)
    }
}

/// Equal shares for pools.
#[derive(Clone, Debug)]
pub struct Fair {
    pool_of: Vec<u32>,
    queues: [Queue; 2],
}

impl Fair {
    pub(super) fn new(pool_of: Vec<u32>) -> Fair {
        Fair { pool_of, queues: Default::default() }
    }
    fn at(&mut self, kind: TaskKind, job: u32) -> (&mut Queue, u32) {
        (&mut self.queues[index(kind)], self.pool_of[job as usize])
    }
    pub(super) fn offer(&mut self, kind: TaskKind, job: u32) {
        let (queue, pool) = self.at(kind, job);
        queue.offer(pool, job);
    }
    pub(super) fn withdraw(&mut self, kind: TaskKind, job: u32) {
        let (queue, pool) = self.at(kind, job);
        queue.withdraw(pool, job);
    }
    pub(super) fn started(&mut self, kind: TaskKind, job: u32) {
        let (queue, pool) = self.at(kind, job);
        queue.count(pool, job, 1);
    }
    pub(super) fn finished(&mut self, kind: TaskKind, job: u32) {
        let (queue, pool) = self.at(kind, job);
        queue.count(pool, job, -1);
    }
    pub(super) fn pick(&self, kind: TaskKind) -> Option<u32> {
        self.queues[index(kind)].pick()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: TaskKind = TaskKind::Map;

    fn serve(fair: &mut Fair, slots: u32, jobs: usize) -> Vec<u32> {
        let mut got = vec![0; jobs];
        for _ in 0..slots {
            let job = fair.pick(MAP).expect("somebody waits");
            fair.started(MAP, job);
            got[job as usize] += 1;
        }
        got
    }

    #[test]
    fn pools_share_equally_and_jobs_within_a_pool_too() {
        let mut fair = Fair::new(vec![0, 0, 0, 1]);
        (0..4).for_each(|job| fair.offer(MAP, job));
        assert_eq!(serve(&mut fair, 12, 4), [2, 2, 2, 6]);
        fair.withdraw(MAP, 3);
        assert_eq!(serve(&mut fair, 3, 4), [1, 1, 1, 0]);
        assert_eq!(fair.pick(TaskKind::Reduce), None);
    }

    #[test]
    fn a_newcomer_catches_up_first() {
        let mut fair = Fair::new(vec![0, 1]);
        fair.offer(MAP, 0);
        serve(&mut fair, 4, 2);
        fair.offer(MAP, 1);
        assert_eq!(serve(&mut fair, 6, 2), [1, 5]);
        (0..5).for_each(|_| fair.finished(MAP, 0));
        assert_eq!(fair.pick(MAP), Some(0));
    }
}
