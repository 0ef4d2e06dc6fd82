//! Regular fabrics: the position of a switch says how far it is from another one, and in which direction.
//!
//! In all of them every edge switch (one with hosts) has a number below that of every other switch, and
//! hosts are numbered edge switch by edge switch.

use serde::{Deserialize, Serialize};

/// The rule by which the switches of a fabric are joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Regular {
    /// A grid of these sizes with a ring along each dimension, see [`super::torus`]. All switches are
    /// edge switches.
    Torus(Vec<u32>),
    /// A tree with several switches at each of its nodes: levels from the edge switches up.
    Tree(Vec<Level>),
}

/// A level of switches of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// How many switches it has.
    pub switches: u32,
    /// The number of switches with consecutive numbers that are above the same edge switches.
    pub alike: u32,
    /// Above so many edge switches, with consecutive numbers, each of them is.
    pub edges: u32,
}

impl Regular {
    /// Edge switches.
    pub fn edges(&self) -> u32 {
        match self {
            Regular::Torus(sizes) => sizes.iter().product(),
            Regular::Tree(levels) => levels[0].switches,
        }
    }

    /// All switches.
    pub fn switches(&self) -> u32 {
        match self {
            Regular::Torus(sizes) => sizes.iter().product(),
            Regular::Tree(levels) => levels.iter().map(|level| level.switches).sum(),
        }
    }
}

/// A tree of levels, each with its switches, those alike, and edge switches below.
pub(super) fn tree(levels: &[(u32, u32, u32)]) -> Regular {
    let level = |&(switches, alike, edges): &_| Level { switches, alike, edges };
    Regular::Tree(levels.iter().map(level).collect())
}
