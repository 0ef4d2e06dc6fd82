//! Tests of link mode: single flows on idle paths, percentiles compared with packet mode, threads,
//! fabrics of which not all links are simulated, ends of runs, and refused settings.

use eastwest_measure::table::Column;
use eastwest_sim::approximate_run::ApproximateRun;
use eastwest_sim::links::LinksWorld;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::run::run;
use eastwest_sim::scenario::{Context, Scenario, read};
use eastwest_sim::world::Progress;
use eastwest_types::Time;

/// Returns a leaf–spine of 10 and 40 Gbit/s whose queues mark for DCTCP.
fn fabric(leaves: u32, per_leaf: u32, fidelity: &str) -> String {
    let queue = "{ kind = 'step-marking', threshold = '65 packets', limit = '1000 packets' }";
    format!(
        "schema = 1\nseed = 5\nfidelity = '{fidelity}'\n[fabric]\nleaves = {leaves}\n\
         hosts_per_leaf = {per_leaf}\nspines = 2\nhost_rate = '10 Gbit/s'\n\
         uplink_rate = '40 Gbit/s'\nqueue = {queue}\nhost_queue = {queue}\n\
         [tcp]\ncongestion = 'dctcp'\necn = 'on'\n"
    )
}

fn poisson(flows: u32) -> String {
    format!(
        "[[workload]]\nname = 'open'\nkind = 'poisson'\nload = 0.5\nsizes = '50 KB'\nflows = {flows}\n"
    )
}

fn scenario(text: &str) -> Scenario {
    read(text, &Context::default(), &[]).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn results(text: &str) -> Results {
    run(&scenario(text), false, &mut |_| true).unwrap_or_else(|e| panic!("{e}"))
}

fn problems(text: &str) -> String {
    let problems = read(text, &Context::default(), &[]).expect_err("it is refused");
    problems.iter().map(|p| format!("{}: {}\n", p.path, p.message)).collect()
}

fn times_us(results: &Results) -> Vec<f64> {
    let flows = results.tables.iter().find(|t| t.name == "flows").expect("the table of flows");
    let Some(Column::F64(times)) = flows.column("fct_us") else { panic!("times are numbers") };
    times.clone()
}

#[test]
fn a_single_flow_takes_as_long_as_with_packets() {
    for size in ["1 KB", "100 KB", "5 MB"] {
        let workload = format!(
            "[[workload]]\nname = 'one'\nkind = 'stride'\nstride = 1\ncount = 1\nbytes = '{size}'\n\
             start_window = '10 s'\n"
        );
        let [packet, links] =
            ["packet", "links"].map(|f| times_us(&results(&(fabric(2, 1, f) + &workload)))[0]);
        let jitter = 4.0 * 1.3;
        assert!(
            (packet - links).abs() < jitter + 0.04 * packet,
            "{size}: {packet} us with packets, {links} us link by link"
        );
    }
}

#[test]
fn percentiles_are_near_those_of_packets_and_do_not_depend_on_threads() {
    let text = |fidelity| fabric(4, 3, fidelity) + &poisson(2000);
    let [packet, links] = ["packet", "links"].map(|f| results(&text(f)).summary);
    for (q, most) in [("p50", 0.25), ("p99", 0.15), ("mean", 0.2)] {
        let of = |s: &serde_json::Value| s["flows"]["fct_us"][q].as_f64().expect("a time");
        let error = of(&links) / of(&packet) - 1.0;
        assert!(error.abs() < most, "{q}: {error:+.3}");
    }
    assert_eq!(links["flows"]["bytes"], packet["flows"]["bytes"]);
    assert_eq!(links["flow_mode"]["simulated_links"], links["flow_mode"]["links"]);
    assert_eq!(links["flow_mode"]["warning"], serde_json::Value::Null);
    let plan = Plan::new(&scenario(&text("links"))).expect("a plan");
    let mut world = LinksWorld::new(plan).expect("routes");
    world.run(3, &mut |_| true).expect("it finishes");
    assert_eq!(Results::new(world.finish()).summary["digest"], links["digest"]);
}

#[test]
fn of_many_similar_links_some_are_simulated() {
    let text = |fidelity| fabric(4, 12, fidelity) + &poisson(4000);
    let [packet, links] = ["packet", "links"].map(|f| results(&text(f)).summary);
    let mode = &links["flow_mode"];
    let [all, simulated] = ["links", "simulated_links"].map(|k| mode[k].as_u64().expect("count"));
    assert!(all == 56 && simulated < 50, "{simulated} of {all}");
    let p99 = |s: &serde_json::Value| s["flows"]["fct_us"]["p99"].as_f64().expect("a time");
    let error = p99(&links) / p99(&packet) - 1.0;
    assert!(error.abs() < 0.2, "{error:+.3}");
    assert_eq!(results(&text("links")).summary["digest"], links["digest"]);
}

#[test]
fn bytes_on_links_are_those_of_packets() {
    let workload = "[[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '20 KB'\n";
    let [packet, links] = ["packet", "links"].map(|f| {
        let done = results(&(fabric(2, 3, f) + workload));
        let table = done.tables.iter().find(|t| t.name == "links").expect("the table of links");
        let Some(Column::U64(bytes)) = table.column("bytes") else { panic!("bytes are numbers") };
        bytes.iter().sum::<u64>() as f64
    });
    // packet mode also sends FINs, and acknowledges the last segment of a flow at once
    assert!((links / packet - 1.0).abs() < 0.02, "{links} and {packet} B");
}

#[test]
fn a_run_that_ends_early_counts_the_flows_that_have_not_arrived() {
    let background = poisson(4).replace("flows = 4\n", "background = true\n");
    let text = fabric(2, 2, "links").replace("seed", "duration = '5 ms'\nseed") + &background;
    let done = results(&text).summary;
    let count = |name: &str| done["flows"][name].as_u64().expect("a count");
    assert!(count("completed") > 20 && count("partial") > 0, "{}", done["flows"]);
    assert_eq!(done["simulated_s"], 0.005);
    assert_eq!(done["fidelity"], "links");
}

#[test]
fn progress_is_the_number_of_simulated_cables() {
    let background = poisson(4).replace("flows = 4\n", "background = true\n");
    let text = fabric(2, 2, "links").replace("seed", "duration = '5 ms'\nseed") + &background;
    let mut seen = Vec::new();
    let mut look = |p: &Progress| {
        assert_eq!(p.until, Time::NEVER, "the simulated time is no measure of progress");
        seen.push(p.done);
        true
    };
    run(&scenario(&text), false, &mut look).unwrap_or_else(|e| panic!("{e}"));
    let all = seen.last().expect("a report").1;
    assert!(all > 2 && seen.contains(&(all, all)), "{seen:?}");
    assert!(seen.windows(2).all(|w| w[0].0 <= w[1].0), "{seen:?}");
}

#[test]
fn closed_loops_and_settings_of_whole_fabrics_are_refused() {
    let base = fabric(2, 2, "links");
    let closed = "[[workload]]\nname = 'w'\nkind = 'all-to-all'\nbytes = '1 KB'\nparallel = 1\n";
    let said = problems(&(base.clone() + closed));
    assert!(said.contains("workload w is closed-loop") && said.contains("\"flow\""), "{said}");
    let once = closed.replace("parallel = 1\n", "");
    let fetched = once.clone() + "request_bytes = '100 B'\n";
    assert!(problems(&(base.clone() + &fetched)).contains("closed-loop"), "requests are refused");
    assert_eq!(scenario(&(base.clone() + &once)).workloads.len(), 1);
    let memory = "[fabric.shared_buffer]\nsize = '1 MB'\n";
    let said = problems(&(base.clone() + memory + &poisson(9)));
    assert!(said.contains("share memory") && said.contains("\"links\""), "{said}");
    let endless = poisson(9).replace("flows = 9\n", "background = true\n") + &once;
    assert!(problems(&(base + &endless)).contains("duration"), "no end");
}
