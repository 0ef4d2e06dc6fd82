//! Regular fabrics: positions of switches determine distance and direction between them.
//!
//! In all of them every edge switch (one with hosts) has a lower number than every other switch, and hosts are
//! numbered edge switch by edge switch.

use serde::{Deserialize, Serialize};

/// Rule by which the switches of a fabric are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Regular {
    /// A grid of these sizes with a ring along each dimension, see [`super::torus`]. All switches are
    /// edge switches.
    Torus(Vec<u32>),
    /// A tree with several switches at each of its nodes: levels from the edge switches up.
    Tree(Vec<Level>),
}

/// A level of switches in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Number of switches of the level.
    pub switches: u32,
    /// Number of switches, numbered consecutively, that are above one set of edge switches.
    pub alike: u32,
    /// Number of edge switches, numbered consecutively, below each switch.
    pub edges: u32,
}

impl Regular {
    /// Returns the number of edge switches (switches with hosts).
    pub fn edges(&self) -> u32 {
        match self {
            Regular::Torus(sizes) => sizes.iter().product(),
            Regular::Tree(levels) => levels[0].switches,
        }
    }

    /// Returns the number of switches.
    pub fn switches(&self) -> u32 {
        match self {
            Regular::Torus(sizes) => sizes.iter().product(),
            Regular::Tree(levels) => levels.iter().map(|level| level.switches).sum(),
        }
    }
}

/// Returns a tree of levels, given as (switches, alike, edges).
pub(super) fn tree(levels: &[(u32, u32, u32)]) -> Regular {
    let level = |&(switches, alike, edges): &_| Level { switches, alike, edges };
    Regular::Tree(levels.iter().map(level).collect())
}
