//! Tests of hosts that take time to process packets: closed forms of throughput and latency,
//! merging, checkpoints, and refused settings.

use crate::checkpoint::goes_on_in;
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

#[test]
fn what_needs_hosts_without_time_is_refused() {
    for (hosts, more, told) in [
        ("fidelity", "", "hosts lets hosts take time for each packet"),
        ("", "[measure]\nflow_parts = 'all'", "flow_parts"),
    ] {
        let flow = if hosts == "fidelity" { "fidelity = 'flow'\n" } else { "" };
        let text =
            format!("{flow}{}{more}\n", text("[hosts]", "kind = 'permutation'\nbytes = '1 KB'"));
        let problems = read(&text, &context(), &[]).expect_err("refused");
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.iter().any(|one| one.contains(told)), "{all:?}");
    }
}
