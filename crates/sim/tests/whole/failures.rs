//! Hadoop on a network that fails: nodes, cables and switches go down by `[[fault]]`, and every job
//! ends, with its bytes or for a reason.

use crate::harness::{Outcome, outcome};

/// Six workers and a master in two racks; a job of eight maps and two reduces.
fn text(framework: &str, more: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\n\
         [[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\nframework = '{framework}'\n\
         [workload.control]\nslowstart = 0.5\n\
         [workload.failures]\nexpiry = '30 s'\nfetch_timeout = '20 s'\nblock_timeout = '20 s'\n\
         call_timeout = '20 s'\n\
         [[workload.job]]\nkind = 'terasort'\ninput = '256 MB'\nmaps = 8\nreduces = 2\n\
         output_replication = 2\n{more}"
    )
}

fn down(on: &str, from: &str, to: &str) -> String {
    let to = if to.is_empty() { String::new() } else { format!("until = '{to}'\n") };
    format!("[[fault]]\non = '{on}'\nkind = 'down'\nfrom = '{from}'\n{to}")
}

fn assert_done(done: &Outcome, what: &str) {
    done.assert_conserved();
    assert_eq!(done.texts("jobs", "failed"), [""], "{what}");
    let fetched: u64 = {
        let kinds = done.texts("tasks", "kind");
        let bytes = done.u64s("tasks", "bytes_in");
        let rows = kinds.iter().zip(bytes);
        rows.filter(|(kind, _)| **kind == "reduce").map(|(_, bytes)| bytes).sum()
    };
    assert!(fetched >= 256_000_000, "{what}: {fetched}");
}

#[test]
fn jobs_outlive_a_node_a_cable_and_a_switch() {
    for framework in ["mr1", "yarn"] {
        let calm = outcome(&text(framework, ""), &[]);
        assert_done(&calm, framework);
        for fault in [
            down("h2", "7 s", ""),
            down("h5", "9 s", ""),
            down("h1--leaf0", "8 s", "10 s"),
            down("spine0", "8 s", "12 s"),
        ] {
            let done = outcome(&text(framework, &fault), &[]);
            assert_done(&done, &fault);
        }
    }
}

#[test]
fn a_job_that_cannot_go_on_says_why() {
    let failing = "[[workload.failures.task]]\njob = 'terasort'\nnumber = 3\nattempts = 4\n";
    let done = outcome(&text("mr1", failing), &[]);
    assert_eq!(done.texts("jobs", "failed"), ["a map failed too often"]);
}
