//! Nodes and cables of a fabric, by name: what routing and ports are built from.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

pub mod dcell;
pub mod dumbbell;
mod fat_tree;
mod leaf_spine;
pub mod regular;
#[cfg(test)]
mod shape;
pub mod torus;
pub mod two_groups;
pub mod xgft;

use crate::config::{CableConfig, Topology};
use regular::Regular;
use serde::{Deserialize, Serialize};

/// A cable between two nodes, hosts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// One end; a host where the cable has one.
    pub a: u32,
    /// The other end.
    pub b: u32,
    /// Rate and delay, both directions.
    pub config: CableConfig,
    /// Tier names of the direction a → b and of b → a, for tables.
    #[serde(with = "eastwest_types::name")]
    pub tiers: (&'static str, &'static str),
}

/// Nodes are numbered hosts first, then switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Names of all nodes.
    pub names: Vec<String>,
    /// How many of them are hosts.
    pub hosts: u32,
    /// All cables; link `2i` is cable `i` from `a` to `b`, link `2i + 1` the other direction.
    pub cables: Vec<Cable>,
    /// The rule by which they are laid out, if there is one.
    pub regular: Option<Regular>,
}

/// A number or count of nodes in the form that graphs have it.
///
/// # Panics
///
/// Panics where 32 bits do not hold it: who reads a scenario bounds the fabric far below that.
fn number(nodes: impl TryInto<u32>) -> u32 {
    nodes.try_into().unwrap_or_else(|_| panic!("a fabric has fewer than 2^32 nodes"))
}

impl Graph {
    /// Lays out a topology.
    pub fn build(topology: &Topology) -> Graph {
        let regular = Regular::of(topology);
        let graph = match topology {
            Topology::LeafSpine { .. } => leaf_spine::build(topology),
            Topology::Star { hosts, host } => star(*hosts, *host),
            Topology::FatTree { .. } => fat_tree::build(topology),
            Topology::Graph { hosts, switches, cables, .. } => {
                let n = number(hosts.len());
                let cables = cables
                    .iter()
                    .map(|&(a, b, config)| {
                        let (a, b) = if b < n { (b, a) } else { (a, b) };
                        let tiers =
                            if a < n { ("host-up", "host-down") } else { ("switch", "switch") };
                        Cable { a, b, config, tiers }
                    })
                    .collect();
                let names = hosts.iter().chain(switches).cloned().collect();
                Graph { names, hosts: n, cables, regular: None }
            }
        };
        Graph { regular, ..graph }
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        number(self.names.len()) - self.hosts
    }

    /// For every host the switch (counted from 0 among switches) it hangs on; `u32::MAX` without cable.
    pub fn edge_of_host(&self) -> Vec<u32> {
        let mut edge = vec![u32::MAX; self.hosts as usize];
        for cable in self.cables.iter().filter(|c| c.a < self.hosts) {
            edge[cable.a as usize] = cable.b.saturating_sub(self.hosts);
        }
        edge
    }
}

/// Hosts `h0…` on one switch `switch0`.
fn star(hosts: u32, host: CableConfig) -> Graph {
    let mut names: Vec<String> = (0..hosts).map(|i| format!("h{i}")).collect();
    names.push("switch0".into());
    let tiers = ("host-up", "host-down");
    let cables = (0..hosts).map(|a| Cable { a, b: hosts, config: host, tiers }).collect();
    Graph { names, hosts, cables, regular: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    #[test]
    fn leaf_spine_has_every_leaf_on_every_spine() {
        let g = Graph::build(&Topology::LeafSpine {
            leaves: 4,
            hosts_per_leaf: 40,
            spines: 2,
            cables_per_spine: 1,
            host: CABLE,
            uplink: CABLE,
        });
        assert_eq!((g.hosts, g.switches(), g.cables.len()), (160, 6, 168));
        assert_eq!(g.names[160], "leaf0");
        assert_eq!(g.names[165], "spine1");
        assert_eq!(g.edge_of_host()[41], 1);
    }

    #[test]
    fn fat_tree_of_four_pods_is_the_published_one() {
        let g = Graph::build(&Topology::FatTree {
            k: 4,
            hosts_per_edge: 2,
            host: CABLE,
            uplink: CABLE,
        });
        // Al-Fares et al. 2008, figure 3: 16 hosts, 8 edge, 8 aggregation, 4 core switches.
        assert_eq!((g.hosts, g.switches()), (16, 20));
        assert_eq!(g.cables.len(), 16 + 16 + 16);
    }
}
