//! The schema: collected by walking the reading functions in describing mode, once per kind of
//! every section.

use crate::reader::{Describing, Section, State, join, read_table};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A row of the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDoc {
    /// The section it stands in: `workload.*`.
    pub place: String,
    /// Its name.
    pub name: &'static str,
    /// Type of its values; `table` and `tables` for sections.
    pub kind_of_value: &'static str,
    /// What it means, in one line.
    pub doc: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// Its default as text.
    pub default: Option<String>,
    /// What it means that it is absent.
    pub absent: Option<&'static str>,
    /// Least and greatest value.
    pub range: Option<(&'static str, &'static str)>,
    /// The names a choice allows, each with its meaning.
    pub choices: Vec<(&'static str, &'static str)>,
    /// Kinds of the section it belongs to; empty for all.
    pub kinds: Vec<&'static str>,
}

impl KeyDoc {
    /// A row without default, range or choices.
    pub(super) fn new(
        place: &str,
        name: &'static str,
        kind_of_value: &'static str,
        doc: &'static str,
    ) -> KeyDoc {
        KeyDoc {
            place: place.to_owned(),
            name,
            kind_of_value,
            doc,
            required: false,
            default: None,
            absent: None,
            range: None,
            choices: Vec::new(),
            kinds: Vec::new(),
        }
    }

    /// Its path in a file.
    pub fn path(&self) -> String {
        join(&self.place, self.name)
    }

    fn same_but_for_kinds(&self, other: &KeyDoc) -> bool {
        let bare = |row: &KeyDoc| KeyDoc { kinds: Vec::new(), ..row.clone() };
        self.name == other.name && self.place == other.place && bare(self) == bare(other)
    }
}

/// All rows of the schema, in the order of reading. Calls `read`, which reads the whole file: first with the
/// default kinds, then with every other kind of every section met on the way.
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

/// Adds a row after the one that was read before it in its section, or its kind to the same row
/// seen in an earlier walk. Gives the place of the row.
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

/// Where a key that is unknown in one section belongs, if it exists elsewhere.
pub fn misplaced(rows: &[KeyDoc], place: &str, kind: Option<&str>, name: &str) -> Option<String> {
    let mut named = rows.iter().filter(|row| row.name == name);
    let here = named.clone().find(|row| row.place == place);
    if let (Some(row), Some(kind)) = (here, kind) {
        return Some(format!("it belongs to kind {}, and this is {kind}", row.kinds.join(", ")));
    }
    let elsewhere: BTreeSet<String> = named.by_ref().map(KeyDoc::path).collect();
    let paths: Vec<String> = elsewhere.into_iter().take(3).collect();
    if paths.is_empty() { None } else { Some(format!("it exists as {}", paths.join(", "))) }
}

/// A row as a JSON object.
pub fn row_json(row: &KeyDoc) -> Value {
    let mut object = json!({ "path": row.path(), "type": row.kind_of_value, "doc": row.doc });
    if row.required {
        object["required"] = json!(true);
    }
    if let Some(default) = &row.default {
        object["default"] = json!(default);
    }
    if let Some(absent) = row.absent {
        object["absent"] = json!(absent);
    }
    if let Some((low, high)) = row.range {
        object["min"] = json!(low);
        object["max"] = json!(high);
    }
    if !row.choices.is_empty() {
        let one = |(name, doc): &(&str, &str)| json!({ "name": name, "doc": doc });
        object["choices"] = row.choices.iter().map(one).collect();
    }
    if !row.kinds.is_empty() {
        object["kinds"] = json!(row.kinds);
    }
    object
}
