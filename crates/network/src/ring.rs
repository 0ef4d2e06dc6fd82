//! FIFO ring of small values that prefetches the memory that it will access next.
//!
//! In a large fabric, the ring of a port is no longer in the cache when it is used again: a queue
//! of 200 packets advances by a cache line every few packets, and thousands of other ports are used
//! in between. `VecDeque` does not expose the address of its next cell; this ring prefetches one
//! cache line ahead at both ends.

use eastwest_engine::memory;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{self, Debug};
use std::ptr::NonNull;

/// Number of cells by which prefetching is ahead; a cache line holds two or three packet handles.
const AHEAD: u32 = 4;

/// FIFO ring of values that grows when it is full. It occupies 24 bytes, so that a link with its ring
/// fits into one cache line; a boxed slice would need four bytes more.
pub struct Ring<T> {
    /// Storage, a boxed slice of `mask + 1` cells. Cells are accessed without bounds checks, so that
    /// only this file may change their number.
    cells: NonNull<T>,
    /// Number of cells, a power of two, minus 1; [`NO_CELLS`] without cells.
    mask: u32,
    head: u32,
    /// Number of values in the ring, at most the number of cells.
    len: u32,
    /// A number that belongs to the owner of the ring. Here it needs no further memory.
    pub note: u32,
}

/// Value of [`Ring::mask`] in a ring without cells: minus 1.
const NO_CELLS: u32 = u32::MAX;

// SAFETY: a ring owns its cells, like a boxed slice.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: a shared ring only gives shared access to its cells, like a boxed slice.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Returns an empty ring with these cells: none, or a power of two.
    fn with_cells(cells: Box<[T]>) -> Ring<T> {
        assert!(cells.is_empty() || cells.len().is_power_of_two() && cells.len() <= 1 << 30);
        let mask = (cells.len() as u32).wrapping_sub(1);
        let cells = NonNull::from(Box::leak(cells)).cast();
        Ring { cells, mask, head: 0, len: 0, note: 0 }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let number = self.mask.wrapping_add(1) as usize;
        let cells = std::ptr::slice_from_raw_parts_mut(self.cells.as_ptr(), number);
        // SAFETY: `with_cells` has set pointer and number from one boxed slice, which is freed only
        // here.
        #[allow(unsafe_code)]
        drop(unsafe { Box::from_raw(cells) });
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring::with_cells(Box::default())
    }
}

impl<T: Copy + Default> FromIterator<T> for Ring<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Ring<T> {
        let mut cells: Vec<T> = values.into_iter().collect();
        let len = cells.len();
        if len > 0 {
            cells.resize(len.next_power_of_two(), T::default());
        }
        let mut ring = Ring::with_cells(cells.into());
        ring.len = len as u32;
        ring
    }
}

impl<T: Copy + Default> Clone for Ring<T> {
    fn clone(&self) -> Ring<T> {
        let mut copy: Ring<T> = self.iter().copied().collect();
        copy.note = self.note;
        copy
    }
}

impl<T: Copy + Default + Debug> Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy + Default + Serialize> Serialize for Ring<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: Vec<&T> = self.iter().collect();
        (values, self.note).serialize(serializer)
    }
}

impl<'de, T: Copy + Default + Deserialize<'de>> Deserialize<'de> for Ring<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ring<T>, D::Error> {
        let (values, note) = <(Vec<T>, u32)>::deserialize(deserializer)?;
        let mut ring: Ring<T> = values.into_iter().collect();
        ring.note = note;
        Ok(ring)
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

    /// Whether the next value needs more cells than the ring has.
    #[inline]
    pub fn is_full(&self) -> bool {
        // With signed numbers, the comparison is also true without cells.
        self.len as i32 > self.mask as i32
    }

    /// Returns the index of the cell of the value at `place`, counted from the oldest. Not
    /// meaningful for a ring without cells.
    #[inline]
    fn cell(&self, place: u32) -> usize {
        // A ring has at most 2³⁰ cells, so that computing with 32 bits is exact.
        (self.head.wrapping_add(place) & self.mask) as usize
    }

    /// Returns the value at `place`, counted from the oldest. The ring must not be empty.
    #[inline]
    fn at(&self, place: u32) -> &T {
        debug_assert!(self.len > 0);
        // SAFETY: a ring that is not empty has cells, and `cell` returns an index below their
        // number.
        #[allow(unsafe_code)]
        unsafe {
            self.cells.add(self.cell(place)).as_ref()
        }
    }

    /// Returns the value at `place`, counted from the oldest, for modification. `place` may be the
    /// free cell after the newest value. The ring must have cells.
    #[inline]
    fn at_mut(&mut self, place: u32) -> &mut T {
        debug_assert!(self.mask != NO_CELLS);
        let cell = self.cell(place);
        // SAFETY: callers have checked that the ring has cells, and `cell` returns an index below
        // their number.
        #[allow(unsafe_code)]
        unsafe {
            self.cells.add(cell).as_mut()
        }
    }

    /// Appends a value as the newest value.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.is_full() {
            self.grow();
        }
        self.prefetch(self.len + 1 + AHEAD);
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
        self.prefetch(1 + AHEAD);
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
        memory::prefetch_address(self.cells.as_ptr().wrapping_add(self.cell(place)));
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
        let mut cells = Vec::with_capacity((2 * self.len()).max(4));
        cells.extend(self.iter());
        cells.resize(cells.capacity().next_power_of_two(), T::default());
        let (len, note) = (self.len, self.note);
        *self = Ring::with_cells(cells.into());
        (self.len, self.note) = (len, note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_engine::random::Stream;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_that_was_emptied_starts_at_its_first_cell() {
        let mut ring = Ring::default();
        (0..9).for_each(|value| ring.push(value));
        while ring.pop().is_some() {}
        assert_eq!(ring.first(), None);
        ring.push(77);
        assert_eq!((ring.head, ring.get(0)), (0, Some(&77)));
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
