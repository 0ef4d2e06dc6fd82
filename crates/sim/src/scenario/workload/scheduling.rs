//! Settings of the scheduler of a MapReduce cluster, except its kind: `[workload.delay]`,
//! `[[workload.pool]]`, `[[workload.queue]]` and `[workload.quincy]`.
//!
//! The documentation of the scheduling settings in the crate `eastwest-workload` contains the
//! defaults, with the names of Hadoop's properties.

use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::{Fraction, Name, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;
use eastwest_workload::mapreduce::{
    DelayConfig, PoolConfig, PoolOrder, QueueConfig, QuincyConfig, SchedulerKind, Scheduling, WHOLE,
};

/// Maximum number of pools of a scheduler, and of queues.
const MOST: usize = 10_000;

/// Reads the kind of scheduler of a Hadoop cluster.
pub fn read_kind(s: &mut Section) -> SchedulerKind {
    s.choice(
        "scheduler",
        "Scheduler, which decides from which job the next task comes.",
        Some("fifo"),
        &[
            (
                "fifo",
                SchedulerKind::Fifo,
                "the job submitted first (Hadoop's default until version 1)",
            ),
            (
                "fair",
                SchedulerKind::Fair,
                "first pools below their minimum share, then the pool with the fewest running \
                 tasks relative to its weight; in the pool, the job with the fewest running tasks",
            ),
            (
                "capacity",
                SchedulerKind::Capacity,
                "the queue that uses the smallest share of its capacity; in the queue, the job \
                 submitted first (default of Hadoop 2 and 3)",
            ),
            (
                "quincy",
                SchedulerKind::Quincy,
                "maps are placed by a minimum-cost flow, with the cost of transfers (Isard et al. \
                 2009)",
            ),
        ],
    )
}

/// Reads the settings of the scheduler of a Hadoop cluster: delay scheduling, pools, queues and
/// costs of Quincy.
pub fn read(s: &mut Section) -> Scheduling {
    let delay = s.table(
        "delay",
        "Delay scheduling (Zaharia et al. 2010): a job without a local split for a worker waits \
         for some time before it gets a remote one.",
        read_delay,
    );
    let doc = "Settings of pools of the Fair scheduler and of Quincy that differ from the \
               defaults.";
    let pools = s.tables("pool", doc, MOST, |p, _| read_pool(p));
    let doc = "Queues of the Capacity scheduler, parents before their children. Without entries \
               there is one queue, default, with the whole capacity.";
    let mut names: Vec<String> = Vec::new();
    let queues = s.tables("queue", doc, MOST, |q, _| {
        let queue = read_queue(q, &names);
        names.push(queue.name.clone());
        queue
    });
    let quincy = s.table("quincy", "Costs of transfers for Quincy's scheduling.", read_quincy);
    Scheduling { delay, pools, queues, quincy }
}

fn read_delay(s: &mut Section) -> Option<DelayConfig> {
    let node: Option<Span> = s.find(
        key(
            "node",
            "W1: time for which a job waits for a split on the worker itself before it accepts \
             one in the worker's rack (yarn.scheduler.fair.locality-delay-node-ms; Hadoop 1's \
             Fair scheduler: 1.5 heartbeats).",
        )
        .optional("no delay scheduling")
        .range("0 s", "1 h"),
    );
    let rack: Option<Span> = s.find(
        key(
            "rack",
            "W2: further time for which a job waits before it accepts a split in any rack \
             (yarn.scheduler.fair.locality-delay-rack-ms).",
        )
        .optional("the value of `node`")
        .range("0 s", "1 h"),
    );
    s.demand(rack.is_none() || node.is_some(), &["rack", "node"], || "needs `node`".to_owned());
    node.map(|node| DelayConfig { node, rack: rack.unwrap_or(node) })
}

/// Returns a fraction as an integer in thousandths of a percent.
fn thousandths(share: Fraction) -> u32 {
    at_most(whole_part(share.0 * f64::from(WHOLE) + 0.5))
}

fn milli(ratio: Ratio) -> u32 {
    at_most(whole_part(ratio.0 * 1000.0 + 0.5))
}

fn read_pool(s: &mut Section) -> PoolConfig {
    let name = s.get(key::<Name>(
        "name",
        "Name of the pool, which the key `pool` of jobs refers \
                                          to.",
    ));
    let usual = PoolConfig::plain(name.0);
    let weight = s.get(
        key("weight", "Weight of the pool relative to other pools (weight: 1).")
            .value(Ratio(1.0))
            .range("0.001", "1000000"),
    );
    let mut minimum = |name, doc| s.get(key(name, doc).value(0u32).range("0", "1000000000"));
    let min_share = [
        minimum(
            "min_maps",
            "Minimum share: map slots that the pool gets before other slots are \
                             shared (minMaps: 0).",
        ),
        minimum(
            "min_reduces",
            "Minimum share: reduce slots that the pool gets before other slots \
                                are shared (minReduces: 0).",
        ),
    ];
    let order = s.choice(
        "order",
        "Order of jobs within the pool (schedulingMode).",
        Some("fair"),
        &[
            ("fair", PoolOrder::Fair, "the job with the fewest running tasks"),
            ("fifo", PoolOrder::Fifo, "the job submitted first"),
        ],
    );
    PoolConfig { weight_milli: milli(weight), min_share, order, ..usual }
}

fn read_queue(s: &mut Section, before: &[String]) -> QueueConfig {
    let name = s.get(key::<Name>(
        "name",
        "Name of the queue, which the key `pool` of jobs refers \
                                          to.",
    ));
    let parent: Option<Name> = s.find(
        key("parent", "Name of the parent queue, which must come before this queue.")
            .optional("none"),
    );
    let number = parent.and_then(|parent| {
        let found = before.iter().position(|name| *name == parent.0);
        if found.is_none() && !s.describing() {
            s.wrong("parent", format!("must be the name of a queue that precedes {}", name.0));
        }
        found.map(at_most)
    });
    let capacity = s.get(
        key::<Fraction>(
            "capacity",
            "Capacity of the queue as a share of its parent, or of the \
                                     cluster (capacity).",
        )
        .range("0.00001", "1"),
    );
    let mut share = |name, doc| s.get(key(name, doc).value(Fraction(1.0)).range("0.00001", "1"));
    let maximum = share(
        "maximum",
        "Maximum capacity of the queue as a share of its parent \
                                    (maximum-capacity: 100).",
    );
    let user_minimum = share(
        "user_minimum",
        "Minimum share of the queue's capacity for each of several users \
         (minimum-user-limit-percent: 100).",
    );
    let user_factor = s.get(
        key(
            "user_factor",
            "Maximum use of one user, as a multiple of the queue's capacity (user-limit-factor: \
             1).",
        )
        .value(Ratio(1.0))
        .range("0.001", "1000000"),
    );
    QueueConfig {
        name: name.0,
        parent: number,
        capacity: thousandths(capacity),
        maximum: thousandths(maximum),
        user_minimum: thousandths(user_minimum),
        user_factor_milli: milli(user_factor),
    }
}

fn read_quincy(s: &mut Section) -> QuincyConfig {
    let usual = QuincyConfig::default();
    let rack_cost = s.get(
        key("rack_cost", "Cost of a byte from another worker of the rack (psi).")
            .value(usual.rack_cost)
            .range("0", "1000"),
    );
    let core_cost = s.get(
        key("core_cost", "Cost of a byte from another rack (xi).")
            .value(usual.core_cost)
            .range("0", "1000"),
    );
    s.demand(rack_cost <= core_cost, &["rack_cost", "core_cost"], || {
        format!("must not exceed core_cost ({core_cost})")
    });
    let fair = s.get(
        key(
            "fair",
            "Whether the number of running tasks of each job is decided as by fair; if \
                     false, as by fifo.",
        )
        .value(usual.fair),
    );
    QuincyConfig { rack_cost, core_cost, fair }
}
