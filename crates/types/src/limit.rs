//! Limit of a queue, in packets or bytes.

use serde::{Deserialize, Serialize};

/// Capacity of a queue. Packets in the queue count, but not the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Capacity as a number of packets.
    Packets(u32),
    /// Capacity as a number of IP bytes.
    Bytes(u64),
}

impl Limit {
    /// Returns the limit plus one packet or one byte.
    #[must_use]
    pub fn plus_one(self) -> Limit {
        match self {
            Limit::Packets(n) => Limit::Packets(n.saturating_add(1)),
            Limit::Bytes(n) => Limit::Bytes(n.saturating_add(1)),
        }
    }

    /// Whether the two limits have the same unit: both count packets, or both count bytes.
    pub fn counts_same_as(self, other: Limit) -> bool {
        matches!(self, Limit::Packets(_)) == matches!(other, Limit::Packets(_))
    }
}
