//! Regular fabrics: the position of a switch says how far it is from another one, and in which direction.
//!
//! In all of them every edge switch (one with hosts) has a number below that of every other switch, and
//! hosts are numbered edge switch by edge switch.

use super::xgft::Xgft;
use crate::config::Topology;
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
    /// The rule of a topology, if it has one.
    pub fn of(topology: &Topology) -> Option<Regular> {
        match *topology {
            Topology::Star { .. } => Some(tree(&[(1, 1, 1)])),
            Topology::LeafSpine { leaves, spines, .. } => {
                Some(tree(&[(leaves, 1, 1), (spines, spines, leaves)]))
            }
            Topology::FatTree { k, .. } => {
                let (half, tier) = (k / 2, k * (k / 2));
                let cores = half * half;
                Some(tree(&[(tier, 1, 1), (tier, half, half), (cores, cores, tier)]))
            }
            Topology::Graph { ref regular, .. } => regular.clone(),
        }
    }

    /// The rule of a generalised fat tree, which has been found small enough to be laid out.
    pub fn of_xgft(xgft: &Xgft) -> Regular {
        let (mut alike, mut edges) = (1, 1);
        let level = |(level, (&children, &parents)): (usize, (&u32, &u32))| {
            alike *= parents;
            edges *= if level == 0 { 1 } else { children };
            Level { switches: super::number(xgft.nodes(level + 1)), alike, edges }
        };
        let levels = xgft.children.iter().zip(&xgft.parents).enumerate();
        Regular::Tree(levels.map(level).collect())
    }

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

/// Levels by their switches, those alike, and edge switches below.
fn tree(levels: &[(u32, u32, u32)]) -> Regular {
    let level = |&(switches, alike, edges): &_| Level { switches, alike, edges };
    Regular::Tree(levels.iter().map(level).collect())
}
