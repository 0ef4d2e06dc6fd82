//! Checks of MapReduce settings before a run, with the reasons for a refusal: settings that must
//! agree with each other or with the hosts of the fabric. The range of each single setting is
//! checked by the reader of scenarios.

use super::config::{Clients, Framework, MAX_ALL_TASKS, MAX_TASKS, MapReduceConfig};
use super::owners::DEFAULT_QUEUE;
use super::scheduler::{SchedulerKind, WHOLE};
use crate::protocol::Cluster;
use eastwest_types::HostId;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the master host and the worker hosts of a cluster, or all reasons why it cannot run.
/// Every reason starts with the name of the invalid setting.
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
        problems.push(format!(
            "master: there is no host number {}; the fabric has {hosts} hosts, numbered from 0",
            master.0
        ));
    }
    check_workers(master, &workers, hosts, &mut problems);
    check_settings(config, &mut problems);
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
        problems.push(
            "workers: a cluster needs at least one worker in addition to its master".to_string(),
        );
    }
    let mut seen = vec![false; hosts as usize];
    for &HostId(h) in workers {
        if HostId(h) == master {
            problems.push(format!("workers: host {h} is the master, which runs no tasks"));
        }
        match seen.get_mut(h as usize) {
            None => problems.push(format!(
                "workers: there is no host number {h}; the fabric has {hosts} hosts, numbered \
                 from 0"
            )),
            Some(true) => problems.push(format!("workers: host {h} is named twice")),
            Some(seen) => *seen = true,
        }
    }
}

/// Checks that `coarse.heartbeats` is at most a quarter of the heartbeat interval, and that
/// `node.dirty_bytes` is used with shared disks only. Adds a message to `problems` for each error.
fn check_settings(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let most = config.control.heartbeat.0 / 4;
    if config.coarse.heartbeats.is_some_and(|delay| delay.0 > most) {
        problems
            .push("coarse.heartbeats: must be at most a quarter of control.heartbeat".to_string());
    }
    if config.node.dirty_bytes > 0 && config.node.disks.is_none() {
        problems.push("node.dirty_bytes: needs shared disks (set node.disks)".to_string());
    }
}

/// Checks that each kind of container fits on a node, and that the node of a one-node cluster has
/// resources for an application master and a task at the same time.
fn check_yarn(config: &MapReduceConfig, workers: usize, problems: &mut Vec<String>) {
    let yarn = &config.yarn;
    let containers = [
        ("yarn.am_memory", yarn.am_memory, "yarn.am_vcores", yarn.am_vcores),
        ("yarn.map_memory", yarn.map_memory, "yarn.map_vcores", yarn.map_vcores),
        ("yarn.reduce_memory", yarn.reduce_memory, "yarn.reduce_vcores", yarn.reduce_vcores),
    ];
    for (name, memory, vname, vcores) in containers {
        let (allocated, most) = (yarn.allocated(memory), yarn.node_memory);
        if allocated > most {
            problems.push(format!(
                "{name}: a container of {allocated} B is larger than the memory \
                                   of a node ({most} B)"
            ));
        } else if yarn.count_vcores && vcores > yarn.node_vcores {
            problems.push(format!(
                "{vname}: is {vcores}, but must be at most yarn.node_vcores, which is {}",
                yarn.node_vcores
            ));
        }
    }
    let largest = yarn.map_memory.max(yarn.reduce_memory);
    let task = yarn.map_vcores.max(yarn.reduce_vcores);
    let memory = yarn.allocated(yarn.am_memory).saturating_add(yarn.allocated(largest));
    let vcores = u64::from(yarn.am_vcores) + u64::from(task);
    let crowded =
        memory > yarn.node_memory || (yarn.count_vcores && vcores > u64::from(yarn.node_vcores));
    if problems.is_empty() && workers == 1 && crowded {
        problems.push(
            "yarn.node_memory: the only node must have room for an application master and a \
                   task: memory, and virtual cores if they are counted"
                .to_string(),
        );
    }
}

/// Checks that each host in `slow_nodes` is a worker and occurs once.
fn check_slow_nodes(config: &MapReduceConfig, workers: &[HostId], problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for node in &config.slow_nodes {
        let HostId(h) = node.host;
        if !workers.contains(&node.host) {
            problems.push(format!("slow_nodes: host {h} is not a worker"));
        }
        if !seen.insert(h) {
            problems.push(format!("slow_nodes: host {h} is named twice"));
        }
    }
}

fn check_jobs(config: &MapReduceConfig, workers: usize, hosts: u32, problems: &mut Vec<String>) {
    let mut copies = |name: &str, n: u32| {
        if n as usize > workers {
            problems
                .push(format!("{name}: {n} replicas need {n} workers, but there are {workers}"));
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
            problems.push(format!("jobs[{i}].maps: must be at least 1"));
        }
        if let Some(Clients::On(HostId(h))) = job.clients {
            if h >= hosts {
                problems.push(format!(
                    "jobs[{i}].client: there is no host number {h}; the fabric has {hosts} \
                     hosts, numbered from 0"
                ));
            }
        }
        if job.uncombined.is_some_and(|all| all < job.bytes.shuffle) {
            problems.push(format!("jobs[{i}].uncombined: must not be below the shuffled bytes"));
        }
        if job.clients.is_some() && job.reduces > 0 {
            problems.push(format!("jobs[{i}].reduces: must be 0 for stand-alone HDFS clients"));
        }
        for (name, n) in [("maps", job.maps), ("reduces", job.reduces)] {
            if n > MAX_TASKS {
                problems.push(format!("jobs[{i}].{name}: must be at most {MAX_TASKS}, not {n}"));
            }
        }
        if job.reduces == 0 && job.bytes.shuffle > 0 {
            let bytes = job.bytes.shuffle;
            problems.push(format!(
                "jobs[{i}].reduces: must be at least 1, because {bytes} bytes \
                                   are shuffled"
            ));
        }
    }
    let tasks = config.jobs.iter().map(|j| u64::from(j.maps) + u64::from(j.reduces)).sum::<u64>();
    if tasks > MAX_ALL_TASKS {
        problems.push(format!(
            "jobs: all jobs together have {tasks} tasks, but at most {MAX_ALL_TASKS} are allowed"
        ));
    }
}

fn check_pools(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (i, pool) in config.scheduling.pools.iter().enumerate() {
        if !seen.insert(&pool.name) {
            problems
                .push(format!("pool.{i}.name: an earlier pool has the name {}, too", pool.name));
        }
    }
}

fn check_queues(config: &MapReduceConfig, problems: &mut Vec<String>) {
    let queues = &config.scheduling.queues;
    let mut seen = BTreeSet::new();
    let mut sums: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for (i, q) in queues.iter().enumerate() {
        if q.parent.is_some_and(|p| p as usize >= i) {
            problems.push(format!(
                "queue.{i}.parent: the parent of {} must be listed before it",
                q.name
            ));
        }
        if !seen.insert(&q.name) {
            problems.push(format!("queue.{i}.name: an earlier queue has the name {}, too", q.name));
        }
        if q.maximum < q.capacity {
            problems.push(format!("queue.{i}.maximum: must not be below the queue's capacity"));
        }
        *sums.entry(q.parent).or_default() += u64::from(q.capacity);
    }
    for (parent, sum) in sums.into_iter().filter(|&(_, sum)| sum != u64::from(WHOLE)) {
        let of = parent.and_then(|p| queues.get(p as usize)).map_or("the top", |q| &q.name);
        let percent = sum as f64 * 100.0 / f64::from(WHOLE);
        problems.push(format!(
            "queue: the capacities of the queues below {of} add up to {percent} %, not 100 %"
        ));
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
            problems.push(format!(
                "jobs[{i}].pool: {queue} is not a queue without child queues; \
                                   jobs can be submitted to such queues only"
            ));
        }
    }
}
