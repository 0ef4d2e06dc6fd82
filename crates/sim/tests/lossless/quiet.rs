//! Tests that the fast mode of ports, which has no event at the end of a transmission, gives the
//! results of the two-event mode, in all combinations of settings.

use crate::dcb::{goes_on, random_fabric};
use crate::harness::{Outcome, context, context_with, scenario_in};
use eastwest_engine::random::Stream;
use eastwest_sim::run::run;

/// Returns a random variant of a lossless scenario: other disciplines, classes with shares,
/// priorities without PFC, connections, faults, events at equal times.
fn vary(random: &mut Stream, text: &str) -> String {
    let mut text = text.to_owned();
    let mut one_in = |n: u64| random.below(n) == 0;
    let mut swap = |from: &str, to: &str| text = text.replacen(from, to, 1);
    let (red, codel, step) = (
        "kind = 'red', min = '5 packets', max = '15 packets', limit = '20 packets' }",
        "kind = 'codel', limit = '30 packets' }",
        "kind = 'step-marking', threshold = '8 packets', limit = '40 packets' }",
    );
    for other in [red, codel, step] {
        if one_in(5) {
            swap("queue = { ", &format!("queue = {{ {other}\n# instead of "));
            break;
        }
    }
    if one_in(4) {
        swap("[fabric.pfc]\n", "[fabric.pfc]\nwatchdog = '40 us'\n");
    }
    if one_in(3) {
        swap("response = '1 us'", "response = '0 s'");
    }
    if one_in(3) {
        swap("routing = ", "processing_jitter = '0 s'\nrouting = ");
    }
    if one_in(3) {
        let group = |priorities: &str, share: &str| {
            format!("[[fabric.class]]\npriorities = [{priorities}]\n{share}")
        };
        let groups = [
            group("7", ""),
            group("3", "share = '60 %'\n"),
            group("0, 1, 2, 4, 5, 6", "share = '40 %'\n"),
        ];
        swap("[[class]]", &format!("{}[[class]]", groups.concat()));
        swap("routing = ", "scheduler = 'classes'\nrouting = ");
    }
    if one_in(2) {
        let least = if one_in(2) { "0" } else { "3" };
        text.push_str(&format!("[[class]]\nname = 'flows'\npriority = {least}\n"));
        text.push_str(
            "[[workload]]\nname = 'flows'\nkind = 'incast'\nreceiver = 'h0'\nrounds = 2\n",
        );
        text.push_str("block_bytes = '100 KB'\n");
    }
    if one_in(6) {
        text.push_str("[[fault]]\non = 'h1'\nkind = 'down'\nfrom = '300 us'\nuntil = '400 us'\n");
    }
    if one_in(6) {
        text.push_str("[[fault]]\non = 'h2'\nkind = 'degrade'\nshare = 0.3\nfrom = '200 us'\n");
    }
    text
}

#[test]
fn in_any_fabric_quiet_ports_do_what_ports_with_two_events_do() {
    // EASTWEST_CASES=500 tests 500 cases
    let cases = std::env::var("EASTWEST_CASES").map_or(40, |n| n.parse().expect("a number"));
    let (mut paused, mut told, mut saved) = (0, 0, 0);
    for case in 0..cases {
        let mut random = Stream::new(case, "quiet ports");
        let (text, topology) = random_fabric(&mut random);
        let text = vary(&mut random, &text);
        let scenario = scenario_in(&context_with("any.toml", &topology), &text, &[]);
        let [quiet, other] = [false, true].map(|reference| {
            run(&scenario, reference, &mut |_| true)
                .unwrap_or_else(|e| panic!("case {case}: {e}\n{text}\n{topology}"))
        });
        for what in ["digest", "dcb", "packets", "streams"] {
            let (a, b) = (&quiet.summary[what], &other.summary[what]);
            assert_eq!(a, b, "case {case}\n{text}\n{topology}");
        }
        for (a, b) in quiet.tables.iter().zip(&other.tables) {
            assert_eq!(a, b, "case {case}\n{text}\n{topology}");
        }
        // the digest is printed so that two builds can be compared
        println!("{case} {}", quiet.summary["digest"]);
        let count = |what: &str| quiet.summary["dcb"][what].as_u64().expect("ports are bridged");
        (paused, told) = (paused + count("pauses"), told + count("qcn_messages"));
        let events = |of: &eastwest_sim::results::Results| of.summary["events"].as_u64().unwrap();
        saved += events(&other) - events(&quiet).min(events(&other));
        if case % 8 == 0 {
            goes_on(&scenario, &Outcome(quiet));
        }
    }
    println!("{paused} pauses, {told} messages, {saved} events saved");
    assert!(paused > 10 * cases && told > cases && saved > 100 * cases, "{paused} {told} {saved}");
}

/// Returns a scenario in which datagrams overload one port of a star with QCN; `scheduler` gives
/// the port several queues.
fn limited_flows_of_several_classes(scheduler: &str) -> String {
    format!(
        "schema = 1\nduration = '5 ms'\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n\
         {scheduler}\n[fabric.qcn]\n[[class]]\nname = 'c'\npriority = 3\n[[workload]]\nname = 'w0'\n\
         kind = 'datagrams'\nsources = ['h1', 'h2']\ndestination = 'h0'\nbytes = 1500\n\
         mean_gap = '12 us'\npackets = 2000\nclass = 'c'\n"
    )
}

#[test]
fn hosts_with_several_queues_keep_the_packets_of_flows_that_qcn_limits() {
    for scheduler in [
        "scheduler = 'strict-priority'",
        "scheduler = 'classes'\n[[fabric.class]]\npriorities = [3]\nshare = '60 %'\n\
         [[fabric.class]]\npriorities = [0, 1, 2, 4, 5, 6, 7]\nshare = '40 %'",
    ] {
        let scenario = scenario_in(&context(), &limited_flows_of_several_classes(scheduler), &[]);
        let [quiet, reference] = [false, true].map(|reference| {
            run(&scenario, reference, &mut |_| true).expect("the run ends in time").summary
        });
        assert!(quiet["dcb"]["qcn_messages"].as_u64().unwrap() > 10, "{}", quiet["dcb"]);
        assert_eq!(quiet["digest"], reference["digest"], "{scheduler}");
        assert_eq!(quiet["packets"], reference["packets"], "{scheduler}");
    }
}
