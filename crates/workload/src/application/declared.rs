//! Names of the counters and measures of an application, declared before its run.

/// A counter or a measure of an application: its name and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// Name in the summary of a run, for a measure without its unit: `query`, not `query_us`.
    pub name: &'static str,
    /// Meaning of the counter or measure in one line.
    pub doc: &'static str,
}

/// Counters and measures that an application declares. A declared counter begins at 0. If an
/// application has declared its counters or its measures, the use of another name ends the run with
/// an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// All counters of the application; `None`: not declared, so that every name is allowed.
    pub counters: Option<Vec<Statistic>>,
    /// All measures of the application; `None`: not declared, so that every name is allowed.
    pub measures: Option<Vec<Statistic>>,
}

impl Declared {
    /// Returns the declaration of an application that declares both its counters and its measures.
    pub(super) fn all(counters: &[Statistic], measures: &[Statistic]) -> Declared {
        Declared { counters: Some(counters.to_vec()), measures: Some(measures.to_vec()) }
    }
}
