//! Queued packet at a port with data-centre bridging (DCB).

use crate::packet_handle::PacketHandle;
use serde::{Deserialize, Serialize};

/// Value of the ingress link for a packet that was created by the node of the port; no link has
/// this number.
pub(crate) const LOCAL_ORIGIN: u32 = u32::MAX >> 3;

/// Queued packet at a port with data-centre bridging (DCB).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueuedPacket {
    pub handle: PacketHandle,
    /// Link on which the packet entered the node; [`LOCAL_ORIGIN`] if the node created the packet.
    pub ingress: u32,
    /// Sequence number of the packet in its traffic class, which defines the FIFO order over all
    /// priorities and flows.
    pub(super) number: u64,
}
