//! Settings of the choice among equal paths that every policy uses.

/// Hash and weights for the choice among equal paths, which every policy uses.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EqualPaths {
    /// Whether every switch uses the hash of a packet unchanged. If false, each switch mixes its
    /// own seed into the hash.
    pub same_hash: bool,
    /// Weights of ports as (from node, to node, weight); ports that are not listed have weight 1. A
    /// weight applies to all parallel cables between the two nodes.
    pub weights: Vec<(u32, u32, u32)>,
}
