//! Nodes that are slower than the others.

use super::network::{cluster, run};
use crate::mapreduce::{Framework, JobBytes, JobSpec, MapReduceConfig, SlowNode};
use eastwest_types::{HostId, TaskKind, Time};

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
fn speeds_are_of_workers_and_sane() {
    let mut config = with(vec![sort(2, 1)], Framework::Mr1);
    config.slow_nodes = [slow(4, 0.5), slow(1, 0.0), slow(1, 1.0)].concat();
    let problems = crate::mapreduce::MapReduce::new(config, &cluster(5, 3, 1)).unwrap_err();
    assert_eq!(problems.len(), 3, "{problems:?}");
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
