//! Documentation of the keys of a scenario, in rows: one for each key of a section.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The documentation of one key of a scenario: type, meaning, default and range.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDoc {
    /// Dotted path of the section that has the key, such as `workload.*`, where `*` stands for any
    /// member of an array; empty for the top level.
    pub place: String,
    /// Name of the key in its section.
    pub name: &'static str,
    /// Type of the values of the key, such as `time` or `rate`; for sections `table` or `tables`.
    pub kind_of_value: &'static str,
    /// One-line explanation of the key, which the reference page prints.
    pub doc: &'static str,
    /// Whether the key is required.
    pub required: bool,
    /// Default as text; `None` for a required or optional key, and for sections.
    pub default: Option<String>,
    /// Meaning of an optional setting that is not given, such as `no limit`; `None` for other
    /// settings.
    pub absent: Option<&'static str>,
    /// Smallest and largest allowed value as text; `None` if the key has no range.
    pub range: Option<(&'static str, &'static str)>,
    /// Names that the key allows, each with its explanation; empty if the key is not a choice.
    pub choices: Vec<(&'static str, &'static str)>,
    /// Kinds of the section that have the key; empty if all kinds have it.
    pub kinds: Vec<&'static str>,
}

impl KeyDoc {
    /// Returns the documentation of a key that is not required and has no default, range or
    /// choices. `place`: dotted path of its section; `kind_of_value`: type of its value.
    pub fn new(
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

    /// Returns the dotted path of the key in a scenario, such as `workload.*.kind`.
    pub fn path(&self) -> String {
        join(&self.place, self.name)
    }

    pub(crate) fn same_but_for_kinds(&self, other: &KeyDoc) -> bool {
        let bare = |row: &KeyDoc| KeyDoc { kinds: Vec::new(), ..row.clone() };
        self.name == other.name && self.place == other.place && bare(self) == bare(other)
    }
}

/// Joins a path and a name below it with a dot. A path that ends in a colon and a space is the name
/// of a file, to which the name is added without a dot.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() || path.ends_with(": ") {
        format!("{path}{name}")
    } else {
        format!("{path}.{name}")
    }
}

/// Returns a phrase for messages that says where the key `name`, which is unknown at `place`,
/// exists: for other kinds of the section, or in other sections. `None` if it exists nowhere.
pub fn misplaced(rows: &[KeyDoc], place: &str, kind: Option<&str>, name: &str) -> Option<String> {
    let named = rows.iter().filter(|row| row.name == name);
    let here = named.clone().filter(|row| row.place == place);
    let kinds: BTreeSet<&str> = here.flat_map(|row| row.kinds.iter().copied()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    if let (false, Some(kind)) = (kinds.is_empty(), kind) {
        let plural = if kinds.len() == 1 { "kind" } else { "the kinds" };
        return Some(format!(
            "it belongs to {plural} {}, but kind is {kind} here",
            kinds.join(", ")
        ));
    }
    let elsewhere: BTreeSet<String> = named.map(KeyDoc::path).collect();
    let paths: Vec<String> = elsewhere.into_iter().take(3).collect();
    if paths.is_empty() { None } else { Some(format!("it exists as {}", paths.join(", "))) }
}

/// A condition on other keys of a section, under which a key has an effect.
pub(crate) struct Condition<'a> {
    /// Names of the other keys.
    pub keys: Vec<&'a str>,
    /// Message for a key whose condition does not hold.
    pub message: String,
}

/// Returns the condition of the key `name` of the section `place`; `None` if this section has no
/// such key for its kind. Only a key that is read under a condition can be unknown although it is
/// documented for the section. If its documentation begins with "With `x`: ", the condition is x,
/// which can be several keys.
pub(crate) fn condition<'a>(
    rows: &'a [KeyDoc],
    place: &str,
    kind: Option<&str>,
    name: &str,
) -> Option<Condition<'a>> {
    let of_kind =
        |row: &&KeyDoc| row.kinds.is_empty() || kind.is_some_and(|kind| row.kinds.contains(&kind));
    let mut here = rows.iter().filter(|row| row.name == name && row.place == place);
    let row = here.find(of_kind)?;
    let with = row.doc.strip_prefix("With ").and_then(|doc| doc.split_once(": "));
    Some(match with {
        Some((other, _)) => Condition {
            keys: other.split('`').skip(1).step_by(2).collect(),
            message: format!("has an effect only with {other}"),
        },
        None => Condition {
            keys: Vec::new(),
            message: format!("has no effect with the other settings of this table: {}", row.doc),
        },
    })
}

/// Returns the documentation of one key as a JSON object.
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
