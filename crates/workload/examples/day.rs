//! Measures the cost of the Hadoop model alone: runs a day of jobs over a network model without
//! cost.
//!
//! Every message takes 50 µs plus its size at 50 MB/s, independent of other messages. Prints the
//! numbers of tasks and of actions by kind, CPU time and peak memory. Arguments: trace, number of
//! nodes, number of nodes of the original cluster, nodes per rack, first and last hour, and a mode.
//! The mode is `coarse` (approximate), `sent` (every message), both for a cluster like that of
//! Facebook in 2010, or `plain` (every message, with default settings).
//!
//! ```sh
//! cargo run --release -p eastwest-workload --example day -- trace.tsv 600 600 40 0 24 coarse
//! ```

use eastwest_types::{Rate, Span, TaskKind, Time};
use eastwest_workload::mapreduce::{
    CoarseConfig, JobBytes, JobSpec, MapReduce, MapReduceConfig, SchedulerKind, SizeRule,
};
use eastwest_workload::replay::swim;
use eastwest_workload::replay::{BadRows, scale, window};
use eastwest_workload::{Action, Cluster, Event};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const LATENCY: Span = Span::from_us(50);
const RATE: Rate = Rate::megabytes(50);

/// Queue of scheduled events, ordered by time, then by the order of scheduling.
#[derive(Default)]
struct Network {
    due: BinaryHeap<Reverse<(Time, u64, u32)>>,
    events: Vec<Event>,
    free: Vec<u32>,
    order: u64,
    most: usize,
}

impl Network {
    fn push(&mut self, at: Time, event: Event) {
        let place = match self.free.pop() {
            Some(place) => {
                self.events[place as usize] = event;
                place
            }
            None => {
                self.events.push(event);
                self.events.len() as u32 - 1
            }
        };
        self.order += 1;
        self.due.push(Reverse((at, self.order, place)));
        self.most = self.most.max(self.due.len());
    }

    fn pop(&mut self) -> Option<(Time, Event)> {
        let Reverse((at, _, place)) = self.due.pop()?;
        self.free.push(place);
        Some((at, self.events[place as usize]))
    }
}

/// Numbers of actions by kind, and a hash of the end times of tasks and jobs.
#[derive(Default, Debug)]
struct Counts {
    wakes: u64,
    opens: u64,
    messages: u64,
    asks: u64,
    payload: u64,
    jobs: u64,
    maps: u64,
    reduces: u64,
    by_locality: [u64; 4],
    digest: u64,
}

impl Counts {
    fn note(&mut self, value: u64) {
        self.digest = (self.digest ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }
}

fn carry_out(net: &mut Network, counts: &mut Counts, now: Time, action: Action) {
    match action {
        Action::Wake { at, token } => {
            counts.wakes += 1;
            net.push(at, Event::Wake { token });
        }
        Action::Open { .. } => counts.opens += 1,
        Action::Send { conn, from, payload, tag, .. } => {
            counts.messages += 1;
            counts.payload += payload;
            let at = now + LATENCY + RATE.time_for(payload);
            net.push(at, Event::Delivered { conn, from, tag });
        }
        Action::Ask { .. } => counts.asks += 1,
        Action::Task(task) => {
            let count = match task.kind {
                TaskKind::Map => &mut counts.maps,
                TaskKind::Reduce => &mut counts.reduces,
            };
            *count += 1;
            counts.by_locality[task.locality as usize] += 1;
            counts.note(task.finished.0);
        }
        Action::Job(job) => {
            counts.jobs += 1;
            counts.note(job.finished.0);
        }
        _ => {}
    }
}

/// Returns the CPU time of this process in seconds.
fn core_time_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn jobs(args: &[String], nodes: u32) -> Vec<JobSpec> {
    let file = std::fs::File::open(&args[0]).expect("the trace can be read");
    let reader = std::io::BufReader::new(file);
    let mut trace = swim::read(&args[0], reader, BadRows::Stop).expect("a SWIM trace").jobs;
    scale(&mut trace, nodes, args[2].parse().expect("nodes")).expect("sizes fit");
    let hour = |at: usize| Span::from_secs(3600 * args[at].parse::<u64>().expect("an hour"));
    let rule = SizeRule {
        split_bytes: 128 << 20,
        bytes_per_reducer: 1_000_000_000,
        ..SizeRule::default()
    };
    let slots = if args[6] == "plain" { 2 } else { 6 };
    let all = window(&trace, hour(4), hour(5));
    all.into_iter()
        .map(|job| {
            let bytes = JobBytes {
                input: job.input_bytes,
                shuffle: job.shuffle_bytes,
                output: job.output_bytes,
            };
            let submit = Time::ZERO + job.submit;
            let (maps, reduces) = rule.tasks(bytes, u64::from(nodes) * slots);
            JobSpec::fixed(job.name, "trace", submit, bytes, maps, reduces)
        })
        .collect()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    assert_eq!(args.len(), 7, "trace nodes original-nodes per-rack from-hour to-hour mode");
    let nodes: u32 = args[1].parse().expect("nodes");
    let per_rack: u32 = args[3].parse().expect("nodes per rack");
    let jobs = jobs(&args, nodes);
    let maps: u64 = jobs.iter().map(|j| u64::from(j.maps)).sum();
    let reduces: u64 = jobs.iter().map(|j| u64::from(j.reduces)).sum();
    println!("{} jobs, {maps} maps, {reduces} reduces", jobs.len());
    let mut config = MapReduceConfig { jobs, scheduler: SchedulerKind::Fair, ..Default::default() };
    match args[6].as_str() {
        "sent" | "plain" => {}
        "coarse" => config.coarse = CoarseConfig::all(LATENCY),
        other => panic!("{other} is neither coarse, sent nor plain"),
    }
    if args[6] != "plain" {
        // About a gigabyte of heap, since reduces have gigabytes of input.
        config.shuffle.heap_bytes = 1 << 30;
        config.hdfs.block_bytes = 128 << 20;
        // 15 tasks on a machine with about 1 MB/s each, as at Facebook in 2010.
        (config.map_slots, config.reduce_slots) = (9, 6);
        (config.costs.map_rate, config.costs.reduce_rate) =
            (Rate::megabytes(1), Rate::megabytes(1));
    }
    let cluster = Cluster { rack_of: (0..=nodes).map(|n| n / per_rack).collect(), seed: 1 };
    let begun = core_time_s();
    let mut model = MapReduce::new(config, &cluster).expect("it can run");
    let (mut net, mut counts, mut out) = (Network::default(), Counts::default(), Vec::new());
    net.push(Time::ZERO, Event::Begin);
    let (mut events, mut ended) = (0u64, Time::ZERO);
    'all: while let Some((now, event)) = net.pop() {
        events += 1;
        ended = now;
        model.handle(now, event, &mut out);
        for action in out.drain(..) {
            if action == Action::Finished {
                break 'all;
            }
            carry_out(&mut net, &mut counts, now, action);
        }
    }
    let took = core_time_s() - begun;
    let tasks = counts.maps + counts.reduces;
    println!("{counts:?}");
    println!(
        "{events} events, {} pending at most, until {:.0} s: {took:.2} s, {:.2} us a task, {} MB",
        net.most,
        ended.0 as f64 / 1e12,
        took * 1e6 / tasks as f64,
        peak_memory_mb()
    );
}
