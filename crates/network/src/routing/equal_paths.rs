//! Inputs of the choice among equal paths.

/// Hash and weights for the choice among equal paths; every routing uses them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EqualPaths {
    /// Whether every switch uses the hash as it is, instead of mixing its own seed into it.
    pub same_hash: bool,
    /// Ports with a weight, as (from, to, weight); all others have weight 1. The weight applies to all parallel
    /// cables between two nodes.
    pub weights: Vec<(u32, u32, u32)>,
}
