//! Approximations for runs that are too large to simulate every message. Each approximation is off
//! by default and can be enabled alone, so that its error can be measured.
//!
//! A run with any approximation must not lose workers: failed workers and connections are not
//! detected, and the namenode keeps no table of written blocks.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Approximations of the MapReduce model for large clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoarseConfig {
    /// One-way delay of Hadoop 1's heartbeats and of their answers. With a value, heartbeats are
    /// not sent as messages, and heartbeats without effect are not simulated. `None`: heartbeats
    /// are messages, as always with the scheduler Quincy, with out-of-band heartbeats and on YARN.
    pub heartbeats: Option<Span>,
    /// Number of parts in which a reduce fetches its input; more if the memory of the reduce is too
    /// small. A part contains the outputs of maps that finished one after another; the worker of
    /// one of these maps sends the whole part, without a request message. `None`: the output of
    /// each map is fetched separately.
    pub fetches: Option<u32>,
    /// Whether a block of a file, or a remote split, is sent as one message over each hop, without
    /// requests, chunks or acknowledgements.
    pub blocks: bool,
}

impl CoarseConfig {
    /// Returns settings with all approximations on; a heartbeat takes `delay` in each direction.
    pub fn all(delay: Span) -> CoarseConfig {
        CoarseConfig { heartbeats: Some(delay), fetches: Some(Self::FETCHES), blocks: true }
    }

    /// Default number of parts in which a reduce fetches its input. The last part must wait for the
    /// last map; with fewer parts it would contain a larger share of the input.
    pub const FETCHES: u32 = 16;

    /// Whether any approximation of the MapReduce model is enabled.
    pub fn is_on(&self) -> bool {
        self.heartbeats.is_some() || self.fetches.is_some() || self.blocks
    }
}
