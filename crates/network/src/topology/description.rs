//! Topologies as a scenario describes them, by nodes and cables.

use super::regular::{Regular, tree};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Rate and propagation delay of a cable, equal in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableConfig {
    /// Rate in bit/s in each direction.
    pub rate: Rate,
    /// Propagation delay in each direction.
    pub delay: Span,
}

/// Switches to which the cards of one host lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Homing {
    /// All cards of a host lead to one switch.
    Single,
    /// Card `i` of a host leads to switch `i` of a group of switches; a group has as many switches
    /// as a host has cards.
    Multi,
}

/// Network cards of every host, each with its own cable, and the switches to which the cards lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCards {
    /// Number of cards of each host.
    pub number: u32,
    /// Whether the cards of a host lead to one switch or to several switches.
    pub homing: Homing,
}

impl HostCards {
    /// One card for each host.
    pub const ONE: HostCards = HostCards { number: 1, homing: Homing::Single };

    /// Returns the number of hosts on `switches` switches with `per_switch` hosts at each: a host
    /// that leads to several switches counts once.
    pub fn hosts(self, switches: u32, per_switch: u32) -> u32 {
        switches / self.switches() * per_switch
    }

    /// Returns the number of switches to which one host leads, which share their hosts.
    pub fn switches(self) -> u32 {
        match self.homing {
            Homing::Single => 1,
            Homing::Multi => self.number.max(1),
        }
    }
}

/// Topology of a fabric: its nodes and cables.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Leaf–spine: two tiers of switches, in which every leaf has cables to every spine.
    LeafSpine {
        /// Number of leaf switches (racks).
        leaves: u32,
        /// Number of hosts on each leaf; a host on several leaves counts at each of these leaves.
        hosts_per_leaf: u32,
        /// Number of spine switches.
        spines: u32,
        /// Number of parallel cables between each leaf and each spine.
        cables_per_spine: u32,
        /// Network cards of each host, and the leaves to which the cards lead.
        cards: HostCards,
        /// Rate and delay of the cables between hosts and leaves.
        host: CableConfig,
        /// Rate and delay of the cables between leaves and spines.
        uplink: CableConfig,
    },
    /// Star: all hosts are connected to one switch.
    Star {
        /// Number of hosts.
        hosts: u32,
        /// Number of cards of each host.
        cards: u32,
        /// Rate and delay of the cables between hosts and the switch.
        host: CableConfig,
    },
    /// Three-tier fat tree of Al-Fares et al. (2008). The fabric has `k` pods with `k/2` edge and
    /// `k/2` aggregation switches each, and `(k/2)²` core switches.
    FatTree {
        /// Number of ports of an aggregation or core switch, an even number. An edge switch has
        /// `k/2` ports towards other switches.
        k: u32,
        /// Number of hosts connected to each edge switch (`k/2` for full bisection bandwidth).
        hosts_per_edge: u32,
        /// Rate and delay of the cables between hosts and edge switches.
        host: CableConfig,
        /// Rate and delay of the cables between edge and aggregation switches, and between
        /// aggregation and core switches.
        uplink: CableConfig,
    },
    /// Any graph of hosts, switches and cables.
    Graph {
        /// Names of hosts; a host has one cable for each of its cards, in the order of `cables`.
        hosts: Vec<String>,
        /// Names of switches.
        switches: Vec<String>,
        /// Cables as (node, node, rate and delay). Nodes are numbered with hosts first, then
        /// switches.
        cables: Vec<(u32, u32, CableConfig)>,
        /// Rule by which the switches are connected, if the graph is regular; `None` for an
        /// irregular graph.
        regular: Option<Regular>,
    },
}

impl Topology {
    /// Returns the rule by which the switches are connected; `None` for an irregular graph, and for
    /// leaf–spine and star if hosts have several cards.
    pub fn regular(&self) -> Option<Regular> {
        match *self {
            Topology::LeafSpine { cards: HostCards { number: 2.., .. }, .. }
            | Topology::Star { cards: 2.., .. } => None,
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
