//! Where packets live while they are under way: slots that are used again, so that a hop moves an
//! index and not the packet. SACK blocks, which few packets carry, lie in a table of their own.

use eastwest_types::{NO_SACK, NO_SLOT, Packet, SackBlocks};

/// All packets in the fabric.
#[derive(Default)]
pub struct PacketPool {
    slots: Vec<Packet>,
    first_free: Option<u32>,
    in_use: u32,
    sacks: Vec<SackBlocks>,
    free_sacks: Vec<u32>,
}

impl PacketPool {
    /// Puts a packet into a slot.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> u32 {
        self.in_use += 1;
        match self.first_free {
            Some(slot) => {
                let place = &mut self.slots[slot as usize];
                self.first_free = if place.next == NO_SLOT { None } else { Some(place.next) };
                *place = packet;
                slot
            }
            None => {
                self.slots.push(packet);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Frees a slot and returns its packet; its SACK blocks stay until [`PacketPool::take_sack`].
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Packet {
        self.in_use -= 1;
        let place = &mut self.slots[slot as usize];
        let packet = *place;
        place.next = self.first_free.unwrap_or(NO_SLOT);
        self.first_free = Some(slot);
        packet
    }

    /// The packet in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &Packet {
        &self.slots[slot as usize]
    }

    /// The packet in a slot, to change.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.slots[slot as usize]
    }

    /// Packets under way.
    pub fn in_use(&self) -> u32 {
        self.in_use
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
