//! Regular fabrics, in which the positions of switches determine distances and directions between
//! them.
//!
//! In all regular fabrics, edge switches (switches with hosts) have lower numbers than other
//! switches, and hosts are numbered edge switch by edge switch.

use serde::{Deserialize, Serialize};

/// Rule by which the switches of a regular fabric are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Regular {
    /// A grid with a ring along each dimension, see [`super::torus`]; the values are the numbers of
    /// switches along each dimension. All switches are edge switches.
    Torus(Vec<u32>),
    /// A tree in which a node can consist of several equivalent switches. Levels are listed from
    /// the edge switches up.
    Tree(Vec<Level>),
}

/// One level of switches in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Number of switches in the level.
    pub switches: u32,
    /// Number of consecutive switches in the level that are above the same edge switches.
    pub alike: u32,
    /// Number of consecutive edge switches below each switch of the level.
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

/// Returns the rule of a tree. Each level is given as (number of switches, switches above the same
/// edge switches, edge switches below each switch).
pub(super) fn tree(levels: &[(u32, u32, u32)]) -> Regular {
    let level = |&(switches, alike, edges): &_| Level { switches, alike, edges };
    Regular::Tree(levels.iter().map(level).collect())
}
