//! Where a reduce fetches from, and which maps it has something of.

use crate::mapreduce::memory::Held;
use eastwest_types::ConnId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Outputs on one worker, as one reduce sees them. They are numbered in the order of the reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// Outputs the reduce knows of.
    pub known: u32,
    /// Number of known outputs, from the first one on, that were looked at.
    pub taken: u32,
    /// Known outputs that could not be fetched, to be asked for again.
    pub again: VecDeque<u32>,
    /// Outputs asked for and not arrived.
    pub asking: Vec<u32>,
    /// Parts of that which have not arrived: the response, and disk work on its way.
    pub parts: u32,
    /// The response has arrived.
    pub answered: bool,
    /// Bytes asked for.
    pub bytes: u64,
    /// Where they go.
    pub held: Held,
    /// The connection to it.
    pub conn: Option<ConnId>,
    /// Fetches that have failed.
    pub failures: u32,
    /// Not asked again yet after a failure.
    pub penalized: bool,
}

impl Source {
    /// Whether there is something to ask for.
    pub fn has_more(&self) -> bool {
        !self.again.is_empty() || self.known > self.taken
    }

    /// Whether it may be asked.
    pub fn is_ready(&self) -> bool {
        self.asking.is_empty() && !self.penalized && self.has_more()
    }
}

/// A bit for each map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Got(Vec<u64>);

impl Got {
    /// None, of so many.
    pub fn new(maps: u32) -> Got {
        Got(vec![0; maps.div_ceil(64) as usize])
    }

    /// Whether a map's is set.
    pub fn has(&self, map: u32) -> bool {
        self.0[map as usize / 64] >> (map % 64) & 1 == 1
    }

    /// Sets or clears that of a map.
    pub fn set(&mut self, map: u32, to: bool) {
        let (word, bit) = (&mut self.0[map as usize / 64], 1 << (map % 64));
        *word = if to { *word | bit } else { *word & !bit };
    }
}
