//! Demands no cluster can meet, refused with the reason before anything runs.

use super::config::{Clients, Framework, MAX_ALL_TASKS, MAX_TASKS, MapReduceConfig};
use super::owners::DEFAULT_QUEUE;
use super::scheduler::{SchedulerKind, WHOLE};
use crate::Cluster;
use eastwest_types::{HostId, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Heartbeats more often than this would be most of the simulation.
const SHORTEST_HEARTBEAT: Span = Span::from_ms(1);

/// Master and workers of a cluster that can run, or all reasons why it cannot. Every reason starts
/// with the field it is about.
pub fn check(
    config: &MapReduceConfig,
    cluster: &Cluster,
) -> Result<(HostId, Vec<HostId>), Vec<String>> {
    let mut problems = Vec::new();
    let hosts = cluster.rack_of.len() as u32;
    let master = config.master.unwrap_or(HostId(hosts.saturating_sub(1)));
    let workers = config
        .workers
        .clone()
        .unwrap_or_else(|| (0..hosts).map(HostId).filter(|&h| h != master).collect());
    if master.0 >= hosts {
        problems.push(format!("master: host {} is not one of the {hosts} hosts", master.0));
    }
    check_workers(master, &workers, hosts, &mut problems);
    check_numbers(config, &mut problems);
    check_slow_nodes(config, &workers, &mut problems);
    if config.framework == Framework::Yarn {
        check_yarn(config, workers.len(), &mut problems);
    }
    check_jobs(config, workers.len(), hosts, &mut problems);
    check_pools(config, &mut problems);
    check_queues(config, &mut problems);
    if problems.is_empty() { Ok((master, workers)) } else { Err(problems) }
}

fn check_workers(master: HostId, workers: &[HostId], hosts: u32, problems: &mut Vec<String>) {
    if workers.is_empty() {
        problems.push("workers: a cluster needs a worker beside its master".to_string());
    }
    let mut seen = vec![false; hosts as usize];
    for &HostId(h) in workers {
        if HostId(h) == master {
            problems.push(format!("workers: host {h} is the master, which runs no tasks"));
        }
        match seen.get_mut(h as usize) {
            None => problems.push(format!("workers: host {h} is not one of the {hosts} hosts")),
            Some(true) => problems.push(format!("workers: host {h} is named twice")),
            Some(seen) => *seen = true,
        }
    }
}

fn check_numbers(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let (hdfs, control) = (&config.hdfs, &config.control);
    let (shuffle, costs) = (&config.shuffle, &config.costs);
    let positive = [
        ("map_slots", u64::from(config.map_slots)),
        ("reduce_slots", u64::from(config.reduce_slots)),
        ("hdfs.block_bytes", hdfs.block_bytes),
        ("hdfs.write_chunk_bytes", hdfs.write_chunk_bytes),
        ("hdfs.write_window", u64::from(hdfs.write_window)),
        ("hdfs.ack_bytes", u64::from(hdfs.ack_bytes)),
        ("hdfs.read_request_bytes", u64::from(hdfs.read_request_bytes)),
        ("control.heartbeat_bytes", u64::from(control.heartbeat_bytes)),
        ("control.answer_bytes", u64::from(control.answer_bytes)),
        ("control.maps_per_heartbeat", u64::from(control.maps_per_heartbeat)),
        ("control.reduces_per_heartbeat", u64::from(control.reduces_per_heartbeat)),
        ("shuffle.parallel_copies", u64::from(shuffle.parallel_copies)),
        ("shuffle.max_maps_per_fetch", u64::from(shuffle.max_maps_per_fetch)),
        ("shuffle.failures_reported", u64::from(shuffle.failures_reported)),
        ("shuffle.fetch_request_bytes", u64::from(shuffle.fetch_request_bytes)),
        ("shuffle.fetch_header_bytes", u64::from(shuffle.fetch_header_bytes)),
        ("costs.map_rate", costs.map_rate.0),
        ("costs.reduce_rate", costs.reduce_rate.0),
        ("node.read_rate", config.node.read_rate.0),
        ("node.write_rate", config.node.write_rate.0),
    ];
    for (name, value) in positive {
        if value == 0 {
            problems.push(format!("{name}: must be above 0"));
        }
    }
    check_speculation(config, problems);
    check_tasks(config, problems);
    check_node(config, problems);
    if control.heartbeat < SHORTEST_HEARTBEAT {
        let given = control.heartbeat;
        problems.push(format!("control.heartbeat: {given} is below {SHORTEST_HEARTBEAT}"));
    }
    if config.coarse.fetches == Some(0) {
        problems.push("coarse.fetches: must be above 0".to_string());
    }
    if config.coarse.heartbeats.is_some_and(|delay| delay.0 > control.heartbeat.0 / 4) {
        problems.push("coarse.heartbeats: is above a quarter of control.heartbeat".to_string());
    }
    if !(0.0..=1.0).contains(&control.slowstart) {
        problems.push(format!("control.slowstart: {} is not from 0 to 1", control.slowstart));
    }
}

/// Sort buffer, memory of the shuffle, packets and the namenode.
fn check_tasks(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let (hdfs, shuffle, sort) = (&config.hdfs, &config.shuffle, &config.sort);
    let positive = [
        ("hdfs.packet_bytes", u64::from(hdfs.packet_bytes)),
        ("hdfs.namenode_request_bytes", u64::from(hdfs.namenode_request_bytes)),
        ("hdfs.namenode_answer_bytes", u64::from(hdfs.namenode_answer_bytes)),
        ("sort.buffer_bytes", sort.buffer_bytes),
        ("sort.record_bytes", u64::from(sort.record_bytes)),
        ("costs.sort_rate", config.costs.sort_rate.map_or(1, |r| r.0)),
        ("costs.merge_rate", config.costs.merge_rate.map_or(1, |r| r.0)),
    ];
    for (name, value) in positive {
        if value == 0 {
            problems.push(format!("{name}: must be above 0"));
        }
    }
    if sort.factor < 2 {
        problems.push(format!("sort.factor: {} files cannot be merged", sort.factor));
    }
    let parts = [
        ("sort.spill_fraction", sort.spill_fraction),
        ("shuffle.input_buffer_fraction", shuffle.input_buffer_fraction),
        ("shuffle.memory_limit_fraction", shuffle.memory_limit_fraction),
        ("shuffle.merge_fraction", shuffle.merge_fraction),
        ("shuffle.reduce_buffer_fraction", shuffle.reduce_buffer_fraction),
    ];
    for (name, part) in parts {
        if !(0.0..=1.0).contains(&part) {
            problems.push(format!("{name}: {part} is not from 0 to 1"));
        }
    }
}

/// Whether containers fit, and a cluster of one node has room for more than a master.
fn check_yarn(config: &MapReduceConfig, workers: usize, problems: &mut Vec<String>) {
    let yarn = &config.yarn;
    let containers = [
        ("yarn.am_memory", yarn.am_memory, "yarn.am_vcores", yarn.am_vcores),
        ("yarn.map_memory", yarn.map_memory, "yarn.map_vcores", yarn.map_vcores),
        ("yarn.reduce_memory", yarn.reduce_memory, "yarn.reduce_vcores", yarn.reduce_vcores),
    ];
    for (name, memory, vname, vcores) in containers {
        let (allocated, most) = (yarn.allocated(memory), yarn.node_memory);
        if memory == 0 || vcores == 0 {
            let name = if memory == 0 { name } else { vname };
            problems.push(format!("{name}: must be above 0"));
        } else if allocated > most {
            problems.push(format!("{name}: {allocated} B are more than a node has ({most} B)"));
        } else if yarn.count_vcores && vcores > yarn.node_vcores {
            problems.push(format!("{vname}: {vcores} are more than a node has"));
        }
    }
    let largest = yarn.map_memory.max(yarn.reduce_memory);
    let task = yarn.map_vcores.max(yarn.reduce_vcores);
    let memory = yarn.allocated(yarn.am_memory).saturating_add(yarn.allocated(largest));
    let vcores = u64::from(yarn.am_vcores) + u64::from(task);
    let crowded =
        memory > yarn.node_memory || (yarn.count_vcores && vcores > u64::from(yarn.node_vcores));
    if problems.is_empty() && workers == 1 && crowded {
        problems
            .push("yarn.node_memory: a single node needs room for a master and a task".to_string());
    }
    for (name, span) in [("am_heartbeat", yarn.am_heartbeat), ("event_poll", yarn.event_poll)] {
        if span < SHORTEST_HEARTBEAT {
            problems.push(format!("yarn.{name}: {span} is below {SHORTEST_HEARTBEAT}"));
        }
    }
    if !(0.0..=0.5).contains(&yarn.am_share) {
        problems.push(format!("yarn.am_share: {} is not from 0 to 0.5", yarn.am_share));
    }
    if !(0.0..=1.0).contains(&yarn.rampup_limit) {
        problems.push(format!("yarn.rampup_limit: {} is not from 0 to 1", yarn.rampup_limit));
    }
}

/// Cores, disks and page cache.
fn check_node(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let node = &config.node;
    let positive = [
        ("node.cores", node.cores.unwrap_or(1)),
        ("node.disks", node.disks.unwrap_or(1)),
        ("node.workers_per_machine", node.workers_per_machine),
    ];
    for (name, value) in positive {
        if value == 0 {
            problems.push(format!("{name}: must be above 0"));
        }
    }
    if node.run_bytes == 0 {
        problems.push("node.run_bytes: must be above 0".to_string());
    }
    if node.dirty_bytes > 0 && node.disks.is_none() {
        problems.push("node.dirty_bytes: needs disks that are shared (node.disks)".to_string());
    }
}

/// Caps and thresholds of second attempts.
fn check_speculation(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let speculation = &config.speculation;
    let parts = [
        ("cap_running", speculation.cap_running),
        ("cap_total", speculation.cap_total),
        ("gap", speculation.gap),
    ];
    for (name, part) in parts {
        if !(0.0..=1.0).contains(&part) {
            problems.push(format!("speculation.{name}: {part} is not from 0 to 1"));
        }
    }
    if !(0.0..=1000.0).contains(&speculation.threshold) {
        let given = speculation.threshold;
        problems.push(format!("speculation.threshold: {given} is not from 0 to 1000"));
    }
    if speculation.interval < SHORTEST_HEARTBEAT {
        let given = speculation.interval;
        problems.push(format!("speculation.interval: {given} is below {SHORTEST_HEARTBEAT}"));
    }
}

/// Nodes with a speed of their own.
fn check_slow_nodes(config: &MapReduceConfig, workers: &[HostId], problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for node in &config.slow_nodes {
        let HostId(h) = node.host;
        if !workers.contains(&node.host) {
            problems.push(format!("slow_nodes: host {h} is no worker"));
        }
        if !(0.001..=1000.0).contains(&node.speed) {
            problems.push(format!("slow_nodes: speed {} is not from 0.001 to 1000", node.speed));
        }
        if !seen.insert(h) {
            problems.push(format!("slow_nodes: host {h} is named twice"));
        }
    }
}

fn check_jobs(config: &MapReduceConfig, workers: usize, hosts: u32, problems: &mut Vec<String>) {
    let mut copies = |name: &str, n: u32| {
        if n == 0 {
            problems.push(format!("{name}: must be above 0"));
        } else if n as usize > workers {
            problems.push(format!("{name}: {n} replicas need {n} workers, there are {workers}"));
        }
    };
    copies("hdfs.replication", config.hdfs.replication);
    copies("hdfs.output_replication", config.hdfs.output_replication);
    for (i, job) in config.jobs.iter().enumerate() {
        if let Some(n) = job.output_replication {
            copies(&format!("jobs[{i}].output_replication"), n);
        }
    }
    for (i, job) in config.jobs.iter().enumerate() {
        if job.maps == 0 {
            problems.push(format!("jobs[{i}].maps: a job needs a map"));
        }
        if let Some(Clients::On(HostId(h))) = job.clients {
            if h >= hosts {
                problems
                    .push(format!("jobs[{i}].client: host {h} is not one of the {hosts} hosts"));
            }
        }
        if job.uncombined.is_some_and(|all| all < job.bytes.shuffle) {
            problems.push(format!("jobs[{i}].uncombined: a combiner adds nothing"));
        }
        if job.clients.is_some() && job.reduces > 0 {
            problems.push(format!("jobs[{i}].reduces: stand-alone clients have none"));
        }
        for (name, n) in [("maps", job.maps), ("reduces", job.reduces)] {
            if n > MAX_TASKS {
                problems.push(format!("jobs[{i}].{name}: {n} is above {MAX_TASKS}"));
            }
        }
        if job.reduces == 0 && job.bytes.shuffle > 0 {
            let bytes = job.bytes.shuffle;
            problems.push(format!("jobs[{i}].reduces: {bytes} shuffle bytes need a reduce"));
        }
    }
    let tasks = config.jobs.iter().map(|j| u64::from(j.maps) + u64::from(j.reduces)).sum::<u64>();
    if tasks > MAX_ALL_TASKS {
        problems.push(format!("jobs: {tasks} tasks in total are above {MAX_ALL_TASKS}"));
    }
}

fn check_pools(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (i, pool) in config.scheduling.pools.iter().enumerate() {
        if pool.weight_milli == 0 {
            problems.push(format!("pool.{i}.weight: must be above 0"));
        }
        if !seen.insert(&pool.name) {
            problems.push(format!("pool.{i}.name: {} is named twice", pool.name));
        }
    }
}

fn check_queues(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let queues = &config.scheduling.queues;
    let mut seen = BTreeSet::new();
    let mut sums: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for (i, q) in queues.iter().enumerate() {
        if q.parent.is_some_and(|p| p as usize >= i) {
            problems.push(format!("queue.{i}.parent: must stand before {}", q.name));
        }
        if !seen.insert(&q.name) {
            problems.push(format!("queue.{i}.name: {} is named twice", q.name));
        }
        if q.capacity == 0 {
            problems.push(format!("queue.{i}.capacity: must be above 0"));
        }
        if q.maximum < q.capacity {
            problems.push(format!("queue.{i}.maximum: is below the queue's capacity"));
        }
        *sums.entry(q.parent).or_default() += u64::from(q.capacity);
    }
    for (parent, sum) in sums.into_iter().filter(|&(_, sum)| sum != u64::from(WHOLE)) {
        let of = parent.and_then(|p| queues.get(p as usize)).map_or("the top", |q| &q.name);
        let percent = sum as f64 * 100.0 / f64::from(WHOLE);
        problems.push(format!("queue: capacities below {of} add up to {percent} %, not 100 %"));
    }
    if config.scheduler != SchedulerKind::Capacity {
        return;
    }
    let parents: BTreeSet<u32> = queues.iter().filter_map(|q| q.parent).collect();
    let leaves: BTreeSet<&str> = match queues.len() {
        0 => BTreeSet::from([DEFAULT_QUEUE]),
        _ => (0..)
            .zip(queues)
            .filter(|(i, _)| !parents.contains(i))
            .map(|(_, q)| &q.name[..])
            .collect(),
    };
    for (i, job) in config.jobs.iter().enumerate() {
        let queue = job.pool.as_deref().unwrap_or(DEFAULT_QUEUE);
        if !leaves.contains(queue) {
            problems.push(format!("jobs[{i}].pool: {queue} is no queue that takes jobs"));
        }
    }
}
