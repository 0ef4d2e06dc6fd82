//! Topologies: nodes and cables of a fabric, with names.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

pub mod dcell;
mod description;
pub mod dragonfly;
pub mod dumbbell;
mod fat_tree;
mod graph;
mod leaf_spine;
pub mod regular;
/// Returns the number of the link in the opposite direction of the same cable: cable `i` has the
/// links `2i` and `2i + 1`.
#[inline]
pub const fn reverse(link: u32) -> u32 {
    link ^ 1
}

#[cfg(test)]
mod shape;
pub mod torus;
pub mod two_groups;
pub mod xgft;

pub use description::{CableConfig, Homing, HostCards, Topology};
pub use graph::{Cable, Graph};
use graph::{names, number, of_hosts};

impl Graph {
    /// Builds the graph of a topology.
    pub fn build(topology: &Topology) -> Graph {
        let regular = topology.regular();
        let graph = match topology {
            Topology::LeafSpine { .. } => leaf_spine::build(topology),
            &Topology::Star { hosts, cards, host } => {
                let names = names(&[("h", hosts), ("switch", 1)]);
                let cards = HostCards { number: cards, homing: Homing::Single };
                Graph {
                    names,
                    hosts,
                    cables: of_hosts(hosts, hosts, cards, host),
                    regular: None,
                    card_addresses: false,
                }
            }
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
                Graph { names, hosts: n, cables, regular: None, card_addresses: false }
            }
        };
        Graph { regular, ..graph }
    }
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
            cards: HostCards::ONE,
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
        // Al-Fares et al. 2008, figure 3: 16 hosts, 8 edge, 8 aggregation and 4 core switches.
        assert_eq!((g.hosts, g.switches()), (16, 20));
        assert_eq!(g.cables.len(), 16 + 16 + 16);
    }
}
