//! Journeys: for every packet in flight, the time that it has waited at its own host, and the time of
//! transmission and propagation so far. The remaining time it has waited in switches. Journeys are kept only if
//! the scenario needs them; then every hop adds the time of its last bit.
//!
//! A hop without waiting takes the transmission time of the packet and the delay of the link, both as they are
//! when its last bit arrives. A host that hands an arrived packet on later (processing jitter) adds that, too.
//! So where a fault changes a rate or a delay while a packet is on the link, the additional time of this one
//! packet counts as waiting.

use crate::link::Link;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Times of a packet on its way, apart from waiting in switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// Time of waiting at the sending host.
    pub at_host: Span,
    /// Time of transmission, propagation, and processing at the receiving host.
    pub flight: Span,
}

/// Journeys of all packets in flight.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journeys {
    kept: bool,
    /// By slot of the pool.
    slots: Vec<Journey>,
    /// Slot of the last packet that has reached a host, and its journey.
    latest: (u32, Journey),
}

impl Journeys {
    /// Records the journeys of packets from now on.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Whether the journeys of packets are recorded.
    pub fn are_kept(&self) -> bool {
        self.kept
    }

    /// Returns the slot, in the pool, of the last packet that has reached a host, and its journey.
    pub fn latest(&self) -> (u32, Journey) {
        self.latest
    }

    /// Adds a hop to the journey of a packet that has arrived over a link; hosts are the nodes below `hosts`.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        (link, hosts): (&Link, u32),
        handle: &PacketHandle,
        pool: &PacketPool,
    ) {
        if !self.kept {
            return;
        }
        let slot = handle.slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, Journey::default());
        }
        let journey = &mut self.slots[slot];
        let hop = link.send_time(u32::from(handle.ip_len())) + link.delay;
        if link.from < hosts {
            let at_host = handle.arrived().since(pool.get(handle.slot).born()) - hop;
            *journey = Journey { at_host, flight: Span::ZERO };
        }
        journey.flight += hop;
        if link.to < hosts {
            journey.flight += now.since(handle.arrived());
            self.latest = (handle.slot, *journey);
        }
    }
}
