//! A packet in a queue of a DCB port.

use crate::packet_handle::PacketHandle;
use serde::{Deserialize, Serialize};

/// Value of the ingress link for packets that the node of the port has made itself: no link has
/// this number.
pub(crate) const LOCAL_ORIGIN: u32 = u32::MAX >> 3;

/// A packet in a queue of a DCB port.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueuedPacket {
    pub handle: PacketHandle,
    /// Link on which the packet entered the node, or [`LOCAL_ORIGIN`].
    pub ingress: u32,
    /// Sequence number of the packet in its class: FIFO order across priorities and flows.
    pub(super) number: u64,
}
