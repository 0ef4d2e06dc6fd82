//! Graph of a fabric: nodes by number and name, and the cables between them.

use super::description::CableConfig;
use super::regular::Regular;
use serde::{Deserialize, Serialize};

/// Cable between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// Number of the node at one end. If the cable is connected to a host, this is the host.
    pub a: u32,
    /// Number of the node at the other end.
    pub b: u32,
    /// Rate and delay of both directions.
    pub config: CableConfig,
    /// Names of the tiers of the two directions (a → b, b → a) in result tables.
    #[serde(with = "eastwest_types::name")]
    pub tiers: (&'static str, &'static str),
}

/// Graph of a fabric. Nodes are numbered with hosts first, then switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Names of all nodes, by node number.
    pub names: Vec<String>,
    /// Number of hosts.
    pub hosts: u32,
    /// All cables. Link `2i` is cable `i` in the direction from `a` to `b`, link `2i + 1` the
    /// opposite direction.
    pub cables: Vec<Cable>,
    /// Rule by which the switches are connected; `None` for an irregular graph.
    pub regular: Option<Regular>,
}

/// Converts a number of nodes to 32 bits.
///
/// # Panics
///
/// Panics if the number does not fit: the scenario reader limits fabrics to far fewer nodes.
pub(super) fn number(nodes: impl TryInto<u32>) -> u32 {
    nodes.try_into().unwrap_or_else(|_| panic!("a fabric has fewer than 2^32 nodes"))
}

impl Graph {
    /// Returns the number of switches.
    pub fn switches(&self) -> u32 {
        number(self.names.len()) - self.hosts
    }

    /// Returns the switch of every host (counted from 0 among switches); `u32::MAX` if the host has
    /// no cable.
    pub fn edge_of_host(&self) -> Vec<u32> {
        let mut edge = vec![u32::MAX; self.hosts as usize];
        for cable in self.cables.iter().filter(|c| c.a < self.hosts) {
            edge[cable.a as usize] = cable.b.saturating_sub(self.hosts);
        }
        edge
    }
}

/// Returns the names of nodes, such as `h0`, `h1`, tier by tier. `tiers` has the prefix of the
/// names and the number of nodes of each tier.
pub(super) fn names(tiers: &[(&str, u32)]) -> Vec<String> {
    let of_tier = |&(tier, nodes): &(&str, u32)| {
        let tier = tier.to_owned();
        (0..nodes).map(move |i| format!("{tier}{i}"))
    };
    tiers.iter().flat_map(of_tier).collect()
}

/// Returns the cables of hosts: the first `per_switch` hosts are connected to the first switch, the
/// next ones to the second switch, and so on.
pub(super) fn of_hosts(hosts: u32, per_switch: u32, config: CableConfig) -> Vec<Cable> {
    let tiers = ("host-up", "host-down");
    (0..hosts).map(|a| Cable { a, b: hosts + a / per_switch, config, tiers }).collect()
}
