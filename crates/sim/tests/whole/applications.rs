//! Tests of applications in whole scenarios: their counters and measures in packet mode,
//! checkpoints, flow mode, failures of hosts, and refused settings.

use crate::checkpoint::goes_on_in;
use crate::harness::{Outcome, context, outcome};
use eastwest_sim::scenario::read;

/// Workloads with the five built-in applications, on eight hosts.
const KINDS: [&str; 5] = [
    "kind = 'fan-out'\nfront_ends = ['h0', 'h1']\nworkers = ['h1..h7']\nqueries = 40\n\
     deadline = '1300 us'\nresponse_bytes = '20 KB'\nserver_time = '50 us'",
    "kind = 'hedged'\nclients = ['h0..h3']\nservers = ['h4..h7']\noperations = 100\n\
     hedge_after = '1 ms'\ntimeout = '3 ms'\nslow_share = 0.1\nserver_time = '20 us'\ngap = '200 us'",
    "kind = 'quorum'\nclients = ['h0', 'h1']\nstores = ['h2..h6']\nwrites = 150\noutstanding = 2\n\
     value_bytes = '10 KB'\nserver_time = '100 us'",
    "kind = 'key-value'\nclients = ['h0..h4']\nservers = ['h5..h7']\noperations = 200\n\
     outstanding = 3\nvalue_bytes = '4 KB'\nthink_time = '10 us'",
    "kind = 'parameter-server'\nworkers = ['h0..h5']\nservers = ['h6', 'h7']\niterations = 5\n\
     model_bytes = '2 MB'\ncompute_time = '1 ms'\ncompute_jitter = '100 us'",
];

fn text(top: &str, workload: &str) -> String {
    format!(
        "schema = 1\n{top}\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 4\n\
         spines = 2\nhost_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\n[tcp]\nmin_rto = '5 ms'\n\
         initial_rto = '10 ms'\n[[workload]]\nname = 'app'\n{workload}\n"
    )
}

#[test]
fn every_application_ends_and_counts_its_operations() {
    for (kind, (operations, counted)) in KINDS.into_iter().zip([
        (80, vec!["counters.queries"]),
        (400, vec!["counters.operations"]),
        (300, vec!["counters.writes", "write_us.count"]),
        (1_000, vec!["read_us.count", "write_us.count"]),
        (30, vec!["counters.iterations", "iteration_us.count"]),
    ]) {
        let done = outcome(&text("", kind), &[]);
        done.assert_conserved();
        let count = |name: &&str| done.count(&format!("applications.app.{name}"));
        if kind.contains("key-value") {
            assert_eq!(counted.iter().map(count).sum::<u64>(), operations, "{kind}");
        } else {
            assert!(counted.iter().all(|name| count(name) == operations), "{kind}");
        }
    }
}

#[test]
fn a_fan_out_counts_each_response_once() {
    let done = outcome(&text("", KINDS[0]), &[]);
    let count = |name: &str| done.count(&format!("applications.app.counters.{name}"));
    // Front end h1 is also a worker: its own responses do not use the network.
    assert_eq!(count("responses") + count("late"), 80 * 7);
    assert!(count("missed") > 0 && count("missed") < 80, "{}", count("missed"));
    assert!(done.number("applications.app.query_us.max") <= 1_300.0);
    let requests = done.texts("flows", "purpose").iter().filter(|p| **p == "request").count();
    assert_eq!(requests, 80 * 7 - 40);
}

#[test]
fn one_request_at_a_time_takes_the_sum_of_the_exchanges() {
    let one =
        "kind = 'key-value'\nclients = ['h0']\nservers = ['h4']\noperations = 50\nread_share = 0.5";
    let done = outcome(&text("", one), &[]);
    let reads = done.number("applications.app.read_us.count");
    let writes = done.number("applications.app.write_us.count");
    let sum = reads * done.number("applications.app.read_us.mean")
        + writes * done.number("applications.app.write_us.mean");
    assert!((sum / 1e6 / done.number("simulated_s") - 1.0).abs() < 0.01, "{sum}");
}

#[test]
fn every_application_goes_on_from_a_checkpoint() {
    for kind in KINDS {
        goes_on_in(&context(), &text("", kind), &[]);
    }
}

#[test]
fn an_application_that_has_not_sent_anything_goes_on_from_a_checkpoint() {
    let text = text("duration = '1 ms'", "kind = 'parameter-server'")
        .replace("[tcp]", "[fabric.pfc]\n[tcp]");
    goes_on_in(&context(), &text, &[]);
}

#[test]
fn every_application_runs_with_flows() {
    for kind in KINDS {
        let flows = outcome(&text("fidelity = 'flow'", kind), &[]);
        let packets = outcome(&text("", kind), &[]);
        let completed = |done: &Outcome| done.count("flows.completed");
        // The hedged application depends on timeouts, which expire differently in the two modes.
        if !kind.contains("hedged") {
            assert_eq!(completed(&flows), completed(&packets), "{kind}");
        }
    }
}

#[test]
fn the_start_is_the_first_time_at_which_anything_is_sent() {
    let later = format!("{}\nstart = '30 ms'", KINDS[3]);
    let done = outcome(&text("", &later), &[]);
    let first = done.f64s("flows", "start_s").iter().copied().fold(f64::INFINITY, f64::min);
    assert!((first - 0.03).abs() < 1e-12, "{first}");
}

#[test]
fn retries_survive_the_failure_of_a_server() {
    // TCP gives up a connection after `retries` retransmissions; until then the application sends
    // its requests to other servers.
    let fault = "[[fault]]\non = 'h5'\nkind = 'down'\nfrom = '5 ms'\n";
    let done = outcome(
        &text(
            "",
            &format!("{}\n{fault}", KINDS[1].replace("operations = 100", "operations = 300")),
        ),
        &[],
    );
    let count = |name: &str| done.count(&format!("applications.app.counters.{name}"));
    assert_eq!(count("operations"), 1_200);
    assert!(count("retries") > 20, "{}", count("retries"));
    assert_eq!(done.count("applications.app.operation_us.count") + count("failed"), 1_200);
}

/// Returns the numbers of requests: sent, answered, unanswered, and the five reasons.
fn requests(done: &Outcome) -> [u64; 8] {
    let names = [
        "sent",
        "answered",
        "unanswered",
        "request_in_flight",
        "no_reply_sent",
        "reply_in_flight",
        "connection_failed",
        "connection_closed",
    ];
    names.map(|name| done.count(&format!("applications.app.requests.{name}")))
}

#[test]
fn every_request_of_an_application_that_ends_has_a_reply() {
    for kind in KINDS {
        let done = outcome(&text("", kind), &[]);
        let [sent, answered, unanswered, ..] = requests(&done);
        assert!(sent > 0 && sent == answered && unanswered == 0, "{kind}");
        let of = |name: &str| done.count(&format!("applications.app.operations.{name}"));
        assert_eq!((of("begun"), of("completed")), (of("planned"), of("planned")), "{kind}");
        assert_eq!(done.value("applications.app.ended"), "by itself", "{kind}");
    }
}

#[test]
fn requests_without_reply_are_counted_by_reason_at_the_end_of_the_run() {
    for (kind, more) in [
        // Requests of 10 KB and slow servers: some requests are in flight, some at servers.
        (KINDS[2], ""),
        (KINDS[3], "\nserver_time = '300 us'"),
    ] {
        let whole = outcome(&text("", &format!("{kind}{more}")), &[]);
        let half = (whole.number("simulated_s") / 2.0 * 1e6) as u64;
        let cut = outcome(&text(&format!("duration = '{half} us'"), &format!("{kind}{more}")), &[]);
        let [sent, answered, unanswered, reasons @ ..] = requests(&cut);
        assert_eq!(sent, answered + unanswered, "{kind}");
        assert_eq!(unanswered, reasons.iter().sum::<u64>(), "{kind}: {reasons:?}");
        assert!(unanswered > 0 && reasons[1] > 0, "{kind}: {reasons:?}");
        assert_eq!(reasons[3..], [0, 0], "{kind}");
        assert_eq!(cut.value("applications.app.ended"), "at the duration", "{kind}");
        // Each request that has arrived and no reply that has arrived: exchanges of the flow table.
        let of =
            |purpose: &str| cut.texts("flows", "purpose").iter().filter(|p| **p == purpose).count();
        assert_eq!(of("response") as u64, answered, "{kind}");
        assert_eq!(of("request") as u64, sent - reasons[0], "{kind}");
    }
}

#[test]
fn requests_to_a_host_that_has_failed_are_lost_with_their_connection() {
    let fault = "[[fault]]\non = 'h5'\nkind = 'down'\nfrom = '5 ms'\n";
    let done = outcome(&text("", &format!("{}\n{fault}", KINDS[1])), &[("tcp.max_retries", "3")]);
    let [sent, answered, unanswered, reasons @ ..] = requests(&done);
    assert_eq!(sent, answered + unanswered);
    assert!(reasons[3] > 0 && reasons[3] == unanswered, "{reasons:?}");
}

#[test]
fn impossible_settings_are_told_at_their_key() {
    let stores = KINDS[2].replace("stores = ['h2..h6']\n", "stores = ['h9']\n");
    for (workload, told) in [
        (
            format!("{}\nreplicas = 9", KINDS[2]),
            "replicas = 9: 9 replicas need at least 9 stores, but there are only 5",
        ),
        (format!("{}\nquorum = 4", KINDS[2]), "quorum = 4: must be at most `replicas`, which is 3"),
        (stores, "names h9, which is not a host"),
        (format!("{}\nwirtes = 5", KINDS[2]), "wirtes"),
    ] {
        let problems = read(&text("", &workload), &context(), &[]).expect_err("refused");
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.iter().any(|one| one.contains(told)), "{told}: {all:?}");
    }
}
