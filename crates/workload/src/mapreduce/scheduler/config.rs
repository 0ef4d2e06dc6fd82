//! Settings of the schedulers: pools, queues, waits of delay scheduling, costs of Quincy.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Scheduler, which chooses the job whose task is assigned next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulerKind {
    /// First in, first out: the first submitted job with waiting tasks is served (Hadoop's default
    /// until version 1).
    Fifo,
    /// Fair scheduler: serves pools below their minimum share first, then the pool with the
    /// smallest ratio of running tasks to weight.
    Fair,
    /// Capacity scheduler: serves the queue that uses the smallest fraction of its capacity, and in
    /// it the first submitted job.
    Capacity,
    /// Quincy: assigns maps to workers by a minimum-cost flow of transfer costs; assigns reduces
    /// like `Fair`.
    Quincy,
}

/// Settings of the schedulers; each scheduler uses only its own settings.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduling {
    /// Time limits of delay scheduling, in which a job waits for a slot near its splits; `None`:
    /// jobs do not wait.
    pub delay: Option<DelayConfig>,
    /// Pools of the Fair scheduler with settings other than the defaults (weight 1, no minimum
    /// share).
    pub pools: Vec<PoolConfig>,
    /// Queues of the Capacity scheduler; parents precede their children. If empty there is one
    /// queue, `default`, with the whole capacity.
    pub queues: Vec<QueueConfig>,
    /// Transfer costs of the scheduler Quincy.
    pub quincy: QuincyConfig,
}

/// Time limits of delay scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayConfig {
    /// W1: time for which a job waits for a slot on a worker that has one of its splits, before it
    /// accepts a worker in the same rack as a split.
    pub node: Span,
    /// W2: additional time for which a job waits before it accepts a worker in any rack.
    pub rack: Span,
}

/// Order in which the jobs of a pool are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolOrder {
    /// The job with the fewest running tasks is served first.
    Fair,
    /// The job that was submitted first is served first.
    Fifo,
}

/// Settings of a pool of the Fair scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolConfig {
    /// Name of the pool (untrusted text), to which jobs refer.
    pub name: String,
    /// Weight of the pool in thousandths, above 0: 1000 is Hadoop's default `weight` of 1.0.
    pub weight_milli: u32,
    /// Minimum share of the pool: number of map slots, and number of reduce slots (Hadoop's
    /// `minMaps`, `minReduces`: 0).
    pub min_share: [u32; 2],
    /// Order in which the pool's jobs are served (Hadoop's `schedulingMode`: fair).
    pub order: PoolOrder,
}

impl PoolConfig {
    /// Returns a pool with the name `name` and Hadoop's default settings.
    pub fn plain(name: impl Into<String>) -> PoolConfig {
        let name = name.into();
        PoolConfig { name, weight_milli: 1000, min_share: [0; 2], order: PoolOrder::Fair }
    }
}

/// Settings of a queue of the Capacity scheduler. Capacities are in thousandths of a percent of the
/// parent queue's capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// Unique name of the queue (untrusted text).
    pub name: String,
    /// Index of the parent queue in the list of queues; `None` for a queue at the top.
    pub parent: Option<u32>,
    /// Guaranteed capacity of the queue, in thousandths of a percent of its parent's capacity: 100
    /// 000 is the whole parent (`yarn.scheduler.capacity.<path>.capacity`); above 0.
    pub capacity: u32,
    /// Maximum capacity of the queue, in thousandths of a percent of its parent's capacity: 100 000
    /// is the whole parent (`maximum-capacity`: 100 %).
    pub maximum: u32,
    /// Smallest value of the limit for each user of the queue, in thousandths of a percent of the
    /// queue's capacity: 100 000 is the whole queue (`minimum-user-limit-percent`: 100 %).
    pub user_minimum: u32,
    /// Largest capacity that one user may use, in thousandths of the queue's guaranteed capacity
    /// (`user-limit-factor`: 1).
    pub user_factor_milli: u32,
}

/// Value of a capacity that means the whole parent queue (100 %), in thousandths of a percent.
pub const WHOLE: u32 = 100_000;

impl QueueConfig {
    /// Returns a queue at the top with Hadoop's defaults and the capacity of the whole cluster.
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

/// Transfer costs of Quincy per byte, without unit: only their ratio matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuincyConfig {
    /// Cost of a byte that is read from another worker of the same rack (ψ).
    pub rack_cost: u32,
    /// Cost of a byte that is read from another rack (ξ).
    pub core_cost: u32,
    /// Whether fair sharing between pools determines how many maps of each job run; false: jobs are
    /// served first in, first out.
    pub fair: bool,
}

impl Default for QuincyConfig {
    fn default() -> Self {
        QuincyConfig { rack_cost: 1, core_cost: 2, fair: true }
    }
}
