//! Tests of the digest: it is equal for two runs and for the two-event reference mode, and
//! different for another seed or if a single packet is treated differently.

use crate::harness::{
    attempt, context_with, finish, graph, outcome, scenario, scenario_in, shipped,
};
use eastwest_sim::scenario::Scenario;

/// Runs a scenario twice, and once in the two-event reference mode. Checks that the digests are
/// equal, and returns the digest.
fn one_digest(scenario: &Scenario) -> String {
    let eager = finish(scenario);
    assert_eq!(eager.digest(), finish(scenario).digest(), "{}: again", scenario.name);
    let reference = attempt(scenario, true).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    for table in ["links", "flows", "rounds", "tasks", "jobs", "latency"] {
        assert!(
            eager.table_text(table) == reference.table_text(table),
            "{}: table {table} differs in reference mode",
            scenario.name
        );
    }
    assert_eq!(eager.digest(), reference.digest(), "{}: reference mode", scenario.name);
    eager.digest().to_owned()
}

#[test]
fn shipped_scenarios_have_one_digest() {
    let cases: [(&str, &[(&str, &str)]); 7] = [
        ("first", &[]),
        ("s1", &[("workload.bulk.bytes", "200 KB")]),
        ("s2", &[("workload.incast.rounds", "1")]),
        ("s2", &[("workload.incast.rounds", "3"), ("tcp.min_rto", "1 ms")]),
        (
            "service",
            &[
                ("fabric.scheduler", "strict-priority"),
                ("duration", "9 s"),
                ("workload.terasort.job.0.input", "500 MB"),
            ],
        ),
        (
            "service",
            &[
                ("duration", "9 s"),
                ("workload.terasort.job.0.input", "500 MB"),
                ("fabric.queue.limit", "20 packets"),
            ],
        ),
        (
            "s3",
            &[
                ("fabric.hosts_per_leaf", "4"),
                ("workload.terasort.master", "h15"),
                ("workload.terasort.job.0.input", "300 MB"),
                ("workload.terasort.job.0.maps", "12"),
                ("workload.terasort.job.0.reduces", "15"),
                ("fabric.queue.limit", "30 packets"),
            ],
        ),
    ];
    for (name, sets) in cases {
        one_digest(&scenario(&shipped(name), sets));
    }
}

#[test]
fn the_first_jobs_of_the_trace_have_one_digest() {
    one_digest(&scenario(&shipped("demo"), &[("workload.hadoop.trace_to", "8 min")]));
}

const UNEVEN: [(&str, &str, &str, &str); 8] = [
    ("a", "s", "1 Gbit/s", "1 us"),
    ("b", "s", "100 Mbit/s", "0 s"),
    ("c", "t", "3 Gbit/s", "7 us"),
    ("d", "t", "1 Gbit/s", "5 us"),
    ("s", "u", "1 Gbit/s", "1 us"),
    ("u", "t", "300 Mbit/s", "0 s"),
    ("s", "v", "700 Mbit/s", "30 us"),
    ("v", "t", "1 Gbit/s", "2 us"),
];

#[test]
fn every_topology_routing_queue_and_mtu_has_one_digest() {
    let mesh =
        context_with("mesh.toml", &graph(&["a", "b", "c", "d"], &["s", "t", "u", "v"], &UNEVEN));
    let fabrics = [
        "kind = 'star'\nhosts = 6\nhost_rate = '1 Gbit/s'",
        "kind = 'fat-tree'\nk = 4\nhost_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'",
        "kind = 'leaf-spine'\nleaves = 3\nhosts_per_leaf = 2\nspines = 2\ncables_per_spine = 2\n\
         host_rate = '10 Gbit/s'\nuplink_rate = '7 Gbit/s'\nhost_delay = '0 s'",
        "kind = 'graph'\nfile = 'mesh.toml'",
    ];
    let settings = [
        "",
        "routing = 'round-robin'",
        "queue = { limit = '6 KB' }\nhost_queue = { limit = '7001 B' }",
        "mtu = 9000\nqueue = { limit = '40 KB' }",
        "queue = { limit = '1 packets' }\nprocessing_jitter = '0 s'",
        "framing = 0\nprocessing_jitter = '0 s'\nqueue = { limit = '5 packets' }",
    ];
    for fabric in fabrics {
        for setting in settings {
            let text = format!(
                "schema = 1\n[fabric]\n{fabric}\n{setting}\n[tcp]\nmin_rto = '1 ms'\n\
                 initial_rto = '2 ms'\ngranularity = '10 us'\n[[workload]]\nname = 'all'\n\
                 kind = 'all-to-all'\nbytes = '70 KB'\nstart_window = '10 us'\n"
            );
            one_digest(&scenario_in(&mesh, &text, &[]));
        }
    }
}

#[test]
fn another_seed_gives_another_digest() {
    let digests: Vec<String> = ["1", "2", "3"]
        .iter()
        .map(|seed| outcome(&shipped("first"), &[("seed", seed)]).digest().to_owned())
        .collect();
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
}

/// A scenario in which eight senders overload the queue of one port.
const LOSSY: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 9\nhost_rate = '1 Gbit/s'\n\
    queue = { limit = '64 packets' }\n[[workload]]\nname = 'incast'\nkind = 'incast'\n\
    receiver = 'h8'\nblock_bytes = '100 KB'\n";

#[test]
fn the_fate_of_a_single_packet_changes_the_digest() {
    let base = outcome(LOSSY, &[]);
    assert!(base.count("packets.dropped") > 0);
    // with one more place in the queue, the packet that was lost first is not lost
    let roomier = outcome(LOSSY, &[("fabric.queue.limit", "65 packets")]);
    assert_ne!(base.digest(), roomier.digest());
    // one more nanosecond of cable delay moves every arrival
    let slower = outcome(LOSSY, &[("fabric.host_delay", "5.001 us")]);
    assert_ne!(base.digest(), slower.digest());
}

#[test]
fn a_packet_that_only_its_port_saw_changes_the_digest() {
    // Datagrams have no rows in tables. The last of 101 datagrams fits into the queue in one run
    // and is lost in the other.
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n\
        [[workload]]\nname = 'd'\nkind = 'datagrams'\nsources = ['h0', 'h1']\ndestination = 'h2'\n\
        bytes = 1500\narrivals = 'periodic'\nmean_gap = '12 us'\npackets = 200\n";
    let lost = |limit: &str| {
        let done = outcome(text, &[("fabric.queue.limit", limit)]);
        (done.count("packets.dropped"), done.digest().to_owned())
    };
    let mut seen: Vec<(u64, String)> = Vec::new();
    for limit in 60..100 {
        let (n, digest) = lost(&format!("{limit} packets"));
        for (other, theirs) in &seen {
            assert_eq!(n == *other && n == 0, digest == *theirs, "{limit}: {n} and {other} lost");
        }
        seen.push((n, digest));
    }
    assert!(seen.windows(2).any(|w| w[0].0 == w[1].0 + 1), "never one packet's difference");
    assert!(seen.iter().filter(|s| s.0 == 0).count() >= 2, "never without loss");
}
