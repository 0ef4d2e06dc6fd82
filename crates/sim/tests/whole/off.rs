//! Tests of workloads that are switched off (`off = true`): they are not part of a run, and do not
//! change the other workloads.

use crate::harness::{context, outcome, scenario};
use eastwest_sim::scenario::read;

const STAR: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 6\nhost_rate = '1 Gbit/s'\n";
const BULK: &str = "[[workload]]\nname = 'bulk'\nkind = 'incast'\nreceiver = 'h0'\nsenders = 'h1..h3'\n\
    block_bytes = '400 KB'\nwarm_up = '0 s'\n";
const RANKS: &str = "[[workload]]\nname = 'cg'\nkind = 'mpi-cg'\nranks = 4\nproblem = 'S'\nouter = 0\n\
    inner = 3\nplacement = 'random'\n";

#[test]
fn a_run_without_a_workload_is_the_run_of_the_others() {
    let both = format!("{STAR}{BULK}{RANKS}");
    let off = |name: &str| outcome(&both, &[(&format!("workload.{name}.off"), "true")]);
    let alone = outcome(&format!("{STAR}{BULK}"), &[]);
    let without_ranks = off("cg");
    assert_eq!(without_ranks.digest(), alone.digest());
    assert_eq!(without_ranks.count("flows.count"), 3);
    assert!(without_ranks.value("mpi").is_null());
    // the placement of ranks depends on the seed, not on other workloads
    let (alone, without_bulk) = (outcome(&format!("{STAR}{RANKS}"), &[]), off("bulk"));
    assert_eq!(
        without_bulk.f64s("mpi_messages", "received_s"),
        alone.f64s("mpi_messages", "received_s")
    );
    let beside = outcome(&both, &[]);
    assert_eq!(beside.u64s("mpi_ranks", "host"), alone.u64s("mpi_ranks", "host"));
    assert!(beside.number("mpi.runtime_s") > alone.number("mpi.runtime_s"));
}

#[test]
fn a_workload_that_is_off_is_checked_and_says_nothing() {
    let jobs = "[[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\noff = true\n\
        hadoop = { 'mapreduce.map.output.compress' = true }\n[[workload.job]]\nkind = 'terasort'\n\
        input = '64 MB'\n";
    let text = format!("{STAR}{BULK}{jobs}");
    let quiet = scenario(&text, &[]);
    assert_eq!(quiet.workloads.len(), 1);
    assert!(quiet.notes.is_empty(), "{:?}", quiet.notes);
    assert!(!scenario(&text.replace("off = true\n", ""), &[]).notes.is_empty());
    // the scenario text with all defaults gives an equal run
    let again = read(quiet.resolved(), &context(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
    assert_eq!(again.workloads, quiet.workloads);
    let said = |text: &str| {
        let problems = read(text, &context(), &[]).expect_err("it is wrong");
        problems.iter().map(|p| format!("{p}\n")).collect::<String>()
    };
    let wrong = said(&text.replace("'64 MB'", "'64 MB'\nmaps = 0"));
    assert!(wrong.contains("workload.1.job.0.maps"), "{wrong}");
    let none = said(&format!("{STAR}{}", BULK.replace("'h0'", "'h0'\noff = true")));
    assert_eq!(none.lines().count(), 1, "{none}");
    assert!(none.contains("all workloads have off = true"), "{none}");
}
