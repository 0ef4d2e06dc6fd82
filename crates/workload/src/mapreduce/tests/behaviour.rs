//! When and where tasks run, what heartbeats cost, what is refused.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{JobBytes, JobSpec, MapReduce, MapReduceConfig, SchedulerKind};
use eastwest_types::{HostId, Locality, Purpose, Rate, Span, TaskKind, Time};

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

/// No worker ever runs more tasks of a kind than it has slots.
pub fn slots_are_respected(config: &MapReduceConfig, seen: &Outcome) {
    for (kind, slots) in
        [(TaskKind::Map, config.map_slots), (TaskKind::Reduce, config.reduce_slots)]
    {
        // At one instant ends come before starts.
        let mut changes: Vec<(HostId, Time, i32)> = Vec::new();
        for t in seen.tasks.iter().filter(|t| t.kind == kind) {
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
    // 64 MB at 32 MB/s, then a spill at 100 MB/s.
    assert_eq!(map.finished.since(map.started), Span::from_ms(2000 + 640));
    let reduce = seen.tasks_of(0, TaskKind::Reduce)[0];
    assert_eq!(reduce.input_done.since(reduce.started), Span::from_ms(640));
    // Merge, reduce function, output.
    assert_eq!(reduce.finished.since(reduce.input_done), Span::from_ms(640 + 1000 + 640));
    let job = seen.job(0);
    assert_eq!(job.started, map.started);
    assert!(job.finished > reduce.finished + config.control.job_cleanup);
    assert!(job.finished < reduce.finished + config.control.heartbeat + Span::from_ms(100));
}

#[test]
fn a_slow_network_and_not_the_disk_delays_a_remote_map() {
    // Replicas on one of five workers: most maps of a job that fills all slots read remotely.
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
        // 512 ms on the wire, two latencies for question and answer.
        let read = t.input_done.since(t.started);
        assert!(read > Span::from_ms(512) && read < Span::from_ms(513), "{read}");
        assert_eq!(t.finished.since(t.input_done), config.costs.disk_rate.time_for(t.bytes_in));
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
    // With three heartbeats in every nine seconds nothing waits longer than three for its answer.
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
    assert!((seen.heartbeats as f64 - expected).abs() <= 20.0, "{} {expected}", seen.heartbeats);
    assert_eq!(seen.most_connections, 20);
    assert!(seen.payload.is_empty());
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
    let mut config = with(vec![terasort(Time::ZERO, 3200, 50, 5)]);
    config.reduce_slots = 1;
    config.control.slowstart = 1.0;
    for copies in [1, 3, 5] {
        config.shuffle.parallel_copies = copies;
        let seen = run(&config, &cluster(11, 4, 1));
        // The local copy takes a place but is no request.
        assert_eq!(seen.most_fetches, copies);
    }
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
    // Four blocks one after another, each as fast as the disk: the network overlaps.
    let written = seen.tasks[0].finished.since(seen.tasks[0].input_done).as_secs_f64();
    assert!((3.3..3.8).contains(&written), "{written}");
    // With a window of one chunk every chunk waits for its acknowledgement from the third replica.
    config.hdfs.write_window = 1;
    let seen = run(&config, &world);
    let waited = seen.tasks[0].finished.since(seen.tasks[0].input_done).as_secs_f64();
    assert!(waited > written + 1.0, "{waited}");
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
    config.costs.disk_rate = Rate(0);
    config.control.slowstart = f64::NAN;
    config.control.heartbeat = Span::ZERO;
    config.workers = Some(vec![HostId(0), HostId(0), HostId(4), HostId(9)]);
    let problems = MapReduce::new(config, &cluster(5, 5, 1)).expect_err("none of it can be met");
    let expected = [
        "workers: host 0 is named twice",
        "workers: host 4 is the master, which runs no tasks",
        "workers: host 9 is not one of the 5 hosts",
        "costs.disk_rate: must be above 0",
        "control.heartbeat: 0 ps is below 1 ms",
        "control.slowstart: NaN is not from 0 to 1",
        "hdfs.replication: 5 replicas need 5 workers, there are 4",
        "jobs[0].maps: a job needs a map",
        "jobs[0].reduces: 1000000 shuffle bytes need a reduce",
    ];
    assert_eq!(problems, expected);
    assert!(MapReduce::new(with(Vec::new()), &cluster(0, 1, 1)).is_err());
    assert!(MapReduce::new(with(Vec::new()), &cluster(1, 1, 1)).is_err());
}
