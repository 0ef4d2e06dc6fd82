//! What a reduce does with fetched outputs: keeps them in memory, merges them to its disk, merges
//! files.
//!
//! As in Hadoop's MergeManagerImpl, with H the heap: outputs may take L = H · `input.buffer.percent`
//! of memory. One above L · `memory.limit.percent` goes to the disk at once. Others are reserved in
//! memory when they are asked for; as long as more than L is reserved no further output is. When
//! L · `merge.percent` has arrived, all that has arrived is merged to one file, and its memory is
//! free when the file is written. When 2 · `io.sort.factor` − 1 files lie on the disk, the
//! `io.sort.factor` smallest are merged to one. After the last output, what is in memory beyond
//! H · `reduce.input.buffer.percent` is merged to a file too, and passes over the files
//! ([`super::merge`]) leave no more than `io.sort.factor` for the reduce to read.
//!
//! Departures: merging from memory to memory (off in Hadoop by default) is left out; outputs that
//! stay in memory count as no file in the passes.

use super::MapReduce;
use super::config::{ShuffleConfig, SortConfig};
use super::hardware::Work;
use super::merge;
use super::shares::share;
use super::task::{Stage, Step};
use crate::Action;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Outputs of one fetch: the bytes that go to memory, and the files that go to the disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Held {
    memory: u64,
    /// Sizes of those that are too large for memory.
    pub files: Vec<u64>,
}

/// Memory and files of a reduce.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    limit: u64,
    most_single: u64,
    threshold: u64,
    keep: u64,
    factor: usize,
    /// Reserved by outputs asked for, arrived, or being merged.
    reserved: u64,
    /// Arrived and not being merged.
    arrived: u64,
    /// Being merged to a file.
    merging: u64,
    memory_parts: u32,
    /// Files on the disk that are not being merged.
    files: Vec<u64>,
    /// The file that a running merge of files will make.
    making: u64,
    file_parts: u32,
    /// What the machine had written before the first file.
    mark: u64,
}

impl Memory {
    /// Empty.
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
            mark: u64::MAX,
        }
    }

    /// Whether another output may be asked for.
    pub fn has_room(&self) -> bool {
        self.reserved <= self.limit
    }

    /// Finds a place for an output that is going to be asked for; false if it must wait.
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

    /// What each of so many fetches at once may take of the memory, at least one output that is small
    /// enough for it.
    pub fn share_of(&self, fetches: u32) -> u64 {
        (self.limit / u64::from(fetches.max(1))).max(self.most_single)
    }

    /// Finds a place for so many outputs of together so many bytes, all of one size.
    pub fn reserve_part(&mut self, bytes: u64, outputs: u32, held: &mut Held) {
        if bytes / u64::from(outputs.max(1)) > self.most_single {
            held.files.extend((0..outputs).map(|i| share(bytes, outputs, i)));
        } else {
            self.reserved += bytes;
            held.memory += bytes;
        }
    }

    /// Outputs will not arrive: their room is free.
    pub fn give_back(&mut self, held: &Held) {
        self.reserved -= held.memory;
    }

    /// Outputs have arrived.
    pub fn arrived(&mut self, held: Held) {
        self.arrived += held.memory;
        self.files.extend(held.files);
    }

    /// Bytes to merge to a file now, if it is time.
    fn begin_memory_merge(&mut self) -> Option<u64> {
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

    /// Bytes of the files to merge now, if it is time.
    fn begin_file_merge(&mut self) -> Option<u64> {
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

    fn merges(&self) -> bool {
        self.merging > 0 || self.making > 0
    }
}

impl MapReduce {
    fn memory(&mut self, task: u32) -> &mut Memory {
        &mut self.tasks.get(task).fetching.as_mut().expect("the reduce holds outputs").memory
    }

    /// Begins the merges it is time for.
    pub(super) fn merge_fetched(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        if let Some(bytes) = self.memory(task).begin_memory_merge() {
            let step = self.merge_step(task, 0, bytes);
            self.memory(task).memory_parts =
                self.begin_parts(now, task, step, Work::MemoryMerge(task), out);
        }
        if let Some(bytes) = self.memory(task).begin_file_merge() {
            let step = self.merge_step(task, bytes, bytes);
            self.memory(task).file_parts =
                self.begin_parts(now, task, step, Work::DiskMerge(task), out);
        }
    }

    /// A merge that reads and writes so many bytes of files; counted.
    fn merge_step(&mut self, task: u32, read: u64, write: u64) -> Step {
        let worker = self.tasks.get(task).worker;
        let now_written = self.hardware.mark(worker);
        let memory = self.memory(task);
        memory.mark = memory.mark.min(now_written);
        let mark = memory.mark;
        let from_disk = read > 0 && !self.hardware.in_memory(worker, mark);
        let counters = &mut self.tasks.get(task).counters;
        counters.file_read += read;
        counters.file_written += write;
        counters.spills += u32::from(write > 0);
        let cpu = self.config.costs.merge_rate.map_or(Span::ZERO, |r| r.time_for(write));
        Step { cpu, read: if from_disk { read } else { 0 }, write }
    }

    /// A part of a merge from memory is through.
    pub(super) fn memory_merge_part(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let memory = self.memory(task);
        memory.memory_parts -= 1;
        if memory.memory_parts == 0 {
            memory.end_memory_merge();
            self.merge_ended(now, task, out);
        }
    }

    /// A part of a merge of files is through.
    pub(super) fn file_merge_part(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let memory = self.memory(task);
        memory.file_parts -= 1;
        if memory.file_parts == 0 {
            memory.end_file_merge();
            self.merge_ended(now, task, out);
        }
    }

    fn merge_ended(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        if matches!(self.tasks.get(task).stage, Stage::Merging) {
            self.merge_rest(now, task, out);
        } else {
            self.merge_fetched(now, task, out);
            self.fetch_more(now, task, out);
        }
    }

    /// All outputs are there: when no merge runs any more, merges what is left for the reduce.
    pub(super) fn merge_rest(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let factor = self.config.sort.factor;
        let memory = self.memory(task);
        if memory.merges() {
            return;
        }
        let spill = memory.arrived.saturating_sub(memory.keep);
        memory.arrived -= spill;
        if spill > 0 {
            memory.files.push(spill);
        }
        let again = merge::passes(&mut memory.files, factor);
        let step = self.merge_step(task, again, spill + again);
        self.step(now, task, step, out);
    }

    /// Bytes of files that the reduce reads, and whether they have left the page cache.
    pub(super) fn left_on_disk(&mut self, task: u32) -> (u64, bool) {
        let worker = self.tasks.get(task).worker;
        let memory = self.memory(task);
        let (bytes, mark) = (memory.files.iter().sum(), memory.mark);
        (bytes, bytes > 0 && mark != u64::MAX && !self.hardware.in_memory(worker, mark))
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
        // 1000 of heap: 700 for outputs, 175 for one, merged from 462 on.
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
