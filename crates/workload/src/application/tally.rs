//! Counters and measured durations of a whole application.

use super::declared::{Declared, Statistic};
use eastwest_engine::histogram::Histogram;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest number of different counters of an application, and largest number of its different
/// measures.
const MOST: usize = 256;
/// Largest number of characters of the name of a counter or measure.
const LONGEST: usize = 64;

/// Counters and measured durations of all processes of an application, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    counters: BTreeMap<String, u64>,
    durations: BTreeMap<String, Histogram>,
    /// Units of work that processes have declared as planned; 0 if they have declared none.
    pub planned: u64,
    /// Units of work that processes have declared as begun so far.
    pub begun: u64,
    /// Units of work that processes have declared as completed so far.
    pub completed: u64,
    /// Names of all counters that may be counted; `None`: any name.
    only_counters: Option<Vec<String>>,
    /// Names of all measures that may be used; `None`: any name.
    only_measures: Option<Vec<String>>,
    /// Error message for the first invalid name of a counter or measure; `None` if all names are
    /// valid.
    problem: Option<String>,
}

impl Tally {
    /// Names of the numbers of operations in the summary of a run, in the order of
    /// [`Tally::operations`].
    pub const OPERATIONS: [&'static str; 3] = ["planned", "begun", "completed"];

    /// Returns the numbers of operations: planned, begun and completed.
    pub fn operations(&self) -> [u64; 3] {
        [self.planned, self.begun, self.completed]
    }

    /// Returns the counters and measures of an application at its start: declared counters are 0,
    /// and declared measures have no duration.
    pub(super) fn new(declared: &Declared) -> Tally {
        let names = |all: &Vec<Statistic>| all.iter().map(|one| one.name.to_owned()).collect();
        let only_counters: Option<Vec<String>> = declared.counters.as_ref().map(names);
        let counters = only_counters.iter().flatten().map(|name| (name.clone(), 0)).collect();
        let only_measures: Option<Vec<String>> = declared.measures.as_ref().map(names);
        let durations = only_measures
            .iter()
            .flatten()
            .map(|name| (name.clone(), Histogram::default()))
            .collect();
        Tally { counters, durations, only_counters, only_measures, ..Tally::default() }
    }

    /// Returns the error message of the first wrong use of a counter, of a measure or of the number
    /// of operations; `None` without errors.
    pub(super) fn problem(&mut self) -> Option<String> {
        let more = self.planned > 0 && self.completed > self.planned;
        let (completed, planned) = (self.completed, self.planned);
        let too_many =
            || format!("{completed} operations are completed, but only {planned} are planned");
        self.problem.take().or_else(|| more.then(too_many))
    }

    pub(super) fn count(&mut self, name: &str, by: u64) {
        if let Some(counter) = self.counters.get_mut(name) {
            *counter = counter.saturating_add(by);
        } else if self.admits("counter", name, self.counters.len()) {
            self.counters.insert(name.to_owned(), by);
        }
    }

    pub(super) fn measure(&mut self, name: &str, took: Span) {
        if let Some(durations) = self.durations.get_mut(name) {
            durations.record(took);
        } else if self.admits("measure", name, self.durations.len()) {
            self.durations.entry(name.to_owned()).or_default().record(took);
        }
    }

    /// Whether a new counter or measure (`what`) may have the name `name`, when the application has
    /// `others` names of this kind already; if not, stores the reason in `problem`.
    fn admits(&mut self, what: &str, name: &str, others: usize) -> bool {
        let only = if what == "counter" { &self.only_counters } else { &self.only_measures };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let named = !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits);
        let undeclared = only.as_ref().filter(|only| !only.iter().any(|one| one == name));
        let problem = if !named {
            let shown: String = name.chars().take(LONGEST).collect();
            format!(
                "{shown:?} is not the name of a counter or measure: a name has 1 to \
                 {LONGEST} characters: a to z, 0 to 9 and _"
            )
        } else if let Some(only) = undeclared {
            let declared = if only.is_empty() { "none".to_owned() } else { only.join(", ") };
            format!("{name:?} is not a declared {what} of the application: declared are {declared}")
        } else if others >= MOST {
            format!(
                "the application has more than {MOST} {what}s: names must not contain \
                 numbers that change, such as the number of a request"
            )
        } else {
            return true;
        };
        self.problem.get_or_insert(problem);
        false
    }

    /// Yields the name and value of each counter.
    pub fn counters(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counters.iter().map(|(name, n)| (name.as_str(), *n))
    }

    /// Yields the name of each measure, without unit, and its durations.
    pub fn durations(&self) -> impl Iterator<Item = (&str, &Histogram)> {
        self.durations.iter().map(|(name, h)| (name.as_str(), h))
    }
}
