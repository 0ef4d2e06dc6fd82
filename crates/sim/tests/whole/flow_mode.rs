//! Tests of flow mode: equal digests of equal runs, bytes and jobs as in packet mode, closed forms
//! on idle paths, refused settings, and the notes of a result about its errors.

use crate::harness::{Outcome, context, context_with, finish, outcome, scenario_in, shipped};
use eastwest_sim::scenario::read;

const FLOW: (&str, &str) = ("fidelity", "flow");

fn relative(a: f64, b: f64) -> f64 {
    (a / b - 1.0).abs()
}

/// Returns the total bytes of the flows with a purpose, such as `shuffle`.
fn bytes_of(done: &Outcome, purpose: &str) -> u64 {
    let rows = done.texts("flows", "purpose").into_iter().zip(done.u64s("flows", "bytes"));
    rows.filter(|r| r.0 == purpose).map(|r| r.1).sum()
}

/// Runs flows of these sizes one after the other over an idle fabric, in packet mode and in flow
/// mode.
fn one_by_one(sizes: &[u64], sets: &[(&str, &str)]) -> [Outcome; 2] {
    let rows = sizes.iter().enumerate();
    let rows: String = rows.map(|(i, n)| format!("h0,h3,{n},{i}\n")).collect();
    let context = context_with("flows.csv", &format!("src,dst,bytes,start_s\n{rows}"));
    let text = r#"
schema = 1
name = "idle"
[fabric]
leaves = 2
hosts_per_leaf = 2
spines = 1
host_rate = "1 Gbit/s"
uplink_rate = "10 Gbit/s"
[[workload]]
name = "one"
kind = "flow-list"
file = "flows.csv"
"#;
    ["packet", "flow"].map(|fidelity| {
        let sets = [sets, &[("fidelity", fidelity)]].concat();
        finish(&scenario_in(&context, text, &sets))
    })
}

#[test]
fn on_an_idle_path_flows_take_as_long_as_packets() {
    let sizes = [1, 1448, 10_000, 14_480, 50_000, 200_000, 1_000_000, 20_000_000];
    for sets in [&[][..], &[("fabric.host_delay", "\"200 us\"")], &[("tcp.profile", "linux")]] {
        let [packet, flow] = one_by_one(&sizes, sets);
        let times = |o: &Outcome| o.f64s("flows", "fct_us").to_vec();
        for ((packet, flow), bytes) in times(&packet).into_iter().zip(times(&flow)).zip(sizes) {
            // host jitter delays each packet for which something waits, by at most the transmission
            // time of a packet
            let jitter = 4.0 * 12.3;
            assert!(
                (packet - flow).abs() < jitter + 0.04 * packet,
                "{sets:?}, {bytes} B: {packet} us with packets, {flow} us as a flow"
            );
        }
    }
}

#[test]
fn a_permutation_has_the_bytes_of_packets_and_nearly_their_times() {
    let packet = outcome(&shipped("first"), &[]);
    let flow = outcome(&shipped("first"), &[FLOW]);
    assert_eq!(packet.count("flows.bytes"), flow.count("flows.bytes"));
    assert_eq!(flow.count("flows.count"), flow.count("flows.completed"));
    let sum = |o: &Outcome| o.u64s("links", "bytes").iter().sum::<u64>() as f64;
    // bytes on links that packet mode sends in retransmissions, and flow mode does not
    let again = packet.number("tcp.retransmits") * 1538.0 * 4.0;
    let less = sum(&packet) - sum(&flow);
    assert!(less > 0.0 && less < again + 0.01 * sum(&packet), "{less} of {again}");
}

#[test]
fn jobs_are_the_same_jobs_with_one_digest() {
    let set = ("workload.hadoop.trace_to", "8 min");
    let packet = outcome(&shipped("demo"), &[set]);
    let flow = outcome(&shipped("demo"), &[set, FLOW]);
    assert_eq!(flow.digest(), outcome(&shipped("demo"), &[set, FLOW]).digest());
    assert_ne!(flow.digest(), packet.digest());
    assert_eq!(flow.count("jobs.count"), packet.count("jobs.count"));
    for column in ["input_bytes", "shuffle_bytes", "output_bytes"] {
        let sum = |o: &Outcome| o.u64s("jobs", column).iter().sum::<u64>();
        assert_eq!(sum(&flow), sum(&packet), "{column}");
    }
    let local = |o: &Outcome| o.u64s("jobs", "shuffle_local_bytes").iter().sum::<u64>();
    let shuffled: u64 = flow.u64s("jobs", "shuffle_bytes").iter().sum();
    assert_eq!(bytes_of(&flow, "shuffle"), shuffled - local(&flow));
    for (what, most) in [("jobs.runtime_s.p50", 0.1), ("jobs.runtime_s.mean", 0.1)] {
        let [a, b] = [flow.number(what), packet.number(what)];
        assert!(relative(a, b) < most, "{what}: {a} as flows, {b} with packets");
    }
    let none = ["packets.sent", "packets.dropped", "tcp.timeouts", "latency_us.count"];
    assert!(none.iter().all(|path| flow.count(path) == 0));
}

#[test]
fn synchronized_reads_are_called_dominated_by_loss() {
    let done = outcome(&shipped("s2"), &[("workload.incast.rounds", "2"), FLOW]);
    assert!(done.count("flow_mode.overflowing_starts") > 0);
    assert_eq!(done.count("flow_mode.overflowing_ports"), 1);
    assert!(done.text("flow_mode.warning").contains("loss-dominated"));
    assert_eq!(done.text("fidelity"), "flow");
    let calm = outcome(&shipped("first"), &[FLOW]);
    assert!(calm.text("flow_mode.error").contains("approximate"));
}

#[test]
fn links_that_sleep_use_about_what_they_use_with_packets() {
    let sets = [("fabric.energy.kind", "standard"), ("workload.hadoop.trace_to", "8 min")];
    let packet = outcome(&shipped("demo"), &sets);
    let flow = outcome(&shipped("demo"), &[&sets[..], &[FLOW]].concat());
    let of_on = |o: &Outcome| o.number("energy_j.of_always_on");
    assert!((of_on(&packet) - of_on(&flow)).abs() < 0.05, "{} {}", of_on(&packet), of_on(&flow));
    let run = flow.number("simulated_s") * flow.u64s("links", "link").len() as f64;
    let states = ["awake_s", "falling_asleep_s", "asleep_s", "waking_s"];
    let sum: f64 = states.iter().map(|s| flow.number(&format!("energy_j.{s}"))).sum();
    assert!(relative(sum, run) < 1e-9, "{sum} of {run} link-seconds");
}

#[test]
fn what_needs_packets_is_refused_with_reasons() {
    let refused = |sets: &[(&str, &str)]| {
        let sets: Vec<(String, String)> = [sets, &[FLOW]]
            .concat()
            .iter()
            .map(|(path, value)| ((*path).to_owned(), (*value).to_owned()))
            .collect();
        let problems = read(&shipped("first"), &context(), &sets).expect_err("it is refused");
        problems.iter().map(|p| format!("{}: {}", p.path, p.message)).collect::<Vec<_>>().join("\n")
    };
    let cases = [
        (("fabric.routing", "round-robin"), "for every packet"),
        (("measure.tcp_trace", "[\"*\"]"), "windows"),
        (("measure.capture", "[\"leaf0->h0\"]"), "capture"),
        (("measure.ports", "[\"*\"]"), "every packet"),
        (("measure.flow_samples", "[\"*\"]"), "throughput over time"),
        (("measure.pauses", "[\"*\"]"), "the pauses of ports"),
    ];
    for (set, reason) in cases {
        let said = refused(&[set]);
        assert!(said.contains(reason) && said.contains("fidelity = \"packet\""), "{set:?}: {said}");
    }
    let both = refused(&[cases[1].0, cases[0].0]);
    assert_eq!(both.lines().count(), 2, "{both}");
}
