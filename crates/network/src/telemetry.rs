//! In-band network telemetry (INT): switch ports write their state into the packets that they
//! send, and receivers return it with ACKs. Congestion controls of other crates [can read
//! it](eastwest_types::HopTelemetry); no built-in mechanism does.
//!
//! The records are no bytes on the link: packets keep their length. HPCC (Li et al., SIGCOMM 2019)
//! needs 8 bytes for each hop and 2 for all.

use eastwest_types::HopTelemetry;
use serde::{Deserialize, Serialize};

/// Most hops that a packet records; further hops are left out.
const MOST_HOPS: usize = 16;

/// Telemetry records of all packets in flight.
#[derive(Debug, Serialize, Deserialize)]
pub struct Telemetry {
    /// Number of hosts: ports of nodes from this number on are switch ports.
    hosts: u32,
    /// Records of each packet, by its slot in the [pool](crate::pool::PacketPool).
    packets: Vec<PacketTelemetry>,
}

/// Telemetry records in one packet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PacketTelemetry {
    /// Records of the switch ports that have sent the packet, in the order of its path.
    pub hops: Vec<HopTelemetry>,
    /// Records of a packet of the other direction, which the sender of this packet returns.
    pub echo: Vec<HopTelemetry>,
}

impl Telemetry {
    /// Returns empty records for a fabric with `hosts` hosts.
    pub(crate) fn new(hosts: u32) -> Telemetry {
        Telemetry { hosts, packets: Vec::new() }
    }

    /// Deletes the records of the packet that was in this slot before, and sets those that the new
    /// packet returns.
    pub(crate) fn begin(&mut self, slot: u32, echo: Vec<HopTelemetry>) {
        let slot = slot as usize;
        if slot >= self.packets.len() {
            self.packets.resize_with(slot + 1, PacketTelemetry::default);
        }
        self.packets[slot].hops.clear();
        self.packets[slot].echo = echo;
    }

    /// Adds the record of a port of the node `node` to a packet. Ports of hosts write no records.
    pub(crate) fn record(&mut self, node: u32, slot: u32, hop: HopTelemetry) {
        if node >= self.hosts
            && let Some(packet) = self.packets.get_mut(slot as usize)
            && packet.hops.len() < MOST_HOPS
        {
            packet.hops.push(hop);
        }
    }

    /// Removes and returns the records of the packet in a slot.
    pub(crate) fn take(&mut self, slot: u32) -> PacketTelemetry {
        self.packets.get_mut(slot as usize).map(std::mem::take).unwrap_or_default()
    }
}
