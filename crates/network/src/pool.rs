//! Where packets live while they are under way: slots that are used again, so that a hop moves an
//! index and not the packet. SACK blocks, which few packets carry, lie in a table of their own.

use eastwest_engine::memory;
use eastwest_types::{NO_SACK, Packet, SackBlocks};

/// All packets in the fabric.
#[derive(Default)]
pub struct PacketPool {
    slots: Vec<Packet>,
    /// Free slots; the last one freed is used first, while it is still in the cache.
    free: Vec<u32>,
    sacks: Vec<SackBlocks>,
    free_sacks: Vec<u32>,
}

impl PacketPool {
    /// Puts a packet into a slot.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                slot
            }
            None => {
                if self.slots.len() == self.slots.capacity() {
                    memory::grow(&mut self.slots);
                }
                self.slots.push(packet);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Frees a slot and returns its packet; its SACK blocks stay until [`PacketPool::take_sack`].
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.slots[slot as usize]
    }

    /// The packet in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &Packet {
        &self.slots[slot as usize]
    }

    /// Asks the processor to have this packet in its cache soon.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        if let Some(place) = self.slots.get(slot as usize) {
            memory::prefetch(place);
        }
    }

    /// Packets under way.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Stores SACK blocks; the index goes into [`Packet::sack`].
    pub fn put_sack(&mut self, blocks: SackBlocks) -> u32 {
        match self.free_sacks.pop() {
            Some(i) => {
                self.sacks[i as usize] = blocks;
                i
            }
            None => {
                self.sacks.push(blocks);
                (self.sacks.len() - 1) as u32
            }
        }
    }

    /// Takes the SACK blocks of a packet out of the table.
    pub fn take_sack(&mut self, index: u32) -> Option<SackBlocks> {
        if index == NO_SACK {
            return None;
        }
        self.free_sacks.push(index);
        Some(self.sacks[index as usize])
    }

    /// SACK blocks in use, for conservation checks.
    pub fn sacks_in_use(&self) -> usize {
        self.sacks.len() - self.free_sacks.len()
    }
}
