//! What the choice among equal paths is based on.

/// Hash and weights for the choice among equal paths; every routing uses them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EqualPaths {
    /// Every switch takes the hash as it is, in place of mixing a seed of its own into it.
    pub same_hash: bool,
    /// Ports that get more than others, as (from, to, weight); all others weigh 1. All parallel cables
    /// between two nodes are meant.
    pub weights: Vec<(u32, u32, u32)>,
}
