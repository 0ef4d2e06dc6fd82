//! Queues with guaranteed and maximum capacities, as in Hadoop's CapacityScheduler (Hadoop 2 and 3,
//! ParentQueue and LeafQueue; Hadoop 1 has these queues without hierarchy).
//!
//! Queues form a tree. At every node of the tree, the child with the smallest ratio of used to
//! guaranteed capacity is served first; a queue at its maximum is skipped. In a leaf queue, jobs
//! are served first in, first out, except jobs of users at their limit:
//!
//! ```text
//! base  = guaranteed            if used < guaranteed, else used + 1
//! limit = min(max(⌈base / active users⌉, ⌈base · user_minimum⌉), ⌈guaranteed · user_factor⌉), at least 1
//! ```
//!
//! where an active user is one with waiting tasks in the queue. Capacities are numbers of slots for
//! each kind of task: ⌈share · slots⌉, where the share is the product of the shares from the root
//! to the queue. Differences from Hadoop: no preemption (Hadoop's default), no limits on
//! applications and application masters, no priorities, no node labels.

use super::config::{QueueConfig, WHOLE};
use super::load::{Load, Owner, index};
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Capacities of a queue, and its position in the tree of queues.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue {
    parent: Option<u32>,
    children: Vec<u32>,
    /// Guaranteed fraction of the cluster, as an integer: `WHOLE`² (100,000²) means the whole
    /// cluster.
    share: u128,
    /// Guaranteed capacity of the queue: number of map slots, number of reduce slots.
    guaranteed: [u64; 2],
    /// Maximum capacity of the queue: number of map slots, number of reduce slots.
    most: [u64; 2],
    user_minimum: u64,
    user_factor_milli: u64,
}

/// Running and waiting tasks of a user in a leaf queue, of one kind (map or reduce).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct User {
    running: u64,
    /// Jobs of the user that have waiting tasks.
    jobs: BTreeSet<u32>,
}

/// Running and waiting tasks of a queue, of one kind (map or reduce).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Usage {
    running: u64,
    waiting: u64,
    /// Users with running or waiting tasks in the queue, by user; used in leaf queues only.
    users: BTreeMap<u32, User>,
    /// Number of users with waiting tasks in the queue.
    active: u64,
}

/// Queues of the Capacity scheduler, with their running and waiting tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capacity {
    owners: Vec<Owner>,
    queues: Vec<Queue>,
    top: Vec<u32>,
    usage: [Vec<Usage>; 2],
}

fn part(share: u128, of: u128, whole: u128) -> u64 {
    u64::try_from((share * of).div_ceil(whole)).unwrap_or(u64::MAX)
}

impl Capacity {
    /// Returns the configured queues of a cluster with `slots` map and reduce slots. `owners` gives
    /// the leaf queue and the user of each job.
    pub(super) fn new(set: &[QueueConfig], owners: Vec<Owner>, slots: [u64; 2]) -> Capacity {
        let plain = [QueueConfig::plain("default")];
        let set = if set.is_empty() { &plain } else { set };
        // Fractions of the cluster in units of 1/WHOLE², so that they are exact for queues one
        // level below the top.
        let unit = u128::from(WHOLE);
        let mut shares: Vec<(u128, u128)> = Vec::new();
        let mut queues: Vec<Queue> = Vec::new();
        let mut top = Vec::new();
        for (number, q) in (0..).zip(set) {
            let (of, at_most) = q.parent.map_or((unit * unit, unit * unit), |p| shares[p as usize]);
            let share = of * u128::from(q.capacity) / unit;
            let most = at_most * u128::from(q.maximum) / unit;
            shares.push((share, most));
            match q.parent {
                Some(p) => queues[p as usize].children.push(number),
                None => top.push(number),
            }
            let slots_of = |share| slots.map(|n| part(share, u128::from(n), unit * unit));
            queues.push(Queue {
                parent: q.parent,
                children: Vec::new(),
                share,
                guaranteed: slots_of(share),
                most: slots_of(most),
                user_minimum: u64::from(q.user_minimum),
                user_factor_milli: u64::from(q.user_factor_milli),
            });
        }
        let usage = vec![Usage::default(); queues.len()];
        Capacity { owners, queues, top, usage: [usage.clone(), usage] }
    }

    pub(super) fn update(&mut self, kind: TaskKind, job: u32, was: Load, now: Load) {
        let Owner { pool: leaf, user } = self.owners[job as usize];
        let usages = &mut self.usage[index(kind)];
        let mut at = Some(leaf);
        while let Some(queue) = at {
            let usage = &mut usages[queue as usize];
            usage.running = usage.running + u64::from(now.running) - u64::from(was.running);
            usage.waiting = usage.waiting + u64::from(now.waiting) - u64::from(was.waiting);
            at = self.queues[queue as usize].parent;
        }
        let usage = &mut usages[leaf as usize];
        let of = usage.users.entry(user).or_default();
        let was_active = !of.jobs.is_empty();
        of.running = of.running + u64::from(now.running) - u64::from(was.running);
        match now.waiting {
            0 => of.jobs.remove(&job),
            _ => of.jobs.insert(job),
        };
        let is_active = !of.jobs.is_empty();
        if !is_active && of.running == 0 {
            usage.users.remove(&user);
        }
        usage.active = usage.active + u64::from(is_active) - u64::from(was_active);
    }

    pub(super) fn find(&self, kind: TaskKind, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        self.find_among(&self.top, index(kind), accept)
    }

    fn find_among(
        &self,
        queues: &[u32],
        k: usize,
        accept: &mut dyn FnMut(u32) -> bool,
    ) -> Option<u32> {
        let open = |&q: &u32| {
            let usage = &self.usage[k][q as usize];
            usage.waiting > 0 && usage.running < self.queues[q as usize].most[k]
        };
        let mut order: Vec<u32> = queues.iter().copied().filter(open).collect();
        order.sort_by(|&a, &b| {
            let used = |q: u32| u128::from(self.usage[k][q as usize].running);
            let share = |q: u32| self.queues[q as usize].share.max(1);
            (used(a) * share(b)).cmp(&(used(b) * share(a))).then(a.cmp(&b))
        });
        order.into_iter().find_map(|q| match &self.queues[q as usize].children[..] {
            [] => self.find_in_leaf(q, k, accept),
            children => self.find_among(children, k, accept),
        })
    }

    /// Returns the largest number of tasks of one kind that each user of a leaf queue may run; `k`
    /// is 0 for maps, 1 for reduces.
    fn user_limit(&self, leaf: u32, k: usize) -> u64 {
        let (queue, usage) = (&self.queues[leaf as usize], &self.usage[k][leaf as usize]);
        let guaranteed = queue.guaranteed[k];
        let base = if usage.running < guaranteed { guaranteed } else { usage.running + 1 };
        let even = base.div_ceil(usage.active.max(1));
        let minimum = part(u128::from(queue.user_minimum), u128::from(base), u128::from(WHOLE));
        let most = part(u128::from(queue.user_factor_milli), u128::from(guaranteed), 1000);
        even.max(minimum).min(most).max(1)
    }

    /// Returns the first submitted job in a leaf queue that `accept` accepts, among the jobs of
    /// users below their limit.
    fn find_in_leaf(
        &self,
        leaf: u32,
        k: usize,
        accept: &mut dyn FnMut(u32) -> bool,
    ) -> Option<u32> {
        let limit = self.user_limit(leaf, k);
        let users = self.usage[k][leaf as usize].users.values();
        let below = users.filter(|u| u.running < limit && !u.jobs.is_empty());
        let mut jobs: Vec<_> = below.map(|u| u.jobs.iter().copied().peekable()).collect();
        loop {
            let heads = jobs.iter_mut().zip(0..).filter_map(|(of, i)| Some((*of.peek()?, i)));
            let (job, i) = heads.min()?;
            jobs[i].next();
            if accept(job) {
                return Some(job);
            }
        }
    }
}
