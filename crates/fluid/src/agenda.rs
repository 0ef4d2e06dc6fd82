//! Event list: an indexed heap with at most one entry for each place (a number for one kind of
//! event of a stream).
//!
//! Rates change far more often than messages end, and each change moves the end of a message.
//! Moving an entry within the heap leaves no stale entries: with 3,000 hosts the heap has a tenth
//! of the size that it would have if each new time were added, and stays in the cache.

use eastwest_types::Time;

/// Number of children of a heap node. With four there are few levels, and four entries fit into two
/// cache lines.
const ARITY: usize = 4;
/// Value in `position` for a place (one kind of event of a stream) that has no entry in the heap.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    /// Tie rank: among entries with the same time the one with the smallest rank comes first.
    rank: u64,
    place: u32,
}

/// Event list with at most one entry for each place (a number for one kind of event of a stream).
/// The entry with the earliest time comes first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    heap: Vec<Entry>,
    /// Heap position of the entry of each place (one kind of event of a stream), or `ABSENT` if it
    /// has no entry.
    position: Vec<u32>,
}

impl Agenda {
    /// Returns the time, tie rank and place of the earliest entry; `None` if there are no entries.
    /// The place tells the stream and the kind of event.
    pub fn first(&self) -> Option<(Time, u64, u32)> {
        self.heap.first().map(|e| (e.at, e.rank, e.place))
    }

    /// Schedules the event `place` (one kind of event of a stream) for time `at`, instead of the
    /// time for which it was scheduled before, if any. `rank` decides among entries with the same
    /// time: the smallest is first.
    pub fn set(&mut self, place: u32, at: Time, rank: u64) {
        if self.position.len() <= place as usize {
            self.position.resize(place as usize + 1, ABSENT);
        }
        let entry = Entry { at, rank, place };
        let hole = match self.position[place as usize] {
            ABSENT => {
                self.heap.push(entry);
                self.heap.len() - 1
            }
            there => there as usize,
        };
        self.mend(hole, entry);
    }

    /// Removes the scheduled event `place` (one kind of event of a stream), if there is one.
    pub fn clear(&mut self, place: u32) {
        let Some(&there) = self.position.get(place as usize) else { return };
        if there == ABSENT {
            return;
        }
        self.position[place as usize] = ABSENT;
        let last = self.heap.pop().expect("an entry is there");
        if (there as usize) < self.heap.len() {
            self.mend(there as usize, last);
        }
    }

    /// Inserts an entry at the free heap position `hole`, and moves it up or down to restore the
    /// heap order.
    fn mend(&mut self, hole: usize, entry: Entry) {
        let risen = self.rise(hole, entry);
        if risen == hole {
            self.sink(hole, entry);
        }
    }

    fn put(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.position[entry.place as usize] = at as u32;
    }

    fn rise(&mut self, mut hole: usize, entry: Entry) -> usize {
        while hole > 0 {
            let above = (hole - 1) / ARITY;
            if self.heap[above] < entry {
                break;
            }
            self.put(hole, self.heap[above]);
            hole = above;
        }
        self.put(hole, entry);
        hole
    }

    fn sink(&mut self, mut hole: usize, entry: Entry) {
        loop {
            let first = hole * ARITY + 1;
            let last = (first + ARITY).min(self.heap.len());
            let Some(least) = (first..last).min_by_key(|&i| self.heap[i]) else { break };
            if entry < self.heap[least] {
                break;
            }
            self.put(hole, self.heap[least]);
            hole = least;
        }
        self.put(hole, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_map(
            steps in prop::collection::vec((0u32..40, prop::option::of(0u64..100)), 1..300)
        ) {
            let mut agenda = Agenda::default();
            let mut model: BTreeMap<u32, (Time, u64)> = BTreeMap::new();
            for (rank, (place, at)) in steps.into_iter().enumerate() {
                match at {
                    Some(at) => {
                        agenda.set(place, Time(at), rank as u64);
                        model.insert(place, (Time(at), rank as u64));
                    }
                    None => {
                        agenda.clear(place);
                        model.remove(&place);
                    }
                }
                let first = model.iter().map(|(&p, &(at, rank))| (at, rank, p)).min();
                prop_assert_eq!(agenda.first(), first);
            }
        }
    }
}
