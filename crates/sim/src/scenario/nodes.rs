//! Names and numbers of nodes: hosts have the first numbers, then switches tier by tier.
//!
//! | fabric | numbers after the hosts |
//! |---|---|
//! | leaf–spine | `leaf0 …`, `spine0 …`; host `i` is on leaf (or group) `i / hosts_per_leaf` |
//! | star | `switch0` |
//! | fat tree | `edge0 …`, `agg0 …` (pod by pod), `core0 …` |
//! | graph | as listed in its file |
//!
//! Aggregation switch `j` of a pod of a fat tree is joined to cores `j·k/2 … (j+1)·k/2 − 1`.

use eastwest_engine::interrupt;
use eastwest_network::topology::Topology;
use eastwest_settings::narrow::at_most;
use eastwest_settings::problem::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of switches that an explicit route may pass.
pub const MAX_HOPS: usize = 64;

/// Returns the number of nodes of a topology, without building it.
fn nodes_of(topology: &Topology) -> u64 {
    tiers(topology).iter().map(|tier| tier.1).sum()
}

/// Returns the name prefix and the number of nodes of every tier, hosts first. A graph counts as
/// one tier with an empty prefix.
fn tiers(topology: &Topology) -> Vec<(&'static str, u64)> {
    match topology {
        Topology::LeafSpine { leaves, hosts_per_leaf, spines, cards, .. } => {
            let groups = u64::from(*leaves / cards.switches());
            let leaves = u64::from(*leaves);
            vec![
                ("h", groups * u64::from(*hosts_per_leaf)),
                ("leaf", leaves),
                ("spine", u64::from(*spines)),
            ]
        }
        Topology::Star { hosts, .. } => vec![("h", u64::from(*hosts)), ("switch", 1)],
        Topology::FatTree { k, hosts_per_edge, .. } => {
            let (k, half) = (u64::from(*k), u64::from(*k / 2));
            let edges = k * half;
            vec![
                ("h", edges * u64::from(*hosts_per_edge)),
                ("edge", edges),
                ("agg", edges),
                ("core", half * half),
            ]
        }
        Topology::Graph { hosts, switches, .. } => {
            vec![("", (hosts.len() + switches.len()) as u64)]
        }
    }
}

/// Returns the rack of every host: the number of the switch to which the first card of the host is
/// connected, counted from 0 among switches.
pub fn racks(topology: &Topology) -> Vec<u32> {
    let even = |hosts: u32, per_rack: u32| (0..hosts).map(|h| h / per_rack.max(1)).collect();
    match topology {
        Topology::LeafSpine { leaves, hosts_per_leaf, cards, .. } => {
            let racks: Vec<u32> = even(cards.hosts(*leaves, *hosts_per_leaf), *hosts_per_leaf);
            racks.into_iter().map(|group| group * cards.switches()).collect()
        }
        Topology::Star { hosts, .. } => vec![0; *hosts as usize],
        Topology::FatTree { k, hosts_per_edge, .. } => {
            even(k * (k / 2) * hosts_per_edge, *hosts_per_edge)
        }
        Topology::Graph { hosts, cables, .. } => {
            let mut racks = vec![0; hosts.len()];
            let switches_from: u32 = at_most(hosts.len());
            for &(a, b, _) in cables.iter().rev() {
                let (host, switch) = (a.min(b), a.max(b));
                if let Some(rack) = racks.get_mut(host as usize) {
                    *rack = switch.saturating_sub(switches_from);
                }
            }
            racks
        }
    }
}

/// Nodes of a topology with names and numbers, and the cables between the nodes.
pub struct Nodes {
    topology: Topology,
    tiers: Vec<(&'static str, u64)>,
    hosts: u32,
    /// Numbers of nodes by name, in graphs only.
    numbers: BTreeMap<String, u32>,
    cables: BTreeSet<(u32, u32)>,
}

impl Nodes {
    /// Returns the nodes of a topology whose size has been checked.
    pub fn new(topology: &Topology) -> Nodes {
        let tiers = tiers(topology);
        let (mut numbers, mut cables) = (BTreeMap::new(), BTreeSet::new());
        let mut hosts = u32::try_from(tiers[0].1).unwrap_or(u32::MAX);
        if let Topology::Graph { hosts: names, switches, cables: list, .. } = topology {
            hosts = at_most(names.len());
            numbers.extend(
                names.iter().chain(switches).inspect(|_| interrupt::steps(8)).cloned().zip(0u32..),
            );
            cables.extend(
                list.iter()
                    .inspect(|_| interrupt::steps(4))
                    .map(|(a, b, _)| (*a.min(b), *a.max(b))),
            );
        }
        Nodes { topology: topology.clone(), tiers, hosts, numbers, cables }
    }

    /// Returns the number of hosts of the topology.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of links on the longest of the shortest paths between two hosts. For a
    /// graph the result is 2, a lower bound: the cables of the two hosts.
    pub fn longest_way(&self) -> u64 {
        match self.topology {
            Topology::LeafSpine { leaves, .. } if leaves > 1 => 4,
            Topology::FatTree { .. } => 6,
            _ => 2,
        }
    }

    /// Returns the rack of every host: the number of the switch to which the first card of the host
    /// is connected, counted from 0 among switches.
    pub fn racks(&self) -> Vec<u32> {
        racks(&self.topology)
    }

    /// Returns the names of hosts as text for messages: `h0 to h31`, or the first eight names of a
    /// graph.
    pub fn host_names(&self) -> String {
        match &self.topology {
            Topology::Graph { hosts, .. } => {
                let some: Vec<&str> = hosts.iter().take(8).map(String::as_str).collect();
                let more = if hosts.len() > 8 { ", …" } else { "" };
                format!("{}{more}", some.join(", "))
            }
            _ => format!("h0 to h{}", self.hosts - 1),
        }
    }

    /// Returns the number of the node with this name; `None` if no node has it.
    pub fn number(&self, name: &str) -> Option<u32> {
        if matches!(self.topology, Topology::Graph { .. }) {
            return self.numbers.get(name).copied();
        }
        let mut first = 0;
        for &(prefix, size) in &self.tiers {
            let digits = name.strip_prefix(prefix).unwrap_or("");
            let plain = !digits.is_empty()
                && digits.bytes().all(|b| b.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'));
            if let (true, Ok(i)) = (plain, digits.parse::<u64>()) {
                return (i < size).then(|| at_most(first + i));
            }
            first += size;
        }
        None
    }

    /// Returns the name of the node with this number.
    pub fn name(&self, number: u32) -> String {
        if let Topology::Graph { hosts, switches, .. } = &self.topology {
            return hosts.iter().chain(switches).nth(number as usize).cloned().unwrap_or_default();
        }
        let mut rest = u64::from(number);
        for &(prefix, size) in &self.tiers {
            if rest < size {
                return format!("{prefix}{rest}");
            }
            rest -= size;
        }
        format!("node {number}")
    }

    /// Returns the name of the node that is most similar to the unknown `name`; `None` if no name
    /// is similar.
    pub fn nearest(&self, name: &str) -> Option<String> {
        if matches!(self.topology, Topology::Graph { .. }) {
            return nearest(name, self.numbers.keys().map(String::as_str)).map(str::to_owned);
        }
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let given = &name[..name.len() - digits.len()];
        let prefix = nearest(given, self.tiers.iter().map(|tier| tier.0))?;
        let &(_, size) = self.tiers.iter().find(|tier| tier.0 == prefix)?;
        let number = digits.parse::<u64>().ok()?;
        Some(format!("{prefix}{}", number.min(size.checked_sub(1)?)))
    }

    /// Returns the lowest number of a node that has a cable to `node`; `None` if `node` has no
    /// cable.
    pub fn neighbour(&self, node: u32) -> Option<u32> {
        let all = u32::try_from(nodes_of(&self.topology)).unwrap_or(u32::MAX);
        (0..all).find(|&other| other != node && self.adjacent(node, other))
    }

    /// Returns the number of the switch at the cable of each card of `host`, indexed by card.
    pub fn switches_of_cards(&self, host: u32) -> Vec<u32> {
        match &self.topology {
            Topology::LeafSpine { hosts_per_leaf, cards, .. } => {
                let first = self.hosts + host / hosts_per_leaf * cards.switches();
                (0..cards.number).map(|card| first + card % cards.switches()).collect()
            }
            Topology::Star { hosts, cards, .. } => vec![*hosts; *cards as usize],
            Topology::FatTree { hosts_per_edge, .. } => vec![self.hosts + host / hosts_per_edge],
            Topology::Graph { cables, .. } => {
                let of_host = cables.iter().filter(|(a, b, _)| *a.min(b) == host);
                of_host.map(|(a, b, _)| *a.max(b)).collect()
            }
        }
    }

    /// Whether a cable joins the nodes with the numbers `a` and `b`.
    pub fn adjacent(&self, a: u32, b: u32) -> bool {
        let (low, high) = (a.min(b), a.max(b));
        let host = low < self.hosts;
        match &self.topology {
            Topology::Graph { .. } => self.cables.contains(&(low, high)),
            Topology::Star { hosts, .. } => host && high == *hosts,
            Topology::LeafSpine { leaves, hosts_per_leaf, cards, .. } => {
                let leaf = |n: u32| n.checked_sub(self.hosts).filter(|l| l < leaves);
                match leaf(high) {
                    Some(l) => host && low / hosts_per_leaf == l / cards.switches(),
                    None => high >= self.hosts + leaves && leaf(low).is_some(),
                }
            }
            Topology::FatTree { k, hosts_per_edge, .. } => {
                let (half, edges) = (k / 2, k * (k / 2));
                let tier = |n: u32| match n.checked_sub(self.hosts) {
                    None => (0, n),
                    Some(n) if n < edges => (1, n),
                    Some(n) if n < 2 * edges => (2, n - edges),
                    Some(n) => (3, n - 2 * edges),
                };
                match (tier(low), tier(high)) {
                    ((0, h), (1, edge)) => h / hosts_per_edge == edge,
                    ((1, edge), (2, agg)) => edge / half == agg / half,
                    ((2, agg), (3, core)) => core / half == agg % half,
                    _ => false,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_network::footprint::Sizes;
    use eastwest_network::topology::{CableConfig, HostCards};
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::ZERO };

    fn degree_and_cables(topology: &Topology) -> (Vec<u32>, u64) {
        let nodes = Nodes::new(topology);
        let all = nodes_of(topology) as u32;
        let degree = |a| (0..all).filter(|&b| a != b && nodes.adjacent(a, b)).count() as u32;
        let degrees: Vec<u32> = (0..all).map(degree).collect();
        let cables = degrees.iter().map(|&d| u64::from(d)).sum::<u64>() / 2;
        (degrees, cables)
    }

    #[test]
    fn adjacency_and_counts_agree() {
        let (host, uplink) = (CABLE, CABLE);
        let tree = Topology::FatTree { k: 4, hosts_per_edge: 2, host, uplink };
        let (degrees, cables) = degree_and_cables(&tree);
        assert_eq!(cables, Sizes::of(&tree).cables);
        assert_eq!(degrees.len() as u64, Sizes::of(&tree).nodes());
        assert!(degrees[..16].iter().all(|&d| d == 1));
        assert!(degrees[16..].iter().all(|&d| d == 4), "{degrees:?}");
        let fabric = Topology::LeafSpine {
            leaves: 3,
            hosts_per_leaf: 2,
            spines: 2,
            cables_per_spine: 1,
            cards: HostCards::ONE,
            host,
            uplink,
        };
        assert_eq!(degree_and_cables(&fabric).1, Sizes::of(&fabric).cables);
        let star = Topology::Star { hosts: 5, cards: 1, host };
        assert_eq!(degree_and_cables(&star).1, 5);
    }

    #[test]
    fn names_and_numbers_are_inverse() {
        let tree = Topology::FatTree { k: 4, hosts_per_edge: 1, host: CABLE, uplink: CABLE };
        let nodes = Nodes::new(&tree);
        for n in 0..nodes_of(&tree) as u32 {
            assert_eq!(nodes.number(&nodes.name(n)), Some(n));
        }
        for wrong in ["h8", "h00", "edge", "core4", "leaf0", "h-1", "x"] {
            assert_eq!(nodes.number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn racks_follow_the_edge_switch() {
        let (host, uplink) = (CABLE, CABLE);
        let star = Topology::Star { hosts: 3, cards: 1, host };
        assert_eq!(racks(&star), [0, 0, 0]);
        let tree = Topology::FatTree { k: 2, hosts_per_edge: 2, host, uplink };
        assert_eq!(racks(&tree), [0, 0, 1, 1]);
        let cables = vec![(0, 3, host), (2, 1, host), (2, 3, uplink)];
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        let graph = Topology::Graph {
            hosts: names(&["a", "b"]),
            switches: names(&["s", "t"]),
            cables,
            regular: None,
        };
        assert_eq!(racks(&graph), [1, 0]);
    }
}
