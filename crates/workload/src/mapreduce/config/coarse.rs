//! Approximations for runs that are too large to simulate every message. Each is off by default and
//! can be set by itself, so that its error can be measured.
//!
//! With any of them no worker may be lost: silent workers and connections are not detected, and the
//! namenode keeps no table of written blocks.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Approximations for large clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoarseConfig {
    /// One-way delay of Hadoop 1's heartbeats and of their answers, which are then not sent as
    /// messages; heartbeats without effect are left out. `None`: heartbeats are messages, as always
    /// with the scheduler Quincy, with out-of-band heartbeats and on YARN.
    pub heartbeats: Option<Span>,
    /// Number of parts in which a reduce fetches its input, more if its memory is too small. A part
    /// is the outputs of maps that finished one after another, and is sent by the worker of one of
    /// them; requests are not sent as messages. `None`: the output of each map is fetched by
    /// itself.
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

    /// Default number of parts of a reduce's input. With fewer parts the last one, which must wait
    /// for the last map, would be a large part of the whole.
    pub const FETCHES: u32 = 16;

    /// Whether any approximation is used.
    pub fn is_on(&self) -> bool {
        self.heartbeats.is_some() || self.fetches.is_some() || self.blocks
    }
}
