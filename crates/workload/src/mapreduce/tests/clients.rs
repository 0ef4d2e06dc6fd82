//! Tests of stand-alone HDFS clients: bytes moved, requests to the namenode, framing.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::{Clients, HdfsConfig, JobBytes, JobSpec, MapReduceConfig};
use crate::protocol::Action;
use eastwest_types::{HostId, Locality, Purpose, Side, Span, Time};

fn operation(input: u64, output: u64, count: u32, clients: Clients) -> MapReduceConfig {
    let bytes = JobBytes { input, shuffle: 0, output };
    let mut job = JobSpec::fixed("op", "hdfs", Time::ZERO, bytes, count, 0);
    job.clients = Some(clients);
    let hdfs = HdfsConfig { setup_bytes: 301, ..HdfsConfig::hadoop3() };
    MapReduceConfig { jobs: vec![job], hdfs, ..MapReduceConfig::default() }
}

/// Returns the framing bytes of all messages that were sent for a purpose.
fn framing(seen: &Outcome, wanted: Purpose) -> u64 {
    let header = |(_, action): &(Time, Action)| match action {
        Action::Send { purpose, header, .. } if *purpose == wanted => u64::from(*header),
        _ => 0,
    };
    seen.log.iter().map(header).sum()
}

#[test]
fn packets_carry_headers_and_checksums() {
    let hdfs = HdfsConfig::default();
    // 126 checksums of 512 B and a header of 31 B make a packet of 65,047 B of at most 65,536.
    assert_eq!(hdfs.write_framing(64_512), 126 * 4 + 31);
    assert_eq!(hdfs.write_framing(64_513), 127 * 4 + 2 * 31);
    assert_eq!(hdfs.read_framing(65_536), 128 * 4 + 31);
    assert_eq!(HdfsConfig { bytes_per_checksum: 0, ..hdfs }.write_framing(1 << 20), 0);
}

#[test]
fn a_client_on_the_master_writes_over_the_network() {
    let block = 64 << 20;
    let mut config = operation(0, 2 * block, 1, Clients::On(HostId(4)));
    config.hdfs.block_bytes = block;
    for copies in [1, 3] {
        config.hdfs.output_replication = copies;
        let seen = run(&config, &cluster(5, 5, 1));
        assert_eq!(seen.payload(Purpose::Replica, 0), u128::from(copies) * 2 * u128::from(block));
        let first: u64 = seen.replicas.iter().filter(|r| r.0.0 == HostId(4)).map(|r| *r.1).sum();
        assert_eq!(first, 2 * block, "the client sends every byte once");
        // A block of 67,108,864 B is 1,041 packets of up to 64,512 B.
        let per_block = 67_108_864 / 512 * 4 + 1_041 * 31;
        assert_eq!(framing(&seen, Purpose::Replica), u64::from(copies) * 2 * per_block);
        // 135.3 MB (two blocks with framing) at 1 Gbit/s.
        let task = &seen.tasks[0];
        let lasted = task.finished.since(task.started).as_secs_f64();
        assert!((1.0826..1.12).contains(&lasted), "{lasted}");
        assert_eq!(seen.job(0).output_bytes, 2 * block);
    }
}

/// Returns the number of requests to the namenode: control messages without a job that are not
/// heartbeats.
fn questions(seen: &Outcome, hdfs: &HdfsConfig) -> usize {
    let asked = |action: &Action| match action {
        Action::Send {
            from: Side::Client, payload, purpose: Purpose::Control, job: None, ..
        } => *payload == u64::from(hdfs.namenode_request_bytes),
        _ => false,
    };
    seen.log.iter().filter(|(_, action)| asked(action)).count()
}

#[test]
fn clients_ask_the_namenode_for_files_and_blocks() {
    let mut config = operation(0, 30_000_000, 4, Clients::Workers);
    config.hdfs.block_bytes = 3_000_000;
    let seen = run(&config, &cluster(5, 5, 1));
    // Each of four clients writes 7.5 MB in three blocks: create, three times addBlock, complete.
    assert_eq!(questions(&seen, &config.hdfs), 4 * 5);
    assert_eq!(seen.payload(Purpose::Replica, 0), 60_000_000, "one replica of three is local");
    config.hdfs.namenode_time = None;
    let silent = run(&config, &cluster(5, 5, 1));
    assert_eq!(questions(&silent, &config.hdfs), 0);
    assert!(silent.job(0).finished < seen.job(0).finished);
}

#[test]
fn reads_prefer_the_own_disk() {
    let mut config = operation(40_000_000, 0, 4, Clients::Workers);
    config.hdfs.replication = 4;
    let seen = run(&config, &cluster(5, 5, 1));
    assert_eq!(seen.payload(Purpose::MapInput, 0), 0);
    assert!(seen.tasks.iter().all(|t| t.locality == Locality::Node && t.bytes_in == 10_000_000));
    // A client on the master has no local replica: every byte comes over the network.
    let config = operation(40_000_000, 0, 1, Clients::On(HostId(4)));
    let seen = run(&config, &cluster(5, 5, 1));
    assert_eq!(seen.payload(Purpose::MapInput, 0), 40_000_000);
    assert_eq!(seen.tasks[0].locality, Locality::Remote);
}

#[test]
fn a_slow_namenode_delays_every_block() {
    let mut config = operation(0, 8_000_000, 1, Clients::On(HostId(4)));
    config.hdfs.block_bytes = 2_000_000;
    let lasted = |config: &MapReduceConfig| {
        let seen = run(config, &cluster(5, 5, 1));
        seen.tasks[0].finished.since(seen.tasks[0].started).as_secs_f64()
    };
    let quick = lasted(&config);
    config.hdfs.namenode_time = Some(Span::from_ms(101));
    // Six requests: create, four times addBlock, complete.
    assert!((lasted(&config) - quick - 0.6).abs() < 1e-9);
}
