//! Settings of the scheduler of a MapReduce cluster besides its kind: `[workload.delay]`, `[[workload.pool]]`,
//! `[[workload.queue]]` and `[workload.quincy]`.
//!
//! Defaults are those of `eastwest-workload`'s scheduling settings, which name Hadoop's properties.

use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::{Fraction, Name, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;
use eastwest_workload::mapreduce::{
    DelayConfig, PoolConfig, PoolOrder, QueueConfig, QuincyConfig, SchedulerKind, Scheduling, WHOLE,
};

/// Most pools, and most queues.
const MOST: usize = 10_000;

/// Reads the kind of scheduler.
pub fn read_kind(s: &mut Section) -> SchedulerKind {
    s.choice(
        "scheduler",
        "Which job the next task is taken from.",
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
                "pools below their minimum share, then the pool with the fewest running tasks for \
                 its weight, in it the job with the fewest",
            ),
            (
                "capacity",
                SchedulerKind::Capacity,
                "the queue that uses least of its capacity, in it the job submitted first \
                 (default of Hadoop 2 and 3)",
            ),
            (
                "quincy",
                SchedulerKind::Quincy,
                "a flow of least transfer cost places maps (Isard et al. 2009)",
            ),
        ],
    )
}

/// Reads the other settings of the scheduler.
pub fn read(s: &mut Section) -> Scheduling {
    let delay = s.table(
        "delay",
        "Delay scheduling (Zaharia et al. 2010): a job without a split near the asking worker is \
         passed over for a while.",
        read_delay,
    );
    let doc = "Pools of the Fair scheduler and of Quincy that are not plain.";
    let pools = s.tables("pool", doc, MOST, |p, _| read_pool(p));
    let doc = "Queues of the Capacity scheduler, parents before their children. Without any there is \
               one, default, that has all.";
    let mut names: Vec<String> = Vec::new();
    let queues = s.tables("queue", doc, MOST, |q, _| {
        let queue = read_queue(q, &names);
        names.push(queue.name.clone());
        queue
    });
    let quincy = s.table("quincy", "What transfers cost Quincy.", read_quincy);
    Scheduling { delay, pools, queues, quincy }
}

fn read_delay(s: &mut Section) -> Option<DelayConfig> {
    let node: Option<Span> = s.find(
        key(
            "node",
            "W1: how long a job is passed over before it takes a split of the worker's rack \
             (yarn.scheduler.fair.locality-delay-node-ms; Hadoop 1's Fair scheduler: 1.5 heartbeats).",
        )
        .optional("no delay scheduling")
        .range("0 s", "1 h"),
    );
    let rack: Option<Span> = s.find(
        key(
            "rack",
            "W2: how much longer before it takes any split \
             (yarn.scheduler.fair.locality-delay-rack-ms).",
        )
        .optional("as long as node")
        .range("0 s", "1 h"),
    );
    s.demand(rack.is_none() || node.is_some(), &["rack", "node"], || "needs node".to_owned());
    node.map(|node| DelayConfig { node, rack: rack.unwrap_or(node) })
}

/// Returns a fraction in thousandths of a percent.
fn thousandths(share: Fraction) -> u32 {
    at_most(whole_part(share.0 * f64::from(WHOLE) + 0.5))
}

fn milli(ratio: Ratio) -> u32 {
    at_most(whole_part(ratio.0 * 1000.0 + 0.5))
}

fn read_pool(s: &mut Section) -> PoolConfig {
    let name = s.get(key::<Name>("name", "Its name, as jobs give it."));
    let usual = PoolConfig::plain(name.0);
    let weight = s.get(
        key("weight", "Its share relative to other pools (weight: 1).")
            .value(Ratio(1.0))
            .range("0.001", "1000000"),
    );
    let mut minimum = |name, doc| s.get(key(name, doc).value(0u32).range("0", "1000000000"));
    let min_share = [
        minimum("min_maps", "Map slots it has before others share (minMaps: 0)."),
        minimum("min_reduces", "Reduce slots it has before others share (minReduces: 0)."),
    ];
    let order = s.choice(
        "order",
        "Order of its jobs (schedulingMode).",
        Some("fair"),
        &[
            ("fair", PoolOrder::Fair, "the job with the fewest running tasks"),
            ("fifo", PoolOrder::Fifo, "the job submitted first"),
        ],
    );
    PoolConfig { weight_milli: milli(weight), min_share, order, ..usual }
}

fn read_queue(s: &mut Section, before: &[String]) -> QueueConfig {
    let name = s.get(key::<Name>("name", "Its name, as jobs give it as their pool."));
    let parent: Option<Name> =
        s.find(key("parent", "The queue it is part of, which stands before it.").optional("none"));
    let number = parent.and_then(|parent| {
        let found = before.iter().position(|name| *name == parent.0);
        if found.is_none() && !s.describing() {
            s.wrong("parent", format!("is no queue that stands before {}", name.0));
        }
        found.map(at_most)
    });
    let capacity = s.get(
        key::<Fraction>("capacity", "Its share of its parent, or of the cluster (capacity).")
            .range("0.00001", "1"),
    );
    let mut share = |name, doc| s.get(key(name, doc).value(Fraction(1.0)).range("0.00001", "1"));
    let maximum = share("maximum", "Most it may use of its parent (maximum-capacity: 100).");
    let user_minimum = share(
        "user_minimum",
        "What each of several users can count on (minimum-user-limit-percent: 100).",
    );
    let user_factor = s.get(
        key(
            "user_factor",
            "Most one user may use, of the queue's capacity (user-limit-factor: 1).",
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
        key("fair", "How many tasks of which job run is decided as by fair, else as by fifo.")
            .value(usual.fair),
    );
    QuincyConfig { rack_cost, core_cost, fair }
}
