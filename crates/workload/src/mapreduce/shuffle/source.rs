//! Map outputs that a reduce can fetch from each worker, and the set of maps whose output it has
//! requested.

use crate::mapreduce::memory::Held;
use eastwest_types::ConnId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Map outputs on one worker, as one reduce knows them, numbered in the order of reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// Number of outputs on the worker that the reduce knows.
    pub known: u32,
    /// Number of known outputs that have been requested or skipped, counted from the first output
    /// on.
    pub examined: u32,
    /// Indices of known outputs that must be requested again after a failed fetch.
    pub retry: VecDeque<u32>,
    /// Indices of outputs that are requested and have not arrived yet.
    pub requested: Vec<u32>,
    /// Number of unfinished parts of the fetch in progress: network response, disk work.
    pub parts: u32,
    /// Whether the network response of the fetch in progress has arrived.
    pub answered: bool,
    /// Bytes of the outputs that the present fetch from the worker requests.
    pub bytes: u64,
    /// Memory and files that are reserved for the requested outputs.
    pub held: Held,
    /// Connection of the reduce to the worker; `None` if none is open.
    pub conn: Option<ConnId>,
    /// Number of failed fetches of the reduce from the worker.
    pub failures: u32,
    /// Whether the penalty after a failed fetch is running, during which nothing is requested from
    /// the worker.
    pub penalized: bool,
}

impl Source {
    /// Whether the worker has known outputs that are not requested yet.
    pub fn has_more(&self) -> bool {
        !self.retry.is_empty() || self.known > self.examined
    }

    /// Whether the reduce may send a request to the worker: no request is outstanding, no penalty
    /// runs, and the worker has outputs to request.
    pub fn is_ready(&self) -> bool {
        self.requested.is_empty() && !self.penalized && self.has_more()
    }
}

/// Set of maps of a job, with a bit for each map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MapSet(Vec<u64>);

impl MapSet {
    /// Returns an empty set for `maps` maps.
    pub fn new(maps: u32) -> MapSet {
        MapSet(vec![0; maps.div_ceil(64) as usize])
    }

    /// Whether a map is in the set.
    pub fn has(&self, map: u32) -> bool {
        self.0[map as usize / 64] >> (map % 64) & 1 == 1
    }

    /// Adds a map to the set (`to` is true) or removes it.
    pub fn set(&mut self, map: u32, to: bool) {
        let (word, bit) = (&mut self.0[map as usize / 64], 1 << (map % 64));
        *word = if to { *word | bit } else { *word & !bit };
    }
}
