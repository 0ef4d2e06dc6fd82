//! Tests of adaptive routing, which reacts to congestion notification messages (CNMs) of QCN, in a
//! network of two groups of three hosts.

use crate::dcb::goes_on;
use crate::harness::{Outcome, attempt, outcome, scenario};

fn text(routing: &str, workload: &str) -> String {
    format!(
        "schema = 1\nduration = '30 ms'\n[fabric]\nkind = 'two-groups'\nhost_rate = '10 Gbit/s'\n\
         uplink_rate = '10 Gbit/s'\nhost_delay = '1 us'\nuplink_delay = '1 us'\nframing = 0\n\
         processing_jitter = '0 s'\nrouting = '{routing}'\n[fabric.pfc]\n[fabric.qcn]\n\
         [[class]]\nname = 'frames'\npriority = 3\n[[workload]]\nname = 'frames'\n\
         kind = 'ethernet'\nbackground = true\n{workload}\n"
    )
}

const THREE: &str = "pattern = 'pairs'\nsources = ['h0', 'h1', 'h2']\n\
    destinations = ['h3', 'h4', 'h5']\nload = 0.9";

/// Returns the received rate of each stream in bit/s.
fn rates(run: &Outcome) -> Vec<f64> {
    let bytes = run.u64s("streams", "bytes_received");
    bytes.iter().map(|&b| b as f64 * 8.0 / run.number("simulated_s")).collect()
}

#[test]
fn flows_that_contend_only_because_of_routing_get_more_than_the_link_they_share() {
    let fixed = outcome(&text("modulo", THREE), &[]);
    assert!(rates(&fixed).iter().sum::<f64>() < 1.02e10, "{:?}", rates(&fixed));
    let run = outcome(&text("adaptive", THREE), &[]);
    assert_eq!(run.count("packets.dropped"), 0);
    // the exact gain depends on which flows collide while they search for free links
    assert!(rates(&run).iter().sum::<f64>() > 1.3e10, "{:?}", rates(&run));
    let [absorbed, marked] = ["adaptive.absorbed", "adaptive.marked"].map(|n| run.count(n));
    assert!(absorbed >= 2 && marked >= absorbed && run.count("adaptive.moved") > 1_000);
    let [sent, arrived, left] =
        ["packets.sent", "packets.delivered", "packets.in_flight"].map(|n| run.count(n));
    assert_eq!(sent, arrived + left + absorbed);
    // frames on a new path overtake frames that are still queued on the old path, for a short time
    let reordered = run.u64s("streams", "frames_reordered").iter().sum::<u64>();
    assert!(reordered > 0 && reordered < run.count("streams.frames_received") / 50, "{reordered}");
    assert!(run.count("streams.resequenced_most") > 0);
    assert!(run.f64s("streams", "resequenced_mean").iter().all(|m| *m < 1.0));
}

#[test]
fn without_congestion_it_is_static_routing() {
    let light = THREE.replace("0.9", "0.2");
    let [fixed, adaptive] = ["modulo", "adaptive"].map(|r| outcome(&text(r, &light), &[]));
    assert_eq!(fixed.digest(), adaptive.digest());
    assert_eq!(adaptive.count("adaptive.marked"), 0);
}

#[test]
fn adaptive_runs_have_one_digest_and_go_on_from_checkpoints() {
    let everyone = scenario(&text("adaptive", "load = 0.8"), &[]);
    let [a, b] = [false, true].map(|reference| attempt(&everyone, reference).unwrap());
    assert!(a.count("adaptive.absorbed") > 0);
    assert_eq!(a.digest(), b.digest());
    goes_on(&everyone, &a);
}

#[test]
fn hotspots_that_must_persist_leave_one_digest_and_go_on_from_checkpoints() {
    let persists = "adaptive'\nadaptive_persist_cnms = 3\nadaptive_ageing = true\n\
                    adaptive_persist_time = '2 ms";
    let full = scenario(&text(persists, "load = 1.0"), &[]);
    let [a, b] = [false, true].map(|reference| attempt(&full, reference).unwrap());
    assert!(a.count("adaptive.held") > 0);
    assert!(a.count("adaptive.marked") > a.count("adaptive.absorbed"));
    assert_eq!(a.digest(), b.digest());
    goes_on(&full, &a);
}
