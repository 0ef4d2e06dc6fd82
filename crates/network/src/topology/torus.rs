//! Torus: switches at the points of a grid of any number of dimensions, with a ring along each
//! dimension, and hosts connected to every switch.
//!
//! A ring of two switches is one cable, not two parallel ones. Hosts `h0…` are numbered switch by
//! switch. Switches such as `s1.2` are named by their coordinates, and numbered so that the last
//! coordinate changes fastest. The ports of a switch are in the order: ports to hosts, then ports
//! along each dimension.

use super::description::{CableConfig, Topology};
use super::graph::number;
use super::regular::Regular;
use eastwest_engine::interrupt;

/// Returns the number of switches of a torus; `sizes` has the number of switches along each
/// dimension.
pub fn switches(sizes: &[u32]) -> u64 {
    sizes.iter().fold(1, |n, &size| n.saturating_mul(u64::from(size)))
}

/// Returns the number of cables of a torus: the cables of all rings, and the cables of all hosts.
pub fn cables(sizes: &[u32], hosts_per_switch: u32) -> u64 {
    let all = switches(sizes);
    let rings = |&size: &u32| if size == 2 { all / 2 } else { all };
    let of_hosts = all.saturating_mul(u64::from(hosts_per_switch));
    sizes.iter().map(rings).fold(of_hosts, u64::saturating_add)
}

/// Builds a torus; `sizes` has the number of switches along each dimension, at least 2. The caller
/// has checked the number of nodes.
pub fn build(
    sizes: &[u32],
    hosts_per_switch: u32,
    host: CableConfig,
    uplink: CableConfig,
) -> Topology {
    let all = number(switches(sizes));
    let hosts = all * hosts_per_switch;
    // For each dimension, the difference in switch number between neighbours.
    let steps: Vec<u32> =
        (0..sizes.len()).map(|d| sizes[d + 1..].iter().product::<u32>()).collect();
    let coordinate = |switch: u32, d: usize| switch / steps[d] % sizes[d];
    let name = |switch: u32| {
        let at: Vec<String> = (0..sizes.len()).map(|d| coordinate(switch, d).to_string()).collect();
        format!("s{}", at.join("."))
    };
    let mut cables: Vec<_> = (0..hosts).map(|h| (h, hosts + h / hosts_per_switch, host)).collect();
    for (d, &size) in sizes.iter().enumerate() {
        for switch in 0..all {
            interrupt::step();
            let at = coordinate(switch, d);
            if size == 2 && at == 1 {
                continue;
            }
            let next = switch - at * steps[d] + (at + 1) % size * steps[d];
            cables.push((hosts + switch, hosts + next, uplink));
        }
    }
    Topology::Graph {
        hosts: (0..hosts).map(|i| format!("h{i}")).collect(),
        switches: (0..all).map(name).collect(),
        cables,
        regular: Some(Regular::Torus(sizes.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::*;
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    #[test]
    fn rings_close_and_distances_and_bisection_are_those_of_tori() {
        for (sizes, hosts, diameter, bisection) in [
            // Dally and Towles 2004: a k-ary n-cube has a bisection of 2 kⁿ⁻¹ cables and a diameter
            // of n k/2.
            (&[4u32, 4][..], 2, 4, 8),
            (&[4, 4, 4], 1, 6, 32),
            (&[6, 3], 1, 4, 6),
            (&[8], 1, 4, 2),
            (&[2, 2, 2], 3, 3, 4),
        ] {
            let shape = Shape::of(&build(sizes, hosts, CABLE, CABLE));
            let all = number(switches(sizes)) as usize;
            assert_eq!((shape.switches(), shape.hosts), (all, all * hosts as usize));
            assert_eq!(shape.cables() as u64, cables(sizes, hosts));
            // The cables of the two hosts add two hops.
            assert_eq!(shape.diameter(), diameter + 2, "{sizes:?}");
            let degree = sizes.iter().map(|&s| if s == 2 { 1 } else { 2 }).sum::<usize>();
            let first = shape.hosts;
            assert!((first..shape.nodes()).all(|s| shape.degree(s) == degree + hosts as usize));
            // The cut is across the first dimension, which is the longest.
            assert_eq!(shape.cut(|switch| switch < all / 2), bisection, "{sizes:?}");
        }
    }

    #[test]
    fn shortest_paths_are_the_orders_of_steps() {
        let shape = Shape::of(&build(&[5, 5], 1, CABLE, CABLE));
        // From (0,0) to (2,1) there are three steps, in any order.
        assert_eq!(shape.paths(0, 2 * 5 + 1), 3);
        // From (0,0) to (2,2) there are four steps, two in each dimension.
        assert_eq!(shape.paths(0, 2 * 5 + 2), 6);
        let Topology::Graph { switches, .. } = build(&[2, 3], 1, CABLE, CABLE) else {
            unreachable!("a graph")
        };
        assert_eq!(switches, ["s0.0", "s0.1", "s0.2", "s1.0", "s1.1", "s1.2"]);
    }
}
