//! Tests of slow nodes, and of the speculative execution of their tasks.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{Framework, JobBytes, JobSpec, MapReduceConfig, SlowNode};
use eastwest_types::{HostId, Purpose, TaskKind, Time};

const BOTH: [Framework; 2] = [Framework::Mr1, Framework::Yarn];

fn sort(maps: u32, reduces: u32) -> JobSpec {
    let bytes = JobBytes::terasort(u64::from(maps) * 64_000_000);
    let mut job = JobSpec::fixed("sort", "trace", Time::ZERO, bytes, maps, reduces);
    job.output_replication = Some(1);
    job
}

fn with(jobs: Vec<JobSpec>, framework: Framework) -> MapReduceConfig {
    let base = match framework {
        Framework::Mr1 => MapReduceConfig::default(),
        Framework::Yarn => MapReduceConfig::hadoop3(),
    };
    let mut config = MapReduceConfig { jobs, ..base };
    config.yarn.node_memory = 4096 << 20;
    config
}

fn slow(host: u32, speed: f64) -> Vec<SlowNode> {
    vec![SlowNode { host: HostId(host), speed }]
}

#[test]
fn a_node_of_a_quarter_of_the_speed_takes_four_times_as_long() {
    for framework in BOTH {
        let mut config = with(vec![sort(24, 0)], framework);
        (config.node.cores, config.node.disks) = (None, None);
        config.node.dirty_bytes = 0;
        let longest = |config: &MapReduceConfig, host: u32| {
            let seen = run(config, &cluster(5, 3, 1));
            let on_it = seen.tasks.iter().filter(|t| t.host == HostId(host));
            let took = on_it.map(|t| t.finished.since(t.assigned).as_secs_f64());
            took.fold(0.0, f64::max)
        };
        config.jobs[0].bytes.output = 0;
        config.jobs[0].bytes.shuffle = 0;
        let usual = longest(&config, 2);
        config.slow_nodes = slow(2, 0.25);
        let ratio = longest(&config, 2) / usual;
        assert!((3.5..4.01).contains(&ratio), "{framework:?}: {ratio}");
        let others = longest(&config, 0) / usual;
        assert!((0.8..1.25).contains(&others), "{framework:?}: {others}");
    }
}

#[test]
fn speeds_are_of_workers_and_given_once() {
    let mut config = with(vec![sort(2, 1)], Framework::Mr1);
    config.slow_nodes = [slow(4, 0.5), slow(1, 0.5), slow(1, 1.0)].concat();
    let problems = crate::mapreduce::MapReduce::new(config, &cluster(5, 3, 1)).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|p| p.starts_with("slow_nodes: ")));
}

#[test]
fn a_slow_node_delays_its_job() {
    for framework in BOTH {
        let mut config = with(vec![sort(48, 2)], framework);
        let calm = run(&config, &cluster(7, 3, 1));
        config.slow_nodes = slow(2, 0.2);
        let seen = run(&config, &cluster(7, 3, 1));
        assert!(seen.end > calm.end, "{framework:?}");
        assert_eq!(seen.tasks_of(0, TaskKind::Map).len(), 48);
    }
}

fn copying(config: &MapReduceConfig) -> MapReduceConfig {
    let mut config = config.clone();
    (config.speculation.maps, config.speculation.reduces) = (true, true);
    config
}

/// Checks that every task has finished once, with all of its bytes.
fn done_once(config: &MapReduceConfig, seen: &Outcome) {
    let spec = &config.jobs[0];
    assert_eq!(seen.job(0).failed, None);
    for (kind, tasks, bytes) in [
        (TaskKind::Map, spec.maps, spec.bytes.input),
        (TaskKind::Reduce, spec.reduces, spec.bytes.shuffle),
    ] {
        let done = seen.tasks_of(0, kind);
        assert_eq!(done.len() as u32, tasks);
        assert_eq!(done.iter().map(|t| t.bytes_in).sum::<u64>(), bytes);
    }
    let written: u64 = seen.tasks_of(0, TaskKind::Reduce).iter().map(|t| t.bytes_out).sum();
    assert_eq!(written, spec.bytes.output);
}

#[test]
fn maps_of_a_slow_node_are_copied_and_the_job_ends_sooner() {
    for framework in BOTH {
        let mut config = with(vec![sort(48, 2)], framework);
        config.slow_nodes = slow(2, 0.02);
        let without = run(&config, &cluster(7, 3, 1));
        let config = copying(&config);
        let seen = run(&config, &cluster(7, 3, 1));
        done_once(&config, &seen);
        let (with, without) = (seen.end.as_secs_f64(), without.end.as_secs_f64());
        assert!(with < 0.8 * without, "{framework:?}: {with} s, {without} s without copies");
        let wire = seen.payload(Purpose::Shuffle, 0);
        assert!(wire >= u128::from(config.jobs[0].bytes.shuffle - seen.job(0).shuffle_local_bytes));
    }
}

#[test]
fn a_slow_reduce_is_copied_and_its_connections_end() {
    for (framework, reduces) in BOTH.into_iter().zip([10, 20]) {
        let mut config = with(vec![sort(24, reduces)], framework);
        config.control.slowstart = 1.0;
        config.slow_nodes = slow(2, 0.02);
        let without = run(&config, &cluster(7, 3, 1));
        let config = copying(&config);
        let seen = run(&config, &cluster(7, 3, 1));
        done_once(&config, &seen);
        let on_slow = |seen: &Outcome| {
            seen.tasks_of(0, TaskKind::Reduce).iter().filter(|t| t.host == HostId(2)).count()
        };
        assert!(on_slow(&without) > 0 && on_slow(&seen) == 0, "{framework:?}");
        assert!(seen.end < without.end, "{framework:?}");
    }
}

#[test]
fn nothing_is_copied_where_all_are_alike() {
    for framework in BOTH {
        let config = with(vec![sort(48, 4)], framework);
        let calm = run(&config, &cluster(7, 3, 1));
        let seen = run(&copying(&config), &cluster(7, 3, 1));
        assert_eq!((seen.end, seen.tasks.len()), (calm.end, 52), "{framework:?}");
        assert_eq!(seen.answer_bytes, calm.answer_bytes);
    }
}

#[test]
fn no_more_is_copied_than_the_cap_allows() {
    let mut config = copying(&with(vec![sort(48, 0)], Framework::Yarn));
    (config.jobs[0].bytes.shuffle, config.jobs[0].bytes.output) = (0, 0);
    config.slow_nodes = slow(2, 0.02);
    let copied = |config: &MapReduceConfig| run(config, &cluster(7, 3, 1)).end;
    let many = copied(&config);
    (config.speculation.minimum, config.speculation.cap_total) = (0, 0.0);
    config.speculation.cap_running = 0.0;
    let none = copied(&config);
    config.speculation.minimum = 1;
    let one = copied(&config);
    config.speculation.maps = false;
    assert!(many <= one && one < none);
    assert_eq!(none, copied(&config), "a cap of nothing is no speculation");
}
