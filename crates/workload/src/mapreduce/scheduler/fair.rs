//! Fair sharing between pools, as Hadoop's Fair scheduler orders them (FairShareComparator of
//! Hadoop 2 and 3, FairScheduler of Hadoop 0.21 and 1; Zaharia et al., EuroSys 2010, section 2).
//!
//! A pool with `running` tasks of a kind has the demand `demand` = running + waiting, and is
//! guaranteed `min` = min(minimum share, demand). A free slot goes
//!
//! ```text
//! first  to pools with running < min, the one with the smallest running / min
//! then   to the pool with the smallest running / weight
//! ```
//!
//! and within a pool to the job with the fewest running tasks, or to the first submitted job. If
//! pools are equal, the pool with the smaller number is served first; if jobs are equal, the
//! earlier job. This fills a cluster by weighted max–min fairness: pools that need less than their
//! share are satisfied, and the others get equal slots for their weight. No preemption (Hadoop's
//! default): a pool gets its share as tasks end. Fractions are compared by cross-multiplication,
//! without rounding.

use super::config::{PoolConfig, PoolOrder};
use super::load::{Load, Owner, index};
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Rank of a pool among the pools with waiting tasks: the smallest rank is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rank {
    /// Whether the pool runs at least its minimum share of tasks.
    satisfied: bool,
    /// Ratio (numerator, denominator) by which pools are ordered: running tasks to minimum share,
    /// or to weight if the pool is satisfied.
    of: (u64, u64),
    pool: u32,
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        let ratio = || (self.of.0 * other.of.1).cmp(&(other.of.0 * self.of.1));
        self.satisfied
            .cmp(&other.satisfied)
            .then_with(ratio)
            .then_with(|| self.pool.cmp(&other.pool))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Running and waiting tasks of a pool, of one kind (map or reduce).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Pool {
    running: u32,
    waiting: u32,
    /// Jobs of the pool with waiting tasks, as (running tasks, job); with FIFO order as (0, job).
    jobs: BTreeSet<(u32, u32)>,
}

/// Settings of a pool: weight, minimum share, order of jobs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Shares {
    weight_milli: u32,
    min: [u32; 2],
    order: PoolOrder,
}

impl Shares {
    fn of(config: &PoolConfig) -> Shares {
        Shares { weight_milli: config.weight_milli, min: config.min_share, order: config.order }
    }
}

/// State of the Fair scheduler: pools with their weights, minimum shares and tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fair {
    owners: Vec<Owner>,
    shares: Vec<Shares>,
    pools: [Vec<Pool>; 2],
    /// Ranks of the pools with waiting tasks: for maps, for reduces.
    ranked: [BTreeSet<Rank>; 2],
}

impl Fair {
    /// Returns the state of the Fair scheduler. The pools of `set` have the first numbers; further
    /// pools of `owners` have default settings.
    pub(super) fn new(set: &[PoolConfig], owners: Vec<Owner>) -> Fair {
        let count = owners.iter().map(|o| o.pool as usize + 1).max().unwrap_or(0).max(set.len());
        let plain = Shares::of(&PoolConfig::plain(""));
        let mut shares: Vec<Shares> = set.iter().map(Shares::of).collect();
        shares.resize(count, plain);
        let pools = vec![Pool::default(); count];
        Fair { owners, shares, pools: [pools.clone(), pools], ranked: Default::default() }
    }

    fn rank(&self, k: usize, pool: u32) -> Rank {
        let Pool { running, waiting, .. } = self.pools[k][pool as usize];
        let shares = &self.shares[pool as usize];
        let min = shares.min[k].min(running.saturating_add(waiting));
        let satisfied = running >= min;
        let over = if satisfied { shares.weight_milli } else { min };
        Rank { satisfied, of: (u64::from(running), u64::from(over.max(1))), pool }
    }

    pub(super) fn update(&mut self, kind: TaskKind, job: u32, was: Load, now: Load) {
        let k = index(kind);
        let number = self.owners[job as usize].pool;
        let before = self.rank(k, number);
        self.ranked[k].remove(&before);
        let place = |running| match self.shares[number as usize].order {
            PoolOrder::Fair => (running, job),
            PoolOrder::Fifo => (0, job),
        };
        let (old, new) = (place(was.running), place(now.running));
        let pool = &mut self.pools[k][number as usize];
        pool.running = pool.running - was.running + now.running;
        pool.waiting = pool.waiting - was.waiting + now.waiting;
        pool.jobs.remove(&old);
        if now.waiting > 0 {
            pool.jobs.insert(new);
        }
        if pool.waiting > 0 {
            let after = self.rank(k, number);
            self.ranked[k].insert(after);
        }
    }

    pub(super) fn find(&self, kind: TaskKind, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let k = index(kind);
        let pools = self.ranked[k].iter().map(|rank| &self.pools[k][rank.pool as usize]);
        pools.flat_map(|pool| pool.jobs.iter()).map(|&(_, job)| job).find(|&job| accept(job))
    }
}
