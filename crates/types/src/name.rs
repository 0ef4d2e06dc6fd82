//! Serialization of names (`&'static str`) in checkpoints. A name is written as text. Reading the
//! text gives a `&'static str` again; each different text is stored once per process.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A name that is a constant of the program. The alias is needed because, for a field of type
/// `&'static str`, `derive(Deserialize)` would borrow from its input.
pub type Name = &'static str;

/// All names read from checkpoints. There are few, and all runs of a process use the same ones.
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

/// Serializes a name, or a collection of names, as text.
pub fn serialize<T: Serialize, S: Serializer>(names: &T, to: S) -> Result<S::Ok, S::Error> {
    names.serialize(to)
}

/// Deserializes names written by [`serialize`]. Returns the error of the deserializer if there is
/// one.
pub fn deserialize<'de, T: Names, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Text::deserialize(from).map(T::of)
}

/// A name (`&'static str`) or a collection of names: an option, a pair or a vector of names.
pub trait Names {
    /// Type of the same collection with owned texts instead of names.
    type Text: for<'de> Deserialize<'de>;

    /// Returns names with the given texts. A text that is new to the process stays in memory until
    /// the process ends.
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
