//! Tests of hosts that act on their own messages and disks: hops of write pipelines, servers that
//! read from disk, connections that close from one end.

use super::network::{Outcome, cluster, run};
use crate::mapreduce::serving::MORE;
use crate::mapreduce::{JobBytes, JobSpec, MapReduceConfig, NodeConfig};
use crate::protocol::Action;
use eastwest_types::{ConnId, HostId, Purpose, Side, Span, Time};

/// Latency of the ideal network.
const LATENCY: Span = Span::from_us(100);

fn one(bytes: JobBytes, maps: u32, reduces: u32) -> MapReduceConfig {
    let job = JobSpec::fixed("j", "trace", Time::ZERO, bytes, maps, reduces);
    MapReduceConfig { jobs: vec![job], ..MapReduceConfig::default() }
}

/// Returns the connections without those of heartbeats: time, number, client and server.
fn opened(seen: &Outcome) -> Vec<(Time, ConnId, HostId, HostId)> {
    let opens = seen.log.iter().filter_map(|(at, action)| match *action {
        Action::Open { conn, client, server, .. } => Some((*at, conn, client, server)),
        _ => None,
    });
    opens.filter(|&(at, ..)| at > Time::ZERO).collect()
}

fn closed(seen: &Outcome) -> Vec<(Time, ConnId, Side)> {
    let closes = seen.log.iter().filter_map(|(at, action)| match *action {
        Action::CloseFrom { conn, from } => Some((*at, conn, from)),
        _ => None,
    });
    closes.collect()
}

#[test]
fn each_datanode_opens_and_closes_its_hop_at_its_own_messages() {
    for setup in [0, 300] {
        let bytes = JobBytes { input: 0, shuffle: 0, output: 10_000_000 };
        let mut config = one(bytes, 1, 0);
        (config.hdfs.setup_bytes, config.hdfs.output_replication) = (setup, 4);
        let seen = run(&config, &cluster(9, 3, 1));
        let opens = opened(&seen);
        assert_eq!(opens.len(), 3);
        for hop in opens.windows(2) {
            assert_eq!(hop[0].3, hop[1].2, "each hop begins where the one before ends");
            assert!(hop[1].0 >= hop[0].0 + LATENCY, "{hop:?}");
        }
        let closes = closed(&seen);
        let ends: Vec<(ConnId, Side)> = closes.iter().map(|c| (c.1, c.2)).collect();
        let expected: Vec<_> = opens.iter().rev().map(|o| (o.1, Side::Client)).collect();
        assert_eq!(ends, expected, "the last hop ends first");
        for hop in closes.windows(2) {
            assert!(hop[1].0 >= hop[0].0 + LATENCY, "{hop:?}");
        }
    }
}

/// Returns the messages of a purpose on connections that were opened for them: time, connection,
/// payload bytes, tag.
fn sent(seen: &Outcome, which: Purpose) -> Vec<(Time, ConnId, u64, u64)> {
    let sends = seen.log.iter().filter_map(|(at, action)| match *action {
        Action::Send { conn, payload, tag, purpose, .. } if purpose == which => {
            Some((*at, conn, payload, tag))
        }
        _ => None,
    });
    sends.collect()
}

#[test]
fn a_datanode_sends_a_block_in_the_runs_that_it_reads() {
    let mut config = one(JobBytes { input: 400_000_000, shuffle: 0, output: 0 }, 8, 0);
    config.node = NodeConfig { dirty_bytes: 0, ..NodeConfig::hdd() };
    (config.map_slots, config.hdfs.replication) = (1, 1);
    let (run_bytes, rate) = (config.node.run_bytes, config.node.read_rate);
    let seen = run(&config, &cluster(9, 3, 2));
    let sends = sent(&seen, Purpose::MapInput);
    let reads = opened(&seen);
    assert!(!reads.is_empty());
    for &(began, conn, ..) in &reads {
        let end = reads.iter().filter(|o| o.1 == conn && o.0 > began).map(|o| o.0).min();
        let own = |s: &&(Time, ConnId, u64, u64)| s.1 == conn && s.0 >= began;
        let runs: Vec<_> =
            sends.iter().filter(own).filter(|s| end.is_none_or(|end| s.0 < end)).collect();
        assert_eq!(runs.iter().map(|r| r.2).sum::<u64>(), 50_000_000);
        let (last, before) = runs.split_last().unwrap();
        assert!(before.iter().all(|r| (r.2, r.3) == (run_bytes, MORE)) && last.3 != MORE);
        let mut at = began + LATENCY;
        for r in &runs {
            assert!(r.0 >= at + rate.time_for(r.2), "no run is sent before it is read");
            at = r.0;
        }
    }
}

#[test]
fn map_outputs_on_disk_are_sent_as_they_are_read_and_those_in_memory_at_once() {
    for cache in [None, Some(0)] {
        let mut config = one(JobBytes::terasort(600_000_000), 4, 2);
        config.node = NodeConfig { cache_bytes: cache, ..NodeConfig::hdd() };
        config.hdfs.output_replication = 1;
        let seen = run(&config, &cluster(6, 3, 1));
        let sends = sent(&seen, Purpose::Shuffle);
        let most = sends.iter().map(|s| s.2).max().unwrap();
        if cache.is_some() {
            assert_eq!(most, config.node.run_bytes);
            assert!(sends.iter().any(|s| s.3 == MORE));
        } else {
            assert_eq!(most, 75_000_000);
            assert!(sends.iter().all(|s| s.3 != MORE));
        }
    }
}
