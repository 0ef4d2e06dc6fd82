//! Journeys: for every packet in flight, the time that it has waited at its own host, the time of
//! transmission and propagation so far, and where it has waited in switches. Journeys are kept only if the
//! scenario needs them; then every hop adds the time of its last bit.
//!
//! A hop without waiting takes the transmission time of the packet and the delay of the link, both as they are
//! when its last bit arrives. A host that hands an arrived packet on later (processing jitter) adds that, too.
//! So where a fault changes a rate or a delay while a packet is on the link, the additional time of this one
//! packet counts as waiting.

use crate::link::Link;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Span, Time, Waits};
use serde::{Deserialize, Serialize};

/// Times of a packet on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// Time of waiting at the sending host.
    pub at_host: Span,
    /// Time of transmission.
    pub transmission: Span,
    /// Time of propagation.
    pub propagation: Span,
    /// Time of processing at the receiving host.
    pub processing: Span,
    /// Time of waiting in switches, by the link on which the packet left.
    pub waits: Waits,
    /// Time at which the packet has arrived at the node where it is.
    arrived: Time,
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
        (number, link, hosts): (u32, &Link, u32),
        handle: &PacketHandle,
        pool: &PacketPool,
    ) {
        if !self.kept {
            return;
        }
        let slot = handle.slot() as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, Journey::default());
        }
        let journey = &mut self.slots[slot];
        let transmission = link.send_time(u32::from(handle.ip_len()));
        let hop = transmission + link.delay;
        let arrived = handle.arrived();
        if link.from < hosts {
            let at_host = arrived.since(pool.get(handle.slot()).born()) - hop;
            *journey = Journey { at_host, ..Journey::default() };
        } else {
            let wait = arrived.since(journey.arrived);
            journey.waits.add(Some(number), wait - hop.min(wait));
        }
        journey.arrived = arrived;
        journey.transmission += transmission;
        journey.propagation += link.delay;
        if link.to < hosts {
            journey.processing = now.since(arrived);
            self.latest = (handle.slot(), *journey);
        }
    }
}
