//! Tests of TCP small queues in a whole scenario: a host whose NIC is much slower than its senders,
//! with a deep queue, and as many receivers behind a switch.

use crate::harness::{Outcome, attempt, scenario};

fn shuffle(more: &[(&str, &str)], reference: bool) -> Outcome {
    let text = "schema = 1\nduration = '60 s'\n[fabric]\nkind = 'star'\nhosts = 5\n\
                host_rate = '20 Mbit/s'\nhost_delay = '20 us'\nqueue = { limit = '1 MB' }\n\
                host_queue = { limit = '2 MB' }\n[tcp]\nprofile = 'linux'\n\
                congestion = 'new-reno'\nhystart = 'off'\nmax_window = '4 MiB'\n\
                [[workload]]\nname = 'shuffle'\nkind = 'mapreduce'\n\
                hdfs = { replication = 4, output_replication = 1, block_bytes = '4 MB' }\n\
                split_bytes = '4 MB'\n[[workload.job]]\nkind = 'shuffle'\nshuffle = '16 MB'\n\
                maps = 4\nreduces = 4\n";
    attempt(&scenario(text, more), reference).expect("it finishes")
}

/// Returns the largest number of bytes queued at the NIC of any host, and at any port of the
/// switch.
fn longest(done: &Outcome) -> (u64, u64) {
    let from = done.texts("links", "src");
    let most = |at_host: bool| {
        let bytes = from.iter().zip(done.u64s("links", "queue_max_bytes"));
        let bytes = bytes.filter(|(name, _)| name.starts_with('h') == at_host);
        bytes.map(|(_, bytes)| bytes).max().expect("links")
    };
    (most(true), most(false))
}

#[test]
fn the_queue_in_the_host_stays_short() {
    let without = shuffle(&[("tcp.small_queues", "false")], false);
    let with = shuffle(&[], false);
    let bursts = shuffle(&[("tcp.segmentation_offload", "true")], false);
    for done in [&without, &with, &bursts] {
        done.assert_conserved();
    }
    // the NIC holds two packets of each of some connections, and packets of handshakes
    assert!(longest(&without).0 > 300_000, "{:?}", longest(&without));
    assert!(longest(&with).0 < 25_000, "{:?}", longest(&with));
    // bursts of 45 segments: up to 56 segments may be queued when the next burst is sent
    assert!(longest(&bursts).0 < 4 * 160_000, "{:?}", longest(&bursts));
    assert!(longest(&with).0 < longest(&bursts).0);
    let time = |done: &Outcome| done.f64s("jobs", "runtime_s")[0];
    assert!(time(&with) <= time(&without) * 1.05, "{} {}", time(&with), time(&without));
}

#[test]
fn both_kinds_of_ports_agree() {
    for offload in ["false", "true"] {
        let set = [("tcp.segmentation_offload", offload)];
        assert_eq!(shuffle(&set, false).digest(), shuffle(&set, true).digest());
    }
}
