//! FIFO ring of small values that prefetches the memory it will need next.
//!
//! The rings of a large fabric are no longer in the cache at their next use: a queue of 200 packets moves on by
//! a cache line every few packets, and thousands of other ports are used in between. `VecDeque` does not expose
//! the address of its next cell; this ring prefetches one cache line ahead, at both ends.

use eastwest_engine::memory;
use serde::{Deserialize, Serialize};

/// Number of cells to prefetch ahead: a cache line holds two or three handles.
const AHEAD: u32 = 4;

/// FIFO ring of values that grows when it is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ring<T> {
    /// Storage: no cells, or a power of two.
    cells: Vec<T>,
    head: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { cells: Vec::new(), head: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// Returns the number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the ring is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn cell(&self, place: u32) -> usize {
        self.head.wrapping_add(place) as usize & (self.cells.len() - 1)
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len as usize == self.cells.len() {
            self.grow(value);
        }
        let (cell, ahead) = (self.cell(self.len), self.cell(self.len + 1 + AHEAD));
        memory::prefetch_item(&self.cells, ahead);
        self.cells[cell] = value;
        self.len += 1;
    }

    /// Removes and returns the oldest value; `None` if the ring is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.cells[self.cell(0)];
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        memory::prefetch_item(&self.cells, self.cell(AHEAD));
        Some(value)
    }

    /// Removes the newest values so that only the `len` oldest are left.
    pub fn truncate(&mut self, len: u32) {
        self.len = self.len.min(len);
    }

    /// Returns the value at `place`, counted from the oldest (0); `None` beyond the newest.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        (place < self.len).then(|| &self.cells[self.cell(place)])
    }

    /// Prefetches the cell at `place`, which may be empty.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        memory::prefetch_item(&self.cells, self.cell(place));
    }

    /// Changes the value at `place`, counted from the oldest.
    #[inline]
    pub fn change(&mut self, place: u32, change: impl FnOnce(&mut T)) {
        assert!(place < self.len, "no value there");
        let cell = self.cell(place);
        change(&mut self.cells[cell]);
    }

    /// Removes and returns the value at `place`, counted from the oldest; older values move up.
    pub fn remove(&mut self, place: u32) -> T {
        let value = *self.get(place).expect("no value there");
        for to in (1..=place).rev() {
            let (cell, before) = (self.cell(to), self.cell(to - 1));
            self.cells[cell] = self.cells[before];
        }
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        value
    }

    /// Returns the values, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        (0..self.len).map(|place| &self.cells[self.cell(place)])
    }

    /// Doubles the cells of a full ring; `blank` fills the new ones.
    #[cold]
    fn grow(&mut self, blank: T) {
        let mut cells = Vec::with_capacity((2 * self.cells.len()).max(4));
        cells.extend(self.iter());
        cells.resize(cells.capacity().next_power_of_two(), blank);
        self.cells = cells;
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_engine::random::Stream;
    use std::collections::VecDeque;

    #[test]
    fn agrees_with_a_deque() {
        let mut random = Stream::new(5, "ring");
        let (mut ring, mut expected) = (Ring::default(), VecDeque::new());
        let mut longest = 0;
        for value in 0..50_000u64 {
            // grows for a while, then shrinks
            if random.below(100) < if value % 2_000 < 1_000 { 60 } else { 40 } {
                ring.push(value);
                expected.push_back(value);
            } else if value % 7 == 0 && ring.len() > 3 {
                assert_eq!(Some(ring.remove(3)), expected.remove(3));
            } else if value % 13 == 0 && ring.len() > 3 {
                let left = ring.len() - 2;
                ring.truncate(left as u32);
                expected.truncate(left);
            } else {
                assert_eq!(ring.pop(), expected.pop_front());
            }
            longest = longest.max(ring.len());
            assert_eq!((ring.len(), ring.is_empty()), (expected.len(), expected.is_empty()));
            assert_eq!(ring.get(1), expected.get(1));
        }
        assert!(ring.iter().eq(expected.iter()));
        assert!(longest > 100, "{longest}");
    }
}
