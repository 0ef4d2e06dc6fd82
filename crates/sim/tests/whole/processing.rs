//! Tests of hosts that take time to process packets: closed forms of throughput and latency,
//! merging, checkpoints, and refused settings.

use crate::checkpoint::goes_on_in;
use crate::flow_parts::{assert_adds_up, columns};
use crate::harness::{Outcome, context, outcome};
use eastwest_sim::scenario::read;

/// Returns a scenario with hosts at one switch, links of 100 Gbit/s, an MTU of 9,000 bytes, and the
/// table `[hosts]`.
fn text(hosts: &str, workload: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 10\n\
         host_rate = '100 Gbit/s'\nmtu = 9000\nqueue = {{ kind = 'drop-tail', limit = '10 MB' }}\n\
         [tcp]\nprofile = 'linux'\nmax_window = '3 MB'\n{hosts}\n[[workload]]\nname = 'w'\n{workload}\n"
    )
}

const BULK: &str = "kind = 'bulk'\npairs = ['h0->h9']\nduration = '20 ms'";

/// Returns the rate of payload that all hosts together received, in Gbit/s.
fn gbit(done: &Outcome) -> f64 {
    done.number("throughput_bps") * 10.0 / 1e9
}

#[test]
fn one_core_receives_what_its_time_allows() {
    let free = gbit(&outcome(&text("", BULK), &[]));
    let done = outcome(&text("[hosts]", BULK), &[]);
    let rate = gbit(&done);
    // The defaults were fitted to a measurement of 42 Gbit/s; slow start takes a part of the run.
    assert!(free > 85.0 && (36.0..44.0).contains(&rate), "{free} {rate}");
    assert!(done.number("hosts.busy_max") > 0.9);
    // The core of the sender is busy, too.
    assert!(done.number("hosts.busy_mean") * 10.0 > 1.3, "{}", done.value("hosts"));
    let merged = done.number("hosts.received_frames") / done.number("hosts.received_segments");
    assert!(merged > 2.0, "{merged}");
    done.assert_conserved();
}

#[test]
fn without_merging_each_frame_costs_a_segment() {
    let hosts = "[hosts]\nmerge = '0 B'\nreceive_segment = '3 us'\nreceive_frame = '1 us'\nack = '0 s'\n\
                 receive_rate = '100 Tbit/s'\nsend_segment = '0 s'\nsend_rate = '100 Tbit/s'";
    let rate = gbit(&outcome(&text(hosts, BULK), &[]));
    // A full frame has 8,948 bytes of payload and takes 4 µs; the last segment of each write is
    // shorter.
    let most = 8_948.0 * 8.0 / 4.0 / 1e3;
    assert!(rate > 0.8 * most && rate < most, "{rate} {most}");
}

#[test]
fn more_cores_share_the_connections() {
    let many =
        "kind = 'bulk'\npairs = ['h0->h9', 'h1->h9', 'h2->h9', 'h3->h9']\nduration = '20 ms'";
    let one = gbit(&outcome(&text("[hosts]", many), &[]));
    let eight = gbit(&outcome(&text("[hosts]\ncores = 8", many), &[]));
    assert!(eight > 1.6 * one, "{one} {eight}");
}

#[test]
fn an_exchange_takes_the_time_of_its_parts() {
    let service = "kind = 'key-value'\nclients = ['h0']\nservers = ['h9']\noperations = 50\n\
                   read_share = 1\nvalue_bytes = '1000 B'\nkey_bytes = '100 B'";
    let hosts = "[hosts]\ninterrupt_delay = '5 us'\nreceive_frame = '1 us'\nreceive_segment = '2 us'\n\
                 receive_rate = '100 Tbit/s'\nsend_segment = '3 us'\nsend_rate = '100 Tbit/s'\nack = '0 s'";
    let free = outcome(&text("", service), &[]).number("applications.w.read_us.p50");
    let slow = outcome(&text(hosts, service), &[]).number("applications.w.read_us.p50");
    // Additional time in each direction: sending a burst (3 µs), the interrupt (5 µs), receiving a
    // frame and a segment (3 µs).
    assert!((slow - free - 22.0).abs() < 0.3, "{free} {slow}");
}

#[test]
fn messages_take_their_time_at_both_ends() {
    let service = "kind = 'key-value'\nclients = ['h0']\nservers = ['h9']\noperations = 50\n\
                   read_share = 1\nvalue_bytes = '1000 B'";
    let with = |message: &str| {
        let hosts = format!("[hosts]\nmessage = '{message}'");
        outcome(&text(&hosts, service), &[]).number("applications.w.read_us.p50")
    };
    // Request and response are each written and read; the time of reading the request delays the
    // response.
    let longer = with("10 us") - with("0 s");
    assert!((25.0..45.0).contains(&longer), "{longer}");
}

#[test]
fn a_small_ring_loses_frames_that_tcp_sends_again() {
    let hosts = "[hosts]\nring = 16\nreceive_segment = '20 us'";
    let done = outcome(&text(hosts, BULK), &[]);
    assert!(done.count("hosts.ring_drops") > 0);
    assert!(done.count("tcp.retransmits") > 0);
}

#[test]
fn a_run_goes_on_from_a_checkpoint() {
    let permutation = "kind = 'permutation'\nbytes = '300 KB'\nrepeat = 2";
    goes_on_in(&context(), &text("[hosts]\ncores = 2\nmessage = '1 us'", permutation), &[]);
}

const PARTS: (&str, &str) = ("measure.flow_parts", "*");

/// Round times: 5 µs until an interrupt, 3 µs for a received segment, 3 µs for a sent burst.
const ROUND: &str = "[hosts]\ninterrupt_delay = '5 us'\nreceive_frame = '1 us'\n\
                     receive_segment = '2 us'\nreceive_rate = '100 Tbit/s'\nsend_segment = '3 us'\n\
                     send_rate = '100 Tbit/s'\nack = '0 s'";

#[test]
fn the_parts_of_an_exchange_have_the_times_of_both_cores() {
    let service = "kind = 'key-value'\nclients = ['h0']\nservers = ['h9']\noperations = 50\n\
                   read_share = 1\nvalue_bytes = '1000 B'\nkey_bytes = '100 B'";
    let done = outcome(&text(ROUND, service), &[PARTS]);
    assert_adds_up("exchange", &done);
    let names = ["send_core_queue_us", "interrupt_delay_us", "receive_core_queue_us"];
    let waits = columns(&done, names);
    let work = columns(&done, ["send_core_us", "receive_core_us"]);
    assert_eq!(waits.len(), 100);
    // At first, receivers send acknowledgements at once (quick ACKs), which also interrupt the cores.
    for (flow, (waits, work)) in waits.iter().zip(&work).enumerate().skip(40) {
        assert_eq!(*waits, [0, 5_000_000, 0], "flow {flow}");
        // A payload of 1,000 bytes or less takes at most 80 ps at 100 Tbit/s.
        let payload = work.map(|all| all - 3_000_000);
        assert!(payload.iter().all(|&ps| (8..=80).contains(&ps)), "flow {flow}: {work:?}");
    }
}

#[test]
fn a_segment_that_waits_for_busy_cores_has_the_wait_in_its_parts() {
    let many = "kind = 'incast'\nreceiver = 'h9'\nsenders = ['h0..h7']\nblock_bytes = '1000 B'\n\
                start_jitter = '0 s'\nrounds = 1";
    let hosts = "[hosts]\ninterrupt_delay = '0 s'\nreceive_frame = '0 s'\nreceive_segment = '10 us'\n\
                 receive_rate = '100 Tbit/s'\nsend_segment = '0 s'\nsend_rate = '100 Tbit/s'\nack = '0 s'\n\
                 merge = '0 B'";
    let done = outcome(&text(hosts, many), &[PARTS]);
    assert_adds_up("incast", &done);
    let mut waits: Vec<u64> = columns(&done, ["receive_core_queue_us"]).concat();
    waits.sort_unstable();
    // Eight segments arrive within 8 × 80 ns, and each takes the core for 10 µs.
    for (place, wait) in waits.iter().enumerate() {
        let expected = place as f64 * 10.0;
        let us = *wait as f64 / 1e6;
        assert!(us <= expected && us > expected - 1.0, "{place}: {us} µs, {waits:?}");
    }
}

#[test]
fn parts_add_up_with_merging_losses_and_full_rings() {
    let permutation = "kind = 'permutation'\nbytes = '300 KB'\nrepeat = 3";
    let incast =
        "kind = 'incast'\nreceiver = 'h9'\nsenders = ['h0..h8']\nblock_bytes = '2 MB'\nrounds = 1";
    let many = "kind = 'fan-out'\nfront_ends = ['h0', 'h1']\nworkers = ['h2..h9']\nqueries = 40\n\
                response_bytes = '30 KB'\ngap = '100 us'";
    let small = "[hosts]\nring = 24\nreceive_segment = '8 us'\nmessage = '2 us'";
    for (name, hosts, workload) in [
        ("merging", "[hosts]", permutation),
        ("cores", "[hosts]\ncores = 3\nmessage = '1 us'", permutation),
        ("queue", "[hosts]", incast),
        ("ring", small, incast),
        ("messages", small, many),
        ("no merging", "[hosts]\nmerge = '0 B'\nburst = '0 B'", many),
    ] {
        let text = text(hosts, workload).replace("limit = '10 MB'", "limit = '300 KB'");
        let plain = outcome(&text, &[]);
        let done = outcome(&text, &[PARTS]);
        assert_eq!(plain.value("digest"), done.value("digest"), "{name}");
        assert_adds_up(name, &done);
        let cores: u64 = columns(&done, ["receive_core_us"]).concat().iter().sum();
        assert!(cores > 0, "{name}");
        match name {
            "ring" => assert!(done.count("hosts.ring_drops") > 0),
            "queue" => assert!(done.count("packets.dropped") > 0),
            _ => {}
        }
    }
}

#[test]
fn critical_paths_go_on_from_a_checkpoint() {
    let permutation = "kind = 'permutation'\nbytes = '300 KB'\nrepeat = 2";
    let text = format!("{}[measure]\nflow_parts = ['*']\n", text("[hosts]", permutation));
    goes_on_in(&context(), &text, &[]);
}

#[test]
fn what_needs_hosts_without_time_is_refused() {
    let permutation = "kind = 'permutation'\nbytes = '1 KB'";
    let text = format!("fidelity = 'flow'\n{}", text("[hosts]", permutation));
    let problems = read(&text, &context(), &[]).expect_err("refused");
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(all.iter().any(|one| one.contains("hosts delays packets in hosts")), "{all:?}");
}
