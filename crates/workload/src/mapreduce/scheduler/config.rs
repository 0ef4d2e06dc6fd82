//! Settings of the schedulers: pools, queues, waits and costs.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Scheduler: it chooses the job of the next task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulerKind {
    /// First in, first out: the first submitted job (Hadoop's default until version 1).
    Fifo,
    /// Fair scheduler: pools below their minimum share, then the pool with the fewest running tasks
    /// for its weight.
    Fair,
    /// Capacity scheduler: the queue that uses the smallest part of its capacity, and in it the
    /// first submitted job.
    Capacity,
    /// Quincy: maps are placed by a flow of least transfer cost; reduces as with `Fair`.
    Quincy,
}

/// Settings of the schedulers, of which each uses its own.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduling {
    /// Waits for nearer splits (delay scheduling); `None` for no waits.
    pub delay: Option<DelayConfig>,
    /// Pools of the Fair scheduler with settings other than the defaults (weight 1, no minimum share).
    pub pools: Vec<PoolConfig>,
    /// Queues of the Capacity scheduler; parents precede their children. If empty there is one
    /// queue, `default`, with the whole capacity.
    pub queues: Vec<QueueConfig>,
    /// Transfer costs of Quincy.
    pub quincy: QuincyConfig,
}

/// Waits of delay scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayConfig {
    /// W1: time for which a job waits for a split on the worker itself before it accepts one in the
    /// worker's rack.
    pub node: Span,
    /// W2: further time for which a job waits before it accepts a split in any rack.
    pub rack: Span,
}

/// Order of jobs within a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolOrder {
    /// Fewest running tasks first.
    Fair,
    /// First submitted job first.
    Fifo,
}

/// A pool of the Fair scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolConfig {
    /// Name of the pool, used by jobs: untrusted text.
    pub name: String,
    /// Weight of the pool in thousandths (Hadoop's `weight`: 1.0), above 0.
    pub weight_milli: u32,
    /// Minimum share as a number of map slots and a number of reduce slots (Hadoop's `minMaps`,
    /// `minReduces`: 0).
    pub min_share: [u32; 2],
    /// Order of the pool's jobs (Hadoop's `schedulingMode`: fair).
    pub order: PoolOrder,
}

impl PoolConfig {
    /// Returns a pool with Hadoop's defaults.
    pub fn plain(name: impl Into<String>) -> PoolConfig {
        let name = name.into();
        PoolConfig { name, weight_milli: 1000, min_share: [0; 2], order: PoolOrder::Fair }
    }
}

/// A queue of the Capacity scheduler. Capacities are in thousandths of a percent of the parent
/// queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// Unique name of the queue: untrusted text.
    pub name: String,
    /// Index of the parent queue in the list of queues; `None` at the top.
    pub parent: Option<u32>,
    /// Guaranteed capacity in thousandths of a percent of the parent queue's: 100 000 is the whole
    /// parent (`yarn.scheduler.capacity.<path>.capacity`); above 0.
    pub capacity: u32,
    /// Maximum capacity in thousandths of a percent of the parent queue's: 100 000 is the whole
    /// parent (`maximum-capacity`: 100 %).
    pub maximum: u32,
    /// Capacity that each active user of the queue may use at least, in thousandths of a percent of
    /// the queue's: 100 000 is the whole queue (`minimum-user-limit-percent`: 100 %).
    pub user_minimum: u32,
    /// Capacity that one user may use at most, in thousandths of the queue's guaranteed capacity
    /// (`user-limit-factor`: 1).
    pub user_factor_milli: u32,
}

/// Capacity of a whole parent queue, in thousandths of a percent.
pub const WHOLE: u32 = 100_000;

impl QueueConfig {
    /// Returns a queue with Hadoop's defaults and the capacity of the whole cluster.
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

/// Transfer costs of Quincy per byte. Only their ratio matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuincyConfig {
    /// Cost of a byte from another worker of the rack (ψ).
    pub rack_cost: u32,
    /// Cost of a byte from another rack (ξ).
    pub core_cost: u32,
    /// Whether the Fair scheduler determines how many maps of each job run; otherwise jobs are
    /// served first in, first out.
    pub fair: bool,
}

impl Default for QuincyConfig {
    fn default() -> Self {
        QuincyConfig { rack_cost: 1, core_cost: 2, fair: true }
    }
}
