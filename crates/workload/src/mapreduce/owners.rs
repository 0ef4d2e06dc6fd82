//! Owners of jobs for the schedulers: pool or queue, and user, as numbers.

use super::config::MapReduceConfig;
use super::scheduler::{Owner, SchedulerKind};
use std::collections::BTreeMap;

/// Name of the queue of jobs without a queue name.
pub const DEFAULT_QUEUE: &str = "default";

/// Returns the owner (pool or queue, and user) of each job. Configured pools have the first
/// numbers. In the order of the jobs, each further name of a pool and each job without a name of a
/// pool gets the next number. Queues are numbered in the order of the settings; [`super::check`]
/// guarantees that the queues of jobs exist.
pub fn owners(config: &MapReduceConfig) -> Vec<Owner> {
    let users = users(config);
    let pools = match config.scheduler {
        SchedulerKind::Capacity => queues(config),
        _ => pools(config),
    };
    pools.into_iter().zip(users).map(|(pool, user)| Owner { pool, user }).collect()
}

fn pools(config: &MapReduceConfig) -> Vec<u32> {
    let set = config.scheduling.pools.iter().map(|p| p.name.as_str());
    let mut named: BTreeMap<&str, u32> = set.zip(0..).collect();
    let mut next = config.scheduling.pools.len() as u32;
    let mut fresh = || {
        next += 1;
        next - 1
    };
    let mut pools = Vec::with_capacity(config.jobs.len());
    for job in &config.jobs {
        pools.push(match &job.pool {
            Some(name) => *named.entry(name).or_insert_with(&mut fresh),
            None => fresh(),
        });
    }
    pools
}

fn queues(config: &MapReduceConfig) -> Vec<u32> {
    let set = config.scheduling.queues.iter().map(|q| q.name.as_str());
    let named: BTreeMap<&str, u32> = set.zip(0..).collect();
    let queue = |name: &str| named.get(name).copied().unwrap_or(0);
    config.jobs.iter().map(|job| queue(job.pool.as_deref().unwrap_or(DEFAULT_QUEUE))).collect()
}

fn users(config: &MapReduceConfig) -> Vec<u32> {
    let mut named: BTreeMap<Option<&str>, u32> = BTreeMap::new();
    let mut number = |name| {
        let next = named.len() as u32;
        *named.entry(name).or_insert(next)
    };
    config.jobs.iter().map(|job| number(job.user.as_deref())).collect()
}
