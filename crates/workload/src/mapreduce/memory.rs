//! Memory and local files in which a reduce stores fetched map outputs.
//!
//! As in Hadoop's MergeManagerImpl, with H the heap: outputs may use L = H · `input.buffer.percent`
//! of memory. An output above L · `memory.limit.percent` is written to disk at once. Memory for
//! other outputs is reserved when they are requested; while more than L is reserved, no further
//! output is requested. When L · `merge.percent` has arrived, everything in memory is merged to one
//! file, and its memory is free when the file is written. When there are 2 · `io.sort.factor` − 1
//! files on disk, the `io.sort.factor` smallest are merged to one. After the last output, data in
//! memory beyond H · `reduce.input.buffer.percent` is merged to a file too, and passes over the
//! files ([`super::merge`]) leave at most `io.sort.factor` for the reduce to read.
//!
//! Differences from Hadoop: merging from memory to memory (off in Hadoop by default) is left out;
//! outputs that stay in memory do not count as a file in the passes.

use super::config::{ShuffleConfig, SortConfig};
use super::merge;
use super::shares::share;
use serde::{Deserialize, Serialize};

/// Storage reserved for the map outputs of one fetch: bytes in memory, and files on disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Held {
    memory: u64,
    /// Size in bytes of each output that is too large for memory.
    pub files: Vec<u64>,
}

/// State of the memory and local files in which a reduce stores the map outputs that it fetches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    limit: u64,
    most_single: u64,
    threshold: u64,
    keep: u64,
    factor: usize,
    /// Bytes of memory reserved for map outputs that are requested, have arrived, or are being
    /// merged.
    reserved: u64,
    /// Bytes in memory of outputs that have arrived and are not being merged.
    arrived: u64,
    /// Bytes in memory that are being merged to a file.
    merging: u64,
    /// Number of unfinished parts (CPU, disk) of the running merge from memory to disk.
    pub memory_parts: u32,
    /// Size in bytes of each file on disk that is not being merged.
    files: Vec<u64>,
    /// Size in bytes of the file that the running merge of files will write; 0 if no merge of files
    /// runs.
    making: u64,
    /// Number of unfinished parts (CPU, disk) of the running merge of files.
    pub file_parts: u32,
    /// Bytes that the machine had written to files before the reduce's first file; tells whether
    /// the files are still in the page cache.
    pub written_offset: u64,
}

impl Memory {
    /// Returns the empty storage of a reduce: nothing in memory, no files.
    pub fn new(shuffle: &ShuffleConfig, sort: &SortConfig) -> Memory {
        let part = |of: u64, fraction: f64| (of as f64 * fraction) as u64;
        let limit = part(shuffle.heap_bytes, shuffle.input_buffer_fraction);
        Memory {
            limit,
            most_single: part(limit, shuffle.memory_limit_fraction),
            threshold: part(limit, shuffle.merge_fraction).max(1),
            keep: part(shuffle.heap_bytes, shuffle.reduce_buffer_fraction),
            factor: sort.factor.max(2) as usize,
            reserved: 0,
            arrived: 0,
            merging: 0,
            memory_parts: 0,
            files: Vec::new(),
            making: 0,
            file_parts: 0,
            written_offset: u64::MAX,
        }
    }

    /// Whether reserved memory is within the limit, so that another output may be requested.
    pub fn has_room(&self) -> bool {
        self.reserved <= self.limit
    }

    /// Reserves storage for an output of `bytes` bytes before its request, and adds it to `held`: a
    /// file if the output is too large for memory, otherwise memory. Returns false if memory is
    /// full, so that the request must wait.
    pub fn reserve(&mut self, bytes: u64, held: &mut Held) -> bool {
        if bytes > self.most_single {
            held.files.push(bytes);
            return true;
        }
        if !self.has_room() {
            return false;
        }
        self.reserved += bytes;
        held.memory += bytes;
        true
    }

    /// Returns the memory in bytes for each of `fetches` simultaneous fetches; at least the size of
    /// the largest output that may be stored in memory.
    pub fn share_of(&self, fetches: u32) -> u64 {
        (self.limit / u64::from(fetches.max(1))).max(self.most_single)
    }

    /// Reserves storage for `outputs` outputs of equal size, which have `bytes` bytes together, and
    /// adds it to `held`.
    pub fn reserve_part(&mut self, bytes: u64, outputs: u32, held: &mut Held) {
        if bytes / u64::from(outputs.max(1)) > self.most_single {
            held.files.extend((0..outputs).map(|i| share(bytes, outputs, i)));
        } else {
            self.reserved += bytes;
            held.memory += bytes;
        }
    }

    /// Frees the memory `held` that was reserved for outputs which will not arrive.
    pub fn give_back(&mut self, held: &Held) {
        self.reserved -= held.memory;
    }

    /// Counts the map outputs for which the storage `held` was reserved as arrived.
    pub fn arrived(&mut self, held: Held) {
        self.arrived += held.memory;
        self.files.extend(held.files);
    }

    /// Begins a merge from memory to a file if enough bytes have arrived. Returns the number of
    /// bytes to merge; `None` if no merge begins.
    pub fn begin_memory_merge(&mut self) -> Option<u64> {
        if self.merging > 0 || self.arrived < self.threshold {
            return None;
        }
        self.merging = std::mem::take(&mut self.arrived);
        Some(self.merging)
    }

    fn end_memory_merge(&mut self) {
        let bytes = std::mem::take(&mut self.merging);
        self.reserved -= bytes;
        self.files.push(bytes);
    }

    /// Begins a merge of files if there are 2 · factor − 1 of them. Returns the bytes of the merged
    /// files; `None` if no merge begins.
    pub fn begin_file_merge(&mut self) -> Option<u64> {
        if self.making > 0 || self.files.len() < 2 * self.factor - 1 {
            return None;
        }
        self.files.sort_unstable();
        self.making = self.files.drain(..self.factor).sum();
        (self.making > 0).then_some(self.making)
    }

    fn end_file_merge(&mut self) {
        self.files.push(std::mem::take(&mut self.making));
    }

    /// Counts a finished part (CPU, disk) of the merge from memory to disk. Returns whether the
    /// merge is complete.
    pub fn memory_merge_part(&mut self) -> bool {
        self.memory_parts -= 1;
        let over = self.memory_parts == 0;
        if over {
            self.end_memory_merge();
        }
        over
    }

    /// Counts a finished part (CPU, disk) of the merge of files. Returns whether the merge is
    /// complete.
    pub fn file_merge_part(&mut self) -> bool {
        self.file_parts -= 1;
        let over = self.file_parts == 0;
        if over {
            self.end_file_merge();
        }
        over
    }

    /// Begins the final merge, which leaves at most `factor` files for the reduce. Returns the
    /// bytes merged from memory to a file and the bytes of files merged again; `None` while another
    /// merge runs.
    pub fn take_rest(&mut self, factor: u32) -> Option<(u64, u64)> {
        if self.merging > 0 || self.making > 0 {
            return None;
        }
        let spilled = self.arrived.saturating_sub(self.keep);
        self.arrived -= spilled;
        if spilled > 0 {
            self.files.push(spilled);
        }
        Some((spilled, merge::passes(&mut self.files, factor)))
    }

    /// Returns the bytes of all files on disk, and the bytes that the machine had written to files
    /// before the first of them.
    pub fn left(&self) -> (u64, u64) {
        (self.files.iter().sum(), self.written_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(heap: u64) -> Memory {
        let shuffle = ShuffleConfig { heap_bytes: heap, ..ShuffleConfig::default() };
        Memory::new(&shuffle, &SortConfig { factor: 3, ..SortConfig::default() })
    }

    #[test]
    fn memory_fills_up_and_is_freed_by_a_merge() {
        // A heap of 1000 bytes has 700 bytes for outputs and 175 for a single output; a merge
        // begins at 462 bytes.
        let mut m = memory(1000);
        let mut held = Held::default();
        assert!((0..5).all(|_| m.reserve(170, &mut held)));
        assert!(!m.has_room(), "850 are reserved, 700 may be");
        assert!(!m.reserve(1, &mut held));
        assert!(m.reserve(176, &mut held), "too large for memory: to the disk");
        m.arrived(std::mem::take(&mut held));
        assert_eq!(m.files, [176]);
        assert_eq!(m.begin_memory_merge(), Some(850));
        assert!(!m.has_room(), "memory is free when the file is written");
        m.end_memory_merge();
        assert!(m.has_room());
        assert_eq!((m.files.as_slice(), m.reserved), ([176, 850].as_slice(), 0));
    }

    #[test]
    fn small_outputs_wait_in_memory_for_the_threshold() {
        let mut m = memory(1000);
        let mut held = Held::default();
        m.reserve(100, &mut held);
        m.arrived(held);
        assert_eq!(m.begin_memory_merge(), None);
    }

    #[test]
    fn many_files_are_merged_the_smallest_first() {
        let mut m = memory(0);
        for bytes in [5, 3, 9, 1] {
            m.arrived(Held { memory: 0, files: vec![bytes] });
        }
        assert_eq!(m.begin_file_merge(), None, "2 · 3 − 1 files begin a merge");
        m.arrived(Held { memory: 0, files: vec![7] });
        assert_eq!(m.begin_file_merge(), Some(1 + 3 + 5));
        m.end_file_merge();
        assert_eq!(m.files, [7, 9, 9]);
    }
}
