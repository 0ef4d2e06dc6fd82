//! How far the function of a map is, and what of its output is spilled.

use super::config::SortConfig;
use serde::{Deserialize, Serialize};

/// A map between its first byte and its last spill. Positions count bytes of output, before a
/// combiner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mapping {
    /// Bytes of the split.
    pub input: u64,
    /// Bytes of all output.
    pub output: u64,
    /// What a combiner leaves of it, at most as much.
    pub kept: u64,
    /// Whether the split is read from the worker's disks.
    pub local: bool,
    /// Output of the pieces that are through.
    pub at: u64,
    /// Output when the running piece is through.
    pub to: u64,
    /// Output handed to spills.
    pub spilled: u64,
    /// A spill runs.
    pub spilling: bool,
    /// Parts of it that are not through.
    pub spill_parts: u32,
    /// The running spill has been sorted.
    pub sorted: bool,
    /// Bytes the running spill writes.
    pub spill: u64,
    /// The function waits for the running spill.
    pub stalled: bool,
    /// The function is through.
    pub through: bool,
    /// Bytes that the machine's disks had written when the first spill began.
    pub written_offset: u64,
}

/// Output bytes after which a spill begins, and what still fits while it runs.
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
    /// Returns a map of `input` bytes whose output is `output` bytes, of which a combiner leaves `kept`.
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

    /// Input read when so much of some output is there.
    pub fn read_at(&self, position: u64) -> u64 {
        (u128::from(self.input) * u128::from(position) / u128::from(self.output)) as u64
    }

    /// What a combiner leaves of the output up to here.
    pub fn kept_at(&self, position: u64) -> u64 {
        let kept = u128::from(self.kept) * u128::from(position);
        (kept / u128::from(self.output.max(1))) as u64
    }

    /// How far the function is when such a part of the running piece is done.
    pub fn done(&self, piece: f64) -> f64 {
        if self.through || self.output == 0 {
            return if self.through { 1.0 } else { piece };
        }
        (self.at as f64 + (self.to - self.at) as f64 * piece) / self.output as f64
    }

    /// Where the piece from here ends.
    pub fn next_stop(&self, (soft, spare): (u64, u64)) -> u64 {
        let trigger = self.spilled.saturating_add(soft);
        let full = if self.spilling { self.spilled.saturating_add(spare) } else { u64::MAX };
        self.output.min(trigger).min(full)
    }
}
