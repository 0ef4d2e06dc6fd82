//! A table of things that come and go; slots of gone ones are used again.

/// Things by slot.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds one and returns its slot.
    pub fn add(&mut self, thing: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(thing);
            return slot;
        }
        self.slots.push(Some(thing));
        self.slots.len() as u32 - 1
    }

    /// Removes one that is there.
    pub fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("it goes once")
    }

    /// One that is there.
    pub fn get(&mut self, slot: u32) -> &mut T {
        self.slots[slot as usize].as_mut().expect("it is there")
    }

    /// Those that are there, and slots of the table.
    #[cfg(test)]
    pub fn count(&self) -> (usize, usize) {
        (self.slots.len() - self.free.len(), self.slots.len())
    }
}
