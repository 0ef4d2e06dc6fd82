//! Counters of a task.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What Hadoop's counters would say of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Written to local disks by spills and merges (`FILE_BYTES_WRITTEN`; as records,
    /// `SPILLED_RECORDS`).
    pub file_written: u64,
    /// Read back from them (`FILE_BYTES_READ`).
    pub file_read: u64,
    /// Spills of a map; merges to the disk of a reduce.
    pub spills: u32,
    /// Put out by the function of a map that has reduces (`MAP_OUTPUT_BYTES`).
    pub collected: u64,
    /// Fetches that failed (`FAILED_SHUFFLE`).
    pub failed_fetches: u32,
    /// Core time (`CPU_MILLISECONDS`), the virtual machine's start included.
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
