//! Tests of approximate runs: without heartbeat messages, results do not change; with coarse
//! shuffles and files, every byte is kept and times change by a few percent.

use super::conservation::conserved;
use super::network::{Outcome, cluster, run};
use crate::mapreduce::{
    CoarseConfig, DelayConfig, JobBytes, JobSpec, MapReduceConfig, SchedulerKind, SpeculationConfig,
};
use eastwest_types::{HostId, JobRecord, Purpose, Span, TaskKind, TaskRecord, Time};
use proptest::prelude::*;

/// Delay of a message of one byte in the test network: the latency plus 8 ns.
const DELAY: Span = Span(100_008_000);

/// Returns jobs of all shapes, submitted ten seconds apart on average, with heartbeat messages of
/// one byte.
fn mixed(scheduler: SchedulerKind) -> MapReduceConfig {
    let shapes = [
        ((640, 640, 640), 10, 3),
        ((64, 0, 64), 1, 0),
        ((1280, 20, 20), 20, 1),
        ((0, 0, 0), 3, 2),
        ((320, 900, 100), 5, 8),
        ((1900, 0, 600), 30, 0),
    ];
    let job = |i: u64| {
        let ((input, shuffle, output), maps, reduces) = shapes[i as usize % shapes.len()];
        let [input, shuffle, output] = [input, shuffle, output].map(|mb: u64| mb * 1_000_003);
        let submit = Time::ZERO + Span::from_ms(i * i * 1_770);
        let bytes = JobBytes { input, shuffle, output };
        JobSpec::fixed(format!("j{i}"), "trace", submit, bytes, maps, reduces)
    };
    let mut config = MapReduceConfig { scheduler, ..MapReduceConfig::default() };
    config.jobs = (0..12).map(job).collect();
    config.control.heartbeat_bytes = 1;
    config.control.answer_bytes = 1;
    config.control.assignment_bytes = 0;
    config.control.map_event_bytes = 0;
    config
}

fn tasks(seen: &Outcome) -> Vec<&TaskRecord> {
    let mut tasks: Vec<&TaskRecord> = seen.tasks.iter().collect();
    tasks.sort_by_key(|t| (t.job, t.kind == TaskKind::Reduce, t.task, t.finished));
    tasks
}

fn ends(seen: &Outcome) -> Vec<Time> {
    let mut jobs: Vec<&JobRecord> = seen.jobs.iter().collect();
    jobs.sort_by_key(|job| job.job);
    jobs.iter().map(|job| job.finished).collect()
}

/// Returns the mean over jobs of the run time with approximations divided by the run time without.
fn stretch(exact: &Outcome, coarse: &Outcome) -> f64 {
    let lasts = |seen: &Outcome, job| {
        let job = seen.job(job);
        job.finished.since(job.submitted).as_secs_f64()
    };
    let jobs = exact.jobs.len() as u32;
    let sum: f64 = (0..jobs).map(|job| lasts(coarse, job) / lasts(exact, job)).sum();
    sum / f64::from(jobs)
}

#[test]
fn heartbeats_left_out_change_no_assignment_and_no_time() {
    let plain = |kind| mixed(kind);
    let delay = || {
        let mut config = mixed(SchedulerKind::Fair);
        let (node, rack) = (Span::from_secs(5), Span::from_secs(5));
        config.scheduling.delay = Some(DelayConfig { node, rack });
        config
    };
    let copies = || {
        let mut config = mixed(SchedulerKind::Fifo);
        config.speculation = SpeculationConfig { maps: true, reduces: true, ..Default::default() };
        config.speculation.lag = Span::from_secs(2);
        config
    };
    let narrow = || {
        let mut config = mixed(SchedulerKind::Capacity);
        (config.map_slots, config.reduce_slots, config.control.spread) = (1, 1, false);
        config.control.slowstart = 1.0;
        config
    };
    let fifo = plain(SchedulerKind::Fifo);
    for config in [fifo, plain(SchedulerKind::Fair), delay(), copies(), narrow()] {
        for seed in 1..4 {
            let cluster = cluster(11, 4, seed);
            let sent = run(&config, &cluster);
            let mut config = config.clone();
            config.coarse.heartbeats = Some(DELAY);
            let silent = run(&config, &cluster);
            assert_eq!(tasks(&sent), tasks(&silent));
            assert_eq!(ends(&sent), ends(&silent));
            assert!(silent.heartbeats.is_empty() && !sent.heartbeats.is_empty());
        }
    }
}

#[test]
fn an_idle_cluster_has_nothing_to_do() {
    let wakes = |hours: u64| {
        let mut config = mixed(SchedulerKind::Fair);
        config.jobs.truncate(2);
        config.jobs[1].submit = Time::ZERO + Span::from_secs(3600 * hours);
        config.coarse = CoarseConfig::all(DELAY);
        run(&config, &cluster(40, 20, 1)).log.len()
    };
    assert_eq!(wakes(1), wakes(20));
}

#[test]
fn every_byte_is_there_whatever_is_left_out() {
    for fetches in [1, 3, 16, 1000] {
        let mut config = mixed(SchedulerKind::Fair);
        config.coarse = CoarseConfig { fetches: Some(fetches), ..CoarseConfig::all(DELAY) };
        conserved(&config, &run(&config, &cluster(11, 4, 1)));
        config.hdfs.replication = 1;
        config.hdfs.output_replication = 1;
        conserved(&config, &run(&config, &cluster(2, 2, 1)));
    }
}

#[test]
fn a_reduce_fetches_so_many_parts_and_more_where_its_memory_is_small() {
    let mut config = mixed(SchedulerKind::Fifo);
    config.jobs.truncate(1);
    config.jobs[0] = JobSpec::fixed("one", "trace", Time::ZERO, JobBytes::terasort(4 << 30), 64, 1);
    config.shuffle.heap_bytes = 64 << 30;
    let flows = |config: &MapReduceConfig| {
        let seen = run(config, &cluster(33, 4, 1));
        let opened = seen.log.iter().filter(|(_, action)| {
            matches!(action, crate::Action::Send { purpose: Purpose::Shuffle, .. })
        });
        (opened.count(), seen.tasks_of(0, TaskKind::Reduce)[0].host)
    };
    config.coarse.fetches = Some(8);
    // Some of the eight parts may be on the reduce's own worker and use no network.
    assert!((6..=8).contains(&flows(&config).0));
    config.shuffle.heap_bytes = 200 << 20;
    // A part may use 35 MB of memory, less than one output: so each output is fetched separately
    // and written to disk.
    assert!((58..=64).contains(&flows(&config).0));
}

#[test]
fn a_block_and_a_split_are_one_message_for_each_hop() {
    let mut config = mixed(SchedulerKind::Fifo);
    config.coarse.blocks = true;
    let seen = run(&config, &cluster(11, 4, 1));
    let messages = |purpose| {
        let sent = seen.log.iter();
        sent.filter(|(_, a)| matches!(a, crate::Action::Send { purpose: p, .. } if *p == purpose))
            .count() as u64
    };
    let files = |j: &JobSpec| {
        let writers = if j.reduces > 0 { j.reduces } else { j.maps };
        (0..writers)
            .map(|task| j.written_bytes(task).div_ceil(config.hdfs.block_bytes))
            .sum::<u64>()
    };
    assert_eq!(messages(Purpose::Replica), 2 * config.jobs.iter().map(files).sum::<u64>());
    let far = seen.tasks.iter().filter(|t| t.kind == TaskKind::Map && t.bytes_in > 0);
    let far = far.filter(|t| t.locality != eastwest_types::Locality::Node).count() as u64;
    assert_eq!(messages(Purpose::MapInput), far);
}

#[test]
fn approximations_cost_a_few_percent_where_nothing_is_shared() {
    let exact = run(&mixed(SchedulerKind::Fair), &cluster(11, 4, 1));
    let with = |coarse| {
        let config = MapReduceConfig { coarse, ..mixed(SchedulerKind::Fair) };
        stretch(&exact, &run(&config, &cluster(11, 4, 1)))
    };
    let blocks = with(CoarseConfig { blocks: true, ..CoarseConfig::default() });
    let fetches = with(CoarseConfig { fetches: Some(16), ..CoarseConfig::default() });
    let all = with(CoarseConfig::all(DELAY));
    for (what, stretch) in [("blocks", blocks), ("fetches", fetches), ("all", all)] {
        assert!((0.95..1.05).contains(&stretch), "{what}: {stretch}");
    }
}

#[test]
fn what_no_worker_can_do_is_refused() {
    let mut config = mixed(SchedulerKind::Fifo);
    config.coarse = CoarseConfig::all(Span::from_secs(1));
    let refused = crate::mapreduce::MapReduce::new(config, &cluster(11, 4, 1)).unwrap_err();
    let fields: Vec<&str> = refused.iter().filter_map(|why| why.split(':').next()).collect();
    assert_eq!(fields, ["coarse.heartbeats"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_job_keeps_its_bytes_in_parts(
        bytes in (0u64..200_000_000, 1u64..900_000_000, 0u64..200_000_000),
        maps in 1u32..60, reduces in 1u32..9, fetches in 1u32..40, heap in 1u64..400,
    ) {
        let (input, shuffle, output) = bytes;
        let bytes = JobBytes { input, shuffle, output };
        let job = JobSpec::fixed("any", "trace", Time::ZERO, bytes, maps, reduces);
        let mut config = MapReduceConfig { jobs: vec![job], ..MapReduceConfig::default() };
        config.coarse = CoarseConfig { fetches: Some(fetches), ..CoarseConfig::all(DELAY) };
        config.shuffle.heap_bytes = heap << 20;
        let seen = run(&config, &cluster(9, 3, 1));
        conserved(&config, &seen);
        prop_assert!(seen.tasks.iter().all(|t| t.host != HostId(8)));
    }
}
