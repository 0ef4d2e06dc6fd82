//! Tests of failing attempts and unreachable hosts: every job ends, with all its bytes or with a
//! reason.

use super::network::{Outage, Outcome, cluster, run, run_with};
use crate::mapreduce::{
    Clients, FailingTask, Framework, JobBytes, JobSpec, MapReduceConfig, ReplaceDatanode,
    SchedulerKind, SlowNode,
};
use eastwest_types::{Counter, HostId, Purpose, Span, TaskKind, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn sort(maps: u32, reduces: u32) -> JobSpec {
    let bytes = JobBytes::terasort(u64::from(maps) * 64_000_000);
    let mut job = JobSpec::fixed("sort", "trace", Time::ZERO, bytes, maps, reduces);
    job.output_replication = Some(2);
    job
}

fn with(jobs: Vec<JobSpec>, framework: Framework) -> MapReduceConfig {
    let base = match framework {
        Framework::Mr1 => MapReduceConfig::default(),
        Framework::Yarn => MapReduceConfig::hadoop3(),
    };
    MapReduceConfig { jobs, ..base }
}

const BOTH: [Framework; 2] = [Framework::Mr1, Framework::Yarn];

fn failing(kind: TaskKind, task: u32, attempts: u32) -> FailingTask {
    FailingTask { job: "sort".to_string(), kind, task, attempts }
}

fn outage(host: HostId, from: u64, to: u64) -> Outage {
    Outage { host, from: at(from), to: at(to) }
}

/// Checks that the reduces of every finished job have fetched, read and written each byte once.
fn conserved(config: &MapReduceConfig, seen: &Outcome) {
    let mut jobs = config.jobs.clone();
    jobs.sort_by_key(|j| j.submit);
    assert_eq!(seen.jobs.len(), jobs.len());
    for (number, spec) in (0..).zip(&jobs) {
        let job = seen.job(number);
        if job.failed.is_some() {
            continue;
        }
        let last = |kind, task| {
            let of_task = seen.tasks_of(number, kind).into_iter().filter(|t| t.task == task);
            of_task.max_by_key(|t| t.finished).expect("every task of a job that is done was done")
        };
        let sum = |kind, n: u32, of: &dyn Fn(&eastwest_types::TaskRecord) -> u64| -> u64 {
            (0..n).map(|task| of(last(kind, task))).sum()
        };
        let (maps, reduces) = (spec.maps, spec.reduces);
        assert_eq!(sum(TaskKind::Map, maps, &|t| t.bytes_in), spec.bytes.input);
        assert_eq!(sum(TaskKind::Reduce, reduces, &|t| t.bytes_in), spec.bytes.shuffle);
        let writers = if reduces > 0 { (TaskKind::Reduce, reduces) } else { (TaskKind::Map, maps) };
        assert_eq!(sum(writers.0, writers.1, &|t| t.bytes_out), spec.bytes.output);
        let wire = seen.payload(Purpose::Shuffle, number) + u128::from(job.shuffle_local_bytes);
        assert!(wire >= u128::from(spec.bytes.shuffle));
    }
}

#[test]
fn a_failed_attempt_is_repeated_and_a_job_fails_with_the_fourth() {
    for framework in BOTH {
        let mut config = with(vec![sort(6, 2)], framework);
        let calm = run(&config, &cluster(6, 3, 1));
        for (kind, task) in [(TaskKind::Map, 3), (TaskKind::Reduce, 1)] {
            config.failures.tasks = vec![failing(kind, task, 3)];
            let seen = run(&config, &cluster(6, 3, 1));
            conserved(&config, &seen);
            assert!(seen.job(0).failed.is_none() && seen.job(0).finished > calm.job(0).finished);
            let counted = |counter| seen.job(0).counters.get(counter);
            let failed = [Counter::NumFailedMaps, Counter::NumFailedReduces].map(counted);
            let launched = [Counter::TotalLaunchedMaps, Counter::TotalLaunchedReduces].map(counted);
            let more = if kind == TaskKind::Map { [3, 0] } else { [0, 3] };
            assert_eq!((failed, launched), (more, [6 + more[0], 2 + more[1]]));
            config.failures.tasks = vec![failing(kind, task, 4)];
            let seen = run(&config, &cluster(6, 3, 1));
            let reason = seen.job(0).failed.expect("four attempts are all there are");
            assert!(reason.contains("failed too often"));
        }
    }
}

#[test]
fn a_failed_job_leaves_the_cluster_to_the_next() {
    for framework in BOTH {
        let mut next = sort(6, 2);
        (next.name, next.submit) = ("next".to_string(), at(1));
        let mut config = with(vec![sort(12, 3), next], framework);
        config.failures.tasks = vec![failing(TaskKind::Map, 0, 9)];
        let seen = run(&config, &cluster(4, 3, 1));
        assert!(seen.job(0).failed.is_some() && seen.job(1).failed.is_none());
        conserved(&config, &seen);
    }
}

#[test]
fn attempts_fail_as_often_as_they_should() {
    let mut job = sort(400, 0);
    (job.bytes.shuffle, job.bytes.output, job.bytes.input) = (0, 0, 400);
    let mut config = with(vec![job], Framework::Mr1);
    config.failures.attempts = 0.1;
    config.failures.map_attempts = 100;
    let attempts = |config: &MapReduceConfig| {
        let seen = run(config, &cluster(11, 5, 1));
        seen.answer_bytes / 1000
    };
    // An answer to a heartbeat has 200 bytes and each assignment 1000: the difference to the run
    // without failures is the number of repeated attempts.
    let failed = attempts(&config);
    config.failures.attempts = 0.0;
    let calm = attempts(&config);
    let more = failed - calm;
    assert!((25..70).contains(&more), "{more}");
}

#[test]
fn a_lost_worker_s_tasks_and_outputs_are_made_again() {
    for framework in BOTH {
        let mut config = with(vec![sort(40, 4)], framework);
        config.failures.expiry = Span::from_secs(60);
        config.control.slowstart = 0.2;
        let calm = run(&config, &cluster(7, 3, 1));
        let end = calm.end.as_secs_f64() as u64;
        let mut again = 0;
        for (host, when) in [(0, end / 3), (3, end * 2 / 3), (5, 12)] {
            // The outage lasts until the end of the run.
            let gone = [outage(HostId(host), when, 100_000)];
            let seen = run_with(&config, &cluster(7, 3, 1), &gone);
            conserved(&config, &seen);
            let job = seen.job(0);
            assert_eq!(job.failed, None, "{framework:?} {host} {when}");
            again += seen.tasks_of(0, TaskKind::Map).len() - 40;
            let lost = |t: &&eastwest_types::TaskRecord| t.host == HostId(host);
            let late = seen.tasks.iter().filter(lost).all(|t| t.finished < at(when + 700));
            assert!(late, "nothing runs on a worker that is gone");
        }
        assert!(again > 3, "maps whose output is gone run again: {again}");
    }
}

#[test]
fn a_short_outage_is_only_waited_for() {
    for framework in BOTH {
        let mut config = with(vec![sort(20, 3)], framework);
        config.control.slowstart = 0.2;
        let gone = [outage(HostId(2), 14, 24)];
        let seen = run_with(&config, &cluster(7, 3, 1), &gone);
        conserved(&config, &seen);
        assert_eq!(seen.tasks.len(), 23, "no task runs twice");
    }
}

#[test]
fn who_comes_back_works_again() {
    for framework in BOTH {
        let mut later = sort(40, 2);
        later.submit = at(400);
        let mut config = with(vec![sort(20, 3), later], framework);
        config.failures.expiry = Span::from_secs(60);
        let gone = [outage(HostId(2), 14, 300)];
        let seen = run_with(&config, &cluster(7, 3, 1), &gone);
        conserved(&config, &seen);
        let back = seen.tasks.iter().any(|t| t.job == 1 && t.host == HostId(2));
        assert!(back, "{framework:?}");
    }
}

#[test]
fn outputs_that_cannot_be_fetched_are_made_again_before_their_worker_is_lost() {
    for framework in BOTH {
        let mut config = with(vec![sort(12, 3)], framework);
        config.control.slowstart = 1.0;
        config.failures.fetch_timeout = Span::from_secs(20);
        let calm = run(&config, &cluster(7, 3, 1));
        let first = calm.tasks_of(0, TaskKind::Reduce).iter().map(|t| t.started).min().unwrap();
        let reducers: Vec<_> = calm.tasks_of(0, TaskKind::Reduce).iter().map(|t| t.host).collect();
        let with_maps = calm.tasks_of(0, TaskKind::Map);
        let victim = with_maps.iter().map(|t| t.host).find(|h| !reducers.contains(h)).unwrap();
        let from = first + Span::from_ms(1);
        let gone = [Outage { host: victim, from, to: at(100_000) }];
        let seen = run_with(&config, &cluster(7, 3, 1), &gone);
        conserved(&config, &seen);
        let job = seen.job(0);
        assert_eq!(job.failed, None);
        let took = job.finished.since(from);
        assert!(
            took < Span::from_secs(400),
            "{framework:?}: reports come before the expiry: {took}"
        );
    }
}

#[test]
fn a_pipeline_goes_on_without_a_lost_replica() {
    let bytes = JobBytes { input: 0, shuffle: 0, output: 2_000_000_000 };
    for clients in [None, Some(Clients::On(HostId(0)))] {
        let mut job = JobSpec::fixed("w", "trace", Time::ZERO, bytes, 1, 0);
        job.clients = clients;
        let config = with(vec![job], Framework::Mr1);
        let calm = run(&config, &cluster(9, 3, 1));
        // A host that stores a replica of the file and goes down during the write.
        let busy = calm.replicas.keys().map(|&(_, to)| to).find(|&h| h != HostId(0)).unwrap();
        let gone = [outage(busy, 8, 100_000)];
        let seen = run_with(&config, &cluster(9, 3, 1), &gone);
        assert_eq!(seen.job(0).failed, None);
        assert_eq!(seen.tasks.iter().map(|t| t.bytes_out).sum::<u64>(), 2_000_000_000);
        assert!(seen.end > calm.end);
    }
}

#[test]
fn a_split_without_reachable_replica_fails_its_job() {
    let mut config = with(vec![sort(30, 1)], Framework::Mr1);
    config.hdfs.replication = 1;
    config.failures.expiry = Span::from_secs(100_000);
    let gone = [outage(HostId(1), 3, 100_000)];
    let seen = run_with(&config, &cluster(6, 3, 1), &gone);
    let reason = "a map failed too often: no datanode had a block of its split";
    assert_eq!(seen.job(0).failed, Some(reason));
}

fn any_job() -> impl Strategy<Value = JobSpec> {
    let size = || prop_oneof![Just(0u64), 1..100u64, 1..200_000_000u64];
    let bytes = (size(), size(), size());
    (bytes, 1..12u32, 0..6u32, 0..200u64, any::<bool>()).prop_map(
        |((input, shuffle, output), maps, reduces, submit, single)| {
            let shuffle = if reduces == 0 { 0 } else { shuffle };
            let bytes = JobBytes { input, shuffle, output };
            let submit = Time::ZERO + Span::from_secs(submit);
            let mut job = JobSpec::fixed("sort", "trace", submit, bytes, maps, reduces);
            job.output_replication = single.then_some(1);
            job
        },
    )
}

/// Returns the number of test cases: 64, or the value of the environment variable `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(64, |_| ProptestConfig::default().cases)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_job_ends_with_its_bytes_or_for_a_reason(
        jobs in proptest::collection::vec(any_job(), 1..6),
        (hosts, per_rack) in (4..12u32, 1..6u32),
        yarn in any::<bool>(),
        scheduler in prop_oneof![
            Just(SchedulerKind::Fifo), Just(SchedulerKind::Fair), Just(SchedulerKind::Quincy)
        ],
        (attempts, keep_alive, setup) in (0.0..0.3f64, any::<bool>(), any::<bool>()),
        outages in proptest::collection::vec((0..12u32, 0..400u64, 1..2000u64), 0..5),
        slowstart in 0.0..1.0f64,
        (copy_maps, copy_reduces, lag) in (any::<bool>(), any::<bool>(), 0..100u64),
        speeds in proptest::collection::vec((0..12u32, 0.05..1.0f64), 0..3),
        (recheck, best_effort, replace) in (1..400u64, any::<bool>(), prop_oneof![
            Just(ReplaceDatanode::Default), Just(ReplaceDatanode::Always), Just(ReplaceDatanode::Never)
        ]),
        clients in proptest::option::of((0..12u32, any::<bool>())),
        seed in any::<u64>(),
    ) {
        let framework = if yarn { Framework::Yarn } else { Framework::Mr1 };
        let mut config = with(jobs, framework);
        config.scheduler = scheduler;
        config.failures.attempts = attempts;
        config.control.slowstart = slowstart;
        config.shuffle.keep_alive = keep_alive;
        config.hdfs.block_bytes = 50_000_000;
        config.failures.expiry = Span::from_secs(200 + recheck);
        let recovery = &mut config.hdfs.recovery;
        (recovery.recheck, recovery.heartbeat) = (Span::from_secs(recheck), Span::from_secs(1));
        (recovery.best_effort, recovery.replace) = (best_effort, replace);
        if let Some((host, on_one)) = clients {
            let bytes = JobBytes { input: 150_000_001, shuffle: 0, output: 120_000_003 };
            let mut job = JobSpec::fixed("c", "hdfs", at(100), bytes, 3, 0);
            let one = Clients::On(HostId(host % hosts));
            job.clients = Some(if on_one { one } else { Clients::Workers });
            config.jobs.push(job);
        }
        if setup && !yarn {
            config.hdfs.setup_bytes = 200;
            config.hdfs.namenode_time = Some(Span::from_ms(2));
        }
        let speculation = &mut config.speculation;
        (speculation.maps, speculation.reduces) = (copy_maps, copy_reduces);
        (speculation.lag, speculation.threshold) = (Span::from_secs(lag), 0.5);
        let speeds: BTreeMap<u32, f64> =
            speeds.into_iter().map(|(host, speed)| (host % (hosts - 1), speed)).collect();
        config.slow_nodes = speeds
            .into_iter()
            .map(|(host, speed)| SlowNode { host: HostId(host), speed })
            .collect();
        // No outage lasts for ever, since the master may be among the unreachable hosts.
        let outages: Vec<Outage> = outages
            .into_iter()
            .map(|(host, from, long)| outage(HostId(host % hosts), from, from + long))
            .collect();
        let seen = run_with(&config, &cluster(hosts, per_rack, seed), &outages);
        conserved(&config, &seen);
        if attempts == 0.0 && outages.is_empty() {
            prop_assert!(seen.jobs.iter().all(|j| j.failed.is_none()));
        }
        let again = run_with(&config, &cluster(hosts, per_rack, seed), &outages);
        prop_assert!(seen.log == again.log);
    }
}

#[test]
fn output_of_fewer_bytes_than_pieces_is_complete_with_the_last_piece() {
    for framework in BOTH {
        let bytes = JobBytes { input: 134_217_731, shuffle: 0, output: 2 };
        let config = with(vec![JobSpec::fixed("few", "trace", at(0), bytes, 3, 0)], framework);
        conserved(&config, &run(&config, &cluster(9, 8, 13_619_653_607_433_430_704)));
    }
}

/// Regression test of a case found by the property test. A map ran again and reported its end to
/// the application master while the answer to a reduce's last request for maps was in the network.
#[test]
fn a_reduce_asks_on_when_a_map_ends_again_while_the_answer_is_on_its_way() {
    let nothing = JobBytes { input: 0, shuffle: 0, output: 0 };
    let job = |submit, bytes, maps, reduces| {
        JobSpec::fixed("sort", "trace", at(submit), bytes, maps, reduces)
    };
    let few = JobBytes { input: 6, shuffle: 0, output: 2 };
    let jobs = vec![job(0, nothing, 1, 0), job(0, nothing, 1, 0), job(23, few, 6, 2)];
    let mut config = with(jobs, Framework::Yarn);
    config.control.slowstart = 0.0;
    config.shuffle.keep_alive = false;
    config.hdfs.block_bytes = 50_000_000;
    let gone = [outage(HostId(6), 0, 801), outage(HostId(2), 43, 801)];
    conserved(&config, &run_with(&config, &cluster(9, 3, 16_468_989_945_924_041_476), &gone));
    config.jobs = vec![
        job(0, nothing, 1, 0),
        job(0, nothing, 1, 0),
        job(78, nothing, 8, 0),
        job(78, nothing, 9, 4),
    ];
    config.scheduler = SchedulerKind::Quincy;
    config.failures.attempts = 0.225_159_921_268_793_72;
    let gone =
        [outage(HostId(7), 6, 606), outage(HostId(0), 201, 1000), outage(HostId(6), 201, 1000)];
    conserved(&config, &run_with(&config, &cluster(11, 2, 14_357_833_813_799_272_108), &gone));
}

#[test]
fn tasks_whose_end_nobody_hears_of_run_again() {
    for framework in BOTH {
        let mut config = with(vec![sort(20, 2)], framework);
        config.failures.expiry = Span::from_secs(60);
        let end = run(&config, &cluster(7, 3, 1)).end.as_secs_f64() as u64;
        for host in 0..6 {
            for when in 1..end {
                // The outage lasts until the end of the run.
                let gone = [outage(HostId(host), when, 1_000_000)];
                let seen = run_with(&config, &cluster(7, 3, 1), &gone);
                conserved(&config, &seen);
                assert_eq!(seen.job(0).failed, None, "{framework:?} {host} {when}");
            }
        }
    }
}
