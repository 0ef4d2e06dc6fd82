//! Leaf–spine: a folded Clos network of two tiers. Hosts `h0…` are numbered leaf by leaf.

use super::description::Topology;
use super::graph::{Cable, Graph};
use eastwest_engine::interrupt;

/// Lays out [`Topology::LeafSpine`].
pub fn build(topology: &Topology) -> Graph {
    let &Topology::LeafSpine { leaves, hosts_per_leaf, spines, cables_per_spine, host, uplink } =
        topology
    else {
        unreachable!("called for leaf–spine only")
    };
    let hosts = leaves * hosts_per_leaf;
    let names = (0..hosts)
        .map(|i| format!("h{i}"))
        .chain((0..leaves).map(|i| format!("leaf{i}")))
        .chain((0..spines).map(|i| format!("spine{i}")))
        .collect();
    let tiers = ("host-up", "host-down");
    let mut cables: Vec<Cable> = (0..hosts)
        .map(|a| Cable { a, b: hosts + a / hosts_per_leaf, config: host, tiers })
        .collect();
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
    Graph { names, hosts, cables, regular: None }
}
