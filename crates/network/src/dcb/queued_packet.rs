//! A packet that waits at a bridged port.

use crate::packet_handle::PacketHandle;
use serde::{Deserialize, Serialize};

/// Stands for the link that a packet came on where its own host or switch has made it.
pub(crate) const LOCAL_ORIGIN: u32 = u32::MAX >> 3;

/// A packet that waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct QueuedPacket {
    pub handle: PacketHandle,
    /// The link it came on, or [`LOCAL_ORIGIN`].
    pub ingress: u32,
    /// Its number among those of the class.
    pub(super) number: u64,
}
