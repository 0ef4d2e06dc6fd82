//! Tests of the parts of completion times: they add up in every run, and equal closed forms where
//! the path is known.

use crate::harness::{
    Outcome, attempt, context_with, finish, outcome, scenario, scenario_in, shipped,
};

const PARTS: [&str; 4] = ["injection_us", "queueing_us", "flight_us", "retransmission_us"];
const ALL: (&str, &str) = ("measure.flow_parts", "*");

/// Returns the transmission time of `bytes` bytes at `mbit` Mbit/s in picoseconds; it must be a
/// whole number.
fn ps(bytes: u64, mbit: u64) -> u64 {
    assert_eq!(bytes * 8_000_000 % mbit, 0);
    bytes * 8_000_000 / mbit
}

/// Bytes of a full packet on a link: 1448 payload + 52 headers + 38 framing.
const FULL: u64 = 1538;
const ACK: u64 = 90;
/// Propagation delay of a link in picoseconds: 5 µs.
const HOP: u64 = 5_000_000;

/// Returns injection, queueing, flight and retransmission of every flow, in picoseconds.
fn parts(done: &Outcome) -> Vec<[u64; 4]> {
    columns(done, PARTS)
}

/// Returns columns of the table `flow_parts`, in picoseconds.
pub fn columns<const N: usize>(done: &Outcome, names: [&str; N]) -> Vec<[u64; N]> {
    let columns = names.map(|part| done.f64s("flow_parts", part));
    (0..columns[0].len()).map(|i| columns.map(|c| (c[i] * 1e6).round() as u64)).collect()
}

/// Columns of times that add up to `injection_us`; the next constant has those of `flight_us`.
const INJECTION: [&str; 5] =
    ["application_us", "earlier_us", "host_queue_us", "pacing_us", "delayed_ack_us"];
const FLIGHT: [&str; 7] = [
    "handshake_us",
    "slow_start_us",
    "congestion_window_us",
    "receiver_window_us",
    "transmission_us",
    "propagation_us",
    "processing_us",
];

/// Times that make up `cores_us`.
const CORES: [&str; 5] = [
    "send_core_queue_us",
    "send_core_us",
    "interrupt_delay_us",
    "receive_core_queue_us",
    "receive_core_us",
];

/// Returns the waiting times of a flow as (link, picoseconds), in the order of the table
/// `flow_hops`.
fn waits(done: &Outcome, flow: i64) -> Vec<(i64, u64)> {
    let (flows, links) = (done.i64s("flow_hops", "flow"), done.i64s("flow_hops", "link"));
    let times = done.f64s("flow_hops", "queueing_us");
    let rows = (0..flows.len()).filter(|i| flows[*i] == flow);
    rows.map(|i| (links[i], (times[i] * 1e6).round() as u64)).collect()
}

/// Checks that every flow has a row in `flow_parts`, and that its parts add up to the picosecond.
pub fn assert_adds_up(name: &str, done: &Outcome) {
    let times = done.f64s("flows", "fct_us");
    assert_eq!(done.i64s("flow_parts", "flow").len(), times.len(), "{name}");
    let (injections, flights) = (columns(done, INJECTION), columns(done, FLIGHT));
    let (cores, all_cores) = (columns(done, CORES), columns(done, ["cores_us"]));
    for (i, parts) in parts(done).into_iter().enumerate() {
        assert_eq!(done.i64s("flow_parts", "flow")[i], i as i64);
        let injection = injections[i].iter().sum::<u64>();
        let flight = flights[i].iter().sum::<u64>();
        let waits = waits(done, i as i64).iter().map(|(_, wait)| wait).sum::<u64>();
        assert_eq!([injection, waits, flight], parts[..3], "{name}: flow {i}, {flights:?}");
        assert_eq!(cores[i].iter().sum::<u64>(), all_cores[i][0], "{name}: flow {i}, {cores:?}");
        let sum = parts.iter().sum::<u64>() + all_cores[i][0];
        assert_eq!(sum, (times[i] * 1e6).round() as u64, "{name}: flow {i}, {parts:?}");
        let again = done.u64s("flows", "retransmits")[i] > 0;
        assert_eq!(done.texts("flow_parts", "loss")[i] == "yes", again, "{name}: flow {i}");
        if done.count("tcp.retransmits") == 0 && done.count("packets.dropped") == 0 {
            assert_eq!(parts[3], 0, "{name}: flow {i} lost nothing");
        }
    }
}

/// Returns a synchronized read over open connections, without jitter and with windows that never
/// limit it; the arguments are settings.
fn read(fabric: &str, senders: &str, receiver: &str, more: &str) -> String {
    format!(
        "schema = 1\n[fabric]\n{fabric}\nprocessing_jitter = '0 s'\n\
         host_queue = {{ limit = '100 MB' }}\nqueue = {{ limit = '100 MB' }}\n[tcp]\n\
         initial_window = 10000\nmax_window = '100 MB'\nack_every = 1\n[[workload]]\nname = 'read'\n\
         kind = 'incast'\nreceiver = '{receiver}'\nsenders = {senders}\nstart_jitter = '0 s'\n{more}"
    )
}

const STAR: &str = "kind = 'star'\nhosts = 4\nhost_rate = '1 Gbit/s'";

#[test]
fn on_an_idle_path_nothing_queues_and_the_flight_is_the_closed_form() {
    let full = ps(FULL, 1_000);
    let tree = "kind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
                host_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'";
    for n in [1, 2, 10, 800] {
        let block = format!("block_bytes = '{} B'\n", 1448 * n);
        for (fabric, receiver, flight) in [
            (STAR, "h2", 2 * full + 2 * HOP),
            (tree, "h3", 2 * full + 2 * ps(FULL, 10_000) + 4 * HOP),
        ] {
            let done = outcome(&read(fabric, "'h0'", receiver, &block), &[ALL]);
            // the last packet waits at its own host for the packets before it
            assert_eq!(parts(&done), [[(n - 1) * full, 0, flight, 0]], "{n} packets, {fabric}");
            let waiting = columns(&done, ["host_queue_us", "earlier_us", "slow_start_us"]);
            assert_eq!(waiting, [[(n - 1) * full, 0, 0]], "{n} packets, {fabric}");
            let hops = if receiver == "h2" { 2 } else { 4 };
            let way = columns(&done, ["transmission_us", "propagation_us", "processing_us"]);
            assert_eq!(way, [[flight - hops * HOP, hops * HOP, 0]], "{n} packets, {fabric}");
            assert_adds_up("idle", &done);
        }
    }
}

/// Lines of a fabric whose uplinks are slower than the links of its hosts.
const THIN: &str = "kind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
    host_rate = '10 Gbit/s'\nuplink_rate = '1 Gbit/s'";

#[test]
fn packets_of_a_fast_host_queue_at_the_slow_link() {
    let (slow, fast, n) = (ps(FULL, 1_000), ps(FULL, 10_000), 50);
    let block = format!("block_bytes = '{} B'\n", 1448 * n);
    let done = outcome(&read(THIN, "'h0'", "h3", &block), &[ALL]);
    let expect = [(n - 1) * fast, (n - 1) * (slow - fast), 2 * slow + 2 * fast + 4 * HOP, 0];
    assert_eq!(parts(&done), [expect]);
    let waits = waits(&done, 0);
    assert_eq!(waits.len(), 1, "only the uplink is slower than the link before it");
    let names = done.texts("links", "name");
    assert!(names[waits[0].0 as usize].starts_with("leaf0->spine"), "{waits:?}");
    assert_eq!(waits[0].1, (n - 1) * (slow - fast));
}

#[test]
fn stop_and_wait_flies_there_and_back_for_every_packet() {
    let n = 7;
    let block = format!("block_bytes = '{} B'\n", 1448 * n);
    let text = read(STAR, "'h0'", "h2", &block);
    let done = outcome(&text, &[ALL, ("tcp.max_window", "1448 B")]);
    let there = 2 * ps(FULL, 1_000) + 2 * HOP;
    let back = 2 * ps(ACK, 1_000) + 2 * HOP;
    assert_eq!(parts(&done), [[0, 0, n * there + (n - 1) * back, 0]]);
    let last = ["receiver_window_us", "transmission_us", "propagation_us"];
    let expect = [[(n - 1) * (there + back), 2 * ps(FULL, 1_000), 2 * HOP]];
    assert_eq!(columns(&done, last), expect);
    assert_eq!(done.u64s("flow_parts", "receiver_window_trips"), [n - 1]);
    assert_adds_up("stop and wait", &done);
}

#[test]
fn a_delayed_acknowledgement_is_held_at_a_host() {
    let text = read(STAR, "'h0'", "h2", "block_bytes = '2896 B'\n");
    let one = [ALL, ("tcp.max_window", "1448 B"), ("tcp.ack_every", "2")];
    let done = outcome(&text, &[&one[..], &[("tcp.delayed_ack_timeout", "3 ms")]].concat());
    let [held, queued, ..] = parts(&done)[0];
    assert_eq!((held, queued), (3_000_000_000, 0));
    assert_eq!(columns(&done, ["delayed_ack_us", "pacing_us"]), [[3_000_000_000, 0]]);
}

#[test]
fn two_that_meet_at_a_port_wait_for_each_other() {
    let text = read(STAR, "['h0', 'h1']", "h3", "block_bytes = '1448 B'\n");
    let done = outcome(&text, &[ALL]);
    let full = ps(FULL, 1_000);
    let mut queued: Vec<u64> = parts(&done).iter().map(|p| p[1]).collect();
    queued.sort_unstable();
    assert_eq!(queued, [0, full]);
    assert!(parts(&done).iter().all(|p| (p[0], p[2]) == (0, 2 * full + 2 * HOP)));
}

/// A scenario with one flow of 100 segments over a new connection.
const OPENED: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'\n\
    processing_jitter = '0 s'\n[tcp]\ninitial_window = 100\ninitial_rto = '300 ms'\n[[workload]]\n\
    name = 'one'\nkind = 'flow-list'\nfile = 'one.csv'\n";

fn opened(fault: &str) -> Outcome {
    let context = context_with("one.csv", "src,dst,bytes,start_s\n0,1,144800,0\n");
    finish(&scenario_in(&context, &format!("{OPENED}{fault}"), &[ALL]))
}

#[test]
fn a_handshake_is_flight_and_what_it_loses_is_retransmission() {
    // SYN and SYN-ACK take 60 + 38 B on the link; the ACK of 90 B is sent before the data
    let handshake = 4 * ps(98, 1_000) + 4 * HOP;
    let flight = handshake + 2 * ps(FULL, 1_000) + 2 * HOP;
    let held = ps(ACK, 1_000) + 99 * ps(FULL, 1_000);
    assert_eq!(parts(&opened("")), [[held, 0, flight, 0]]);
    assert_eq!(columns(&opened(""), ["handshake_us", "slow_start_us"]), [[handshake, 0]]);
    // first the SYN, then the SYN-ACK is lost and retransmitted after the initial timeout
    for link in ["h0->switch0", "switch0->h0"] {
        let fault =
            format!("[[fault]]\non = '{link}'\nkind = 'loss'\nshare = 1.0\nuntil = '30 ms'\n");
        let done = opened(&fault);
        assert_eq!(parts(&done), [[held, 0, flight, 300_000_000_000]], "{link}");
        assert_adds_up(link, &done);
    }
}

#[test]
fn the_parts_of_every_flow_add_up_whatever_happens() {
    let lossy = "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 8\n\
        spines = 2\nhost_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\n\
        queue = { limit = '12 packets' }\n[[workload]]\nname = 'incast'\n\
        kind = 'incast'\nreceiver = 'h8'\nblock_bytes = '300 KB'\nrounds = 3\n";
    let shuffled = [("fabric.routing", "round-robin")];
    let small = [("workload.bulk.bytes", "200 KB")];
    let marked = [("tcp.congestion", "dctcp"), ("tcp.ecn", "on")];
    for (name, text, sets) in [
        ("lossy", lossy, &[][..]),
        ("dealt", lossy, &shuffled[..]),
        ("without SACK", lossy, &[("tcp.sack", "false"), ("tcp.timestamps", "false")]),
        ("as Linux", lossy, &[("tcp.profile", "linux")]),
        ("paced", lossy, &[("tcp.profile", "linux"), ("tcp.congestion", "bbr")]),
        ("DCTCP", lossy, &marked[..]),
        ("measured ports", lossy, &[("measure.ports", "*")]),
        ("S1", &shipped("s1"), &small[..]),
        (
            "service",
            &shipped("service"),
            &[("duration", "1 s"), ("fabric.queue.limit", "5 packets")],
        ),
        ("demo", &shipped("demo"), &[("workload.hadoop.trace_to", "3 min")]),
    ] {
        let plain = outcome(text, sets);
        let scenario = scenario(text, &[sets, &[ALL]].concat());
        let [done, reference] = [false, true].map(|mode| attempt(&scenario, mode).unwrap());
        assert_eq!(done.digest(), plain.digest(), "{name}: to look changes nothing");
        assert_eq!(plain.u64s("flow_parts", "bytes").len(), 0, "{name}");
        assert_adds_up(name, &done);
        assert!(done.table_text("flow_parts") == reference.table_text("flow_parts"), "{name}");
        assert!(done.count("flows.completed") > 2, "{name}");
    }
}

#[test]
fn what_is_lost_costs_at_least_the_time_until_it_is_sent_again() {
    let lossy = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 9\nhost_rate = '1 Gbit/s'\n\
        queue = { limit = '10 packets' }\n[[workload]]\nname = 'incast'\nkind = 'incast'\n\
        receiver = 'h8'\nblock_bytes = '20 KB'\nrounds = 20\n";
    let done = outcome(lossy, &[ALL]);
    let timeouts = done.u64s("flows", "timeouts");
    let after_timeouts: Vec<_> =
        parts(&done).into_iter().zip(timeouts).filter(|t| t.1 > 0).collect();
    assert!(after_timeouts.len() > 10);
    // the minimum timeout is 200 ms; it includes some microseconds of the first transmission
    for (parts, timeouts) in after_timeouts {
        assert!(parts[3] >= 199_000_000_000 * timeouts, "{parts:?} after {timeouts} timeouts");
    }
}

#[test]
fn each_round_trip_has_the_window_that_was_full() {
    let text = read(STAR, "'h0'", "h2", "block_bytes = '2000000 B'\n");
    // slow start opens the window from 10 segments to the 100 that the receiver allows: 4 doublings
    let set = [
        ALL,
        ("tcp.initial_window", "10"),
        ("tcp.max_window", "144800 B"),
        ("fabric.host_delay", "5 ms"),
    ];
    let done = outcome(&text, &set);
    assert_eq!(done.u64s("flow_parts", "slow_start_trips"), [4]);
    assert_eq!(done.u64s("flow_parts", "congestion_window_trips"), [0]);
    // 1,382 segments: windows of 10 + 20 + 40 + 80, then of 100 segments per round trip
    assert_eq!(done.u64s("flow_parts", "receiver_window_trips"), [12]);
    assert_adds_up("windows", &done);
}

#[test]
fn data_waits_for_its_turn_at_the_pacing_rate() {
    // BBR paces at the rate of the slowest link, a tenth of the rate of the host's link
    let text = read(THIN, "'h0'", "h3", "block_bytes = '1 MB'\n");
    let bbr = [ALL, ("tcp.profile", "linux"), ("tcp.congestion", "bbr")];
    let paced = outcome(&text, &[&bbr[..], &[("tcp.initial_window", "10")]].concat());
    let [pacing, card] = columns(&paced, ["pacing_us", "host_queue_us"])[0];
    assert!(pacing > 10 * card, "{pacing} ps paced, {card} ps at the card");
    assert_adds_up("paced", &paced);
}

#[test]
fn room_in_the_card_is_waited_for_at_the_host() {
    let text = read(STAR, "'h0'", "h2", "block_bytes = '1 MB'\n");
    let done = outcome(&text, &[ALL, ("tcp.small_queues", "true")]);
    let ideal = 690 * ps(FULL, 1_000); // 690 segments of 1448 B, the last one shorter
    let [pacing, card] = columns(&done, ["pacing_us", "host_queue_us"])[0];
    assert_eq!(pacing, 0);
    assert!(card.abs_diff(ideal) < ideal / 50, "{card} ps at the card, {ideal} ps ideal");
    assert_adds_up("small queues", &done);
}

#[test]
fn only_chosen_flows_are_split_and_a_full_table_counts_the_rest() {
    let text = read(STAR, "['h0', 'h1', 'h2']", "h3", "block_bytes = '30 KB'\nrounds = 5\n");
    let one = outcome(&text, &[("measure.flow_parts", "h1->h3")]);
    assert_eq!(one.u64s("flow_parts", "src"), [1; 5]);
    let all = outcome(&text, &[ALL]);
    let number = one.i64s("flow_parts", "flow")[2] as usize;
    assert_eq!(parts(&all)[number], parts(&one)[2]);
    let few = outcome(&text, &[ALL, ("measure.flow_parts_rows", "4")]);
    assert_eq!((few.count("flow_parts.rows"), few.count("flow_parts.left_out")), (4, 11));
}
