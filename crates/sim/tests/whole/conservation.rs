//! Tests that packets and bytes are conserved: sent = delivered + dropped + in flight, on every
//! fabric, with and without loss, at the end and in the middle of a run.

use crate::harness::{attempt, outcome, scenario, shipped};

/// Fabrics of every shape, on which flows overload small queues: name and lines of `[fabric]`.
const SHAPES: [(&str, &str); 4] = [
    ("leaf-spine", "leaves = 2\nhosts_per_leaf = 4\nspines = 2\nuplink_rate = '1 Gbit/s'"),
    ("star", "hosts = 8"),
    ("fat-tree", "k = 4\nuplink_rate = '1 Gbit/s'"),
    ("leaf-spine", "leaves = 8\nhosts_per_leaf = 1\nspines = 3\nuplink_rate = '100 Mbit/s'"),
];

const QUEUES: [&str; 3] = ["3 packets", "9 KB", "200 packets"];

fn pattern(shape: usize, queue: &str, tcp: &str) -> String {
    let (kind, rest) = SHAPES[shape];
    format!(
        "schema = 1\n[fabric]\nkind = '{kind}'\nhost_rate = '1 Gbit/s'\n{rest}\n\
         queue = {{ limit = '{queue}' }}\n[tcp]\nmin_rto = '2 ms'\ninitial_rto = '3 ms'\n{tcp}\n\
         [[workload]]\nname = 'flows'\nkind = 'all-to-all'\nbytes = '60 KB'\n"
    )
}

#[test]
fn patterns_on_every_fabric_with_and_without_sack() {
    for shape in 0..SHAPES.len() {
        for queue in QUEUES {
            for tcp in ["", "sack = false", "timestamps = false\nack_every = 1"] {
                let text = pattern(shape, queue, tcp);
                let done = outcome(&text, &[]);
                done.assert_conserved();
                assert_eq!(done.count("flows.count"), done.count("flows.completed"), "{text}");
                assert_eq!(done.count("flows.bytes"), 60_000 * done.count("flows.count"));
                let carried: u64 = done.u64s("flows", "bytes").iter().sum();
                assert_eq!(carried, done.count("flows.bytes"));
                if queue == "3 packets" {
                    assert!(done.count("packets.dropped") > 0, "no loss, a weak test: {text}");
                }
            }
        }
    }
}

#[test]
fn runs_cut_in_the_middle_account_for_what_is_under_way() {
    let mut under_way = 0;
    for cut in ["50 us", "333 us", "1.5 ms", "4 ms"] {
        for shape in 0..SHAPES.len() {
            let done = outcome(&pattern(shape, "9 KB", ""), &[("duration", cut)]);
            done.assert_conserved();
            assert_eq!(done.number("simulated_s") * 1e6, micros(cut), "{cut}");
            under_way += done.count("packets.in_flight");
        }
    }
    assert!(under_way > 100, "hardly anything was under way: {under_way}");
}

fn micros(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').expect("a number and a unit");
    let number: f64 = number.parse().expect("a number");
    if unit == "ms" { number * 1e3 } else { number }
}

#[test]
fn shipped_scenarios_in_small() {
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("first", &[]),
        ("s1", &[("workload.bulk.bytes", "50 KB")]),
        ("s2", &[("workload.incast.rounds", "2"), ("workload.incast.senders", "[\"h0..h19\"]")]),
        ("service", &[("duration", "6 s"), ("fabric.queue.limit", "20 packets")]),
        (
            "eeon_ch5_shallow",
            &[
                ("fabric.hosts_per_leaf", "4"),
                ("workload.terasort.master", "h15"),
                ("workload.terasort.job.0.input", "200 MB"),
                ("workload.terasort.job.0.maps", "10"),
                ("workload.terasort.job.0.reduces", "15"),
                ("fabric.queue.limit", "10 packets"),
            ],
        ),
        ("demo", &[("workload.hadoop.trace_to", "3 min")]),
    ];
    for (name, sets) in cases {
        for reference in [false, true] {
            let done = attempt(&scenario(&shipped(name), sets), reference)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            done.assert_conserved();
            assert!(done.count("packets.sent") > 1_000, "{name}");
        }
    }
}

#[test]
fn datagrams_that_overrun_a_port_are_counted_one_by_one() {
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n\
        framing = 0\nqueue = { limit = '5 packets' }\n[[workload]]\nname = 'burst'\n\
        kind = 'datagrams'\nsources = ['h0', 'h1']\ndestination = 'h2'\nbytes = 1500\n\
        arrivals = 'periodic'\nmean_gap = '12 us'\npackets = 20000\n";
    let done = outcome(text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("packets.sent"), 20_000);
    // two sources send at full rate into one port, so that every second packet is lost
    let lost = done.count("drops.full.datagram") as f64;
    assert!((lost - 10_000.0).abs() < 20.0, "{lost} of 20000 lost");
    assert_eq!(done.count("packets.dropped"), done.count("drops.full.datagram"));
}
