//! Progress of a map function and of its spills to disk.

use super::config::SortConfig;
use serde::{Deserialize, Serialize};

/// Progress of a map from its first input byte to its last spill. Positions count output bytes
/// before a combiner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mapping {
    /// Input bytes of the map: the size of its split.
    pub input: u64,
    /// Output bytes of the map before a combiner.
    pub output: u64,
    /// Output bytes of the map that a combiner leaves; at most `output`.
    pub kept: u64,
    /// Whether the split is read from the disks of the map's own worker.
    pub local: bool,
    /// Output bytes of the map function at the end of its last finished piece.
    pub at: u64,
    /// Output bytes of the map function at the end of its running piece.
    pub to: u64,
    /// Output bytes before a combiner that spills have written or begun to write.
    pub spilled: u64,
    /// Whether a spill of the sort buffer to disk is running.
    pub spilling: bool,
    /// Number of unfinished parts of the running spill: CPU work, disk write.
    pub spill_parts: u32,
    /// Whether the data of the running spill is sorted, so that only the write is left.
    pub sorted: bool,
    /// Bytes that the running spill writes to disk.
    pub spill: u64,
    /// Whether the map function waits for the running spill because the buffer is full.
    pub stalled: bool,
    /// Whether the map function has finished.
    pub through: bool,
    /// Bytes that the machine had written to files when the map's first spill began; tells whether
    /// the spills are still in the page cache.
    pub written_offset: u64,
}

/// Returns the output bytes in the sort buffer at which a spill begins, and the further output
/// bytes that fit into the buffer while the spill runs.
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
    /// Returns the state of a map that has not begun, with `input` bytes of input and `output`
    /// bytes of output, of which a combiner leaves `kept`. `local`: whether the split is read from
    /// the disks of the map's own worker.
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

    /// Returns the input bytes that the map function has read when it has produced `position`
    /// output bytes.
    pub fn read_at(&self, position: u64) -> u64 {
        (u128::from(self.input) * u128::from(position) / u128::from(self.output)) as u64
    }

    /// Returns the bytes that a combiner leaves of the first `position` output bytes.
    pub fn kept_at(&self, position: u64) -> u64 {
        let kept = u128::from(self.kept) * u128::from(position);
        (kept / u128::from(self.output.max(1))) as u64
    }

    /// Returns the progress of the map function, from 0 to 1; `piece` is the finished fraction of
    /// its running piece.
    pub fn done(&self, piece: f64) -> f64 {
        if self.through || self.output == 0 {
            return if self.through { 1.0 } else { piece };
        }
        (self.at as f64 + (self.to - self.at) as f64 * piece) / self.output as f64
    }

    /// Returns the output position, in bytes, at which the next piece of the map function ends.
    /// `soft` and `spare` are the sizes returned by [`buffer`]: bytes at which a spill begins, and
    /// further bytes that fit while it runs.
    pub fn next_stop(&self, (soft, spare): (u64, u64)) -> u64 {
        let trigger = self.spilled.saturating_add(soft);
        let full = if self.spilling { self.spilled.saturating_add(spare) } else { u64::MAX };
        self.output.min(trigger).min(full)
    }
}
