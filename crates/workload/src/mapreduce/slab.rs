//! Table of entries with numbers that are never used again, so that work, wake-ups and messages for
//! a removed entry can be recognized and ignored.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Table of entries by number; the number of a removed entry is never used again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slab<T> {
    things: BTreeMap<u32, T>,
    next: u32,
    #[cfg(test)]
    most: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            things: BTreeMap::new(),
            next: 0,
            #[cfg(test)]
            most: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Adds an entry to the table. Returns its number.
    pub fn add(&mut self, thing: T) -> u32 {
        let number = self.next;
        self.next = number.checked_add(1).expect("tasks and attempts are limited");
        self.things.insert(number, thing);
        #[cfg(test)]
        {
            self.most = self.most.max(self.things.len());
        }
        number
    }

    /// Removes and returns an entry, which must exist.
    pub fn remove(&mut self, number: u32) -> T {
        self.things.remove(&number).expect("it goes once")
    }

    /// Returns a mutable reference to an entry, which must exist.
    pub fn get(&mut self, number: u32) -> &mut T {
        self.things.get_mut(&number).expect("it is there")
    }

    /// Returns the entry with this number, or `None` if it has been removed.
    pub fn find(&self, number: u32) -> Option<&T> {
        self.things.get(&number)
    }

    /// Returns all entries of the table with their numbers, in the order of numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.things.iter().map(|(&number, thing)| (number, thing))
    }

    /// Returns the present number of entries, and the largest number of entries at one time.
    #[cfg(test)]
    pub fn count(&self) -> (usize, usize) {
        (self.things.len(), self.most)
    }
}
