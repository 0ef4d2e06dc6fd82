//! Counters and measured durations of an application.

use eastwest_engine::histogram::Histogram;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most counters, and most measures, of an application.
const MOST: usize = 256;
/// Most characters of a name.
const LONGEST: usize = 64;

/// Counters and measured durations of all processes of an application, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    counters: BTreeMap<String, u64>,
    durations: BTreeMap<String, Histogram>,
    /// Units of work that the application will do; 0 if it is unknown.
    pub planned: u64,
    /// Units of work that are done.
    pub completed: u64,
    /// Why a name is not possible, of the first such name.
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

    /// Whether there may be a new counter or measure with this name.
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
                "more than {MOST} counters or measures: names must not contain numbers of events"
            )
        } else {
            return true;
        };
        self.problem.get_or_insert(problem);
        false
    }

    /// Yields each counter by name.
    pub fn counters(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counters.iter().map(|(name, n)| (name.as_str(), *n))
    }

    /// Yields each measure by name, without unit.
    pub fn durations(&self) -> impl Iterator<Item = (&str, &Histogram)> {
        self.durations.iter().map(|(name, h)| (name.as_str(), h))
    }
}
