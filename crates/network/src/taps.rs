//! Packet captures (taps) at the far ends of selected links. A tap captures a packet when its last
//! bit has arrived.

use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{HostId, Packet, SackBlocks, Time};
use serde::{Deserialize, Serialize};

/// A packet captured by a tap.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Arrival time of the last bit of the packet.
    pub at: Time,
    /// Number of the link at whose far end the tap is.
    pub link: u32,
    /// The captured packet, with only the low 32 bits of its stream positions.
    pub packet: Packet,
    /// SACK blocks of the packet; `None` if it has none.
    pub sack: Option<SackBlocks>,
}

/// All taps (packet captures) of a fabric.
#[derive(Default, Serialize, Deserialize)]
pub struct Taps {
    /// Arrival time of the last packet at each tap, by link; `None` for a link without tap. Empty
    /// if the fabric has no taps.
    at: Vec<Option<Time>>,
    seen: Option<Seen>,
}

impl Taps {
    /// Adds a tap (packet capture) at the far end of a link. `links` is the number of links of the
    /// fabric.
    pub fn put(&mut self, link: u32, links: usize) {
        self.at.resize(links, None);
        self.at[link as usize] = Some(Time::ZERO);
    }

    /// Whether the fabric has any taps (packet captures).
    pub fn any(&self) -> bool {
        !self.at.is_empty()
    }

    /// Captures a packet that has arrived at the far end of a link, if the link has a tap.
    #[inline]
    pub(crate) fn look(&mut self, link: u32, handle: &PacketHandle, to: HostId, pool: &PacketPool) {
        if let Some(Some(last)) = self.at.get_mut(link as usize) {
            let (mut packet, sack) = pool.peek(handle.slot());
            (packet.dst, packet.ip_len) = (to, handle.ip_len());
            // With variable delays, a packet that would overtake the previous packet arrives at the
            // same time as that packet.
            *last = handle.arrived().max(*last);
            self.seen = Some(Seen { at: *last, link, packet, sack });
        }
    }

    /// Removes and returns the packet captured during the last event; `None` if no packet was
    /// captured.
    #[inline]
    pub fn take(&mut self) -> Option<Seen> {
        self.seen.take()
    }
}
