//! How much a queue may hold.

use serde::{Deserialize, Serialize};

/// The room a queue has for waiting packets; the packet being sent does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// A number of packets.
    Packets(u32),
    /// A number of IP bytes.
    Bytes(u64),
}

impl Limit {
    /// One packet, or one byte, more.
    #[must_use]
    pub fn plus_one(self) -> Limit {
        match self {
            Limit::Packets(n) => Limit::Packets(n.saturating_add(1)),
            Limit::Bytes(n) => Limit::Bytes(n.saturating_add(1)),
        }
    }

    /// Whether both count packets, or both bytes.
    pub fn counts_same_as(self, other: Limit) -> bool {
        matches!(self, Limit::Packets(_)) == matches!(other, Limit::Packets(_))
    }
}
