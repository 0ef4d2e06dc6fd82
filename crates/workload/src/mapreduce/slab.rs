//! A table of things that come and go. Numbers are never used again: work, wake-ups and messages for
//! something that was killed meanwhile find nobody.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Things by number.
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
    /// Adds one and returns its number.
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

    /// Removes one that is there.
    pub fn remove(&mut self, number: u32) -> T {
        self.things.remove(&number).expect("it goes once")
    }

    /// One that is there.
    pub fn get(&mut self, number: u32) -> &mut T {
        self.things.get_mut(&number).expect("it is there")
    }

    /// One that may be gone.
    pub fn find(&self, number: u32) -> Option<&T> {
        self.things.get(&number)
    }

    /// All, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.things.iter().map(|(&number, thing)| (number, thing))
    }

    /// Those that are there now, and at most at one time.
    #[cfg(test)]
    pub fn count(&self) -> (usize, usize) {
        (self.things.len(), self.most)
    }
}
