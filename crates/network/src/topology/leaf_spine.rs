//! Leaf–spine: a folded Clos network of two tiers. Hosts `h0…` are numbered leaf by leaf, or group
//! of leaves by group of leaves if a host is connected to several leaves.

use super::description::Topology;
use super::graph::{Cable, Graph, names, of_hosts};
use eastwest_engine::interrupt;

/// Builds the graph of a [`Topology::LeafSpine`].
pub fn build(topology: &Topology) -> Graph {
    let &Topology::LeafSpine {
        leaves,
        hosts_per_leaf,
        spines,
        cables_per_spine,
        cards,
        host,
        uplink,
    } = topology
    else {
        unreachable!("called for leaf–spine only")
    };
    let hosts = cards.hosts(leaves, hosts_per_leaf);
    let names = names(&[("h", hosts), ("leaf", leaves), ("spine", spines)]);
    let mut cables = of_hosts(hosts, hosts_per_leaf, cards, host);
    for leaf in 0..leaves {
        interrupt::steps(u64::from(spines) * u64::from(cables_per_spine));
        for spine in 0..spines {
            for _ in 0..cables_per_spine {
                cables.push(Cable {
                    a: hosts + leaf,
                    b: hosts + leaves + spine,
                    config: uplink,
                    tiers: ("leaf-up", "leaf-down"),
                });
            }
        }
    }
    Graph { names, hosts, cables, regular: None, card_addresses: false }
}
