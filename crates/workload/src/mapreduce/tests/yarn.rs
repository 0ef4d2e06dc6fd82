//! Tests of YARN: containers, application masters, slow start and ramp-up of reduces.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{Framework, JobBytes, JobSpec, MapReduce, MapReduceConfig, NodeConfig};
use eastwest_types::{HostId, Span, TaskKind, Time};
use proptest::prelude::*;

fn terasort(submit: u64, megabytes: u64, maps: u32, reduces: u32) -> JobSpec {
    let bytes = JobBytes::terasort(megabytes * 1_000_000);
    JobSpec::fixed("t", "terasort", Time::ZERO + Span::from_secs(submit), bytes, maps, reduces)
}

fn with(jobs: Vec<JobSpec>) -> MapReduceConfig {
    let mut config = MapReduceConfig { jobs, ..MapReduceConfig::hadoop3() };
    config.node = NodeConfig::default();
    // Unique message sizes, by which the test network recognizes requests for map outputs.
    (config.hdfs.setup_bytes, config.shuffle.fetch_request_bytes) = (301, 307);
    config
}

fn starts(seen: &Outcome, kind: TaskKind) -> Vec<f64> {
    let mut s: Vec<f64> = seen.tasks_of(0, kind).iter().map(|t| t.assigned.as_secs_f64()).collect();
    s.sort_by(f64::total_cmp);
    s
}

/// Checks that the containers on a host never use more memory than the host has.
fn memory_is_respected(config: &MapReduceConfig, seen: &Outcome) {
    let yarn = &config.yarn;
    let of = |kind| match kind {
        TaskKind::Map => yarn.allocated(yarn.map_memory),
        TaskKind::Reduce => yarn.allocated(yarn.reduce_memory),
    };
    let mut changes: Vec<(HostId, Time, i64)> = Vec::new();
    for t in seen.tasks.iter().filter(|t| seen.job(t.job).kind != "hdfs") {
        changes.push((t.host, t.assigned, of(t.kind) as i64));
        changes.push((t.host, t.finished, -(of(t.kind) as i64)));
    }
    changes.sort_unstable();
    let mut used = 0;
    for (_, _, change) in changes {
        used += change;
        assert!((0..=yarn.node_memory as i64).contains(&used), "{used}");
    }
}

#[test]
fn the_first_map_waits_for_master_and_heartbeats() {
    let config = with(vec![terasort(0, 640, 5, 2)]);
    let seen = run(&config, &cluster(6, 3, 1));
    memory_is_respected(&config, &seen);
    // Half a second for the client; at most a second until a node's heartbeat gets a container for
    // the master; 1.7 s for the start of the master; a second until its first call requests maps;
    // and a second until the next call brings them, since every node has sent a heartbeat by then.
    // Measured: 4.1 to 5.0 s.
    let first = starts(&seen, TaskKind::Map)[0];
    assert!((4.2..5.3).contains(&first), "{first}");
    assert_eq!(seen.jobs.len(), 1);
}

#[test]
fn slow_start_holds_reduces_back() {
    let mut config = with(vec![terasort(0, 6400, 50, 4)]);
    config.control.slowstart = 1.0;
    let seen = run(&config, &cluster(6, 3, 1));
    let last = seen.tasks_of(0, TaskKind::Map).iter().map(|t| t.finished).max().unwrap();
    let reduces = starts(&seen, TaskKind::Reduce);
    let wait = reduces[0] - last.as_secs_f64();
    // A call plans the reduces, the next call requests them, and the call after that brings their
    // containers. Measured: 2.1 to 3.1 s.
    assert!((2.0..3.1).contains(&wait), "three calls, a second apart: {wait}");
    memory_is_respected(&config, &seen);
}

#[test]
fn reduces_ramp_up_while_maps_wait() {
    // 100 maps on 4 nodes with 8 containers each. Reduces may use up to half of the containers
    // before the last map is assigned.
    let config = with(vec![terasort(0, 12_800, 100, 30)]);
    let seen = run(&config, &cluster(5, 5, 1));
    memory_is_respected(&config, &seen);
    let last_map = *starts(&seen, TaskKind::Map).last().unwrap();
    let early = starts(&seen, TaskKind::Reduce).iter().filter(|&&s| s < last_map).count();
    assert!((1..=16).contains(&early), "{early}");
}

#[test]
fn memory_and_virtual_cores_limit_containers() {
    let mut config = with(vec![terasort(0, 2_560, 40, 0)]);
    config.jobs[0].bytes.shuffle = 0;
    let most = |config: &MapReduceConfig| {
        let seen = run(config, &cluster(4, 4, 1));
        memory_is_respected(config, &seen);
        let running = |at: Time, host: HostId| {
            let runs = |t: &&eastwest_types::TaskRecord| {
                t.host == host && t.assigned <= at && at < t.finished
            };
            seen.tasks.iter().filter(runs).count()
        };
        seen.tasks.iter().map(|t| running(t.assigned, t.host)).max().unwrap()
    };
    assert_eq!(most(&config), 8);
    config.yarn.count_vcores = true;
    config.yarn.map_vcores = 4;
    assert_eq!(most(&config), 2);
    (config.yarn.count_vcores, config.yarn.map_memory) = (false, 1025 << 20);
    assert_eq!(most(&config), 4, "rounded up to 2048 MiB");
}

#[test]
fn masters_leave_room_for_tasks() {
    // Twenty jobs at once on four nodes. Masters of 2 GiB may use a tenth of 32 GiB, so one runs at
    // a time; every job must still finish.
    let jobs = (0..20).map(|_| terasort(0, 64, 1, 1)).collect();
    let config = with(jobs);
    let seen = run(&config, &cluster(5, 5, 1));
    assert_eq!(seen.jobs.len(), 20);
    let mut spans: Vec<(Time, Time)> = seen.jobs.iter().map(|j| (j.started, j.finished)).collect();
    spans.sort_unstable();
    assert!(spans.windows(2).all(|w| w[0].1 < w[1].0), "one after another");
}

#[test]
fn reduces_never_lock_maps_out() {
    // A reduce uses half of a node, a map more than half of it.
    let mut config = with(vec![terasort(0, 640, 20, 8), terasort(1, 640, 20, 8)]);
    config.yarn.reduce_memory = 4 << 30;
    config.yarn.map_memory = 6 << 30;
    config.yarn.am_share = 0.5;
    config.control.slowstart = 0.0;
    let seen = run(&config, &cluster(4, 4, 1));
    assert_eq!(seen.jobs.len(), 2);
    memory_is_respected(&config, &seen);
}

#[test]
fn clusters_too_small_for_a_job_are_refused() {
    let problems = |change: &dyn Fn(&mut MapReduceConfig)| {
        let mut config = with(vec![terasort(0, 64, 1, 1)]);
        (config.hdfs.replication, config.hdfs.output_replication) = (1, 1);
        change(&mut config);
        MapReduce::new(config, &cluster(2, 2, 1)).err().unwrap_or_default()
    };
    assert_eq!(problems(&|_| {}), Vec::<String>::new());
    let found = problems(&|c| c.yarn.map_memory = 9 << 30);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("yarn.map_memory: "), "{found:?}");
    // A node has memory for a master or for a map, but not for both.
    let found = problems(&|c| c.yarn.map_memory = 7 << 30);
    assert!(found[0].starts_with("yarn.node_memory: "), "{found:?}");
    assert_eq!(with(Vec::new()).framework, Framework::Yarn);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sizes_of_containers_lock_a_cluster(
        (map, reduce, am) in (1..9u64, 1..9u64, 1..9u64),
        (map_vcores, reduce_vcores, am_vcores) in (1..9u32, 1..9u32, 1..9u32),
        (count, share, slowstart) in (any::<bool>(), 0.0..0.5, 0.0..1.0f64),
        rampup in 0.0..1.0f64,
        jobs in proptest::collection::vec((0..30u64, 1..12u32, 0..8u32), 1..7),
        (hosts, seed) in (2..7u32, any::<u64>()),
    ) {
        let jobs = jobs.into_iter().map(|(submit, maps, reduces)| {
            let mut job = terasort(submit, 8, maps, reduces);
            if reduces == 0 {
                job.bytes.shuffle = 0;
            }
            job
        });
        let mut config = with(jobs.collect());
        (config.hdfs.replication, config.hdfs.output_replication) = (1, 1);
        config.control.slowstart = slowstart;
        let yarn = &mut config.yarn;
        (yarn.map_memory, yarn.reduce_memory, yarn.am_memory) = (map << 30, reduce << 30, am << 30);
        (yarn.map_vcores, yarn.reduce_vcores, yarn.am_vcores) = (map_vcores, reduce_vcores, am_vcores);
        (yarn.count_vcores, yarn.am_share, yarn.rampup_limit) = (count, share, rampup);
        let world = cluster(hosts, 3, seed);
        if MapReduce::new(config.clone(), &world).is_ok() {
            let seen = run(&config, &world);
            prop_assert_eq!(seen.jobs.len(), config.jobs.len());
            memory_is_respected(&config, &seen);
        }
    }
}
