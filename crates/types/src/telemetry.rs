//! In-band network telemetry (INT): what a switch port writes into a packet.

use crate::rate::Rate;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// State of a switch port when it began to send a packet, as INT records it (P4.org, *In-band
/// Network Telemetry Dataplane Specification* 2.1; Li et al., *HPCC*, SIGCOMM 2019, figure 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopTelemetry {
    /// Start of the transmission of the packet.
    pub at: Time,
    /// IP bytes in the queues of the port behind the packet.
    pub queued_bytes: u64,
    /// Bytes on the link, framing included, that the port had sent before the packet since the
    /// start of the run.
    pub sent_bytes: u64,
    /// Rate of the link.
    pub rate: Rate,
}
