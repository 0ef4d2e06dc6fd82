//! A packet that waits at a bridged port.

use crate::passage::Passage;
use serde::{Deserialize, Serialize};

/// Stands for the link that a packet came on where its own host or switch has made it.
pub(crate) const OWN: u32 = u32::MAX >> 3;

/// A packet that waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub passage: Passage,
    /// The link it came on, or [`OWN`].
    pub came: u32,
    /// Its number among those of the class.
    pub(super) number: u64,
}
