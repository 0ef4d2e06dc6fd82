//! Tests of TCP settings by workload, host, peer and side (`[[tcp.override]]`), and of transfers
//! that last for a given time (`kind = "bulk"`), alone and beside each other.

use crate::harness::{Outcome, attempt, context, outcome, scenario};
use eastwest_sim::scenario::read;

const TWO: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n\
    host_delay = '50 us'\nqueue = { limit = '100 packets' }\n[tcp]\nprofile = 'linux'\n\
    congestion = 'new-reno'\n[[workload]]\nname = 'a'\nkind = 'bulk'\npairs = 'h0->h2'\n\
    duration = '400 ms'\n[[workload]]\nname = 'b'\nkind = 'bulk'\npairs = 'h1->h2'\n\
    duration = '400 ms'\n";

fn with(more: &str, sets: &[(&str, &str)]) -> Outcome {
    outcome(&format!("{TWO}{more}"), sets)
}

/// Returns the bytes of the flows of each of the two senders.
fn bytes(done: &Outcome) -> [u64; 2] {
    let mut all = [0; 2];
    for (src, bytes) in done.u64s("flows", "src").into_iter().zip(done.u64s("flows", "bytes")) {
        all[src as usize] += bytes;
    }
    all
}

fn refused(text: &str, sets: &[(&str, &str)]) -> Vec<String> {
    let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    let problems = read(text, &context(), &sets).expect_err("refused");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn bulk_transfers_fill_the_link_until_they_stop() {
    let done = with("", &[]);
    assert_eq!(done.count("flows.count"), 2);
    assert_eq!(done.value("flows.incomplete").as_u64().unwrap_or(0), 0);
    // 1 Gbit/s for 0.4 s, where 1448 of 1538 B on the link are payload
    let most = 0.4e9 / 8.0 * 1448.0 / 1538.0;
    let sum = bytes(&done).iter().sum::<u64>() as f64;
    assert!(sum > 0.93 * most && sum < 1.01 * most, "{sum} of {most}");
    for finish in done.f64s("flows", "finish_s") {
        assert!((0.4..0.41).contains(finish), "what was sent arrives after the stop: {finish}");
    }
}

#[test]
fn one_connection_stops_where_it_has_come_to() {
    // when the time ends, bytes that TCP has not sent are dropped; bytes that it has sent, at most
    // a window, still arrive
    let text = TWO.split("[[workload]]\nname = 'b'").next().expect("the first workload");
    let short = outcome(text, &[("workload.a.duration", "2 ms")]);
    let long = outcome(text, &[("workload.a.duration", "4 ms")]);
    let (short, long) = (bytes(&short)[0], bytes(&long)[0]);
    assert!(short > 50_000 && long > short + 150_000, "{short} and {long}");
    assert!(long < 500_000 + 1_000_000, "{long}: 4 ms at 1 Gbit/s and a window");
}

#[test]
fn a_connection_that_stops_in_its_handshake_delivers_a_byte() {
    let text = TWO.split("[[workload]]\nname = 'b'").next().expect("the first workload");
    let done =
        outcome(text, &[("workload.a.duration", "1 us"), ("workload.a.start_window", "0 s")]);
    assert_eq!(bytes(&done)[0], 1);
    // three one-way times of 100 µs (two links of 50 µs): SYN, SYN-ACK, then the byte
    assert!(done.f64s("flows", "finish_s")[0] > 300e-6);
}

#[test]
fn queue_pairs_stop_too() {
    let sets = [("workload.a.transport", "rocev2"), ("workload.b.transport", "rocev2")];
    let lossless = "[fabric.pfc]\nbuffer = '500 KB'\n[[class]]\nname = 'a'\npriority = 3\n\
        [[class]]\nname = 'b'\npriority = 3\n";
    let done = with(lossless, &sets);
    let most = 0.4e9 / 8.0;
    let sum = bytes(&done).iter().sum::<u64>() as f64;
    assert!(sum > 0.85 * most && sum < most, "{sum} of {most}");
}

#[test]
fn a_run_that_ends_before_the_stop_has_incomplete_flows() {
    let done = with("", &[("duration", "100 ms")]);
    assert_eq!((done.count("flows.count"), done.count("flows.completed")), (2, 0));
}

#[test]
fn an_override_by_workload_changes_that_workload_only() {
    // initial window and maximum window are two segments, so that at most two segments are sent per
    // RTT
    let small = "[[tcp.override]]\nname = 'small'\nworkloads = ['b']\nmax_window = '3 KB'\ninitial_receive_window = '2 KB'\n\
        initial_window = 2\n";
    let [a, b] = bytes(&with(small, &[]));
    // a window of two segments carries 2896 B in each RTT of at least 200 µs
    assert!(b < 2896 * 2_000, "{b} bytes with a window of two segments");
    assert!(a > 8 * b, "{a} bytes beside it");
    let [_, c] = bytes(&with(
        small,
        &[
            ("tcp.override.small.max_window", "1 MB"),
            ("tcp.override.small.initial_receive_window", "65535 B"),
        ],
    ));
    assert!(c > 2 * b, "{c} bytes with a large window");
}

#[test]
fn an_override_of_all_endpoints_is_the_same_as_settings_of_all() {
    let all = "[[tcp.override]]\nhosts = 'h0..h2'\ncongestion = 'cubic'\n";
    let by_override = with(all, &[]);
    let in_tcp = with("", &[("tcp.congestion", "cubic")]);
    assert_eq!(by_override.digest(), in_tcp.digest());
    assert_ne!(by_override.digest(), with("", &[]).digest());
}

#[test]
fn sides_hosts_and_peers_choose_ends() {
    // an endpoint's receive window limits the data in flight of its peer, not its own data
    let window = |filter: &str| {
        let text = format!(
            "[[tcp.override]]\n{filter}\nmax_window = '3 KB'\ninitial_receive_window = '2 KB'\n"
        );
        bytes(&with(&text, &[])).map(|bytes| bytes < 2896 * 2_000)
    };
    assert_eq!(window("side = 'server'"), [true, true]);
    assert_eq!(window("hosts = 'h1'"), [false, true]);
    assert_eq!(window("peers = 'h1'"), [false, true]);
    assert_eq!(window("peers = 'h1'\nside = 'client'"), [false, false], "no such end");
}

#[test]
fn dctcp_and_reno_with_ecn_stand_beside_each_other() {
    let marks = [("fabric.queue.kind", "step-marking"), ("fabric.queue.threshold", "20 packets")];
    let dctcp = "[[tcp.override]]\nworkloads = ['a']\ncongestion = 'dctcp'\n\
        [[tcp.override]]\nworkloads = ['b']\necn = 'on'\n";
    let done = with(dctcp, &marks);
    assert!(done.count("tcp.ecn_reductions") > 20);
    assert_eq!(done.count("tcp.retransmits"), 0);
}

#[test]
fn the_resolved_text_reads_to_the_same_scenario() {
    let text = format!(
        "{TWO}[[tcp.override]]\nname = 'x'\nworkloads = ['b']\nprofile = 'classic'\n\
         [[tcp.override]]\nside = 'server'\ncongestion = 'bbr'\n"
    );
    let first = scenario(&text, &[]);
    let again = scenario(first.resolved(), &[]);
    assert_eq!(again.resolved(), first.resolved());
    assert_eq!(again.tcp_overrides, first.tcp_overrides);
    assert!(!first.tcp_overrides[0].config.sack, "the profile of the override");
    assert!(first.tcp_overrides[1].config.sack, "that of [tcp]");
}

#[test]
fn what_is_wrong_with_an_override_is_told_once() {
    let text = format!(
        "{TWO}[[tcp.override]]\nworkloads = ['c']\ncongestion = 'cubik'\n[[tcp.override]]\n\
         hosts = 'h9'\n[[tcp.override]]\nmax_window = '1 MB'\n"
    );
    let problems = refused(&text, &[("tcp.min_rto", "5 parsecs")]);
    let about = |what: &str| problems.iter().filter(|p| p.contains(what)).count();
    assert_eq!(about("no workload named c"), 1, "{problems:#?}");
    assert_eq!(about("cubic"), 1, "{problems:#?}");
    assert_eq!(about("names h9, which is not a host"), 1, "{problems:#?}");
    assert_eq!(about("at least one of these filters"), 1, "{problems:#?}");
    assert_eq!(about("min_rto"), 1, "inherited problems are told once: {problems:#?}");
}

#[test]
fn names_of_overrides_differ() {
    let text = format!(
        "{TWO}[[tcp.override]]\nname = 'x'\nhosts = 'h0'\n[[tcp.override]]\nname = 'x'\n\
         hosts = 'h1'\n"
    );
    let problems = refused(&text, &[]);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains("tcp.override.1.name"), "{problems:#?}");
    assert!(problems[0].contains("is already the name of another override"), "{problems:#?}");
}

#[test]
fn notes_name_the_override_and_are_told_once() {
    let notes = |more: &str, sets: &[(&str, &str)]| scenario(&format!("{TWO}{more}"), sets).notes;
    let about = |notes: &[String], what: &str| notes.iter().filter(|n| n.contains(what)).count();
    let inherited = "[[tcp.override]]\nhosts = 'h0'\ncongestion = 'cubic'\n";
    let said = notes(inherited, &[("tcp.min_rto", "1 ms"), ("tcp.granularity", "4 ms")]);
    assert_eq!(about(&said, "min_rto (1 ms) is below"), 1, "{said:#?}");
    let own = "[[tcp.override]]\nhosts = 'h0'\nmin_rto = '1 ms'\ngranularity = '4 ms'\n";
    let said = notes(own, &[]);
    assert_eq!(about(&said, "tcp.override.0.min_rto (1 ms) is below"), 1, "{said:#?}");
    let roce = "[[tcp.override]]\nworkloads = ['a']\ncongestion = 'cubic'\n";
    let said = notes(roce, &[("workload.a.transport", "rocev2")]);
    assert_eq!(about(&said, "tcp.override.0 has no effect"), 1, "{said:#?}");
    assert_eq!(about(&notes(roce, &[]), "has no effect"), 0);
}

#[test]
fn a_transfer_for_a_time_needs_packets() {
    let problems = refused(TWO, &[("fidelity", "flow")]);
    assert!(problems.iter().any(|p| p.contains("for a given time")), "{problems:?}");
    let scenario = scenario(TWO, &[("workload.a.start_window", "0 s")]);
    assert!(attempt(&scenario, true).is_ok(), "with ports of reference");
}
