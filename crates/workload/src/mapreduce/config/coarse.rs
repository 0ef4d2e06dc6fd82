//! What a run may leave out that is too large for every message: the approximations of flow-level
//! runs. Each is off by default and by itself, so that its error can be measured alone.
//!
//! With any of them no worker may be lost: nobody looks for workers or connections that are silent,
//! and the namenode keeps no table of what was written.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Approximations for large clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoarseConfig {
    /// Heartbeats of Hadoop 1 and their answers are no messages: each takes so long, and those of
    /// which nothing could come are left out. Not with the scheduler Quincy, with heartbeats out of
    /// band or on YARN, where they stay messages.
    pub heartbeats: Option<Span>,
    /// A reduce fetches its input in so many parts, or more where its memory holds less, instead of
    /// each map's output by itself: a part are the outputs of maps that finished one after another,
    /// and comes from the worker of one of them. Requests are no messages.
    pub fetches: Option<u32>,
    /// Blocks and remote splits are one message for each hop, sent at once and as a whole: no
    /// requests, chunks or acknowledgements.
    pub blocks: bool,
}

impl CoarseConfig {
    /// All approximations; a heartbeat takes `delay`.
    pub fn all(delay: Span) -> CoarseConfig {
        CoarseConfig { heartbeats: Some(delay), fetches: Some(Self::FETCHES), blocks: true }
    }

    /// Parts of a reduce's input, unless more are needed: with fewer than this the last part, which
    /// must wait for the last map, is no longer small beside the whole.
    pub const FETCHES: u32 = 16;

    /// Whether anything is left out.
    pub fn is_on(&self) -> bool {
        self.heartbeats.is_some() || self.fetches.is_some() || self.blocks
    }
}
