//! Topologies as a scenario describes them: nodes and cables.

use super::regular::{Regular, tree};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Rate and propagation delay of a cable, both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableConfig {
    /// Rate in bit/s in each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub delay: Span,
}

/// Topology of a fabric: its nodes and cables.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Two tiers: every leaf has cables to every spine.
    LeafSpine {
        /// Number of leaves (racks).
        leaves: u32,
        /// Hosts on each leaf.
        hosts_per_leaf: u32,
        /// Number of spines.
        spines: u32,
        /// Parallel cables between each leaf and each spine.
        cables_per_spine: u32,
        /// Cables from hosts to leaves.
        host: CableConfig,
        /// Cables from leaves to spines.
        uplink: CableConfig,
    },
    /// One switch.
    Star {
        /// Number of hosts.
        hosts: u32,
        /// Cables from hosts to the switch.
        host: CableConfig,
    },
    /// The three-tier fat tree of Al-Fares et al. (2008) with `k` pods of `k/2` edge and `k/2`
    /// aggregation switches and `(k/2)²` cores.
    FatTree {
        /// Ports per switch towards other switches, even.
        k: u32,
        /// Hosts on each edge switch (`k/2` for full bisection).
        hosts_per_edge: u32,
        /// Cables from hosts to edge switches.
        host: CableConfig,
        /// Cables from edge to aggregation switches, and from these to cores.
        uplink: CableConfig,
    },
    /// Any graph.
    Graph {
        /// Names of hosts; a host has exactly one cable.
        hosts: Vec<String>,
        /// Names of switches.
        switches: Vec<String>,
        /// Cables between nodes, by index: hosts first, then switches.
        cables: Vec<(u32, u32, CableConfig)>,
        /// Rule by which the nodes are connected; `None` for an irregular graph.
        regular: Option<Regular>,
    },
}

impl Topology {
    /// Returns the rule by which the switches are connected; `None` for an irregular graph.
    pub fn regular(&self) -> Option<Regular> {
        match *self {
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
}
