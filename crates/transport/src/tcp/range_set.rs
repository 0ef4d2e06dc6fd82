//! Set of byte positions as sorted, disjoint, non-touching ranges: out-of-order data of a receiver,
//! SACKed data of a sender.

use serde::{Deserialize, Serialize};

/// Set of byte positions as sorted half-open ranges. An empty set takes one machine word of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSet {
    content: Option<Box<Content>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    ranges: Vec<(u64, u64)>,
    total: u64,
    reported: [u64; 3],
    /// Index of the range that the last search with each of four hint numbers has found. A range may
    /// have moved since.
    hints: [u32; 4],
}

impl RangeSet {
    /// Whether the set contains no position.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.content.is_none()
    }

    /// Returns the number of bytes in the set.
    pub fn total(&self) -> u64 {
        self.content.as_ref().map_or(0, |c| c.total)
    }

    fn slice(&self) -> &[(u64, u64)] {
        self.content.as_ref().map_or(&[], |c| &c.ranges)
    }

    /// Returns the ranges (start, end) in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator + '_ {
        self.slice().iter().copied()
    }

    /// Returns the position after the last byte of the set; 0 if the set is empty.
    pub fn end(&self) -> u64 {
        self.slice().last().map_or(0, |r| r.1)
    }

    /// Adds the positions `start..end`. Returns how many of them were not in the set before.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        self.content.get_or_insert_default().insert(start, end).0
    }

    /// Adds positions like [`RangeSet::insert`]. A range that this function has changed before with
    /// the hint number `hint` (0 to 3) is found without a search.
    #[inline]
    pub fn insert_with_hint(&mut self, hint: usize, start: u64, end: u64) -> u64 {
        let content = self.content.get_or_insert_default();
        let index = content.hints[hint & 3] as usize;
        let next = content.ranges.get(index + 1).map_or(u64::MAX, |next| next.0);
        if let Some(range) = content.ranges.get_mut(index)
            && range.0 <= start
            && start <= range.1
            && end < next
        {
            let new = end.saturating_sub(range.1);
            range.1 += new;
            content.total += new;
            return new;
        }
        let (new, index) = content.insert(start, end);
        content.hints[hint & 3] = index as u32;
        new
    }

    /// Returns the range (start, end) that contains `position`, like [`RangeSet::containing`]. A
    /// range that was found before with the hint number `hint` (0 to 3) is found without a search.
    #[inline]
    pub fn containing_with_hint(&mut self, hint: usize, position: u64) -> Option<(u64, u64)> {
        let content = self.content.as_mut()?;
        let index = content.hints[hint & 3] as usize;
        if let Some(&range) = content.ranges.get(index)
            && range.0 <= position
            && position < range.1
        {
            return Some(range);
        }
        let index = content.ranges.partition_point(|r| r.1 <= position);
        content.hints[hint & 3] = index as u32;
        content.ranges.get(index).copied().filter(|r| r.0 <= position)
    }

    /// Removes all positions below `position` from the set.
    pub fn remove_below(&mut self, position: u64) {
        let Some(c) = &mut self.content else { return };
        if c.ranges.first().is_some_and(|first| position <= first.0) {
            return;
        }
        let gone = c.ranges.partition_point(|r| r.1 <= position);
        c.total -= c.ranges[..gone].iter().map(|r| r.1 - r.0).sum::<u64>();
        c.ranges.drain(..gone);
        match c.ranges.first_mut() {
            None => self.content = None,
            Some(first) if first.0 < position => {
                c.total -= position - first.0;
                first.0 = position;
            }
            Some(_) => {}
        }
    }

    /// Removes the first range if it starts at or below `position`, and returns the end of that
    /// range. Otherwise returns `None`.
    pub fn take_from(&mut self, position: u64) -> Option<u64> {
        let &(start, end) = self.slice().first()?;
        if start > position {
            return None;
        }
        self.remove_below(end);
        Some(end)
    }

    /// Returns one position in each of the three ranges that the receiver has reported last by
    /// SACK, the latest first; 0 if there is no such range.
    pub fn reported(&self) -> [u64; 3] {
        self.content.as_ref().map_or([0; 3], |c| c.reported)
    }

    /// Sets one position in each of the ranges that the receiver has reported last by SACK. The
    /// positions are lost when the set becomes empty.
    pub fn set_reported(&mut self, positions: [u64; 3]) {
        if let Some(c) = &mut self.content {
            c.reported = positions;
        }
    }

    /// Returns the range (start, end) that contains `position`; `None` if `position` is not in the
    /// set.
    pub fn containing(&self, position: u64) -> Option<(u64, u64)> {
        let ranges = self.slice();
        let i = ranges.partition_point(|r| r.1 <= position);
        ranges.get(i).copied().filter(|r| r.0 <= position)
    }

    /// Returns the start and the end of the first gap at or after `position`. The gap after the
    /// last range ends at `u64::MAX`.
    pub fn gap_from(&self, position: u64) -> (u64, u64) {
        let ranges = self.slice();
        let mut i = ranges.partition_point(|r| r.1 <= position);
        let mut start = position;
        if let Some(&(s, e)) = ranges.get(i)
            && s <= position
        {
            start = e;
            i += 1;
        }
        (start, ranges.get(i).map_or(u64::MAX, |r| r.0))
    }

    /// Returns the number of bytes of the set that lie below `position`.
    pub fn below(&self, position: u64) -> u64 {
        let ranges = self.slice();
        if ranges.get(ranges.len() / 2).is_some_and(|r| r.0 < position) {
            // Fewer ranges lie above the position.
            let above = ranges.iter().rev().take_while(|r| r.1 > position);
            return self.total() - above.map(|r| r.1 - r.0.max(position)).sum::<u64>();
        }
        let below = ranges.iter().take_while(|r| r.0 < position);
        below.map(|r| r.1.min(position) - r.0).sum()
    }
}

impl Content {
    /// Adds the positions `start..end`. Returns how many of them were not in the set before, and the
    /// index of the range that now contains them.
    fn insert(&mut self, start: u64, end: u64) -> (u64, usize) {
        debug_assert!(start < end);
        let Content { ranges, total, .. } = self;
        // The most frequent case is a range that grows at its end.
        if let Some(last) = ranges.last_mut()
            && start == last.1
        {
            last.1 = end;
            *total += end - start;
            return (end - start, ranges.len() - 1);
        }
        let first = ranges.partition_point(|r| r.1 < start);
        let follows = |r: Option<&(u64, u64)>| r.is_none_or(|r| end < r.0);
        if follows(ranges.get(first)) {
            ranges.insert(first, (start, end));
            *total += end - start;
            return (end - start, first);
        }
        if follows(ranges.get(first + 1)) {
            let range = &mut ranges[first];
            let before = range.1 - range.0;
            *range = (start.min(range.0), end.max(range.1));
            let new = range.1 - range.0 - before;
            *total += new;
            return (new, first);
        }
        let after = first + ranges[first..].partition_point(|r| r.0 <= end);
        let merged = (start.min(ranges[first].0), end.max(ranges[after - 1].1));
        let before: u64 = ranges[first..after].iter().map(|r| r.1 - r.0).sum();
        let new = merged.1 - merged.0 - before;
        ranges[first] = merged;
        ranges.drain(first + 1..after);
        *total += new;
        (new, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_engine::random::Stream;

    #[test]
    fn agrees_with_a_plain_bitmap() {
        let mut random = Stream::new(1, "ranges");
        for _ in 0..300 {
            let (mut set, mut bits) = (RangeSet::default(), vec![false; 64]);
            for _ in 0..40 {
                let start = random.below(60);
                let end = start + 1 + random.below(63 - start);
                if random.below(6) == 0 {
                    set.remove_below(start);
                    bits[..start as usize].fill(false);
                } else {
                    let hint = random.below(4) as usize;
                    let with_hint = random.below(2) == 0;
                    let new = (start..end).filter(|&i| !bits[i as usize]).count() as u64;
                    assert_eq!(
                        match with_hint {
                            true => set.insert_with_hint(hint, start, end),
                            false => set.insert(start, end),
                        },
                        new
                    );
                    bits[start as usize..end as usize].fill(true);
                }
                assert_eq!(set.total(), bits.iter().filter(|&&b| b).count() as u64);
                let at = random.below(64);
                let below = bits[..at as usize].iter().filter(|&&b| b).count() as u64;
                assert_eq!(set.below(at), below);
                let found = set.containing(at);
                assert_eq!(set.containing_with_hint((at % 4) as usize, at), found);
                assert_eq!(found.is_some(), bits[at as usize]);
                let gap = (at..64).find(|&i| !bits[i as usize]).unwrap_or(64);
                assert_eq!(set.gap_from(at).0, gap);
                assert!(set.slice().windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }
}
