//! Tests of times and localities of tasks, costs of heartbeats, refused settings.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{
    DelayConfig, JobBytes, JobSpec, MAX_TASKS, MapReduce, MapReduceConfig, QueueConfig,
    SchedulerKind,
};
use eastwest_types::{HostId, Locality, Purpose, Rate, Span, TaskKind, TaskRecord, Time};

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn terasort(submit: Time, megabytes: u64, maps: u32, reduces: u32) -> JobSpec {
    let bytes = JobBytes::terasort(megabytes * 1_000_000);
    JobSpec::fixed(format!("t{megabytes}"), "terasort", submit, bytes, maps, reduces)
}

fn with(jobs: Vec<JobSpec>) -> MapReduceConfig {
    MapReduceConfig { jobs, ..MapReduceConfig::default() }
}

/// Checks that no worker ever runs more tasks of a kind than it has slots.
pub fn slots_are_respected(config: &MapReduceConfig, seen: &Outcome) {
    for (kind, slots) in
        [(TaskKind::Map, config.map_slots), (TaskKind::Reduce, config.reduce_slots)]
    {
        // Among changes of equal time, ends are counted before starts.
        let mut changes: Vec<(HostId, Time, i32)> = Vec::new();
        let in_slots = |t: &&TaskRecord| t.kind == kind && seen.job(t.job).kind != "hdfs";
        for t in seen.tasks.iter().filter(in_slots) {
            assert!(t.assigned < t.started && t.started <= t.input_done);
            assert!(t.input_done <= t.finished);
            changes.push((t.host, t.assigned, 1));
            changes.push((t.host, t.finished, -1));
        }
        changes.sort_unstable();
        let mut running = 0;
        for (_, _, change) in changes {
            running += change;
            assert!((0..=slots as i32).contains(&running));
        }
    }
}

#[test]
fn a_lone_map_lasts_as_long_as_its_parts() {
    let mut config = with(vec![terasort(Time::ZERO, 64, 1, 1)]);
    config.hdfs.replication = 1;
    config.hdfs.output_replication = 1;
    let seen = run(&config, &cluster(2, 2, 1));
    let map = seen.tasks_of(0, TaskKind::Map)[0];
    assert_eq!(map.started.since(map.assigned), Span::from_secs(1));
    assert_eq!(map.input_done.since(map.started), Span::from_ms(640));
    // 64 MB computed at 32 MB/s, then a spill to disk at 100 MB/s.
    assert_eq!(map.finished.since(map.started), Span::from_ms(2000 + 640));
    let reduce = seen.tasks_of(0, TaskKind::Reduce)[0];
    // The only map output is in its worker's page cache, but too large for the reduce's memory, so
    // it is written to disk.
    assert_eq!(reduce.input_done.since(reduce.started), Span::from_ms(640));
    // There is nothing to merge. The output is written while it is computed, except for its last
    // quarter.
    assert_eq!(reduce.finished.since(reduce.input_done), Span::from_ms(1000 + 160));
    let job = seen.job(0);
    assert_eq!(job.started, map.started);
    assert!(job.finished > reduce.finished + config.control.job_cleanup);
    assert!(job.finished < reduce.finished + config.control.heartbeat + Span::from_ms(100));
}

#[test]
fn a_slow_network_and_not_the_disk_delays_a_remote_map() {
    // One replica of each split on five workers: most maps of a job that fills all slots read from
    // another worker.
    let mut config = with(vec![terasort(Time::ZERO, 640, 10, 1)]);
    config.hdfs.replication = 1;
    config.costs.map_rate = Rate::megabytes(1000);
    let seen = run(&config, &cluster(6, 3, 3));
    let remote: Vec<_> = seen
        .tasks_of(0, TaskKind::Map)
        .into_iter()
        .filter(|t| matches!(t.locality, Locality::Rack | Locality::Remote))
        .collect();
    assert!(!remote.is_empty());
    for t in remote {
        // 512 ms of transmission, 4 ms for checksums and headers, and the latencies of request and
        // answer.
        let read = t.input_done.since(t.started);
        assert!(read > Span::from_ms(516) && read < Span::from_ms(517), "{read}");
        assert_eq!(t.finished.since(t.input_done), config.node.read_rate.time_for(t.bytes_in));
    }
}

#[test]
fn tasks_start_only_by_answers_to_heartbeats() {
    let mut config = with(vec![terasort(at(10), 640, 10, 4)]);
    config.control.slowstart = 1.0;
    let seen = run(&config, &cluster(6, 3, 1));
    slots_are_respected(&config, &seen);
    let maps = seen.tasks_of(0, TaskKind::Map);
    assert!(maps.iter().all(|t| t.assigned > at(13)), "set-up takes three seconds");
    let last_map = maps.iter().map(|t| t.finished).max().unwrap();
    let reduces = seen.tasks_of(0, TaskKind::Reduce);
    assert!(reduces.iter().all(|t| t.assigned > last_map));
    // No job waits longer than a heartbeat interval for its first map.
    let first_map = maps.iter().map(|t| t.assigned).min().unwrap();
    assert!(first_map < at(16) + Span::from_ms(10));
    let mut workers: Vec<_> = reduces.iter().map(|t| t.host).collect();
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers.len(), 4, "reduces are spread over workers");
}

#[test]
fn reduces_start_early_when_they_may() {
    let mut config = with(vec![terasort(Time::ZERO, 6400, 100, 4)]);
    config.control.slowstart = 0.05;
    let seen = run(&config, &cluster(6, 3, 1));
    let mut ends: Vec<_> = seen.tasks_of(0, TaskKind::Map).iter().map(|t| t.finished).collect();
    ends.sort_unstable();
    let first = seen.tasks_of(0, TaskKind::Reduce).iter().map(|t| t.assigned).min().unwrap();
    assert!(ends[4] < first && first < ends[50]);
}

#[test]
fn idle_workers_only_send_heartbeats() {
    let seen = run(&with(vec![terasort(at(300), 0, 1, 0)]), &cluster(21, 11, 1));
    let per_worker = seen.end.as_secs_f64() / 3.0;
    let expected = per_worker * 20.0;
    let sent: usize = seen.heartbeats.values().map(Vec::len).sum();
    assert!((sent as f64 - expected).abs() <= 20.0, "{sent} {expected}");
    assert_eq!(seen.answer_bytes, sent as u64 * 200 + 1000);
    assert_eq!(seen.most_connections, 20);
    assert!(seen.payload.is_empty());
    // The first heartbeats of the workers are spread over the heartbeat interval.
    let mut first: Vec<_> = seen.heartbeats.values().map(|times| times[0]).collect();
    first.sort_unstable();
    assert!(first[4] < at(2) && first[15] > at(1) && first[19] < at(3), "{first:?}");
}

#[test]
fn out_of_band_heartbeats_save_waiting() {
    let jobs: Vec<_> = (0..5).map(|i| terasort(at(60 * i), 640, 10, 2)).collect();
    let mut config = with(jobs);
    let mean = |seen: &Outcome| {
        seen.jobs.iter().map(|j| j.finished.since(j.submitted).as_secs_f64()).sum::<f64>() / 5.0
    };
    let regular = mean(&run(&config, &cluster(6, 3, 1)));
    config.control.out_of_band_heartbeat = true;
    let eager = mean(&run(&config, &cluster(6, 3, 1)));
    assert!(eager + 1.0 < regular, "{eager} {regular}");
}

#[test]
fn early_heartbeats_put_off_the_regular_ones() {
    let mut config = with(vec![terasort(Time::ZERO, 640, 10, 2)]);
    config.control.out_of_band_heartbeat = true;
    let seen = run(&config, &cluster(6, 3, 1));
    let mut early = 0;
    for (&host, times) in &seen.heartbeats {
        for pair in times.windows(2).filter(|p| p[1].since(p[0]) < config.control.heartbeat) {
            early += 1;
            // A task that finishes while an answer is outstanding is reported directly after this
            // answer.
            let just = |t: &Time| *t <= pair[1] && pair[1].since(*t) < Span::from_ms(1);
            let caused = seen.tasks.iter().any(|t| t.host == host && just(&t.finished));
            assert!(caused, "a heartbeat at {} without cause", pair[1]);
        }
    }
    assert!(early > 5, "{early}");
}

#[test]
fn answers_grow_with_tasks_and_finished_maps() {
    let mut config = with(vec![terasort(Time::ZERO, 640, 10, 4)]);
    config.control.slowstart = 0.0;
    let seen = run(&config, &cluster(6, 3, 1));
    let answers = seen.heartbeats.values().map(Vec::len).sum::<usize>() as u64;
    // At the end of the run, one answer for each worker may be outstanding.
    let fixed = seen.answer_bytes - 1000 * (10 + 4) - 100 * 10 * 4;
    assert_eq!(fixed % 200, 0);
    assert!((answers - 5..=answers).contains(&(fixed / 200)), "{fixed} {answers}");
}

/// Returns the largest number of maps that one answer to a heartbeat assigned to a worker.
fn most_together(seen: &Outcome, counts: impl Fn(Locality) -> bool) -> usize {
    let maps: Vec<_> =
        seen.tasks.iter().filter(|t| t.kind == TaskKind::Map && counts(t.locality)).collect();
    let together = |t: &&_| -> usize { maps.iter().filter(|u| same_answer(u, t)).count() };
    maps.iter().map(together).max().unwrap_or(0)
}

fn same_answer(a: &TaskRecord, b: &TaskRecord) -> bool {
    (a.host, a.assigned) == (b.host, b.assigned)
}

#[test]
fn small_jobs_are_spread_over_workers() {
    let mut config = with(vec![terasort(Time::ZERO, 640, 10, 1)]);
    assert_eq!(most_together(&run(&config, &cluster(21, 7, 1)), |_| true), 1);
    config.control.spread = false;
    assert_eq!(most_together(&run(&config, &cluster(21, 7, 1)), |_| true), 2);
    config.control.maps_per_heartbeat = 1;
    assert_eq!(most_together(&run(&config, &cluster(21, 7, 1)), |_| true), 1);
}

#[test]
fn one_map_from_another_rack_ends_an_answer() {
    let mut config = with(vec![terasort(Time::ZERO, 640, 100, 1)]);
    config.map_slots = 8;
    config.hdfs.replication = 1;
    let seen = run(&config, &cluster(7, 1, 1));
    assert!(most_together(&seen, |_| true) > 2);
    assert_eq!(most_together(&seen, |l| l == Locality::Remote), 1);
}

#[test]
fn jobs_without_input_compute_what_they_put_out() {
    let make = |shuffle, output, reduces| {
        let bytes = JobBytes { input: 0, shuffle, output };
        let job = JobSpec::fixed("gen", "trace", Time::ZERO, bytes, 1, reduces);
        let seen = run(&with(vec![job]), &cluster(6, 3, 1));
        let map = seen.tasks_of(0, TaskKind::Map)[0].clone();
        assert_eq!((map.locality, map.input_done), (Locality::None, map.started));
        map.finished.since(map.started)
    };
    assert_eq!(make(64_000_000, 0, 1), Span::from_ms(2000 + 640));
    // The output is written while it is computed, except for the last of four pieces, and in whole
    // chunks; the network is faster than the disk.
    let end = make(0, 64_000_000, 0);
    assert!(end > Span::from_ms(2000 + 140) && end < Span::from_ms(2000 + 160), "{end}");
}

#[test]
fn fifo_serves_in_order_and_fair_in_parallel() {
    let jobs = vec![terasort(Time::ZERO, 6400, 100, 2), terasort(at(1), 64, 4, 1)];
    let mut config = with(jobs);
    let fifo = run(&config, &cluster(6, 3, 1));
    let maps = |seen: &Outcome, job| -> Vec<Time> {
        let mut a: Vec<_> = seen.tasks_of(job, TaskKind::Map).iter().map(|t| t.assigned).collect();
        a.sort_unstable();
        a
    };
    assert!(maps(&fifo, 1)[0] >= maps(&fifo, 0)[99]);
    config.scheduler = SchedulerKind::Fair;
    let fair = run(&config, &cluster(6, 3, 1));
    assert!(maps(&fair, 1)[3] < maps(&fair, 0)[40]);
    assert!(fair.job(1).finished < fifo.job(1).finished);
    slots_are_respected(&config, &fifo);
    slots_are_respected(&config, &fair);
}

#[test]
fn jobs_of_one_pool_share_what_one_job_alone_gets() {
    let pooled = |name: &str| {
        let mut job = terasort(Time::ZERO, 1280, 60, 0);
        job.bytes.shuffle = 0;
        job.pool = Some(name.to_string());
        job
    };
    let mut config = with(vec![pooled("a"), pooled("a"), pooled("b")]);
    config.scheduler = SchedulerKind::Fair;
    let seen = run(&config, &cluster(9, 3, 1));
    let until = seen.tasks_of(2, TaskKind::Map).iter().map(|t| t.assigned).max().unwrap();
    let given = |job| {
        seen.tasks_of(job, TaskKind::Map).iter().filter(|t| t.assigned <= until).count() as i32
    };
    assert!((given(0) - given(1)).abs() <= 4, "{} {}", given(0), given(1));
    assert!((given(0) + given(1) - given(2)).abs() <= 8, "{}", given(2));
}

#[test]
fn who_waits_or_plans_reads_nearer() {
    // Small jobs: the first job of the queue rarely has a split on the worker that asks for tasks.
    let jobs = (0..40).map(|i| terasort(Time::ZERO + Span::from_ms(500 * i), 192, 3, 1)).collect();
    let mut config = with(jobs);
    config.scheduler = SchedulerKind::Fair;
    let near = |config: &MapReduceConfig| {
        let seen = run(config, &cluster(31, 6, 1));
        assert_eq!(seen.jobs.len(), 40);
        let maps = seen.tasks.iter().filter(|t| t.kind == TaskKind::Map);
        maps.filter(|t| t.locality == Locality::Node).count()
    };
    let plain = near(&config);
    let node = Span::from_secs(6);
    config.scheduling.delay = Some(DelayConfig { node, rack: node });
    let delayed = near(&config);
    config.scheduling.delay = None;
    config.scheduler = SchedulerKind::Quincy;
    let planned = near(&config);
    assert!(plain < 60 && delayed > 110 && planned > 95, "{plain} {delayed} {planned}");
}

#[test]
fn queues_share_a_cluster_and_wrong_ones_are_refused() {
    let in_queue = |name: &str| {
        let mut job = terasort(Time::ZERO, 1280, 60, 0);
        job.bytes.shuffle = 0;
        job.pool = Some(name.to_string());
        job
    };
    let mut config = with(vec![in_queue("a"), in_queue("b")]);
    config.scheduler = SchedulerKind::Capacity;
    let queue = |name: &str, capacity| QueueConfig {
        capacity,
        user_factor_milli: 10_000,
        ..QueueConfig::plain(name)
    };
    config.scheduling.queues = vec![queue("a", 25_000), queue("b", 75_000)];
    let seen = run(&config, &cluster(9, 3, 1));
    let until = seen.tasks_of(1, TaskKind::Map).iter().map(|t| t.assigned).max().unwrap();
    let given = seen.tasks_of(0, TaskKind::Map).iter().filter(|t| t.assigned <= until).count();
    assert!((18..=24).contains(&given), "{given}");
    config.jobs[0].pool = Some("c".to_string());
    config.scheduling.queues[1].maximum = 1000;
    config.scheduling.queues.push(queue("a", 1000));
    let objections = MapReduce::new(config, &cluster(9, 3, 1)).unwrap_err();
    for part in ["jobs[0].pool: c is", "queue.1.maximum", "queue.2.name", "add up to 101 %"] {
        assert!(objections.iter().any(|o| o.contains(part)), "{part}: {objections:?}");
    }
}

#[test]
fn near_splits_are_preferred() {
    let mut config = with(vec![terasort(Time::ZERO, 6400, 100, 1)]);
    let count = |seen: &Outcome, l| seen.tasks.iter().filter(|t| t.locality == l).count();
    let three = run(&config, &cluster(21, 7, 1));
    assert!(count(&three, Locality::Node) >= 60, "{}", count(&three, Locality::Node));
    config.hdfs.replication = 20;
    let all = run(&config, &cluster(21, 7, 1));
    assert_eq!(count(&all, Locality::Node), 100);
    assert_eq!(all.payload(Purpose::MapInput, 0), 0);
}

#[test]
fn parallel_copies_are_never_exceeded_and_used() {
    let mut config = with(vec![terasort(Time::ZERO, 320, 50, 5)]);
    config.reduce_slots = 1;
    config.control.slowstart = 1.0;
    for copies in [1, 3, 5] {
        config.shuffle.parallel_copies = copies;
        let seen = run(&config, &cluster(11, 4, 1));
        // A fetch from the reduce's own worker counts as a parallel copy but sends no request.
        assert_eq!(seen.most_fetches, copies);
    }
}

#[test]
fn one_request_names_several_outputs_of_a_host() {
    let mut config = with(vec![terasort(Time::ZERO, 80, 40, 1)]);
    config.control.slowstart = 1.0;
    (config.hdfs.replication, config.hdfs.output_replication) = (2, 2);
    let requests = |config: &MapReduceConfig| {
        let seen = run(config, &cluster(3, 3, 1));
        let reducer = seen.tasks_of(0, TaskKind::Reduce)[0].host;
        let far = seen.tasks_of(0, TaskKind::Map).iter().filter(|t| t.host != reducer).count();
        (seen.requests.len(), far)
    };
    for most in [1, 3, 7] {
        config.shuffle.max_maps_per_fetch = most;
        let (asked, far) = requests(&config);
        assert!(far > 7);
        assert_eq!(asked, far.div_ceil(most as usize));
    }
}

#[test]
fn outputs_that_appear_during_a_fetch_wait_for_the_next() {
    // The test network checks that a connection never has two outstanding requests.
    let mut config = with(vec![terasort(Time::ZERO, 3200, 50, 1)]);
    config.control.heartbeat = Span::from_ms(50);
    config.control.slowstart = 0.0;
    (config.hdfs.replication, config.hdfs.output_replication) = (2, 2);
    config.map_slots = 1;
    config.costs.map_rate = Rate::megabytes(1000);
    config.node.read_rate = Rate::megabytes(1000);
    config.node.write_rate = Rate::megabytes(1000);
    let seen = run(&config, &cluster(3, 3, 1));
    let reduce = seen.tasks_of(0, TaskKind::Reduce)[0];
    let during =
        seen.tasks_of(0, TaskKind::Map).iter().filter(|t| t.finished > reduce.started).count();
    assert!(during > 20, "{during}");
}

#[test]
fn reducers_ask_hosts_in_orders_of_their_own() {
    let mut config = with(vec![terasort(Time::ZERO, 160, 100, 2)]);
    config.control.slowstart = 1.0;
    config.shuffle.parallel_copies = 1;
    let seen = run(&config, &cluster(12, 4, 1));
    let order_of = |reduce: usize| -> Vec<HostId> {
        let host = seen.tasks_of(0, TaskKind::Reduce)[reduce].host;
        seen.requests.iter().filter(|r| r.0 == host).map(|r| r.1).collect()
    };
    let hosts: Vec<_> = seen.tasks_of(0, TaskKind::Reduce).iter().map(|t| t.host).collect();
    let others = |order: Vec<HostId>| -> Vec<HostId> {
        order.into_iter().filter(|h| !hosts.contains(h)).collect()
    };
    let (a, b) = (others(order_of(0)), others(order_of(1)));
    assert_eq!((a.len(), b.len()), (9, 9));
    assert_ne!(a, b);
}

#[test]
fn output_goes_to_another_rack_and_stays_there() {
    let bytes = JobBytes { input: 64_000_000, shuffle: 0, output: 200_000_000 };
    let mut config = with(vec![JobSpec::fixed("o", "trace", Time::ZERO, bytes, 1, 0)]);
    let world = cluster(13, 4, 1);
    let seen = run(&config, &world);
    let writer = seen.tasks[0].host;
    let rack = |h: HostId| world.rack_of[h.0 as usize];
    let (mut first, mut second) = (0, 0);
    for (&(from, to), &bytes) in &seen.replicas {
        if from == writer {
            assert_ne!(rack(from), rack(to));
            first += bytes;
        } else {
            assert_eq!(rack(from), rack(to));
            assert_ne!(to, writer);
            second += bytes;
        }
    }
    assert_eq!((first, second), (200_000_000, 200_000_000));
    assert!(seen.replicas.len() > 2, "every block has targets of its own");
    // Four blocks are written one after another while the output is computed for 2 s; each is
    // written at the rate of the disk, which takes 2 s in total.
    let lasted = |seen: &Outcome| seen.tasks[0].finished.since(seen.tasks[0].started).as_secs_f64();
    let written = lasted(&seen);
    assert!((2.1..2.4).contains(&written), "{written}");
    // With a window of one chunk, the writer waits for the acknowledgement of each chunk from the
    // third replica.
    config.hdfs.write_window = 1;
    let seen = run(&config, &world);
    assert!(lasted(&seen) > written + 1.0, "{}", lasted(&seen));
}

#[test]
fn one_seed_gives_one_run() {
    let config = with(vec![terasort(Time::ZERO, 640, 10, 4), terasort(at(5), 320, 5, 4)]);
    let log = |seed| run(&config, &cluster(9, 3, seed)).log;
    assert!(log(1) == log(1));
    assert!(log(1) != log(2));
}

#[test]
fn jobs_are_numbered_by_submission() {
    let config = with(vec![terasort(at(9), 2, 1, 1), terasort(at(3), 1, 1, 1)]);
    let seen = run(&config, &cluster(9, 3, 1));
    assert_eq!((seen.job(0).name.as_str(), seen.job(1).name.as_str()), ("t1", "t2"));
}

#[test]
fn without_jobs_the_end_comes_at_once() {
    assert_eq!(run(&with(Vec::new()), &cluster(5, 5, 1)).end, Time::ZERO);
}

#[test]
fn impossible_demands_are_refused_with_all_reasons() {
    let mut config = with(vec![terasort(Time::ZERO, 1, 0, 0)]);
    config.hdfs.replication = 5;
    config.workers = Some(vec![HostId(0), HostId(0), HostId(4), HostId(9)]);
    let problems = MapReduce::new(config, &cluster(5, 5, 1)).expect_err("none of it can be met");
    let expected = [
        "workers: host 0 is named twice",
        "workers: host 4 is the master, which runs no tasks",
        "workers: there is no host number 9; the fabric has 5 hosts, numbered from 0",
        "hdfs.replication: 5 replicas need 5 workers, but there are 4",
        "jobs[0].maps: must be at least 1",
        "jobs[0].reduces: must be at least 1, because 1000000 bytes are shuffled",
    ];
    assert_eq!(problems, expected);
    let many = with(vec![terasort(Time::ZERO, 1, MAX_TASKS, 1); 21]);
    let problems = MapReduce::new(many, &cluster(5, 5, 1)).expect_err("too much for the memory");
    let expected = "jobs: all jobs together have 21000021 tasks, but at most 20000000 are allowed";
    assert_eq!(problems, [expected]);
    let huge = with(vec![terasort(Time::ZERO, 1, MAX_TASKS + 1, 1)]);
    let problems = MapReduce::new(huge, &cluster(5, 5, 1)).expect_err("too many maps");
    assert_eq!(problems, ["jobs[0].maps: must be at most 1000000, not 1000001"]);
    assert!(MapReduce::new(with(Vec::new()), &cluster(0, 1, 1)).is_err());
    assert!(MapReduce::new(with(Vec::new()), &cluster(1, 1, 1)).is_err());
}
