//! Transports of workloads.

use serde::{Deserialize, Serialize};

/// Transport of the connections of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// Reliable queue pairs of RoCEv2.
    RoceV2,
    /// No transport: messages travel as raw frames.
    Ethernet,
}
