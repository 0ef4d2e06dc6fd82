//! Packet captures (taps) at the far ends of selected links: they capture a packet when its last bit has
//! arrived.

use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Packet, SackBlocks, Time};
use serde::{Deserialize, Serialize};

/// A captured packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Time at which the last bit of the packet had arrived.
    pub at: Time,
    /// Number of the link at whose far end the tap is.
    pub link: u32,
    /// The packet, with 32 bits of stream positions.
    pub packet: Packet,
    /// SACK blocks of the packet; `None` without any.
    pub sack: Option<SackBlocks>,
}

/// Taps of a fabric.
#[derive(Default, Serialize, Deserialize)]
pub struct Taps {
    /// By link, where there is a tap: the time of its last packet. Empty without any taps.
    at: Vec<Option<Time>>,
    seen: Option<Seen>,
}

impl Taps {
    /// Puts a tap (packet capture) at the far end of a link of a fabric with `links` links.
    pub fn put(&mut self, link: u32, links: usize) {
        self.at.resize(links, None);
        self.at[link as usize] = Some(Time::ZERO);
    }

    /// Whether there are any taps.
    pub fn any(&self) -> bool {
        !self.at.is_empty()
    }

    /// Captures a packet that has arrived at the end of a link, if there is a tap.
    #[inline]
    pub(crate) fn look(&mut self, link: u32, handle: &PacketHandle, pool: &PacketPool) {
        if let Some(Some(last)) = self.at.get_mut(link as usize) {
            let (mut packet, sack) = pool.peek(handle.slot());
            (packet.dst, packet.ip_len) = (handle.dst(), handle.ip_len());
            // With variable delays, a packet that would overtake arrives together with the one before it.
            *last = handle.arrived().max(*last);
            self.seen = Some(Seen { at: *last, link, packet, sack });
        }
    }

    /// Removes and returns the packet that the last event has captured, or `None`.
    #[inline]
    pub fn take(&mut self) -> Option<Seen> {
        self.seen.take()
    }
}
