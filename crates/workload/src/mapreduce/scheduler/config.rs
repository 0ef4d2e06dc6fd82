//! Settings of the schedulers: pools, queues, waits and costs.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Which job the next task is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulerKind {
    /// The job submitted first (Hadoop's default until version 1).
    Fifo,
    /// Pools below their minimum share, then the pool with the fewest running tasks for its weight.
    Fair,
    /// The queue that uses least of its capacity, in it the job submitted first.
    Capacity,
    /// Maps go where a flow of least transfer cost puts them; reduces as with `Fair`.
    Quincy,
}

/// What schedulers need to know besides their kind.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduling {
    /// Waits for nearer splits; none without it.
    pub delay: Option<DelayConfig>,
    /// Pools of the Fair scheduler that are not plain (weight 1, no minimum share).
    pub pools: Vec<PoolConfig>,
    /// Queues of the Capacity scheduler; parents stand before their children. Without any there is
    /// one, `default`, that has all.
    pub queues: Vec<QueueConfig>,
    /// What transfers cost Quincy.
    pub quincy: QuincyConfig,
}

/// Waits of delay scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayConfig {
    /// W1: how long a job is passed over before it takes a split of the worker's rack.
    pub node: Span,
    /// W2: how much longer before it takes any.
    pub rack: Span,
}

/// Order of jobs within a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolOrder {
    /// The job with the fewest running tasks.
    Fair,
    /// The job submitted first.
    Fifo,
}

/// A pool of the Fair scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolConfig {
    /// Its name, as jobs give it: untrusted text.
    pub name: String,
    /// Its weight in thousandths (Hadoop's `weight`: 1.0), above 0.
    pub weight_milli: u32,
    /// Map and reduce slots it has before others share (Hadoop's `minMaps`, `minReduces`: 0).
    pub min_share: [u32; 2],
    /// Order of its jobs (Hadoop's `schedulingMode`: fair).
    pub order: PoolOrder,
}

impl PoolConfig {
    /// Hadoop's defaults.
    pub fn plain(name: impl Into<String>) -> PoolConfig {
        let name = name.into();
        PoolConfig { name, weight_milli: 1000, min_share: [0; 2], order: PoolOrder::Fair }
    }
}

/// A queue of the Capacity scheduler. Shares are in thousandths of a percent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// Its name, unlike that of any other: untrusted text.
    pub name: String,
    /// Place in the list of the queue it is part of; none for one at the top.
    pub parent: Option<u32>,
    /// Its share of its parent (`yarn.scheduler.capacity.<path>.capacity`), above 0.
    pub capacity: u32,
    /// Most it may use of its parent (`maximum-capacity`: 100 %).
    pub maximum: u32,
    /// The share of the queue that each of several users can count on
    /// (`minimum-user-limit-percent`: 100 %).
    pub user_minimum: u32,
    /// Most one user may use, in thousandths of the queue's capacity (`user-limit-factor`: 1).
    pub user_factor_milli: u32,
}

/// All of a parent, in thousandths of a percent.
pub const WHOLE: u32 = 100_000;

impl QueueConfig {
    /// Hadoop's defaults, with all of the cluster.
    pub fn plain(name: impl Into<String>) -> QueueConfig {
        QueueConfig {
            name: name.into(),
            parent: None,
            capacity: WHOLE,
            maximum: WHOLE,
            user_minimum: WHOLE,
            user_factor_milli: 1000,
        }
    }
}

/// What transfers cost Quincy, per byte. Only the ratio matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuincyConfig {
    /// A byte from another worker of the rack (ψ).
    pub rack_cost: u32,
    /// A byte from another rack (ξ).
    pub core_cost: u32,
    /// How many tasks of which job run is decided as by the Fair scheduler, else first in first out.
    pub fair: bool,
}

impl Default for QuincyConfig {
    fn default() -> Self {
        QuincyConfig { rack_cost: 1, core_cost: 2, fair: true }
    }
}
