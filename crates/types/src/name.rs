//! Names that the program spells out itself (`&'static str`) in what is written to a checkpoint: they
//! are written as text, and a text that is read becomes such a name again, one for each text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A name that the program spells out. An alias, since `derive(Deserialize)` would borrow a field of type
/// `&'static str` from its input.
pub type Name = &'static str;

/// What has been read. Names are few, and those of all runs of a process are the same.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

fn name(text: String) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = names.get(text.as_str()) {
        return known;
    }
    let new: &'static str = text.leak();
    names.insert(new);
    new
}

/// Writes a name, a list of names, or whatever else of names can be written.
pub fn serialize<T: Serialize, S: Serializer>(names: &T, to: S) -> Result<S::Ok, S::Error> {
    names.serialize(to)
}

/// Reads what [`serialize`] has written.
pub fn deserialize<'de, T: Names, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Text::deserialize(from).map(T::of)
}

/// What consists of names.
pub trait Names {
    /// The structure with texts in place of names.
    type Text: for<'de> Deserialize<'de>;

    /// The names that these texts are.
    fn of(text: Self::Text) -> Self;
}

impl Names for &'static str {
    type Text = String;

    fn of(text: String) -> &'static str {
        name(text)
    }
}

impl Names for Option<&'static str> {
    type Text = Option<String>;

    fn of(text: Option<String>) -> Self {
        text.map(name)
    }
}

impl Names for (&'static str, &'static str) {
    type Text = (String, String);

    fn of((a, b): (String, String)) -> Self {
        (name(a), name(b))
    }
}

impl Names for Vec<&'static str> {
    type Text = Vec<String>;

    fn of(text: Vec<String>) -> Self {
        text.into_iter().map(name).collect()
    }
}
