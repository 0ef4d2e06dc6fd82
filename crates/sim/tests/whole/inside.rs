//! Tests of events, samples of links and positions in streams: they agree with the counters, are
//! equal in both port modes, and do not change the run.

use crate::harness::{Outcome, attempt, context_with, finish, graph, outcome, scenario, shipped};

/// A scenario in which eight senders overload one port: losses of all kinds, timeouts and
/// recoveries.
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
        // the number of drop events equals the counters, by kind of packet and link
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
    // end of the stream of blocks of each connection
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
    // data that is lost as a retransmission was lost before, and a timeout concerns bytes that were
    // lost
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

/// Returns the index of the latest row at or before `time` in the trace of a stream (connection,
/// sender); `None` before its first row.
fn row_at(run: &Outcome, connection: u64, src: u64, time: f64) -> Option<usize> {
    let (of, from) = (run.u64s("tcp_trace", "connection"), run.u64s("tcp_trace", "src"));
    let times = run.f64s("tcp_trace", "time_s");
    (0..of.len()).rev().find(|&i| of[i] == connection && from[i] == src && times[i] <= time)
}

#[test]
fn traces_show_what_losses_do_to_the_window() {
    let run = outcome(LOSSY, &[("measure.tcp_trace", "*"), ("fabric.queue.limit", "12 packets")]);
    assert_eq!(run.digest(), outcome(LOSSY, &[("fabric.queue.limit", "12 packets")]).digest());
    let (cwnd, phase) = (run.u64s("tcp_trace", "cwnd_bytes"), run.texts("tcp_trace", "phase"));
    let what = run.texts("events", "what");
    let (connections, src) = (run.i64s("events", "connection"), run.u64s("events", "src"));
    let mut seen = [0, 0];
    for (i, &time) in run.f64s("events", "time_s").iter().enumerate() {
        let row = || row_at(&run, connections[i] as u64, src[i], time).expect("it is traced");
        if what[i] == "timeout" && run.u64s("events", "bytes")[i] > 0 {
            assert_eq!((phase[row()], cwnd[row()]), ("loss", 1448));
            seen[0] += 1;
        } else if what[i] == "recovery" {
            assert_eq!(phase[row()], "recovery");
            let threshold = run.i64s("tcp_trace", "ssthresh_bytes")[row()];
            assert_eq!(threshold as u64, cwnd[row()]);
            seen[1] += 1;
        }
    }
    assert!(seen[0] > 3 && seen[1] > 3, "{seen:?}");
    // a trace begins in slow start with a window of ten segments, and no row repeats the row before
    let mut last = std::collections::BTreeMap::new();
    let threshold = run.i64s("tcp_trace", "ssthresh_bytes");
    for (i, &connection) in run.u64s("tcp_trace", "connection").iter().enumerate() {
        let now = (cwnd[i], threshold[i], phase[i]);
        let stream = (connection, run.u64s("tcp_trace", "src")[i]);
        match last.insert(stream, now) {
            None => assert_eq!(now, (14_480, -1, "slow-start")),
            Some(before) => assert_ne!(before, now),
        }
    }
    assert!(run.f64s("tcp_trace", "srtt_us").iter().all(|&t| t < 1e6));
}

#[test]
fn only_chosen_streams_are_traced_and_a_full_table_counts_the_rest() {
    let pairs = |run: &Outcome| {
        let (src, dst) = (run.u64s("tcp_trace", "src"), run.u64s("tcp_trace", "dst"));
        src.into_iter().zip(dst).collect::<std::collections::BTreeSet<_>>()
    };
    let all = outcome(LOSSY, &[("measure.tcp_trace", "*")]);
    // the receiver sends only acknowledgements, so it has no rows
    assert_eq!(pairs(&all), (0..8).map(|sender| (sender, 8)).collect());
    let one = outcome(LOSSY, &[("measure.tcp_trace", "h3->h8")]);
    assert_eq!(pairs(&one), [(3, 8)].into());
    let two = outcome(LOSSY, &[("measure.tcp_trace", "['h3', 'h7 -> h8']")]);
    assert_eq!(pairs(&two), [(3, 8), (7, 8)].into());
    let rows = all.count("tcp_trace.rows");
    let few = outcome(LOSSY, &[("measure.tcp_trace", "*"), ("measure.tcp_trace_rows", "20")]);
    assert_eq!((few.count("tcp_trace.rows"), few.count("tcp_trace.left_out")), (20, rows - 20));
    let none = outcome(LOSSY, &[]);
    assert_eq!((none.count("tcp_trace.rows"), none.count("tcp_trace.left_out")), (0, 0));
    let reference = attempt(&scenario(LOSSY, &[("measure.tcp_trace", "*")]), true).unwrap();
    assert!(reference.table_text("tcp_trace") == all.table_text("tcp_trace"));
}

/// Returns the blocks of a pcapng file: type and body of each.
fn blocks(file: &[u8]) -> Vec<(u32, &[u8])> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let length = u32_at(file, at + 4) as usize;
        all.push((u32_at(file, at), &file[at + 8..at + length - 4]));
        at += length;
    }
    all
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Returns (interface, time in ns, original length, headers) of every captured packet.
fn packets(run: &Outcome) -> Vec<(u32, u64, u32, &[u8])> {
    let file = run.file("capture.pcapng").expect("there is a capture");
    blocks(file)
        .into_iter()
        .filter(|b| b.0 == 6)
        .map(|(_, b)| {
            let time = u64::from(u32_at(b, 4)) << 32 | u64::from(u32_at(b, 8));
            (u32_at(b, 0), time, u32_at(b, 16), &b[20..20 + u32_at(b, 12) as usize])
        })
        .collect()
}

#[test]
fn a_capture_has_every_packet_of_its_ports_and_changes_nothing() {
    let ports = ("measure.capture", "['switch0->h8', 'h3->switch0', 'switch0->h3']");
    let run = outcome(LOSSY, &[ports]);
    let plain = outcome(LOSSY, &[]);
    assert_eq!(run.digest(), plain.digest());
    assert!(plain.file("capture.pcapng").is_none());
    let reference = attempt(&scenario(LOSSY, &[ports]), true).unwrap();
    assert!(run.file("capture.pcapng") == reference.file("capture.pcapng"), "both port modes");

    let all = packets(&run);
    assert!(all.is_sorted_by_key(|p| p.1), "in order of arrival");
    assert_eq!(
        (run.count("capture.packets"), run.count("capture.left_out")),
        (all.len() as u64, 0)
    );
    let names = run.texts("links", "name");
    for (interface, port) in ["h3->switch0", "switch0->h3", "switch0->h8"].into_iter().enumerate() {
        let link = names.iter().position(|n| *n == port).unwrap();
        let of_port = all.iter().filter(|p| p.0 == interface as u32);
        assert_eq!(of_port.clone().count() as u64, run.u64s("links", "packets")[link], "{port}");
        // on the link an Ethernet frame with a header of 14 B has preamble, checksum and gap, and
        // is padded to 84 B
        let bytes: u64 = of_port.map(|p| u64::from((p.2 - 14 + 38).max(84))).sum();
        assert_eq!(bytes, run.u64s("links", "bytes")[link], "{port}");
    }
    // captured packets contain headers but no payload
    assert!(all.iter().all(|p| p.3.len() <= 14 + 20 + 60 && p.3.len() <= p.2 as usize));
    let names: Vec<_> = blocks(run.file("capture.pcapng").unwrap())
        .into_iter()
        .filter(|b| b.0 == 4)
        .map(|b| b.1[8..10].to_vec())
        .collect();
    assert_eq!(names.len(), 9, "every host is named once");
}

#[test]
fn a_capture_is_bounded_in_number_and_time() {
    let port = ("measure.capture", "switch0->h8");
    let all = outcome(LOSSY, &[port]);
    let whole = packets(&all);
    let few = outcome(LOSSY, &[port, ("measure.capture_packets", "100")]);
    assert_eq!(packets(&few), whole[..100]);
    assert_eq!(few.count("capture.left_out"), whole.len() as u64 - 100);
    let (from, until) = (20_000_000, 30_000_000);
    let part = outcome(
        LOSSY,
        &[port, ("measure.capture_from", "20 ms"), ("measure.capture_until", "30 ms")],
    );
    let within: Vec<_> = whole.iter().copied().filter(|p| (from..until).contains(&p.1)).collect();
    assert!(!within.is_empty() && packets(&part) == within);
}

#[test]
fn datagrams_and_parallel_cables_are_captured_too() {
    let text = "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\n\
        hosts_per_leaf = 2\nspines = 1\ncables_per_spine = 2\nhost_rate = '1 Gbit/s'\n\
        uplink_rate = '1 Gbit/s'\n[measure]\ncapture = 'leaf0->spine0'\n[[workload]]\n\
        name = 'packets'\nkind = 'datagrams'\nsources = 'h0..h1'\n\
        destination = 'h3'\nbytes = '200 B'\nmean_gap = '100 us'\npackets = 200\n";
    let run = outcome(text, &[]);
    let all = packets(&run);
    let names = run.texts("links", "name");
    let carried: Vec<u64> = (0..names.len())
        .filter(|&l| names[l] == "leaf0->spine0")
        .map(|l| run.u64s("links", "packets")[l])
        .collect();
    let seen = [0, 1].map(|i| all.iter().filter(|p| p.0 == i).count() as u64);
    assert_eq!(carried, seen, "one interface for each cable");
    assert!(seen.iter().all(|&n| n > 0));
    for (_, _, length, headers) in all {
        assert_eq!((length, headers.len(), headers[23]), (214, 42, 17));
    }
}

#[test]
fn faults_show_in_events_and_captures() {
    let faults = "[[fault]]\non = 'h3--switch0'\nkind = 'loss'\nshare = 0.02\n[[fault]]\n\
        on = 'h5'\nkind = 'down'\nfrom = '10 ms'\nuntil = '12 ms'\n[[fault]]\n\
        on = 'switch0->h8'\nkind = 'delay'\nextra = '20 us'\njitter = '50 us'\nfrom = '5 ms'\n";
    let ports = ("measure.capture", "['switch0->h8', 'h3->switch0', 'switch0->h3']");
    let scenario = scenario(&format!("{LOSSY}{faults}"), &[ports]);
    let (run, reference) = (finish(&scenario), attempt(&scenario, true).unwrap());
    for table in ["events", "link_samples", "tcp_trace"] {
        assert!(run.table_text(table) == reference.table_text(table), "{table}");
    }
    assert!(run.file("capture.pcapng") == reference.file("capture.pcapng"));
    assert!(packets(&run).is_sorted_by_key(|p| p.1), "in order of arrival");
    // packets lost on the link never arrive at the tap, which is at its far end
    let names = run.texts("links", "name");
    let of = |port: &str| names.iter().position(|n| *n == port).unwrap();
    let carried = run.u64s("links", "packets")[of("h3->switch0")];
    assert_eq!(packets(&run).iter().filter(|p| p.0 == 0).count() as u64, carried);
    let causes = run.texts("events", "cause");
    for (cause, column) in
        [("queue-full", "drops_queue_full"), ("loss", "lost_random"), ("link-down", "lost_down")]
    {
        let events = causes.iter().filter(|c| **c == cause).count() as u64;
        assert_eq!(events, run.u64s("links", column).iter().sum::<u64>(), "{cause}");
        assert!(events > 0, "{cause}");
    }
}
