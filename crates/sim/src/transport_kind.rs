//! What carries the data of a workload.

use serde::{Deserialize, Serialize};

/// What carries the connections of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// Reliable queue pairs of RoCEv2.
    RoceV2,
    /// None: messages travel as raw frames.
    Ethernet,
}
