//! Table of entries with numbers that are never reused: work, wake-ups and messages for a removed entry are
//! ignored.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Entries by number; numbers are never reused.
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
    /// Adds an entry. Returns its number.
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

    /// Removes an entry, which must exist.
    pub fn remove(&mut self, number: u32) -> T {
        self.things.remove(&number).expect("it goes once")
    }

    /// Returns an entry, which must exist.
    pub fn get(&mut self, number: u32) -> &mut T {
        self.things.get_mut(&number).expect("it is there")
    }

    /// Returns an entry, or `None` if it has been removed.
    pub fn find(&self, number: u32) -> Option<&T> {
        self.things.get(&number)
    }

    /// Returns all entries in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.things.iter().map(|(&number, thing)| (number, thing))
    }

    /// Returns the number of entries now, and the largest number at one time.
    #[cfg(test)]
    pub fn count(&self) -> (usize, usize) {
        (self.things.len(), self.most)
    }
}
