//! Two groups of hosts with several paths between them, of which static routing by the number of
//! the receiver uses only one. The topology models the six hosts in the case study of Gusat et al.
//! (*Benchmarking the Ethernet-Federated Datacenter*, IBM Research 2009), which describes the
//! behaviour of the fabric but not its cables.
//!
//! **Required behaviour.** Each group has three hosts, and routing is "of n shortest paths' ports
//! take number d mod n". All nine flows of one direction between the groups pass a single link,
//! while other shortest paths are free. The two flows of each host within its group share no link
//! with these nine flows. Three flows to three receivers can take disjoint paths.
//!
//! **Why two stages are needed.** If one switch routes packets to all receivers over n ≥ 2 ports, d
//! mod n sends neighbouring receivers to different ports. To bring all receivers to one link, other
//! switches must join these paths again, each of which routes only some residues of d.
//!
//! **Construction for p paths.** There is a switch for each group, `left` and `right`, and two
//! stages of p switches between them. `left` is connected to every `near`, every `near` to every
//! `far`, and every `far` to `right`. Port c of `near i` leads to the `far j` with i + j = c (mod
//! p), and port c of `far j` to the corresponding `near i`. A packet to receiver d is then sent
//! from `left` to `near i` with i = d mod p, and from there by port d mod p = i to `far 0`. All
//! receivers share the link `far0 -> right`; in the other direction they share `near0 -> left`.
//! There are p² shortest paths between the groups; p of them are disjoint between `left` and
//! `right`.

use super::description::{CableConfig, Topology};

/// Returns the number of switches of two groups of hosts with `paths` disjoint paths between them.
pub fn switches(paths: u32) -> u64 {
    2 + 2 * u64::from(paths)
}

/// Returns the number of cables of two groups of hosts with `paths` disjoint paths between them.
pub fn cables(hosts_per_group: u32, paths: u32) -> u64 {
    let p = u64::from(paths);
    2 * u64::from(hosts_per_group) + 2 * p + p * p
}

/// Builds two groups of hosts with `paths` (at least 1) disjoint paths between them.
pub fn build(hosts_per_group: u32, paths: u32, host: CableConfig, uplink: CableConfig) -> Topology {
    let hosts = 2 * hosts_per_group;
    let (left, near, far) = (hosts, hosts + 1, hosts + 1 + paths);
    let right = far + paths;
    let edge = |h| if h < hosts_per_group { left } else { right };
    let mut cables: Vec<_> = (0..hosts).map(|h| (h, edge(h), host)).collect();
    cables.extend((0..paths).map(|i| (left, near + i, uplink)));
    for port in 0..paths {
        let pair = |i| (near + i, far + (port + paths - i) % paths, uplink);
        cables.extend((0..paths).map(pair));
    }
    cables.extend((0..paths).map(|j| (far + j, right, uplink)));
    let row = |name: &'static str| (0..paths).map(move |i| format!("{name}{i}"));
    let ends = |name: &str| std::iter::once(name.to_owned());
    Topology::Graph {
        hosts: (0..hosts).map(|i| format!("h{i}")).collect(),
        switches: ends("left").chain(row("near")).chain(row("far")).chain(ends("right")).collect(),
        cables,
        regular: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Graph;
    use super::super::shape::Shape;
    use super::*;
    use crate::routing::{EqualPaths, Modulo, Routing, RoutingConfig};
    use eastwest_types::{HostId, Rate, Span};
    use std::collections::BTreeMap;

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(10), delay: Span::from_us(1) };

    /// Returns, for each port between switches, how many of the flows between all pairs of hosts
    /// static routing sends through this port.
    fn loads(hosts_per_group: u32, paths: u32) -> BTreeMap<(String, String), u32> {
        let graph = Graph::build(&build(hosts_per_group, paths, CABLE, CABLE));
        let config = (RoutingConfig::Modulo(Modulo), EqualPaths::default());
        let routing = Routing::build(&graph, &config.0, &config.1, 1).expect("routes");
        let mut loads = BTreeMap::new();
        let edges = graph.edge_of_host();
        for (from, to) in (0..graph.hosts).flat_map(|a| (0..graph.hosts).map(move |b| (a, b))) {
            let mut switch = edges[from as usize];
            while from != to && switch != edges[to as usize] {
                let links = routing.links_from(switch, 0, HostId(to));
                assert_eq!(links.len(), 1);
                let cable = graph.cables[links[0] as usize / 2];
                let next = if links[0] % 2 == 0 { cable.b } else { cable.a };
                let name = |n: u32| graph.names[n as usize].clone();
                *loads.entry((name(graph.hosts + switch), name(next))).or_insert(0) += 1;
                switch = next - graph.hosts;
            }
        }
        loads
    }

    #[test]
    fn all_nine_flows_of_a_direction_share_one_link_and_the_others_into_the_group_are_free() {
        let loads = loads(3, 3);
        let load = |from: &str, to: &str| {
            loads.get(&(from.to_owned(), to.to_owned())).copied().unwrap_or(0)
        };
        assert_eq!(
            [load("far0", "right"), load("far1", "right"), load("far2", "right")],
            [9, 0, 0]
        );
        assert_eq!(
            [load("near0", "left"), load("near1", "left"), load("near2", "left")],
            [9, 0, 0]
        );
        // No other link is near its rate: the five flows of a host share its rate, so that three of
        // them use 0.6 of it.
        let elsewhere = loads.iter().filter(|((_, to), _)| to != "right" && to != "left");
        assert!(elsewhere.map(|(_, &n)| n).all(|n| n == 3), "{loads:?}");
        assert_eq!((load("left", "near0"), load("near1", "far0")), (3, 3));
    }

    #[test]
    fn other_numbers_of_hosts_and_paths_meet_on_one_link_as_well() {
        for (hosts, paths) in [(2, 2), (4, 3), (5, 2), (3, 5)] {
            let loads = loads(hosts, paths);
            let into_right = loads.iter().filter(|((_, to), _)| to == "right");
            let into_right: Vec<_> = into_right.map(|(_, &n)| n).collect();
            assert_eq!(into_right, [hosts * hosts], "{hosts} hosts, {paths} paths");
        }
    }

    #[test]
    fn there_are_p_squared_shortest_paths_and_p_disjoint_ones() {
        let shape = Shape::of(&build(3, 3, CABLE, CABLE));
        assert_eq!((shape.hosts, shape.switches() as u64), (6, switches(3)));
        assert_eq!(shape.cables() as u64, cables(3, 3));
        assert_eq!((shape.paths(0, 3), shape.paths(0, 1), shape.diameter()), (9, 1, 5));
        assert_eq!(shape.bisection_of_hosts(), 3);
    }
}
