//! The documentation of all keys of a scenario (the schema), one row for each key. To collect it,
//! the functions that read a scenario are called without a file, once for each kind of every
//! section.

use crate::reader::{Describing, Section, State, read_table};
use crate::row::KeyDoc;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the documentation of all keys of a scenario, in the order of reading. `read` is the
/// function that reads a whole scenario. It is called with the default kinds, and then with each
/// other kind of every section that it has read.
pub fn rows(read: impl Fn(&mut Section)) -> Vec<KeyDoc> {
    let mut rows: Vec<KeyDoc> = Vec::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut walked: BTreeSet<(String, &'static str)> = BTreeSet::new();
    let mut waiting = vec![BTreeMap::new()];
    while let Some(forced) = waiting.pop() {
        let describing = Describing { forced: forced.clone(), ..Describing::default() };
        let mut state = State { describing: Some(describing), ..State::default() };
        read_table(&mut state, "", None, &read);
        let seen = state.describing.unwrap_or_default();
        let mut before: BTreeMap<String, usize> = BTreeMap::new();
        for row in seen.keys {
            let place = row.place.clone();
            let at = merge(&mut rows, row, before.get(&place).copied());
            before.insert(place, at);
        }
        for (place, names) in seen.met {
            kinds.insert(place.clone(), names.len());
            for name in names.into_iter().rev() {
                if walked.insert((place.clone(), name)) {
                    let mut next = forced.clone();
                    next.insert(place.clone(), name);
                    waiting.push(next);
                }
            }
        }
    }
    for row in &mut rows {
        if kinds.get(&row.place).is_some_and(|all| *all == row.kinds.len()) {
            row.kinds.clear();
        }
    }
    rows
}

/// Adds `row`, the documentation of a key, to `rows`: after the row with index `before`, or with
/// `None` after the last row of the same section. If `rows` already documents this key for another
/// kind of the section, only adds the kind to that row. Returns the index of the row.
fn merge(rows: &mut Vec<KeyDoc>, row: KeyDoc, before: Option<usize>) -> usize {
    if let Some(at) = rows.iter().position(|r| r.same_but_for_kinds(&row)) {
        for kind in row.kinds {
            if !rows[at].kinds.contains(&kind) {
                rows[at].kinds.push(kind);
            }
        }
        return at;
    }
    let last = rows.iter().rposition(|r| r.place == row.place);
    let at = before.or(last).map_or(rows.len(), |i| i + 1);
    rows.insert(at, row);
    at
}
