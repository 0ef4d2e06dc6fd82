//! Tests of replayed transactions on a simulated fabric: times, tables and summary in packet mode
//! and in flow mode, equal digests, checkpoints, and a Hadoop shuffle beside them.

use crate::checkpoint::goes_on_in;
use crate::harness::{Outcome, context_with, finish, scenario_in};
use eastwest_sim::scenario::Context;

/// Returns a table of four transactions, in which a front end calls two components at the same
/// time, and a third one after both.
fn table() -> String {
    let mut text = String::from(
        "transaction\tcall\tparent\tstart_s\tcomponent\tservice\toperation\trequest_bytes\t\
         response_bytes\tafter\tgap_s\trest_s\n",
    );
    for t in 0..4 {
        let start = f64::from(t) * 0.05;
        text += &format!("t{t}\t0\t\t{start}\tweb\tshop\tGET\t500\t20000\t\t0\t0.001\n");
        text += &format!("t{t}\t1\t0\t\tcart\tshop\tlist\t1000\t1400\t\t0.0005\t0.002\n");
        text += &format!("t{t}\t2\t0\t\tads\tads\tpick\t1000\t100000\t\t0.0005\t0.001\n");
        text += &format!("t{t}\t3\t0\t\tcart\tshop\tpay\t1000\t1400\t1,2\t0.0003\t0.004\n");
    }
    text
}

fn context() -> Context {
    context_with("t.tsv", &table())
}

const TEXT: &str = r#"
schema = 1
name = "shop"
[fabric]
leaves = 2
hosts_per_leaf = 3
spines = 1
host_rate = "1 Gbit/s"
uplink_rate = "10 Gbit/s"
[[workload]]
name = "shop"
kind = "transactions"
file = "t.tsv"
"#;

fn run(sets: &[(&str, &str)]) -> Outcome {
    finish(&scenario_in(&context(), TEXT, sets))
}

#[test]
fn response_times_are_computing_and_the_network() {
    for fidelity in ["packet", "flow"] {
        let done = run(&[("fidelity", fidelity)]);
        assert_eq!(done.texts("transactions", "name"), ["t0", "t1", "t2", "t3"]);
        let (response, network, compute) = (
            done.f64s("transactions", "response_us"),
            done.f64s("transactions", "network_us"),
            done.f64s("transactions", "compute_us"),
        );
        for i in 0..4 {
            assert!((response[i] - network[i] - compute[i]).abs() < 1e-3);
            // critical path: 0.5 + 2 (in parallel with the component ads) + 0.3 + 4 + 1 ms, or
            // instead through ads: 1 ms and the transfer time of its 100 kB
            assert!((6_700.0..7_900.0).contains(&compute[i]), "{fidelity}: {}", compute[i]);
            assert!((50.0..2_500.0).contains(&network[i]), "{fidelity}: {}", network[i]);
        }
        assert_eq!(done.u64s("flows", "bytes").iter().sum::<u64>(), 4 * (3_000 + 102_800));
        assert_eq!(done.texts("flows", "purpose").len(), 24);
        assert_eq!(done.texts("calls", "service")[..4], ["shop", "shop", "ads", "shop"]);
        assert_eq!(done.texts("calls", "component")[2], "ads");
    }
}

#[test]
fn placement_decides_what_travels() {
    let together = run(&[("workload.shop.placement", "block"), ("workload.shop.per_host", "3")]);
    assert_eq!(together.texts("flows", "purpose").len(), 0);
    assert!(together.f64s("transactions", "network_us").iter().all(|&us| us == 0.0));
    let asked = run(&[("workload.shop.clients", "[\"h5\"]")]);
    assert_eq!(asked.texts("flows", "purpose").len(), 32, "and the first request of each");
    let named = context_with(
        "t.tsv",
        &table().replace("web", "h0").replace("cart", "h1").replace("ads", "h2"),
    );
    let named = finish(&scenario_in(&named, TEXT, &[("workload.shop.placement", "by-name")]));
    let first = run(&[("workload.shop.placement", "block")]);
    assert_eq!(named.digest(), first.digest(), "names in order are places in order");
}

#[test]
fn faster_arrivals_and_more_of_them() {
    let done = run(&[
        ("workload.shop.arrivals", "poisson"),
        ("workload.shop.mean_gap", "10 ms"),
        ("workload.shop.transactions", "200"),
        ("workload.shop.pick", "random"),
    ]);
    assert_eq!(done.texts("transactions", "name").len(), 200);
    let arrived = done.f64s("transactions", "arrived_s");
    let last = arrived.iter().copied().fold(0.0, f64::max);
    assert!((1.6..2.4).contains(&last), "{last} s for 200 at 10 ms");
    let fast = run(&[("workload.shop.speed", "1000")]);
    let arrived = fast.f64s("transactions", "arrived_s");
    assert!(arrived.iter().all(|&s| s < 0.001), "{arrived:?}");
}

#[test]
fn one_scenario_one_digest_and_checkpoints_go_on() {
    let shuffle = format!(
        "{TEXT}background = false\n[[workload]]\nname = 'all'\nkind = 'all-to-all'\n\
         bytes = '300 KB'\nbackground = true\n"
    );
    let scenario = scenario_in(&context(), &shuffle, &[]);
    assert_eq!(finish(&scenario).digest(), finish(&scenario).digest());
    goes_on_in(&context(), &shuffle, &[]);
    goes_on_in(
        &context(),
        TEXT,
        &[("workload.shop.arrivals", "poisson"), ("workload.shop.transactions", "20")],
    );
}

#[test]
fn processors_make_calls_wait_and_checkpoints_keep_the_queues() {
    let crowded = [
        ("workload.shop.arrivals", "poisson"),
        ("workload.shop.mean_gap", "7 ms"),
        ("workload.shop.transactions", "60"),
    ];
    let one = [&crowded[..], &[("workload.shop.processors", "1")]].concat();
    let (free, queued) = (run(&crowded), run(&one));
    let mean = |done: &Outcome, column| {
        let values = done.f64s("transactions", column);
        values.iter().sum::<f64>() / values.len() as f64
    };
    assert_eq!(mean(&free, "queued_us"), 0.0);
    // the component cart computes for 6 of the 7 ms between two arrivals
    assert!(mean(&queued, "queued_us") > 1_000.0, "{}", mean(&queued, "queued_us"));
    assert!(mean(&queued, "response_us") > mean(&free, "response_us") + 1_000.0);
    goes_on_in(&context(), TEXT, &one);
}
