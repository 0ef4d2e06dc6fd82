//! Counters and measured durations of a whole application.

use eastwest_engine::histogram::Histogram;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest number of counters of an application, and of measures.
const MOST: usize = 256;
/// Largest number of characters of the name of a counter or measure.
const LONGEST: usize = 64;

/// Counters and measured durations of all processes of an application, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    counters: BTreeMap<String, u64>,
    durations: BTreeMap<String, Histogram>,
    /// Units of work that the application plans to do; 0 if unknown.
    pub planned: u64,
    /// Units of work that are completed so far.
    pub completed: u64,
    /// Error message for the first invalid name of a counter or measure; `None` if all names are
    /// valid.
    pub(super) problem: Option<String>,
}

impl Tally {
    pub(super) fn count(&mut self, name: &str, by: u64) {
        if let Some(counter) = self.counters.get_mut(name) {
            *counter = counter.saturating_add(by);
        } else if self.admits(name, self.counters.len()) {
            self.counters.insert(name.to_owned(), by);
        }
    }

    pub(super) fn measure(&mut self, name: &str, took: Span) {
        if let Some(durations) = self.durations.get_mut(name) {
            durations.record(took);
        } else if self.admits(name, self.durations.len()) {
            self.durations.entry(name.to_owned()).or_default().record(took);
        }
    }

    /// Whether a new counter or measure may have this name; if not, stores the reason in `problem`.
    fn admits(&mut self, name: &str, others: usize) -> bool {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let named = !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits);
        let problem = if !named {
            let shown: String = name.chars().take(LONGEST).collect();
            format!(
                "{shown:?} is not the name of a counter or measure: it has the characters a to z, \
                 0 to 9 and _, at most {LONGEST}"
            )
        } else if others >= MOST {
            format!(
                "the application has more than {MOST} counters or measures: their names must not \
                 contain numbers that change, such as that of a request"
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
