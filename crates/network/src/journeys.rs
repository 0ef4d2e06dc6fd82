//! Journeys: components of the delay of every packet in flight. The components are the waiting time
//! at the sending host, transmission time, propagation delay, and the waiting times in switches.
//! Journeys are recorded only if the scenario needs them; every hop then adds its times when the
//! last bit of the packet arrives.
//!
//! The time of a hop without waiting is the sum of the transmission time of the packet and the
//! delay of the link, with the rate and delay at the arrival of the last bit. A processing delay of
//! the receiving host is also recorded. If a fault ends while a packet is on the link, the
//! additional time of this packet counts as waiting; if a fault begins, the components are cut so
//! that their sum is the time of the hop.

use crate::link::Link;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{HostId, Packet, Span, Time, Waits};
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
    /// Number of the packet, and number of links that it has crossed. Both are counted only if hops
    /// are recorded.
    count: (u64, u32),
}

/// A link that a packet has crossed, with the times of this hop.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Hop {
    /// Number of the packet, from 0 in the order in which packets reach their first switch.
    pub number: u64,
    /// Number of the hop on the way of this packet, from 0 for the link of the sending host.
    pub count: u32,
    /// The packet, with only the low 32 bits of its stream positions.
    pub packet: Packet,
    /// Number of the link.
    pub link: u32,
    /// Arrival time of the last bit of the packet at the far end of the link.
    pub arrived: Time,
    /// Waiting time before the transmission on the link.
    pub waited: Span,
    /// Transmission time on the link.
    pub transmission: Span,
    /// Propagation delay of the link.
    pub propagation: Span,
}

/// Journeys of all packets in flight.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journeys {
    kept: bool,
    /// Journey of each packet, by its slot in the pool.
    slots: Vec<Journey>,
    /// Slot in the pool and journey of the packet that has reached a host most recently.
    latest: (u32, Journey),
    /// Whether every hop is passed on, and number of packets that have crossed their first link.
    hops: Option<u64>,
    /// Hop of the last event, until it is taken.
    hop: Option<Hop>,
}

impl Journeys {
    /// Starts to record the journeys of packets.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Starts to record journeys and to pass on every hop, see [`Journeys::take_hop`].
    pub fn keep_hops(&mut self) {
        self.kept = true;
        self.hops = Some(0);
    }

    /// Removes and returns the hop that a packet completed in the last event; `None` if hops are
    /// not passed on, or no packet completed a hop.
    #[inline]
    pub fn take_hop(&mut self) -> Option<Hop> {
        self.hop.take()
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

    /// Adds a hop to the journey of a packet to the host `to` that has arrived over the link `link`
    /// with the number `number`. Nodes below `hosts` are hosts.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        (number, link, hosts): (u32, &Link, u32),
        (handle, to): (&PacketHandle, HostId),
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
        let arrived = handle.arrived();
        let is_first = link.from < hosts;
        let begun = if is_first { pool.get(handle.slot()).born() } else { journey.arrived };
        let since = arrived.since(begun);
        let propagation = link.delay().min(since);
        let transmission = link.send_time(u32::from(handle.ip_len())).min(since - propagation);
        let waited = since - propagation - transmission;
        if is_first {
            let at_host = waited;
            let count = (self.hops.unwrap_or(0), 0);
            self.hops = self.hops.map(|packets| packets + 1);
            *journey = Journey { at_host, count, ..Journey::default() };
        } else {
            journey.waits.add(Some(number), waited);
        }
        journey.arrived = arrived;
        journey.transmission += transmission;
        journey.propagation += propagation;
        if self.hops.is_some() {
            let (mut packet, _) = pool.peek(handle.slot());
            (packet.dst, packet.ip_len) = (to, handle.ip_len());
            let (number_of_packet, count) = journey.count;
            journey.count.1 += 1;
            self.hop = Some(Hop {
                number: number_of_packet,
                count,
                packet,
                link: number,
                arrived,
                waited,
                transmission,
                propagation,
            });
        }
        if link.to < hosts {
            journey.processing = now.since(arrived);
            self.latest = (handle.slot(), *journey);
        }
    }
}
