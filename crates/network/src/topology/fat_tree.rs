//! Three-tier fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008): `k` pods with `k/2` edge
//! and `k/2` aggregation switches each, connected by `(k/2)²` core switches. The number of hosts on
//! an edge switch can be chosen, so that the tree can be over-subscribed.

use super::description::{HostCards, Topology};
use super::graph::{Cable, Graph, names, of_hosts};
use eastwest_engine::interrupt;

/// Builds the graph of a [`Topology::FatTree`].
pub fn build(topology: &Topology) -> Graph {
    let &Topology::FatTree { k, hosts_per_edge, host, uplink } = topology else {
        unreachable!("called for fat trees only")
    };
    let half = k / 2;
    let tier = k * half; // number of edge switches, and of aggregation switches
    let hosts = tier * hosts_per_edge;
    let names = names(&[("h", hosts), ("edge", tier), ("agg", tier), ("core", half * half)]);
    let (edge0, agg0, core0) = (hosts, hosts + tier, hosts + 2 * tier);
    let mut cables = of_hosts(hosts, hosts_per_edge, HostCards::ONE, host);
    for pod in 0..k {
        for i in 0..half {
            interrupt::steps(u64::from(half));
            for j in 0..half {
                let agg = agg0 + pod * half + j;
                cables.push(Cable {
                    a: edge0 + pod * half + i,
                    b: agg,
                    config: uplink,
                    tiers: ("edge-up", "edge-down"),
                });
                // Aggregation switch j of every pod has cables to k/2 cores, from core j·k/2 on.
                cables.push(Cable {
                    a: agg,
                    b: core0 + j * half + i,
                    config: uplink,
                    tiers: ("agg-up", "agg-down"),
                });
            }
        }
    }
    Graph { names, hosts, cables, regular: None, card_addresses: false }
}
