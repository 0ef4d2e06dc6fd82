//! FIFO ring of small values that prefetches the memory that it will access next.
//!
//! In a large fabric, the ring of a port is no longer in the cache when it is used again: a queue
//! of 200 packets advances by a cache line every few packets, and thousands of other ports are used
//! in between. `VecDeque` does not expose the address of its next cell; this ring prefetches one
//! cache line ahead at both ends.

use eastwest_engine::memory;
use serde::{Deserialize, Serialize};

/// Number of cells by which prefetching is ahead; a cache line holds two or three packet handles.
const AHEAD: u32 = 4;

/// FIFO ring of values that grows when it is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Unchecked<T>", bound(deserialize = "T: Deserialize<'de>"))]
pub struct Ring<T> {
    /// Storage: no cells, or a power of two. Cells are accessed without bounds checks, so that only
    /// this file may change their number.
    cells: Box<[T]>,
    head: u32,
    /// Number of values in the ring, at most the number of cells.
    len: u32,
}

/// A ring as read from a checkpoint, before its fields are checked.
#[derive(Deserialize)]
struct Unchecked<T> {
    cells: Box<[T]>,
    head: u32,
    len: u32,
}

impl<T> TryFrom<Unchecked<T>> for Ring<T> {
    type Error = &'static str;

    fn try_from(Unchecked { cells, head, len }: Unchecked<T>) -> Result<Ring<T>, &'static str> {
        let fits =
            len as usize <= cells.len() && (cells.is_empty() || cells.len().is_power_of_two());
        if fits {
            Ok(Ring { cells, head, len })
        } else {
            Err("a ring needs a power of two of cells, and no more values than cells")
        }
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { cells: Box::default(), head: 0, len: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Returns the number of values in the ring.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the ring is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the index of the cell of the value at `place`, counted from the oldest. Not
    /// meaningful for a ring without cells.
    #[inline]
    fn cell(&self, place: u32) -> usize {
        // A ring has at most 2³¹ cells, so that computing with 32 bits is exact.
        (self.head.wrapping_add(place) & (self.cells.len() as u32).wrapping_sub(1)) as usize
    }

    /// Returns the value at `place`, counted from the oldest. The ring must not be empty.
    #[inline]
    fn at(&self, place: u32) -> &T {
        debug_assert!(self.len > 0);
        // SAFETY: a ring that is not empty has cells, and `cell` returns an index below their
        // number.
        #[allow(unsafe_code)]
        unsafe {
            self.cells.get_unchecked(self.cell(place))
        }
    }

    /// Returns the value at `place`, counted from the oldest, for modification. `place` may be the
    /// free cell after the newest value. The ring must have cells.
    #[inline]
    fn at_mut(&mut self, place: u32) -> &mut T {
        debug_assert!(!self.cells.is_empty());
        let cell = self.cell(place);
        // SAFETY: callers have checked that the ring has cells, and `cell` returns an index below
        // their number.
        #[allow(unsafe_code)]
        unsafe {
            self.cells.get_unchecked_mut(cell)
        }
    }

    /// Appends a value as the newest value.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.len as usize == self.cells.len() {
            self.grow();
        }
        memory::prefetch_item(&self.cells, self.cell(self.len + 1 + AHEAD));
        *self.at_mut(self.len) = value;
        self.len += 1;
    }

    /// Removes and returns the oldest value; `None` if the ring is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = *self.at(0);
        memory::prefetch_item(&self.cells, self.cell(1 + AHEAD));
        self.len -= 1;
        self.head = self.head.wrapping_add(1);
        Some(value)
    }

    /// Returns the oldest value; `None` if the ring is empty. An empty ring then starts again at its
    /// first cell, so that a ring with few values uses few cache lines, even if it was long before.
    #[inline]
    pub fn first(&mut self) -> Option<&T> {
        if self.len == 0 {
            self.head = 0;
            return None;
        }
        Some(self.at(0))
    }

    /// Removes the newest values until at most `len` values, the oldest ones, are left.
    pub fn truncate(&mut self, len: u32) {
        self.len = self.len.min(len);
    }

    /// Returns the value at `place`, counted from the oldest (0); `None` if the ring has no value
    /// at `place`.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        (place < self.len).then(|| self.at(place))
    }

    /// Prefetches the cell at `place`, counted from the oldest value. The cell may be empty.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        memory::prefetch_item(&self.cells, self.cell(place));
    }

    /// Applies `change` to the value at `place`, counted from the oldest. Panics if the ring has no
    /// value at `place`.
    #[inline]
    pub fn change(&mut self, place: u32, change: impl FnOnce(&mut T)) {
        assert!(place < self.len, "the ring has no value at this place");
        change(self.at_mut(place));
    }

    /// Removes and returns the value at `place`, counted from the oldest. Older values move up to
    /// close the gap.
    pub fn remove(&mut self, place: u32) -> T {
        let value = *self.get(place).expect("the ring has no value at this place");
        for to in (1..=place).rev() {
            *self.at_mut(to) = *self.at(to - 1);
        }
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        value
    }

    /// Returns the values in order, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        (0..self.len).map(|place| self.at(place))
    }

    /// Doubles the number of cells of a full ring. The value to be pushed is not an argument, so
    /// that the caller can hold it in registers.
    #[cold]
    fn grow(&mut self) {
        let mut cells = Vec::with_capacity((2 * self.cells.len()).max(4));
        cells.extend(self.iter());
        cells.resize(cells.capacity().next_power_of_two(), T::default());
        self.cells = cells.into_boxed_slice();
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_with_more_values_than_cells_is_refused() {
        for (cells, len, fits) in
            [(vec![], 0, true), (vec![], 1, false), (vec![7; 4], 4, true), (vec![7; 3], 1, false)]
        {
            let ring = Ring::try_from(Unchecked { cells: cells.into(), head: 9, len });
            assert_eq!(ring.is_ok(), fits);
        }
    }
    use eastwest_engine::random::Stream;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_that_was_emptied_starts_at_its_first_cell() {
        let mut ring = Ring::default();
        (0..9).for_each(|value| ring.push(value));
        while ring.pop().is_some() {}
        assert_eq!(ring.first(), None);
        ring.push(77);
        assert_eq!((ring.cells[0], ring.get(0)), (77, Some(&77)));
    }

    #[test]
    fn agrees_with_a_deque() {
        let mut random = Stream::new(5, "ring");
        let (mut ring, mut expected) = (Ring::default(), VecDeque::new());
        let mut longest = 0;
        for value in 0..50_000u64 {
            // The ring first grows for 1,000 steps, then shrinks.
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
