//! DCell topology (Guo et al., *DCell: A Scalable and Fault-Tolerant Network Structure for Data
//! Centers*, SIGCOMM 2008). A DCell₀ has n servers connected to a mini-switch. A DCell_k has
//! t_(k−1) + 1 DCells of level k − 1, where t_k is the number of servers of a DCell_k. Each pair of
//! these DCells is connected by one cable between two servers: for i < j (DCells and servers are
//! counted from 0), between server j − 1 of DCell i and server i of DCell j. With t₀ = n, there are
//! t_k = t_(k−1) (t_(k−1) + 1) servers.
//!
//! In a DCell, servers forward packets for each other. Here the forwarding part of server i is a
//! separate switch `relay…`, to which the host `h…` is connected; the cable between them represents
//! the inside of the server. Routing uses shortest paths instead of DCellRouting, whose paths are
//! up to a few hops longer.

use super::description::{CableConfig, Topology};
use super::graph::number;
use eastwest_engine::interrupt;

/// Returns (number of servers, number of mini-switches) of a DCell of level `level` with `n`
/// servers per mini-switch.
pub fn servers(n: u32, level: u32) -> (u64, u64) {
    let mut servers = u64::from(n);
    for _ in 0..level {
        servers = servers.saturating_mul(servers.saturating_add(1));
    }
    (servers, servers / u64::from(n.max(1)))
}

/// Returns the number of cables of a DCell, including cables inside servers: for each server one
/// cable inside the server, one cable to its mini-switch, and half a cable for each level.
pub fn cables(n: u32, level: u32) -> u64 {
    let all = servers(n, level).0;
    all.saturating_mul(2).saturating_add(all.saturating_mul(u64::from(level)) / 2)
}

/// Builds a DCell of level `level` with `n` servers per mini-switch. The caller has checked the
/// number of nodes.
pub fn build(n: u32, level: u32, host: CableConfig, uplink: CableConfig) -> Topology {
    let (all, minis) = servers(n, level);
    let (all, minis) = (number(all), number(minis));
    let (relay, mini) = (all, 2 * all);
    let mut cables: Vec<_> = (0..all).map(|s| (s, relay + s, host)).collect();
    cables.extend((0..all).map(|s| (relay + s, mini + s / n, uplink)));
    for l in 1..=level {
        let part = number(servers(n, l - 1).0); // servers in each of part + 1 DCells
        for whole in (0..all).step_by((part * (part + 1)) as usize) {
            for i in 0..=part {
                interrupt::steps(u64::from(part));
                for j in i + 1..=part {
                    let (a, b) = (whole + i * part + j - 1, whole + j * part + i);
                    cables.push((relay + a, relay + b, uplink));
                }
            }
        }
    }
    let relays = (0..all).map(|i| format!("relay{i}"));
    Topology::Graph {
        hosts: (0..all).map(|i| format!("h{i}")).collect(),
        switches: relays.chain((0..minis).map(|i| format!("mini{i}"))).collect(),
        cables,
        regular: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::*;
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    #[test]
    fn sizes_degrees_and_diameter_are_the_published_ones() {
        // Guo et al.: with n = 4, there are 20 servers at level 1 and 420 at level 2.
        for (n, level, all, minis) in
            [(4, 0, 4, 1), (4, 1, 20, 5), (2, 2, 42, 21), (4, 2, 420, 105)]
        {
            assert_eq!(servers(n, level), (all, minis));
            let shape = Shape::of(&build(n, level, CABLE, CABLE));
            let all = number(all) as usize;
            assert_eq!((shape.hosts, shape.switches()), (all, all + number(minis) as usize));
            assert_eq!(shape.cables() as u64, cables(n, level));
            // A server has one cable to its mini-switch, one for each level, and one inside it.
            assert!((all..2 * all).all(|r| shape.degree(r) == level as usize + 2));
            assert!((2 * all..shape.nodes()).all(|m| shape.degree(m) == n as usize));
            // Theorem 2 of Guo et al.: at most 2^(k+1) − 1 hops between servers. In this model,
            // mini-switches and the cables inside servers add hops.
            let hops = (1 << (level + 1)) - 1;
            assert!(shape.diameter() <= 2 * hops + 2, "{n} {level}: {}", shape.diameter());
        }
    }

    #[test]
    fn every_pair_of_cells_is_joined_once() {
        let Topology::Graph { cables, .. } = build(4, 1, CABLE, CABLE) else {
            unreachable!("a graph")
        };
        let mut joined = std::collections::BTreeSet::new();
        for &(a, b, _) in &cables[40..] {
            assert!(joined.insert(((a - 20) / 4, (b - 20) / 4)));
        }
        assert_eq!(joined.len(), 10);
        // A cut into 2 and 3 cells separates 2 × 3 cables.
        let shape = Shape::of(&build(4, 1, CABLE, CABLE));
        assert_eq!(shape.cut(|s| if s < 20 { s / 4 < 2 } else { s - 20 < 2 }), 6);
    }
}
