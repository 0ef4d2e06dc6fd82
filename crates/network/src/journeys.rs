//! Journeys: components of the delay of every packet in flight. The components are the waiting time
//! at the sending host, transmission time, propagation delay, and the waiting times in switches.
//! Journeys are recorded only if the scenario needs them; every hop then adds its times when the
//! last bit of the packet arrives.
//!
//! The time of a hop without waiting is the sum of the transmission time of the packet and the
//! delay of the link, with the rate and delay at the arrival of the last bit. A processing delay of
//! the receiving host is also recorded. If a fault changes rate or delay while a packet is on the
//! link, the additional time of this packet counts as waiting.

use crate::link::Link;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Span, Time, Waits};
use serde::{Deserialize, Serialize};

/// Components of the delay of a packet, from its creation until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// Waiting time at the sending host.
    pub at_host: Span,
    /// Transmission time, summed over the links of the path so far.
    pub transmission: Span,
    /// Propagation delay, summed over the links of the path so far.
    pub propagation: Span,
    /// Processing delay at the receiving host.
    pub processing: Span,
    /// Waiting times in switches, by the link on which the packet left the switch.
    pub waits: Waits,
    /// Arrival time of the packet at its current node.
    arrived: Time,
}

/// Journeys of all packets in flight.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journeys {
    kept: bool,
    /// Journey of each packet, by its slot in the pool.
    slots: Vec<Journey>,
    /// Slot in the pool and journey of the packet that has reached a host most recently.
    latest: (u32, Journey),
}

impl Journeys {
    /// Starts to record the journeys of packets.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Whether the journeys of packets are recorded.
    pub fn are_kept(&self) -> bool {
        self.kept
    }

    /// Returns the slot in the pool and the journey of the packet that has reached a host most
    /// recently.
    pub fn latest(&self) -> (u32, Journey) {
        self.latest
    }

    /// Adds a hop to the journey of a packet that has arrived over the link `link` with the number
    /// `number`. Nodes below `hosts` are hosts.
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
