//! A declarative reader of TOML tables: every key is declared once, where it is read.
//!
//! From one declaration follow the checked value, all problems of the file at once, and the
//! resolved text, which contains every default. In describing mode no file is read, and
//! declarations give the documentation of all keys. A section is read inside a closure; when the
//! closure returns, keys that were not declared are reported.

use crate::problem::{Problem, nearest, quote, shorten};
use crate::quantity::{Quantity, constant, instead};
use crate::resolve::{Body, Out};
pub use crate::row::join;
use crate::row::{KeyDoc, condition, misplaced};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Largest number of problems that are collected for one file.
const MOST_PROBLEMS: usize = 1000;

/// State of the reading of one file, which all its sections share.
#[derive(Default)]
pub struct State {
    /// Problems found in the file so far.
    pub problems: Vec<Problem>,
    /// Line of each key and table in the file, counted from 1, by the dotted path of the key.
    pub lines: BTreeMap<String, usize>,
    /// State of describing mode, in which the documentation of all keys is collected; `None` when a
    /// file is read.
    pub describing: Option<Describing>,
    /// Function that returns the documentation of all keys of a scenario. With it, messages say to
    /// which section a misplaced key belongs; with `None` they do not.
    pub schema: Option<fn() -> &'static [KeyDoc]>,
}

/// State of describing mode, in which no file is read and the documentation of all keys is
/// collected.
#[derive(Default)]
pub struct Describing {
    /// Kind that a section has in this pass, by the dotted path of the section (`workload.*`).
    /// Other sections have their default kind. There is one pass for each kind of every section.
    pub forced: BTreeMap<String, &'static str>,
    /// Sections with a key `kind` that this pass has read: the dotted path of the section, and the
    /// names of all its kinds.
    pub met: Vec<(String, Vec<&'static str>)>,
    /// Documentation of the keys that this pass has read, in the order of reading.
    pub keys: Vec<KeyDoc>,
}

impl State {
    /// Returns all problems in the order of their lines; problems without a line come first.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    /// Whether the maximum number of problems (1,000) is collected, so that reading can stop.
    pub fn full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    /// Adds a problem with the key at the dotted path `path`, the value found there, and the name
    /// that was probably meant (`hint`; `None` if there is none). Does nothing in describing mode,
    /// or if 1,000 problems are collected.
    pub fn problem(
        &mut self,
        path: &str,
        value: Option<&Value>,
        message: String,
        hint: Option<String>,
    ) {
        if self.describing.is_none() && !self.full() {
            let line = self.lines.get(path).copied();
            let path = path.to_owned();
            self.problems.push(Problem { path, line, value: value.map(quote), message, hint });
        }
    }
}

/// Rule for the value of a key that is absent from the file.
#[derive(Clone)]
enum Absent<T> {
    Required,
    Default(&'static str),
    Value(T),
    Computed(&'static str, T),
    Optional(&'static str),
}

/// Declaration of a key of a TOML table: name, explanation, default and range.
#[derive(Clone)]
pub struct Key<T> {
    name: &'static str,
    doc: &'static str,
    absent: Absent<T>,
    range: Option<(&'static str, &'static str)>,
}

/// Declares a required key; [`Key::default`] and similar functions make it optional. `doc` is a
/// one-line explanation, which names the source of the default.
pub fn key<T: Quantity>(name: &'static str, doc: &'static str) -> Key<T> {
    Key { name, doc, absent: Absent::Required, range: None }
}

impl<T: Quantity> Key<T> {
    /// Sets the default of the key, written as in a file but without quotes.
    pub fn default(self, text: &'static str) -> Key<T> {
        Key { absent: Absent::Default(text), ..self }
    }
    /// Sets the default of the key to a value that another crate defines.
    pub fn value(self, value: T) -> Key<T> {
        Key { absent: Absent::Value(value), ..self }
    }
    /// Sets a default that is computed from other settings; `said` explains how. In the file, the
    /// value `"auto"` selects this default too.
    pub fn computed(self, said: &'static str, value: T) -> Key<T> {
        Key { absent: Absent::Computed(said, value), ..self }
    }
    /// Makes the key optional; `said` explains what its absence means. [`Section::find`] reads an
    /// optional key.
    pub fn optional(self, said: &'static str) -> Key<T> {
        Key { absent: Absent::Optional(said), ..self }
    }
    /// Sets the smallest and the largest allowed value of the key, written as in a file but without
    /// quotes.
    pub fn range(self, low: &'static str, high: &'static str) -> Key<T> {
        Key { range: Some((low, high)), ..self }
    }
}

/// Text added to a message about an unknown name, where the name could be that of a user's own
/// mechanism.
const OWN: &str = "; if it is a mechanism of your own, name its file with --with";

/// An allowed value of a key with fixed names: (name in the file, value in the program, one-line
/// explanation).
pub type Choice<T> = (&'static str, T, &'static str);

/// Presets: values that replace the defaults of keys which are absent from the file, and the source
/// of each value.
#[derive(Clone, Default)]
struct Presets {
    values: Table,
    sources: BTreeMap<String, String>,
}

/// A table of a TOML file that is being read: each key is declared where it is read.
pub struct Section<'s, 't> {
    state: &'s mut State,
    /// Path of the section in the file, such as `workload.0`.
    path: String,
    /// Path of the section with `*` for the number of each member of an array, such as
    /// `workload.*`; it identifies the section in the documentation of keys.
    place: String,
    table: Option<&'t Table>,
    /// Values for keys that the table in the file does not have; they replace the defaults of these
    /// keys.
    presets: Presets,
    /// Presets (values that replace defaults) for keys of tables in this section, by the name of
    /// the table.
    presets_below: BTreeMap<String, Presets>,
    kind: Option<&'static str>,
    /// Name of the user's own mechanism to which the keys of this section belong; `None` if they
    /// belong to Eastwest.
    mechanism: Option<&'static str>,
    /// Text that is added to the message about an unknown name, such as how users load mechanisms
    /// of their own; usually empty.
    besides: &'static str,
    declared: Vec<&'static str>,
    bad: Vec<&'static str>,
    judged: bool,
    /// Whether the kind of the section is a guess, since the name in the file is misspelt.
    assumed: bool,
    out: Out,
}

/// Reads a TOML table with the function `read`. `path` is the dotted path of the table, empty for
/// the top level of a file; a table `None` counts as empty. Returns the result of `read`, and the
/// resolved text of the table (its keys with all defaults).
pub fn read_table<T>(
    state: &mut State,
    path: &str,
    table: Option<&Table>,
    read: impl FnOnce(&mut Section) -> T,
) -> (T, Out) {
    let mut section = Section::new(state, path.to_owned(), path.to_owned(), table);
    let value = read(&mut section);
    (value, section.finish())
}

impl<'s, 't> Section<'s, 't> {
    fn new(
        state: &'s mut State,
        path: String,
        place: String,
        table: Option<&'t Table>,
    ) -> Section<'s, 't> {
        let (declared, bad) = (Vec::new(), Vec::new());
        Section {
            state,
            path,
            place,
            table,
            presets: Presets::default(),
            presets_below: BTreeMap::new(),
            kind: None,
            mechanism: None,
            besides: "",
            declared,
            bad,
            judged: true,
            assumed: false,
            out: Out::default(),
        }
    }

    /// Whether the reader is in describing mode, which only collects the documentation of keys.
    /// Then there is no scenario, and no other file must be opened.
    pub fn describing(&self) -> bool {
        self.state.describing.is_some()
    }

    /// Whether the file contains the key `name` in this section.
    pub fn has(&self, name: &str) -> bool {
        self.table.is_some_and(|t| t.contains_key(name))
    }

    /// Adds presets: values for keys of this section that are absent from the file. They replace
    /// earlier presets of these keys.
    pub fn preset(&mut self, presets: Table) {
        self.presets.values.extend(presets);
    }

    /// Adds presets: values, written as texts with units, for keys of this section that are absent
    /// from the file.
    pub fn preset_texts(&mut self, presets: &[(&str, String)]) {
        self.preset_values(presets);
    }

    /// Adds presets of one type, such as numbers, for keys of this section that are absent from the
    /// file.
    pub fn preset_values<V: Into<Value> + Clone>(&mut self, presets: &[(&str, V)]) {
        let value = |(key, value): &(&str, V)| ((*key).to_owned(), value.clone().into());
        self.presets.values.extend(presets.iter().map(value));
    }

    /// Adds a preset, a value that replaces the default, for a key of this section, or of a table
    /// in it (`shuffle.parallel_copies`); in an array of tables, for every member. The preset
    /// applies if the file does not have the key. Messages name `source` as the origin of the
    /// value.
    pub fn preset_below(&mut self, path: &str, value: Value, source: String) {
        let (presets, name) = match path.split_once('.') {
            Some((table, name)) => (self.presets_below.entry(table.to_owned()).or_default(), name),
            None => (&mut self.presets, path),
        };
        presets.values.insert(name.to_owned(), value);
        presets.sources.insert(name.to_owned(), source);
    }

    /// Returns the value in the file at a path of one or two names below this section, ignoring
    /// presets; `None` if the file has none.
    pub fn own(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let value = self.table?.get(first)?;
        if rest.is_empty() { Some(value) } else { value.as_table()?.get(rest) }
    }

    /// Returns the value of the key `name` in the file or, if the file has none, its preset (a
    /// value that replaces the default).
    fn given(&self, name: &str) -> Option<&Value> {
        self.table.and_then(|t| t.get(name)).or_else(|| self.presets.values.get(name))
    }

    /// Whether the keys with these names were read without a problem.
    pub fn good(&self, names: &[&str]) -> bool {
        !self.bad.iter().any(|bad| names.contains(bad))
    }

    /// Declares that the keys of this section belong to the user's own mechanism `name`. The
    /// message about an unknown key then lists only the keys of this mechanism.
    pub fn belongs_to(&mut self, name: &'static str) {
        self.mechanism = Some(name);
    }

    /// Returns the state of the reader, which all sections of a file share.
    pub fn state(&mut self) -> &mut State {
        self.state
    }

    /// Reads a key that is required or has a default. If the file has no value for it, returns the
    /// default. If the value is wrong, or a required value is missing, reports this and returns the
    /// default or another valid value, so that reading can continue.
    pub fn get<T: Quantity>(&mut self, key: Key<T>) -> T {
        let fallback = match &key.absent {
            Absent::Default(text) => constant(text),
            Absent::Value(value) | Absent::Computed(_, value) => value.clone(),
            Absent::Required | Absent::Optional(_) => match key.range {
                Some((low, _)) => constant(low),
                None => T::placeholder(),
            },
        };
        match self.look_up(&key) {
            Some(value) => value,
            None if self.good(&[key.name]) => {
                self.out.value(key.name, fallback.show());
                fallback
            }
            None => fallback,
        }
    }

    /// Reads an optional key. Returns `None` if it is absent, or if its value is wrong and was
    /// reported.
    pub fn find<T: Quantity>(&mut self, key: Key<T>) -> Option<T> {
        self.look_up(&key)
    }

    /// Returns the checked value of a key in the file or in the presets (values that replace
    /// defaults). Returns `None` if there is no value, if it is wrong, or if it is `"auto"`, which
    /// selects a computed default. Reports a wrong value, and a required key that is missing.
    fn look_up<T: Quantity>(&mut self, key: &Key<T>) -> Option<T> {
        self.declare(key.name);
        self.describe_key(key);
        if self.describing() {
            return None;
        }
        let Some(raw) = self.given(key.name) else {
            if matches!(key.absent, Absent::Required) {
                self.missing(key.name, key.doc);
            }
            return None;
        };
        if matches!(key.absent, Absent::Computed(..)) && raw.as_str() == Some("auto") {
            return None;
        }
        match T::parse(raw).and_then(|value| in_range(value, key.range)) {
            Ok(value) => {
                self.out.value(key.name, value.show());
                Some(value)
            }
            Err(message) => {
                self.wrong(key.name, message);
                None
            }
        }
    }

    /// Reads a key of an earlier version of the program, which other keys have replaced and which
    /// is not documented. Returns `None` if the key is absent, or if its value is wrong and was
    /// reported.
    pub fn former<T: Quantity>(&mut self, name: &'static str) -> Option<T> {
        if self.describing() {
            return None;
        }
        self.declare(name);
        let parsed = T::parse(self.given(name)?);
        parsed.map_err(|message| self.wrong(name, message)).ok()
    }

    /// Reads a key whose value is one of several names; the key is required if `default` is `None`.
    /// Returns the value of the chosen name. An unknown name, or a required name that is missing,
    /// is reported, and the value of the first choice is returned.
    pub fn choice<T: Clone>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        default: Option<&'static str>,
        choices: &[Choice<T>],
    ) -> T {
        let index = self.pick(name, doc, default, choices).unwrap_or(0);
        choices[index].1.clone()
    }

    /// Reads a choice like [`Section::choice`]. The message about an unknown name adds how users
    /// can load mechanisms of their own.
    pub fn open_choice<T: Clone>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        default: Option<&'static str>,
        choices: &[Choice<T>],
    ) -> T {
        self.besides = OWN;
        let value = self.choice(name, doc, default, choices);
        self.besides = "";
        value
    }

    /// Reads the key `kind` like [`Section::kind`], also with the same cases of `None`. The message
    /// about an unknown kind adds how users can load mechanisms of their own.
    pub fn open_kind<T: Clone>(
        &mut self,
        doc: &'static str,
        default: Option<&'static str>,
        choices: &[Choice<T>],
    ) -> Option<T> {
        self.besides = OWN;
        let value = self.kind(doc, default, choices);
        self.besides = "";
        value
    }

    /// Reads the key `kind`, which decides which other keys the section has. An unknown kind is
    /// reported, and the most similar known kind is assumed. Returns `None` if no kind is similar,
    /// or if a required kind is missing; then the rest of the section is not checked.
    pub fn kind<T: Clone>(
        &mut self,
        doc: &'static str,
        default: Option<&'static str>,
        choices: &[Choice<T>],
    ) -> Option<T> {
        let index = if self.describing() {
            self.pick("kind", doc, default, choices);
            Some(self.walk_kinds(default, choices))
        } else {
            let picked = self.pick("kind", doc, default, choices);
            let likely = picked.or_else(|| self.likely_kind(choices));
            self.assumed = picked.is_none();
            likely
        };
        self.kind = index.map(|i| choices[i].0);
        self.judged = index.is_some();
        index.map(|i| choices[i].1.clone())
    }

    /// Returns the index of the kind whose keys are documented in this pass. Used in describing
    /// mode, which reads a section once for each kind.
    fn walk_kinds<T>(&mut self, default: Option<&'static str>, choices: &[Choice<T>]) -> usize {
        let place = self.place.clone();
        let Some(describing) = &mut self.state.describing else { return 0 };
        let wanted = describing.forced.get(&place).copied().or(default);
        describing.met.push((place, choices.iter().map(|c| c.0).collect()));
        choices.iter().position(|c| Some(c.0) == wanted).unwrap_or(0)
    }

    fn pick<T>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        default: Option<&'static str>,
        choices: &[Choice<T>],
    ) -> Option<usize> {
        self.declare(name);
        let names: Vec<&'static str> = choices.iter().map(|c| c.0).collect();
        let row = KeyDoc {
            choices: choices.iter().map(|c| (c.0, c.2)).collect(),
            ..KeyDoc::new(&self.place, name, "choice", doc)
        };
        self.describe(match default {
            Some(text) => KeyDoc { default: Some(text.to_owned()), ..row },
            None => KeyDoc { required: true, ..row },
        });
        if self.describing() {
            return None;
        }
        let chosen = match self.given(name) {
            Some(Value::String(text)) => text.as_str(),
            Some(other) => {
                self.wrong(
                    name,
                    format!("{}; must be one of {}", instead(other), names.join(", ")),
                );
                return None;
            }
            None => match default {
                Some(text) => text,
                None => {
                    self.missing(name, &format!("one of {}", names.join(", ")));
                    return None;
                }
            },
        };
        let index = names.iter().position(|n| *n == chosen);
        match index {
            Some(i) => self.out.value(name, Value::String(names[i].to_owned()).to_string()),
            None => {
                let hint = nearest(chosen, names.iter().copied()).map(str::to_owned);
                let one_of = if names.len() == 1 { "must be" } else { "must be one of" };
                let besides = if hint.is_some() { "" } else { self.besides };
                let message = format!("{one_of} {}{besides}", names.join(", "));
                self.wrong_hint(name, message, hint);
            }
        }
        index
    }

    /// Returns the index of the known kind that is most similar to the unknown kind in the file, so
    /// that the other keys of the section can be checked as for this kind. `None` if no kind is
    /// similar.
    fn likely_kind<T>(&self, choices: &[Choice<T>]) -> Option<usize> {
        let text = self.table?.get("kind")?.as_str()?;
        let likely = nearest(text, choices.iter().map(|c| c.0))?;
        choices.iter().position(|c| c.0 == likely)
    }

    /// Reads a table below this section if `given` is true. Otherwise returns `None`, and the
    /// resolved text (the file with all defaults) does not have the table.
    pub fn table_if<T>(
        &mut self,
        given: bool,
        name: &'static str,
        doc: &'static str,
        read: impl FnOnce(&mut Section) -> T,
    ) -> Option<T> {
        if !given && !self.describing() {
            self.declare(name);
            return None;
        }
        let value = self.table(name, doc, read);
        given.then_some(value)
    }

    /// Reads a table below this section with the function `read`; an absent table counts as empty.
    pub fn table<T>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        read: impl FnOnce(&mut Section) -> T,
    ) -> T {
        self.declare(name);
        self.describe(KeyDoc::new(&self.place, name, "table", doc));
        let table = match self.table.and_then(|t| t.get(name)) {
            Some(Value::Table(table)) => Some(table),
            Some(other) => {
                self.wrong(name, format!("{}; must be a table", instead(other)));
                None
            }
            None => None,
        };
        let (path, place) = (join(&self.path, name), join(&self.place, name));
        let presets = self.presets_below.remove(name).unwrap_or_default();
        let mut section = Section { presets, ..Section::new(self.state, path, place, table) };
        let value = read(&mut section);
        let spoilt = !section.unspoilt();
        let out = section.finish();
        if spoilt {
            self.bad.push(name);
        }
        self.out.tables.push((name, Body::Table(out)));
        value
    }

    /// Reads an array of tables; `read` gets each table with its index. If the array has more than
    /// `most` tables, this is reported and none is read.
    pub fn tables<T>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        most: usize,
        mut read: impl FnMut(&mut Section, usize) -> T,
    ) -> Vec<T> {
        self.declare(name);
        self.describe(KeyDoc::new(&self.place, name, "tables", doc));
        let place = join(&join(&self.place, name), "*");
        if self.describing() {
            let mut section = Section::new(self.state, place.clone(), place, None);
            return vec![read(&mut section, 0)];
        }
        let items = match self.table.and_then(|t| t.get(name)) {
            Some(Value::Array(items)) if items.len() > most => {
                self.wrong(
                    name,
                    format!("has {} entries; at most {most} are allowed", items.len()),
                );
                return Vec::new();
            }
            Some(Value::Array(items)) => items.as_slice(),
            Some(other) => {
                self.wrong(name, format!("{}; write [[{name}]] before each entry", instead(other)));
                return Vec::new();
            }
            None => return Vec::new(),
        };
        let presets = self.presets_below.remove(name).unwrap_or_default();
        let (mut values, mut outs, mut spoilt) = (Vec::new(), Vec::new(), false);
        for (i, item) in items.iter().enumerate() {
            if self.state.full() {
                spoilt = true;
                break;
            }
            let path = format!("{}.{i}", join(&self.path, name));
            let Value::Table(table) = item else {
                self.state.problem(
                    &path,
                    Some(item),
                    format!("{}; must be a table", instead(item)),
                    None,
                );
                spoilt = true;
                continue;
            };
            let section = Section::new(self.state, path, place.clone(), Some(table));
            let mut section = Section { presets: presets.clone(), ..section };
            values.push(read(&mut section, i));
            spoilt |= !section.unspoilt();
            outs.push(section.finish());
        }
        if spoilt {
            self.bad.push(name);
        }
        self.out.tables.push((name, Body::Array(outs)));
        values
    }

    /// Reports a problem with the key `name` of this section, even if the key already has another
    /// problem.
    pub fn wrong(&mut self, name: &'static str, message: impl Into<String>) {
        self.wrong_hint(name, message, None);
    }

    /// Reports a problem with the key `name` of this section, with the name that the user probably
    /// meant as `hint`.
    pub fn wrong_hint(
        &mut self,
        name: &'static str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.bad.push(name);
        let path = join(&self.path, name);
        let raw = self.table.and_then(|t| t.get(name));
        let mut message = message.into();
        if let (None, Some(source)) = (raw, self.presets.sources.get(name)) {
            message = format!("{message} (from {source})");
        }
        self.state.problem(&path, raw, message, hint);
    }

    /// Marks the key `name` as wrong without a report, because its problem is already reported at
    /// another place, such as the file that the key names.
    pub fn spoil(&mut self, name: &'static str) {
        self.bad.push(name);
    }

    /// Reports a problem with the entry `below` of the key `name`, a table in which users choose
    /// the names of entries.
    pub fn wrong_below(
        &mut self,
        name: &'static str,
        below: &str,
        message: String,
        hint: Option<String>,
    ) {
        self.bad.push(name);
        let table = self.table.and_then(|t| t.get(name)).and_then(Value::as_table);
        let path = join(&join(&self.path, name), &shorten(below));
        self.state.problem(&path, table.and_then(|t| t.get(below)), message, hint);
    }

    /// Checks a condition on several keys; `holds` says whether it is fulfilled. A violation is
    /// reported at the first key, and only if none of the keys has another problem.
    pub fn demand(
        &mut self,
        holds: bool,
        names: &[&'static str],
        message: impl FnOnce() -> String,
    ) {
        if !holds && self.judged && !self.describing() && self.good(names) {
            self.wrong(names[0], message());
        }
    }

    /// Reports an objection of the form `path: reason` at this path below the section. If the first
    /// name of the path is not a key of the section, the whole objection is reported at the
    /// section.
    pub fn object(&mut self, objection: &str) {
        let named = objection.split_once(": ").filter(|(path, _)| {
            let first = path.split('.').next().unwrap_or("");
            self.declared.contains(&first)
        });
        let (path, reason) = match named {
            Some((below, reason)) => (join(&self.path, below), reason),
            None => (self.path.clone(), objection),
        };
        let raw = named.and_then(|(below, _)| self.table.and_then(|t| t.get(below)));
        self.state.problem(&path, raw, reason.to_owned(), None);
    }

    /// Whether no problem was found so far in this section and the tables below it.
    fn unspoilt(&self) -> bool {
        self.judged && self.bad.is_empty()
    }

    /// Whether no problem was found so far in this section and the tables below it, and the values
    /// come from a file. False in describing mode.
    pub fn all_good(&self) -> bool {
        self.unspoilt() && !self.describing()
    }

    /// Returns the path of the section in the file, for example `workload.0`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Replaces the text of the key `name` in the resolved text, the file with all defaults.
    pub fn resolve_as(&mut self, name: &'static str, text: String) {
        self.out.replace(name, text);
    }

    /// Removes the key `name` from the resolved text, the file with all defaults.
    pub fn resolve_without(&mut self, name: &'static str) {
        self.out.remove(name);
    }

    /// Replaces the table `name` in the resolved text, the file with all defaults.
    pub fn resolve_table(&mut self, name: &'static str, body: Body) {
        self.out.tables.retain(|(n, _)| *n != name);
        self.out.tables.push((name, body));
    }

    fn missing(&mut self, name: &'static str, doc: &str) {
        self.bad.push(name);
        if self.assumed {
            return; // if the kind is only assumed, a missing key is no error
        }
        let path = join(&self.path, name);
        if let Some(line) = self.state.lines.get(&self.path).copied() {
            self.state.lines.entry(path.clone()).or_insert(line);
        }
        self.state.problem(&path, None, format!("is required: {doc}"), None);
    }

    fn declare(&mut self, name: &'static str) {
        debug_assert!(!self.declared.contains(&name), "{name} is declared twice in {}", self.place);
        self.declared.push(name);
    }

    fn describe(&mut self, row: KeyDoc) {
        let kind = self.kind;
        if let Some(describing) = &mut self.state.describing {
            describing.keys.push(KeyDoc { kinds: kind.into_iter().collect(), ..row });
        }
    }

    fn describe_key<T: Quantity>(&mut self, key: &Key<T>) {
        if !self.describing() {
            return;
        }
        let mut row = KeyDoc::new(&self.place, key.name, T::TYPE, key.doc);
        match &key.absent {
            Absent::Required => row.required = true,
            Absent::Default(text) => {
                let value: T = constant(text);
                assert!(
                    in_range(value, key.range).is_ok(),
                    "the default of {} is out of range",
                    key.name
                );
                row.default = Some((*text).to_owned());
            }
            Absent::Value(value) => {
                row.default = Some(value.show().trim_matches('"').to_owned());
            }
            Absent::Computed(said, _) => row.default = Some(format!("auto: {said}")),
            Absent::Optional(said) => row.absent = Some(said),
        }
        row.range = key.range;
        self.describe(row);
    }

    /// Reports presets (values that replace defaults) whose names are neither keys nor tables of
    /// this section.
    fn reject_presets(&mut self) {
        let tables = std::mem::take(&mut self.presets_below);
        let tables = tables.iter().flat_map(|(n, below)| Some((n, below.sources.values().next()?)));
        let own = self.presets.sources.iter();
        let strange = own.chain(tables).filter(|(n, _)| !self.declared.contains(&n.as_str()));
        for (name, source) in strange {
            let near = nearest(name, self.declared.iter().copied()).map(str::to_owned);
            let message = format!("is not a known key (from {source})");
            self.state.problem(&join(&self.path, &shorten(name)), None, message, near);
        }
    }

    /// Completes the section: reports keys of the file that were not declared, and returns the
    /// resolved text of the section (its keys with all defaults).
    fn finish(mut self) -> Out {
        self.out.order(&self.declared);
        if self.judged {
            self.reject_presets();
        }
        let unknown =
            self.table.into_iter().flatten().filter(|(k, _)| !self.declared.contains(&k.as_str()));
        if self.judged && self.state.describing.is_none() {
            for (name, value) in unknown {
                if self.state.full() {
                    break;
                }
                let path = join(&self.path, &shorten(name));
                let near = nearest(name, self.declared.iter().copied());
                let rows = self.state.schema.map_or(&[][..], |rows| rows());
                let condition = condition(rows, &self.place, self.kind, name);
                if let Some(condition) = condition.filter(|_| self.mechanism.is_none()) {
                    // a wrong value of the other key is already reported
                    if !self.bad.iter().any(|bad| condition.keys.contains(bad)) {
                        self.state.problem(&path, Some(value), condition.message, None);
                    }
                    continue;
                }
                let elsewhere = || misplaced(rows, &self.place, self.kind, name);
                let message = match (self.mechanism, near) {
                    (Some(mechanism), _) => not_of(mechanism, &self.declared),
                    (None, None) => elsewhere().map_or_else(
                        || "is not a known key".to_owned(),
                        |place| match self.path.as_str() {
                            "" => format!("is not a key at the top of the file: {place}"),
                            table => format!("is not a key of {table}: {place}"),
                        },
                    ),
                    (None, Some(_)) => "is not a known key".to_owned(),
                };
                self.state.problem(&path, Some(value), message, near.map(str::to_owned));
            }
        }
        self.out
    }
}

/// Returns the message about an unknown key of a user's own mechanism; it lists the keys `declared`
/// of the mechanism.
fn not_of(mechanism: &str, declared: &[&str]) -> String {
    let keys: Vec<&str> = declared.iter().copied().filter(|key| *key != "kind").collect();
    match keys.as_slice() {
        [] => format!("is not a key of {mechanism}, which has no keys"),
        keys => format!("is not a key of {mechanism}, which has {}", keys.join(", ")),
    }
}

fn in_range<T: Quantity>(
    value: T,
    range: Option<(&'static str, &'static str)>,
) -> Result<T, String> {
    match range {
        Some((low, high)) if !value.within(&constant(low), &constant(high)) => {
            let only = low == high;
            Err(if only { format!("must be {low}") } else { format!("must be {low} to {high}") })
        }
        _ => Ok(value),
    }
}
