//! Tests of jobs, flows and links of two tiny scenarios, row by row, against files in the
//! repository: they show any change in results. The environment variable
//! `EASTWEST_WRITE_SNAPSHOTS=1` writes these files again.

use crate::harness::{outcome, shipped};
use std::path::Path;

fn compare(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    if std::env::var_os("EASTWEST_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).expect("the snapshot can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = kept.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        kept == text,
        "{file}: results have changed, first at line {}. If that is meant, run the tests with \
         EASTWEST_WRITE_SNAPSHOTS=1 and say why in the commit.",
        differing.unwrap_or(kept.lines().count().min(text.lines().count())) + 1
    );
}

#[test]
fn flows_and_links_of_the_first_scenario() {
    let done = outcome(&shipped("first"), &[]);
    let text = format!("{}\n{}", done.table_text("flows"), done.table_text("links"));
    compare("first.tsv", &text);
}

#[test]
fn jobs_and_tasks_of_a_small_terasort() {
    let sets = [
        ("fabric.hosts_per_leaf", "2"),
        ("workload.terasort.master", "h7"),
        ("workload.terasort.job.0.input", "20 MB"),
        ("workload.terasort.job.0.maps", "5"),
        ("workload.terasort.job.0.reduces", "3"),
    ];
    let done = outcome(&shipped("eeon_ch5_shallow"), &sets);
    let parts = ["jobs", "tasks", "flows"].map(|table| done.table_text(table));
    compare("terasort.tsv", &parts.join("\n"));
}
