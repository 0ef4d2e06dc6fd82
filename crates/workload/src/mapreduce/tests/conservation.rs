//! Tests of conservation: exactly the job's bytes go through the network and the local disks.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{
    Clients, DelayConfig, Framework, JobBytes, JobSpec, MapReduceConfig, PoolConfig, QueueConfig,
    SchedulerKind, Scheduling, SizeRule, WHOLE,
};
use eastwest_types::{HostId, Locality, Purpose, Rate, Span, TaskKind, Time};
use proptest::prelude::*;

/// Checks the total bytes of every job: input, shuffle, output, and the bytes of its tasks.
pub fn conserved(config: &MapReduceConfig, seen: &Outcome) {
    let mut jobs = config.jobs.clone();
    jobs.sort_by_key(|j| j.submit);
    assert_eq!(seen.jobs.len(), jobs.len());
    for (number, spec) in jobs.iter().enumerate() {
        let number = number as u32;
        let job = seen.job(number);
        assert_eq!(spec.clients.is_some(), job.kind == "hdfs");
        let shuffle = seen.payload(Purpose::Shuffle, number) + u128::from(job.shuffle_local_bytes);
        assert_eq!(shuffle, u128::from(spec.bytes.shuffle), "shuffle of {}", spec.name);
        let maps = seen.tasks_of(number, TaskKind::Map);
        let reduces = seen.tasks_of(number, TaskKind::Reduce);
        assert_eq!((maps.len(), reduces.len()), (spec.maps as usize, spec.reduces as usize));
        let sum = |of: &mut dyn Iterator<Item = u64>| of.map(u128::from).sum::<u128>();
        assert_eq!(sum(&mut maps.iter().map(|t| t.bytes_in)), u128::from(spec.bytes.input));
        assert_eq!(sum(&mut reduces.iter().map(|t| t.bytes_in)), u128::from(spec.bytes.shuffle));
        let written = if spec.reduces > 0 { &reduces } else { &maps };
        assert_eq!(sum(&mut written.iter().map(|t| t.bytes_out)), u128::from(spec.bytes.output));
        if let Some(clients) = spec.clients {
            let copies = u128::from(config.hdfs.output_replication);
            let away = if clients == Clients::Workers { copies - 1 } else { copies };
            let sent = seen.payload(Purpose::Replica, number);
            let most = u128::from(spec.bytes.output) * copies;
            assert!(sent <= most && sent >= most / copies * away.min(copies - 1));
            continue;
        }
        let far = maps.iter().filter(|t| !matches!(t.locality, Locality::Node | Locality::None));
        assert_eq!(seen.payload(Purpose::MapInput, number), sum(&mut far.map(|t| t.bytes_in)));
        let copies = spec.output_replication.unwrap_or(config.hdfs.output_replication);
        let remote = u128::from(spec.bytes.output) * u128::from(copies - 1);
        assert_eq!(seen.payload(Purpose::Replica, number), remote, "replicas of {}", spec.name);
    }
}

fn one(bytes: JobBytes, maps: u32, reduces: u32) -> MapReduceConfig {
    let job = JobSpec::fixed("j", "trace", Time::ZERO, bytes, maps, reduces);
    MapReduceConfig { jobs: vec![job], ..MapReduceConfig::default() }
}

#[test]
fn jobs_of_every_shape_keep_their_bytes() {
    let shapes = [
        ((0, 0, 0), 1, 0),
        ((0, 0, 0), 3, 2),
        ((640_000_000, 640_000_000, 640_000_000), 10, 3),
        ((640_000_000, 33_000, 33_000), 10, 1),
        ((0, 128_000_001, 77), 3, 2),
        ((500, 0, 300_000_007), 4, 0),
        ((5, 7, 11), 9, 8),
        ((0, 0, 64_000_001), 2, 0),
        ((1, 0, 0), 1, 3),
    ];
    for ((input, shuffle, output), maps, reduces) in shapes {
        let config = one(JobBytes { input, shuffle, output }, maps, reduces);
        conserved(&config, &run(&config, &cluster(9, 4, 1)));
    }
}

#[test]
fn sizes_beyond_32_bits_keep_their_bytes() {
    let bytes = JobBytes { input: 8_000_000_003, shuffle: 24_000_000_007, output: 5_000_000_009 };
    let (maps, reduces) = SizeRule::default().tasks(bytes, 40);
    assert_eq!((maps, reduces), (126, 38));
    let job = JobSpec::fixed("big", "trace", Time::ZERO, bytes, maps, reduces);
    let config = MapReduceConfig { jobs: vec![job], ..MapReduceConfig::default() };
    let seen = run(&config, &cluster(21, 11, 1));
    conserved(&config, &seen);
    // With twenty workers, about a twentieth of the shuffle stays on the reduce's own worker.
    let local = seen.job(0).shuffle_local_bytes;
    assert!((600_000_000..2_400_000_000).contains(&local), "{local}");
}

#[test]
fn one_worker_shuffles_locally_only() {
    let mut config = one(JobBytes::terasort(100_000_000), 4, 2);
    config.hdfs.replication = 1;
    config.hdfs.output_replication = 1;
    let seen = run(&config, &cluster(2, 2, 1));
    conserved(&config, &seen);
    assert_eq!(seen.job(0).shuffle_local_bytes, 100_000_000);
    assert_eq!(seen.most_connections, 1);
}

#[test]
fn the_chapter_5_job_of_e_eon_runs() {
    let mut job =
        JobSpec::fixed("ch5", "terasort", Time::ZERO, JobBytes::terasort(6_400_000_000), 100, 159);
    job.pool = Some("p".to_string());
    let config = MapReduceConfig { jobs: vec![job], ..MapReduceConfig::default() };
    let seen = run(&config, &cluster(160, 40, 1));
    conserved(&config, &seen);
    assert_eq!(seen.payload(Purpose::Replica, 0), 0);
    assert!(seen.end < Time::ZERO + Span::from_secs(60), "{}", seen.end);
}

fn any_job() -> impl Strategy<Value = JobSpec> {
    let size = || prop_oneof![Just(0u64), 1..100u64, 1..50_000_000u64];
    let bytes = (size(), size(), size());
    (bytes, 1..12u32, 1..8u32, any::<bool>(), 0..40_000u64, proptest::option::of(0..3u32)).prop_map(
        |((input, shuffle, output), maps, reduces, map_only, submit, pool)| {
            let shuffle = if map_only { 0 } else { shuffle };
            let bytes = JobBytes { input, shuffle, output };
            let reduces = if map_only { 0 } else { reduces };
            let submit = Time::ZERO + Span::from_ms(submit);
            let mut job = JobSpec::fixed("p", "trace", submit, bytes, maps, reduces);
            job.pool = pool.map(|p| p.to_string());
            job
        },
    )
}

fn any_scheduler() -> impl Strategy<Value = SchedulerKind> {
    prop_oneof![
        Just(SchedulerKind::Fifo),
        Just(SchedulerKind::Fair),
        Just(SchedulerKind::Capacity),
        Just(SchedulerKind::Quincy),
    ]
}

/// Returns settings with pools and queues for the names in the jobs; `delay` gives the waits of
/// delay scheduling in milliseconds.
fn scheduling(delay: Option<(u64, u64)>) -> Scheduling {
    let delay = delay.map(|(a, b)| DelayConfig { node: Span::from_ms(a), rack: Span::from_ms(b) });
    let weighted = PoolConfig { weight_milli: 2500, min_share: [2, 1], ..PoolConfig::plain("1") };
    let quarter = |name: &str| QueueConfig {
        capacity: WHOLE / 4,
        maximum: WHOLE / 2,
        user_minimum: WHOLE / 2,
        ..QueueConfig::plain(name)
    };
    let queues = ["default", "0", "1", "2"].map(quarter).to_vec();
    Scheduling { delay, pools: vec![weighted], queues, ..Scheduling::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mix_of_jobs_finishes_and_keeps_its_bytes(
        jobs in proptest::collection::vec(any_job(), 0..8),
        (hosts, per_rack) in (4..12u32, 1..6u32),
        (map_slots, reduce_slots) in (1..4u32, 1..4u32),
        scheduler in any_scheduler(),
        delay in proptest::option::of((0..9000u64, 0..9000u64)),
        (spread, out_of_band) in any::<(bool, bool)>(),
        (copies, per_fetch) in (1..6u32, 1..5u32),
        slowstart in 0.0..1.0f64,
        seed in any::<u64>(),
    ) {
        let mut config = MapReduceConfig { jobs, map_slots, reduce_slots, ..MapReduceConfig::default() };
        config.scheduler = scheduler;
        config.scheduling = scheduling(delay);
        config.control.spread = spread;
        config.control.out_of_band_heartbeat = out_of_band;
        config.control.slowstart = slowstart;
        config.shuffle.parallel_copies = copies;
        config.shuffle.max_maps_per_fetch = per_fetch;
        config.hdfs.block_bytes = 10_000_000;
        let seen = run(&config, &cluster(hosts, per_rack, seed));
        conserved(&config, &seen);
        prop_assert!(seen.most_tasks <= ((map_slots + reduce_slots) * (hosts - 1)) as usize);
        prop_assert!(seen.most_fetches <= copies * reduce_slots);
        super::behaviour::slots_are_respected(&config, &seen);
    }

    #[test]
    fn bytes_are_kept_on_any_hardware(
        jobs in proptest::collection::vec(any_job(), 1..5),
        (cores, disks) in (proptest::option::of(1..4u32), proptest::option::of(1..3u32)),
        (cache, dirty) in (prop_oneof![Just(None), (0..40_000_000u64).prop_map(Some)], 0..60_000_000u64),
        (seek_ms, together) in (0..20u64, 1..4u32),
        (buffer, heap, factor) in (1_000_000..60_000_000u64, 0..60_000_000u64, 2..6u32),
        (namenode, setup, keep_alive, rates) in any::<(bool, bool, bool, bool)>(),
        clients in proptest::option::of(prop_oneof![
            Just(Clients::Workers), (0..6u32).prop_map(|h| Clients::On(HostId(h)))]),
        seed in any::<u64>(),
    ) {
        let mut config = MapReduceConfig { jobs, ..MapReduceConfig::default() };
        let node = &mut config.node;
        (node.cores, node.disks, node.cache_bytes) = (cores, disks, cache);
        node.dirty_bytes = if disks.is_some() { dirty } else { 0 };
        (node.seek, node.workers_per_machine) = (Span::from_ms(seek_ms), together);
        (config.sort.buffer_bytes, config.sort.factor) = (buffer, factor);
        (config.shuffle.heap_bytes, config.shuffle.keep_alive) = (heap, keep_alive);
        config.hdfs.namenode_time = namenode.then(|| Span::from_ms(1));
        config.hdfs.setup_bytes = if setup { 301 } else { 0 };
        config.hdfs.block_bytes = 7_000_000;
        if rates {
            config.costs.sort_rate = Some(Rate::megabytes(70));
            config.costs.merge_rate = Some(Rate::megabytes(140));
            config.costs.task_commit = Span::from_ms(10);
        }
        if let Some(clients) = clients {
            let bytes = JobBytes { input: 30_000_001, shuffle: 0, output: 20_000_003 };
            let mut job = JobSpec::fixed("c", "hdfs", Time::ZERO, bytes, 3, 0);
            job.clients = Some(clients);
            config.jobs.push(job);
        }
        let seen = run(&config, &cluster(6, 3, seed));
        conserved(&config, &seen);
        super::behaviour::slots_are_respected(&config, &seen);
        (config.framework, config.shuffle.fetch_request_bytes) = (Framework::Yarn, 307);
        conserved(&config, &run(&config, &cluster(6, 3, seed)));
    }
}
