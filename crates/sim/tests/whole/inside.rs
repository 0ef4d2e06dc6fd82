//! Looking inside: events, samples of links and positions in streams agree with the counters, are
//! the same in both port modes, and change nothing.

use crate::harness::{Outcome, attempt, context_with, finish, graph, outcome, scenario, shipped};

/// Eight senders into one port: losses of all kinds, timeouts and recoveries.
const LOSSY: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 9\nhost_rate = '1 Gbit/s'\n\
    queue = { limit = '30 packets' }\n[[workload]]\nname = 'incast'\nkind = 'incast'\n\
    receiver = 'h8'\nblock_bytes = '600 KB'\nrounds = 3\n";

fn count(run: &Outcome, what: &str) -> u64 {
    run.texts("events", "what").iter().filter(|w| **w == what).count() as u64
}

#[test]
fn events_agree_with_the_counters() {
    let fast = ("tcp.min_rto", "1 ms");
    let shallow = ("fabric.queue.limit", "10 packets");
    for (text, sets) in [
        (LOSSY, vec![]),
        (LOSSY, vec![fast, shallow]),
        (LOSSY, vec![("tcp.sack", "false"), ("tcp.timestamps", "false")]),
        (&shipped("s1"), vec![("workload.bulk.bytes", "200 KB")]),
        (&shipped("service"), vec![("duration", "3 s"), shallow]),
    ] {
        let run = outcome(text, &sets);
        let log = |name: &str| run.count(&format!("event_log.{name}"));
        assert_eq!((log("rows"), log("left_out")), (run.f64s("events", "time_s").len() as u64, 0));
        assert_eq!(count(&run, "drop"), run.count("packets.dropped"));
        assert_eq!(count(&run, "timeout"), run.count("tcp.timeouts"));
        assert_eq!(count(&run, "recovery"), run.count("tcp.fast_recoveries"));
        assert_eq!(count(&run, "spurious"), run.count("tcp.spurious_timeouts"));
        assert!(run.f64s("events", "time_s").is_sorted());
        // drops by kind and link
        let (kinds, links) = (run.texts("events", "kind"), run.i64s("events", "link"));
        for kind in ["data", "retransmission", "ack", "syn", "syn_ack", "fin", "datagram"] {
            let column = run.u64s("links", &format!("drops_{kind}"));
            let mut counted = vec![0; column.len()];
            for (_, link) in kinds.iter().zip(links).filter(|(k, _)| **k == kind) {
                counted[*link as usize] += 1;
            }
            assert_eq!(counted, column, "{kind}");
        }
    }
}

#[test]
fn what_is_lost_lies_in_its_stream_and_is_sent_again() {
    let run = outcome(LOSSY, &[("fabric.queue.limit", "12 packets")]);
    let names = run.texts("events", "what");
    let connections = run.i64s("events", "connection");
    let (src, dst) = (run.u64s("events", "src"), run.u64s("events", "dst"));
    let (start, bytes) = (run.u64s("events", "stream_start"), run.u64s("events", "bytes"));
    let kinds = run.texts("events", "kind");
    // where each connection's stream of blocks ends
    let mut ends = std::collections::BTreeMap::new();
    let flow = |column: &str| run.u64s("flows", column);
    let (of, starts, sizes) = (flow("connection"), flow("stream_start"), flow("bytes"));
    for i in 0..of.len() {
        let end = ends.entry((of[i], flow("src")[i], flow("dst")[i])).or_insert(0);
        assert!(starts[i] >= *end, "messages of a stream follow each other");
        *end = starts[i] + sizes[i];
    }
    let mut again = 0;
    for i in (0..names.len()).filter(|&i| names[i] == "drop") {
        assert!(connections[i] >= 0 && run.texts("events", "cause")[i] == "queue-full");
        if bytes[i] > 0 {
            let stream = (connections[i] as u64, src[i], dst[i]);
            assert!(start[i] + bytes[i] <= ends[&stream], "{stream:?} at {}", start[i]);
            again += u64::from(kinds[i] == "retransmission");
        }
    }
    // what is lost again has been lost before, and a timeout is about bytes that were lost
    for i in 0..names.len() {
        let lost_before = |position: u64| {
            (0..i).any(|j| {
                names[j] == "drop"
                    && (connections[j], src[j]) == (connections[i], src[i])
                    && (start[j]..start[j] + bytes[j]).contains(&position)
            })
        };
        if names[i] == "timeout" && bytes[i] > 0 {
            assert!(lost_before(start[i]), "a timeout without a loss at {}", start[i]);
        }
    }
    assert!(again > 0 && count(&run, "timeout") > 0);
}

#[test]
fn connections_are_numbered_in_order_of_opening_though_slots_are_used_again() {
    let hosts = graph(
        &["a", "b"],
        &["s"],
        &[("a", "s", "1 Gbit/s", "1 us"), ("b", "s", "1 Gbit/s", "1 us")],
    );
    let context = context_with("two.toml", &hosts);
    let text = "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'two.toml'\n[tcp]\n\
        time_wait = '0 s'\n[[workload]]\nname = 'p'\nkind = 'poisson'\nload = 0.1\n\
        sizes = '3 KB'\nflows = 200\n";
    let run = finish(&crate::harness::scenario_in(&context, text, &[]));
    let mut numbers = run.u64s("flows", "connection");
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    assert!(run.u64s("flows", "stream_start").iter().all(|&s| s == 0));
}

#[test]
fn samples_of_links_add_up_to_those_of_tiers() {
    for sets in [vec![], vec![("measure.sample_interval", "100 us")]] {
        let run = outcome(LOSSY, &sets);
        let tier_of = run.texts("links", "tier");
        let (time, link) = (run.f64s("link_samples", "time_s"), run.u64s("link_samples", "link"));
        let bytes = run.u64s("link_samples", "bytes");
        let mut sums = std::collections::BTreeMap::new();
        for i in 0..time.len() {
            assert!(bytes[i] > 0 || run.u64s("link_samples", "drops")[i] > 0);
            *sums.entry((time[i].to_bits(), tier_of[link[i] as usize])).or_insert(0) += bytes[i];
        }
        let (traffic, tiers) = (run.f64s("traffic", "time_s"), run.texts("traffic", "tier"));
        for (i, &bytes) in run.u64s("traffic", "bytes").iter().enumerate() {
            let sum = sums.remove(&(traffic[i].to_bits(), tiers[i])).unwrap_or(0);
            assert_eq!(sum, bytes, "at {} s", traffic[i]);
        }
        assert!(sums.is_empty());
        let lost: u64 = run.u64s("link_samples", "drops").iter().sum();
        assert!(lost > 0 && lost <= run.count("packets.dropped"));
    }
}

#[test]
fn looking_changes_nothing_and_both_modes_show_the_same() {
    let eager = outcome(LOSSY, &[]);
    let reference = attempt(&scenario(LOSSY, &[]), true).unwrap();
    for table in ["events", "link_samples", "flows"] {
        assert!(eager.table_text(table) == reference.table_text(table), "{table}");
    }
    let off = outcome(LOSSY, &[("measure.events", "0")]);
    assert_eq!(off.digest(), eager.digest());
    assert_eq!((off.count("event_log.rows"), off.count("event_log.left_out")), (0, 0));
    let few = outcome(LOSSY, &[("measure.events", "10")]);
    assert_eq!(few.digest(), eager.digest());
    let rows = eager.count("event_log.rows");
    assert_eq!((few.count("event_log.rows"), few.count("event_log.left_out")), (10, rows - 10));
    assert!(eager.table_text("events").starts_with(&few.table_text("events")));
}
