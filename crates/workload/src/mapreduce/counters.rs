//! Counters of a task attempt, with the meaning of Hadoop's counters.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Counters of a task attempt, with the meaning of Hadoop's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes that spills and merges have written to local disks: Hadoop's `FILE_BYTES_WRITTEN`,
    /// which divided by the size of a record is Hadoop's counter `SPILLED_RECORDS`.
    pub file_written: u64,
    /// Bytes that merges and the reduce function have read from local disks (`FILE_BYTES_READ`).
    pub file_read: u64,
    /// Number of spills of a map, or of merges to disk of a reduce.
    pub spills: u32,
    /// Output bytes of a map function before a combiner, if the job has reduces
    /// (`MAP_OUTPUT_BYTES`).
    pub collected: u64,
    /// Number of map outputs whose fetch has failed (`FAILED_SHUFFLE`).
    pub failed_fetches: u32,
    /// CPU time (`CPU_MILLISECONDS`), including the start of the Java virtual machine.
    pub cpu: Span,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, more: Counters) {
        self.file_written += more.file_written;
        self.file_read += more.file_read;
        self.spills += more.spills;
        self.collected += more.collected;
        self.failed_fetches += more.failed_fetches;
        self.cpu += more.cpu;
    }
}
