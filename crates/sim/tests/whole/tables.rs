//! Tests that each table of a run has exactly the columns that are declared for it.

use crate::harness::{outcome, shipped};
use eastwest_measure::table::Declared;
use eastwest_sim::results::TABLES;
use std::collections::BTreeMap;

#[test]
fn a_run_leaves_every_declared_table_with_its_columns() {
    let shape =
        |table: &Declared| table.columns.iter().map(|c| (c.name, c.kind)).collect::<Vec<_>>();
    let declared: BTreeMap<_, _> = TABLES.iter().map(|t| (t.name, shape(t))).collect();
    assert_eq!(declared.len(), TABLES.len(), "two tables have one name");
    let left: BTreeMap<_, _> = outcome(&shipped("first"), &[])
        .0
        .tables
        .iter()
        .map(|t| (t.name, t.columns.iter().map(|(name, c)| (*name, c.kind())).collect()))
        .collect();
    assert_eq!(left, declared);
}
