//! Inputs of the choice among equal paths.

/// Hash and weights for the choice among equal paths, which every policy uses.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EqualPaths {
    /// Whether every switch uses the hash of a packet as it is, instead of mixing a seed of the
    /// switch into it.
    pub same_hash: bool,
    /// Ports with a weight, as (from, to, weight); all others have weight 1. The weight applies to all parallel
    /// cables between two nodes.
    pub weights: Vec<(u32, u32, u32)>,
}
