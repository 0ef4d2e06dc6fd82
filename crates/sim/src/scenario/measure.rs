//! The section `measure`: what is sampled and remembered while the simulation runs.

use super::reader::{Section, key};
use eastwest_types::Span;

/// What is remembered of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MeasureConfig {
    /// Length of a bin of the series over time; `None` starts at 1 ms and adapts.
    pub sample_interval: Option<Span>,
    /// Most rows of the table of events; 0 keeps none.
    pub events: u64,
}

/// Most rows that a table of single events may be given.
const MOST_ROWS: &str = "100000000";

pub(super) fn read(s: &mut Section) -> MeasureConfig {
    let sample_interval = s.find(
        key(
            "sample_interval",
            "Length of the bins of series over time (throughput, queue lengths).",
        )
        .optional("1 ms at first; doubled whenever the series would become too long")
        .range("1 us", "1 h"),
    );
    let events = s.get(
        key(
            "events",
            "Most rows of the table of events (drops, timeouts, recoveries); 0 keeps none.",
        )
        .default("200000")
        .range("0", MOST_ROWS),
    );
    MeasureConfig { sample_interval, events }
}
