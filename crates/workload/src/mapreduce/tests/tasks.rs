//! Tests of the costs of tasks on shared hardware: contention, spills and merges, memory of the
//! shuffle.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{JobBytes, JobSpec, MapReduceConfig, NodeConfig};
use eastwest_types::{Counter, Rate, Span, TaskKind, TaskRecord, Time};

/// Returns settings with one job. Each worker has eight map slots, and each block has one replica.
fn lone(bytes: JobBytes, maps: u32, reduces: u32) -> MapReduceConfig {
    let job = JobSpec::fixed("j", "trace", Time::ZERO, bytes, maps, reduces);
    let mut config = MapReduceConfig { jobs: vec![job], ..MapReduceConfig::default() };
    (config.hdfs.replication, config.hdfs.output_replication) = (1, 1);
    config.map_slots = 8;
    config.control.spread = false;
    config.costs.task_start = Span::ZERO;
    config.costs.map_rate = Rate::megabytes(10);
    config
}

fn lasted(t: &TaskRecord) -> f64 {
    t.finished.since(t.started).as_secs_f64()
}

fn maps(seen: &Outcome) -> Vec<f64> {
    seen.tasks_of(0, TaskKind::Map).into_iter().map(lasted).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b
}

#[test]
fn tasks_share_cores() {
    // Four maps of 10 MB at 10 MB/s on two cores take twice as long as alone.
    let bytes = JobBytes { input: 40_000_000, shuffle: 4, output: 0 };
    let mut config = lone(bytes, 4, 1);
    config.node.read_rate = Rate::megabytes(100_000);
    let alone = maps(&run(&config, &cluster(2, 2, 1)));
    assert!(alone.iter().all(|&s| near(s, 1.0 + 1e-8)), "{alone:?}");
    config.node.cores = Some(2);
    let shared = maps(&run(&config, &cluster(2, 2, 1)));
    assert!(shared.iter().all(|&s| near(s, 2.0 + 1e-8)), "{shared:?}");
}

#[test]
fn starts_of_tasks_differ_by_no_more_than_their_jitter() {
    // Eight maps are assigned in one heartbeat: without jitter they start at the same time, with
    // jitter within its width.
    let bytes = JobBytes { input: 80_000_000, shuffle: 8, output: 0 };
    let mut config = lone(bytes, 8, 1);
    config.costs.task_start = Span::from_ms(500);
    let spread = |config: &MapReduceConfig, seed| {
        let seen = run(config, &cluster(2, 2, seed));
        let starts =
            seen.tasks_of(0, TaskKind::Map).into_iter().map(|t| t.started.since(t.assigned));
        let starts: Vec<Span> = starts.collect();
        (*starts.iter().min().unwrap(), *starts.iter().max().unwrap())
    };
    assert_eq!(spread(&config, 1), (Span::from_ms(500), Span::from_ms(500)));
    config.costs.task_start_jitter = Span::from_ms(400);
    let (least, most) = spread(&config, 1);
    assert!(least >= Span::from_ms(500) && most < Span::from_ms(900), "{least} {most}");
    assert!(most - least > Span::from_ms(100), "{least} {most}");
    assert_eq!(spread(&config, 1), (least, most), "a seed draws the same again");
    assert_ne!(spread(&config, 2), (least, most));
}

#[test]
fn workers_of_one_machine_share_it() {
    let bytes = JobBytes { input: 40_000_000, shuffle: 4, output: 0 };
    let mut config = lone(bytes, 4, 1);
    config.map_slots = 1;
    config.hdfs.replication = 4;
    config.control.heartbeat = Span::from_ms(1);
    config.node.cores = Some(2);
    let apart = maps(&run(&config, &cluster(5, 5, 1)));
    assert!(apart.iter().all(|&s| s < 1.01), "{apart:?}");
    config.node.workers_per_machine = 4;
    let together = maps(&run(&config, &cluster(5, 5, 1)));
    assert!(together.iter().all(|&s| s > 1.99 && s < 2.01), "{together:?}");
}

#[test]
fn streams_that_share_a_spinning_disk_pay_for_seeks() {
    // The disk limits the maps: each of the four reads 10 MB at 100 MB/s in total.
    let bytes = JobBytes { input: 40_000_000, shuffle: 4, output: 0 };
    let mut config = lone(bytes, 4, 1);
    config.costs.map_rate = Rate::megabytes(100_000);
    config.node.disks = Some(1);
    let flash = maps(&run(&config, &cluster(2, 2, 1)));
    assert!(flash.iter().all(|&s| (0.4..0.41).contains(&s)), "{flash:?}");
    // A seek of 10 ms follows every megabyte, which takes 10 ms to read: half the rate.
    (config.node.seek, config.node.run_bytes) = (Span::from_ms(10), 1_000_000);
    let spinning = maps(&run(&config, &cluster(2, 2, 1)));
    assert!(spinning.iter().all(|&s| (0.8..0.81).contains(&s)), "{spinning:?}");
    config.node.disks = Some(4);
    let four = maps(&run(&config, &cluster(2, 2, 1)));
    assert!(four.iter().all(|&s| (0.1..0.11).contains(&s)), "{four:?}");
}

/// Returns settings with one map of 100 MB, whose buffer begins a spill at 10 MB and has room for
/// 2.5 MB more while a spill runs.
fn spilling(write: u64) -> MapReduceConfig {
    let bytes = JobBytes { input: 100_000_000, shuffle: 100_000_000, output: 0 };
    let mut config = lone(bytes, 1, 1);
    config.sort.buffer_bytes = 14_500_000;
    config.node.read_rate = Rate::megabytes(1_000_000);
    config.node.write_rate = Rate::megabytes(write);
    config
}

#[test]
fn spills_run_behind_the_map_function() {
    // Ten spills: 10 s of computing overlap the first nine spills, the last one follows. Then one
    // merge pass over ten files writes all bytes once more.
    let config = spilling(100);
    let seen = run(&config, &cluster(2, 2, 1));
    let expected = 10.0 + 0.1 + 1.0;
    assert!((maps(&seen)[0] - expected).abs() < 0.01, "{:?}", maps(&seen));
    // With a factor of 4, ten files are merged in passes of 4 and 4 files, so that four files are
    // left for the last pass.
    let mut config = spilling(100);
    config.sort.factor = 4;
    let seen = run(&config, &cluster(2, 2, 1));
    let expected = 10.0 + 0.1 + 0.4 + 0.4 + 1.0;
    assert!((maps(&seen)[0] - expected).abs() < 0.01, "{:?}", maps(&seen));
}

#[test]
fn a_map_waits_for_spills_when_its_buffer_is_full() {
    // A spill of 10 MB takes 2 s, but only 2.5 MB more fit into the buffer while it runs. Time of
    // the map: 1 s of computing for the bytes of the first spill; nine times max(2 s, 0.25 s), plus
    // 0.75 s of computing until the next spill; the last spill; and the merge of 100 MB in 20 s.
    let seen = run(&spilling(5), &cluster(2, 2, 1));
    let expected = 1.0 + 9.0 * (2.0 + 0.75) + 2.0 + 20.0;
    assert!((maps(&seen)[0] - expected).abs() < 0.1, "{:?} {expected}", maps(&seen));
}

#[test]
fn one_spill_is_the_output() {
    let mut config = spilling(100);
    config.sort.buffer_bytes = 200_000_000;
    let seen = run(&config, &cluster(2, 2, 1));
    assert!((maps(&seen)[0] - 11.0).abs() < 0.01, "{:?}", maps(&seen));
}

/// Returns settings with one reduce that fetches 100 MB from ten maps on two workers.
fn fetching(heap: u64) -> MapReduceConfig {
    let bytes = JobBytes { input: 0, shuffle: 100_000_000, output: 0 };
    let mut config = lone(bytes, 10, 1);
    config.map_slots = 5;
    config.control.slowstart = 1.0;
    config.costs.reduce_rate = Rate::megabytes(1_000_000);
    config.shuffle.heap_bytes = heap;
    config
}

fn reduce(config: &MapReduceConfig) -> (f64, f64) {
    let seen = run(config, &cluster(3, 3, 1));
    let r = seen.tasks_of(0, TaskKind::Reduce)[0].clone();
    (r.input_done.since(r.started).as_secs_f64(), r.finished.since(r.input_done).as_secs_f64())
}

#[test]
fn fetches_wait_for_memory() {
    // All outputs fit into memory: half of the data comes over the network at 125 MB/s; then the
    // merge writes to disk for 1 s.
    let (shuffle, rest) = reduce(&fetching(1 << 30));
    assert!((0.2..0.6).contains(&shuffle) && (rest - 1.0).abs() < 0.01, "{shuffle} {rest}");
    // A heap of 60 MB has 42 MB for outputs. From 27.7 MB on, they are merged to disk, and fetches
    // wait for the merge.
    let mut config = fetching(60_000_000);
    config.shuffle.memory_limit_fraction = 0.5;
    let (shuffle, rest) = reduce(&config);
    assert!(shuffle > 0.6 && rest < 0.6, "{shuffle} {rest}");
    // No output fits into memory: each output is written to disk at 100 MB/s after its arrival, and
    // the reduce fetches from two hosts at once.
    let (none, rest) = reduce(&fetching(1_000_000));
    assert!(none > 0.5 && none < 1.1, "{none}");
    assert!(rest < 0.01, "ten files are read as they are: {rest}");
}

#[test]
fn outputs_that_left_the_page_cache_are_read_again() {
    let mut config = fetching(1 << 30);
    config.node = NodeConfig { disks: Some(1), read_rate: Rate::megabytes(10), ..config.node };
    let warm = reduce(&config).0;
    config.node.cache_bytes = Some(0);
    let cold = reduce(&config).0;
    assert!(warm < 0.6, "{warm}");
    // Each machine reads five outputs of 10 MB at 10 MB/s.
    assert!((5.0..5.5).contains(&cold), "{cold}");
}

#[test]
fn written_behind_is_not_waited_for_until_memory_is_full() {
    let bytes = JobBytes { input: 0, shuffle: 0, output: 64_000_000 };
    let mut config = lone(bytes, 1, 0);
    config.costs.map_rate = Rate::megabytes(1_000_000);
    config.node.disks = Some(1);
    let through = maps(&run(&config, &cluster(2, 2, 1)))[0];
    assert!((through - 0.64).abs() < 0.01, "{through}");
    config.node.dirty_bytes = 1 << 30;
    let behind = maps(&run(&config, &cluster(2, 2, 1)))[0];
    assert!(behind < 0.01, "{behind}");
    // With 16 MB for dirty data, the writer waits until the rest is on disk.
    config.node.dirty_bytes = 16_000_000;
    let bounded = maps(&run(&config, &cluster(2, 2, 1)))[0];
    assert!((0.25..0.5).contains(&bounded), "{bounded}");
}

#[test]
fn counters_are_those_of_a_real_terasort() {
    // Counters of a real TeraSort on Hadoop 3.4.2, 512 MiB in 8 maps and 4 reduces: records of 100
    // B are 102 B in the buffer and, with lengths, 104 B in files. Counters in MB: maps spill once
    // (FILE_BYTES_WRITTEN 560.7, FILE_BYTES_READ 0.0); reduces write all fetched bytes to one file
    // and read it (559.5, 558.3).
    let bytes = JobBytes { input: 536_870_400, shuffle: 558_345_408, output: 536_870_400 };
    let job = JobSpec::fixed("t", "terasort", Time::ZERO, bytes, 8, 4);
    let mut config = MapReduceConfig { jobs: vec![job], ..MapReduceConfig::hadoop3() };
    config.sort.record_bytes = 104;
    (config.hdfs.replication, config.hdfs.setup_bytes) = (1, 301);
    config.hdfs.output_replication = 1;
    config.shuffle.fetch_request_bytes = 307;
    config.shuffle.heap_bytes = 1638 << 20;
    config.control.slowstart = 1.0;
    let seen = run(&config, &cluster(5, 5, 1));
    let sum = |kind, of: fn(&TaskRecord) -> u64| -> f64 {
        seen.tasks_of(0, kind).into_iter().map(of).sum::<u64>() as f64 / 1e6
    };
    let near = |value: f64, measured: f64| (value - measured).abs() < 0.005 * measured;
    assert!(near(sum(TaskKind::Map, |t| t.file_bytes_written), 560.7));
    assert!(sum(TaskKind::Map, |t| t.file_bytes_read) == 0.0);
    assert!(seen.tasks_of(0, TaskKind::Map).iter().all(|t| t.spills == 1));
    assert!(near(sum(TaskKind::Reduce, |t| t.file_bytes_written), 559.5));
    assert!(near(sum(TaskKind::Reduce, |t| t.file_bytes_read), 558.3));
    let counters = &seen.job(0).counters;
    let counted = |counter| counters.get(counter) as f64 / 1e6;
    assert!(near(counted(Counter::FileBytesWritten), 560.7 + 559.5));
    assert!(near(counted(Counter::FileBytesRead), 558.3));
    assert!(near(counted(Counter::SpilledRecords), 2.0 * 5.368709));
    for (counter, expected) in [
        (Counter::HdfsBytesRead, bytes.input),
        (Counter::HdfsBytesWritten, bytes.output),
        (Counter::ReduceShuffleBytes, bytes.shuffle),
        (Counter::MapOutputBytes, bytes.shuffle),
        (Counter::MapOutputMaterializedBytes, bytes.shuffle),
        (Counter::TotalLaunchedMaps, 8),
        (Counter::TotalLaunchedReduces, 4),
        (Counter::ShuffledMaps, 32),
        (Counter::FailedShuffle, 0),
        (Counter::NumFailedMaps, 0),
        (Counter::NumKilledReduces, 0),
    ] {
        assert_eq!(counters.get(counter), expected, "{counter:?}");
    }
    let places = [Counter::DataLocalMaps, Counter::RackLocalMaps, Counter::OtherLocalMaps];
    assert_eq!(places.map(|c| counters.get(c)).iter().sum::<u64>(), 8);
    for t in &seen.tasks {
        assert!(t.started <= t.input_done && t.computed <= t.finished, "phases follow each other");
        let (first, second) = match t.kind {
            TaskKind::Map => (t.computed, t.merged),
            TaskKind::Reduce => (t.merged, t.computed),
        };
        assert!(t.input_done <= first && first <= second && second <= t.finished);
    }
}

#[test]
fn a_combiner_leaves_a_part_of_every_spill() {
    // Maps of 60 MB fill a buffer of 20 MB several times; a combiner leaves a tenth of their
    // output.
    let bytes = JobBytes { input: 60_000_000, shuffle: 6_000_001, output: 0 };
    let mut config = lone(bytes, 1, 2);
    config.sort.buffer_bytes = 20_000_000;
    let plain = run(&config, &cluster(3, 3, 1));
    assert_eq!(plain.tasks_of(0, TaskKind::Map)[0].spills, 1, "what is shuffled fits");
    config.jobs[0].uncombined = Some(60_000_000);
    let seen = run(&config, &cluster(3, 3, 1));
    let map = seen.tasks_of(0, TaskKind::Map)[0];
    assert_eq!((map.spills, map.bytes_out), (5, 6_000_001));
    // All bytes are written by the spills and again by the merge; the merge reads them once.
    assert_eq!((map.file_bytes_written, map.file_bytes_read), (12_000_002, 6_000_001));
    let counters = &seen.job(0).counters;
    assert_eq!(counters.get(Counter::MapOutputBytes), 60_000_000);
    assert_eq!(counters.get(Counter::MapOutputMaterializedBytes), 6_000_001);
    assert_eq!(counters.get(Counter::ReduceShuffleBytes), 6_000_001);
    config.jobs[0].uncombined = Some(6_000_000);
    let refused = crate::mapreduce::MapReduce::new(config, &cluster(3, 3, 1)).unwrap_err();
    assert_eq!(refused, ["jobs[0].uncombined: must not be below the shuffled bytes"]);
}
