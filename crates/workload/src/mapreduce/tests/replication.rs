//! Tests of lost datanodes: their blocks are copied, pipelines get replacements, readers avoid
//! them.

use super::network::{Outage, Outcome, cluster, run, run_with};
use crate::mapreduce::{
    Clients, JobBytes, JobSpec, MapReduce, MapReduceConfig, RecoveryConfig, ReplaceDatanode,
};
use crate::protocol::Action;
use eastwest_types::{HostId, Purpose, Span, TaskKind, Time};

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// Returns an outage of a host that begins at `from` seconds and never ends.
fn gone(host: HostId, from: u64) -> Outage {
    Outage { host, from: at(from), to: at(1_000_000) }
}

/// Returns settings with two jobs, the second submitted 2000 s after the first; the namenode
/// declares datanodes dead after 30 s.
fn twice(maps: u32) -> MapReduceConfig {
    let bytes = JobBytes { input: u64::from(maps) * 64_000_000, shuffle: 0, output: 0 };
    let jobs = [0, 2000].map(|s| JobSpec::fixed("read", "trace", at(s), bytes, maps, 0)).to_vec();
    let mut config = MapReduceConfig { jobs, ..MapReduceConfig::default() };
    config.failures.expiry = Span::from_secs(30);
    config.failures.block_timeout = Span::from_secs(20);
    let recovery = &mut config.hdfs.recovery;
    (recovery.recheck, recovery.heartbeat) = (Span::from_secs(10), Span::from_secs(1));
    config
}

/// Returns settings in which a client on host `on` writes one block of 8 GB, followed by a second
/// job long after it.
fn writes(on: u32) -> MapReduceConfig {
    let bytes = JobBytes { input: 0, shuffle: 0, output: 8_000_000_000 };
    let mut config = twice(1);
    config.jobs[0].bytes = bytes;
    config.jobs[0].clients = Some(Clients::On(HostId(on)));
    config.hdfs.block_bytes = 16_000_000_000;
    config
}

fn blocks_on(config: &MapReduceConfig, hosts: u32, worker: u32) -> usize {
    let model = MapReduce::new(config.clone(), &cluster(hosts, 3, 1)).unwrap();
    model.nodes.hdfs.replicas.blocks.on(&model.nodes.cx, worker).len()
}

#[test]
fn the_blocks_of_a_dead_datanode_are_copied_once_each() {
    let config = twice(40);
    let lost = blocks_on(&config, 9, 2);
    assert!(lost > 15, "{lost}");
    let seen = run_with(&config, &cluster(9, 3, 1), &[gone(HostId(2), 5)]);
    assert!(seen.jobs.iter().all(|job| job.failed.is_none()));
    assert_eq!(seen.copies.len(), lost);
    let dead = |(from, to, _): &&(HostId, HostId, u64)| [*from, *to].contains(&HostId(2));
    assert_eq!(seen.copies.iter().filter(dead).count(), 0);
    assert!(seen.copies.iter().all(|&(.., bytes)| bytes == 64_000_000));
    let reaches = |(when, action): &&(Time, Action)| {
        matches!(action, Action::Open { server: HostId(2), .. }) && *when > at(60)
    };
    assert_eq!(seen.log.iter().filter(reaches).count(), 0, "nobody reads from it any more");
}

#[test]
fn a_datanode_sends_few_copies_at_once() {
    let times = |config: &MapReduceConfig| {
        let seen = run_with(config, &cluster(9, 3, 1), &[gone(HostId(2), 5)]);
        let sent = |(when, action): &(Time, Action)| {
            let copy = matches!(action, Action::Send { purpose: Purpose::Rereplication, .. });
            copy.then_some(*when)
        };
        let all: Vec<Time> = seen.log.iter().filter_map(sent).collect();
        (all.len(), all.last().unwrap().since(all[0]))
    };
    let mut config = twice(40);
    config.node.disks = Some(1);
    let usual = times(&config);
    (config.hdfs.recovery.streams, config.hdfs.recovery.streams_hard) = (1, 1);
    let slow = times(&config);
    assert!(slow.0 == usual.0 && slow.1 > usual.1, "{usual:?} {slow:?}");
    (config.hdfs.recovery.streams, config.hdfs.recovery.streams_hard) = (0, 0);
    let seen = run_with(&config, &cluster(9, 3, 1), &[gone(HostId(2), 5)]);
    assert!(seen.copies.is_empty(), "without streams nothing is copied");
}

#[test]
fn a_datanode_that_comes_back_brings_its_blocks() {
    let mut config = twice(60);
    config.hdfs.recovery.work = 0;
    let back = [Outage { host: HostId(2), from: at(5), to: at(900) }];
    let seen = run_with(&config, &cluster(9, 3, 1), &back);
    assert!(seen.copies.is_empty());
    let again = seen.tasks_of(1, TaskKind::Map);
    assert!(again.iter().any(|t| t.host == HostId(2)));
}

#[test]
fn a_block_without_replicas_fails_its_job_at_once() {
    let mut config = twice(30);
    config.hdfs.replication = 1;
    config.jobs.remove(0);
    let seen = run_with(&config, &cluster(6, 3, 1), &[gone(HostId(1), 5)]);
    let reason = "a map failed too often: no datanode had a block of its split";
    assert_eq!(seen.job(0).failed, Some(reason));
    // Four attempts with four searches each. No attempt waits for a datanode that is known to be
    // dead.
    let took = seen.job(0).finished.since(at(2000));
    assert!((Span::from_secs(20)..Span::from_secs(300)).contains(&took), "{took}");
    config.hdfs.replication = 2;
    let seen = run_with(&config, &cluster(6, 3, 1), &[gone(HostId(1), 5)]);
    assert_eq!(seen.job(0).failed, None);
}

#[test]
fn a_reader_looks_again_before_it_gives_up() {
    let mut config = twice(12);
    config.jobs.remove(0);
    config.hdfs.replication = 1;
    // The host returns a little after the job's maps have begun to search for their splits.
    let away = [Outage { host: HostId(1), from: at(5), to: at(2012) }];
    let seen = run_with(&config, &cluster(4, 2, 3), &away);
    assert_eq!(seen.job(0).failed, None);
    config.hdfs.recovery.acquire_failures = 0;
    config.failures.map_attempts = 1;
    let seen = run_with(&config, &cluster(4, 2, 3), &away);
    assert!(seen.job(0).failed.is_some());
}

/// Returns the two other datanodes of a pipeline whose writer is on host 0.
fn pipeline(config: &MapReduceConfig, hosts: u32) -> (HostId, HostId) {
    let calm = run(config, &cluster(hosts, 3, 1));
    let ends: Vec<_> = calm.replicas.keys().collect();
    let first = ends.iter().find(|(from, _)| *from == HostId(0)).unwrap().1;
    (first, ends.iter().find(|(from, _)| *from == first).unwrap().1)
}

fn replaced(seen: &Outcome) -> u128 {
    seen.payload(Purpose::Rereplication, 0)
}

#[test]
fn a_pipeline_with_one_datanode_left_gets_another() {
    let mut config = writes(0);
    let (first, second) = pipeline(&config, 9);
    let one = [gone(second, 8)];
    let seen = run_with(&config, &cluster(9, 3, 1), &one);
    assert_eq!((seen.job(0).failed, replaced(&seen)), (None, 0), "two of three are enough");
    // When the file is complete, the namenode makes a datanode copy its missing replica.
    let block = |seen: &Outcome| seen.copies.iter().filter(|c| c.2 == 8_000_000_000).count();
    assert_eq!(block(&seen), 1);
    let both = [gone(second, 8), gone(first, 45)];
    let seen = run_with(&config, &cluster(9, 3, 1), &both);
    assert_eq!(seen.job(0).failed, None);
    let sent = replaced(&seen);
    assert!((100_000_000..8_000_000_000).contains(&sent), "what there was of the block: {sent}");
    assert_eq!(block(&seen), 1);
    config.hdfs.recovery.replace = ReplaceDatanode::Never;
    let seen = run_with(&config, &cluster(9, 3, 1), &both);
    assert_eq!((replaced(&seen), block(&seen)), (0, 2));
    config.hdfs.recovery.replace = ReplaceDatanode::Always;
    let seen = run_with(&config, &cluster(9, 3, 1), &one);
    assert!(replaced(&seen) > 0);
    assert_eq!(block(&seen), 0);
}

/// Regression test of a case found by the property test: the namenode learns of a file's blocks
/// when the file is complete, long after its first blocks were written.
#[test]
fn a_datanode_that_dies_before_a_file_is_complete_does_not_hold_its_first_blocks() {
    let mut config = writes(0);
    config.hdfs.block_bytes = 1_000_000_000;
    let end = run(&config, &cluster(9, 3, 1)).job(0).finished;
    assert!(at(20 + 40) < end, "who goes is dead before the file is complete: {end}");
    let mut copied = 0;
    for host in (1..8).map(HostId) {
        let seen = run_with(&config, &cluster(9, 3, 1), &[gone(host, 20)]);
        assert_eq!(seen.job(0).failed, None);
        assert!(seen.copies.iter().all(|&(from, to, _)| from != host && to != host));
        copied += seen.copies.iter().filter(|c| c.2 == 1_000_000_000).count();
    }
    assert!(copied > 0, "what was written to them is copied: {copied}");
}

#[test]
fn a_write_fails_where_no_datanode_is_left_to_take_over() {
    let mut config = writes(0);
    let (first, second) = pipeline(&config, 4);
    let both = [gone(second, 8), gone(first, 45)];
    let seen = run_with(&config, &cluster(4, 3, 1), &both);
    assert_eq!(seen.job(0).failed, Some("an HDFS client had no datanode left to write to"));
    config.hdfs.recovery.best_effort = true;
    let seen = run_with(&config, &cluster(4, 3, 1), &both);
    assert_eq!(seen.job(0).failed, None);
}

#[test]
fn a_block_begins_with_others_where_its_pipeline_cannot_be_set_up() {
    let mut config = MapReduceConfig::hadoop3();
    config.jobs = writes(8).jobs;
    config.jobs.truncate(1);
    config.failures.block_timeout = Span::from_secs(20);
    let calm = run(&config, &cluster(9, 3, 1));
    let used: Vec<HostId> = calm.replicas.keys().map(|&(_, to)| to).collect();
    for host in 0..8 {
        // The lost datanode is not declared dead before the file is complete.
        let seen = run_with(&config, &cluster(9, 3, 1), &[gone(HostId(host), 1)]);
        assert_eq!(seen.job(0).failed, None);
        assert_eq!(replaced(&seen), 0);
        assert!(!used.contains(&HostId(host)) || seen.end > calm.end);
    }
}

#[test]
fn a_reduce_that_cannot_fetch_gives_up_and_runs_elsewhere() {
    let bytes = JobBytes::terasort(640_000_000);
    let job = JobSpec::fixed("sort", "trace", Time::ZERO, bytes, 10, 1);
    let mut config = MapReduceConfig { jobs: vec![job], ..MapReduceConfig::hadoop3() };
    config.control.slowstart = 1.0;
    config.failures.fetch_timeout = Span::from_secs(20);
    let calm = run(&config, &cluster(9, 3, 1));
    let reduce = calm.tasks_of(0, TaskKind::Reduce)[0];
    let away = Outage {
        host: reduce.host,
        from: reduce.started,
        to: reduce.started + Span::from_secs(400),
    };
    let seen = run_with(&config, &cluster(9, 3, 1), &[away]);
    assert_eq!(seen.job(0).failed, None);
    let again = seen.tasks_of(0, TaskKind::Reduce)[0];
    assert!(again.assigned > away.to, "a second attempt: {}", again.assigned);
    let settings = RecoveryConfig::default();
    assert!(settings.dead_after() > Span::from_secs(400), "its datanode was never dead");
}
