//! Progress of a map function and of its spills.

use super::config::SortConfig;
use serde::{Deserialize, Serialize};

/// State of a map between its first byte and its last spill. Positions count bytes of output,
/// before a combiner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mapping {
    /// Bytes of the split.
    pub input: u64,
    /// Bytes of the whole output.
    pub output: u64,
    /// Bytes of the output after a combiner; at most `output`.
    pub kept: u64,
    /// Whether the split is read from the worker's disks.
    pub local: bool,
    /// Output position after the finished pieces.
    pub at: u64,
    /// Output position after the running piece.
    pub to: u64,
    /// Output position up to which spills have begun.
    pub spilled: u64,
    /// A spill runs.
    pub spilling: bool,
    /// Unfinished parts of the running spill.
    pub spill_parts: u32,
    /// Whether the running spill has been sorted.
    pub sorted: bool,
    /// Bytes the running spill writes.
    pub spill: u64,
    /// Whether the function waits for the running spill.
    pub stalled: bool,
    /// Whether the function has finished.
    pub through: bool,
    /// Bytes that the machine's disks had written when the first spill began.
    pub written_offset: u64,
}

/// Returns the output bytes after which a spill begins, and the bytes that still fit while it runs.
pub fn buffer(sort: &SortConfig) -> (u64, u64) {
    let record = u64::from(sort.record_bytes);
    let held = |bytes: u64| {
        let all = record + u64::from(sort.record_meta_bytes);
        (u128::from(bytes) * u128::from(record) / u128::from(all)) as u64
    };
    let soft = (sort.buffer_bytes as f64 * sort.spill_fraction) as u64;
    let soft = soft.min(sort.buffer_bytes);
    (held(soft).max(1), held(sort.buffer_bytes - soft))
}

impl Mapping {
    /// Returns the state of a map with `input` bytes of input and `output` bytes of output, of
    /// which a combiner leaves `kept`.
    pub fn new(input: u64, (output, kept): (u64, u64), local: bool) -> Mapping {
        Mapping {
            input,
            output,
            kept,
            local,
            at: 0,
            to: 0,
            spilled: 0,
            spilling: false,
            spill_parts: 0,
            sorted: false,
            spill: 0,
            stalled: false,
            through: false,
            written_offset: 0,
        }
    }

    /// Returns the input bytes read at an output position.
    pub fn read_at(&self, position: u64) -> u64 {
        (u128::from(self.input) * u128::from(position) / u128::from(self.output)) as u64
    }

    /// Returns the bytes after a combiner at an output position.
    pub fn kept_at(&self, position: u64) -> u64 {
        let kept = u128::from(self.kept) * u128::from(position);
        (kept / u128::from(self.output.max(1))) as u64
    }

    /// Returns the progress of the function, given the finished fraction of the running piece.
    pub fn done(&self, piece: f64) -> f64 {
        if self.through || self.output == 0 {
            return if self.through { 1.0 } else { piece };
        }
        (self.at as f64 + (self.to - self.at) as f64 * piece) / self.output as f64
    }

    /// Returns the output position at which the next piece ends.
    pub fn next_stop(&self, (soft, spare): (u64, u64)) -> u64 {
        let trigger = self.spilled.saturating_add(soft);
        let full = if self.spilling { self.spilled.saturating_add(spare) } else { u64::MAX };
        self.output.min(trigger).min(full)
    }
}
