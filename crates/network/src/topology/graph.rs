//! Graph of a fabric: nodes by number and name, and the cables between them.

use super::description::{CableConfig, Homing, HostCards};
use super::regular::Regular;
use serde::{Deserialize, Serialize};

/// Cable between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// Number of the node at one end. If the cable is connected to a host, `a` is the number of the
    /// host.
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
    /// Whether each card of a host with several cards has its own address; if false, all cards
    /// share the address of the host.
    pub card_addresses: bool,
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

    /// Returns, for every host, the switch of its first card (counted from 0 among switches);
    /// `u32::MAX` without a cable.
    pub fn edge_of_host(&self) -> Vec<u32> {
        let mut edge = vec![u32::MAX; self.hosts as usize];
        for cable in self.cables.iter().rev().filter(|c| c.a < self.hosts) {
            edge[cable.a as usize] = cable.b.saturating_sub(self.hosts);
        }
        edge
    }

    /// Returns, for every host, the cables of its cards in their order; `None` if every host has
    /// one card.
    pub fn cables_of_cards(&self) -> Option<Vec<Vec<u32>>> {
        let of_hosts = || self.cables.iter().zip(0u32..).filter(|(c, _)| c.a < self.hosts);
        let mut has_one = vec![false; self.hosts as usize];
        let second = |c: &Cable| std::mem::replace(&mut has_one[c.a as usize], true);
        if !of_hosts().map(|(c, _)| c).any(second) {
            return None;
        }
        let mut cards = vec![Vec::new(); self.hosts as usize];
        of_hosts().for_each(|(c, number)| cards[c.a as usize].push(number));
        Some(cards)
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

/// Returns the cables of all cards, host by host. With [`Homing::Single`], the first `per_switch`
/// hosts are connected to the first switch, the next `per_switch` hosts to the second switch, and
/// so on. With [`Homing::Multi`], groups of switches replace switches, and card `i` of a host is
/// connected to switch `i` of its group.
pub(super) fn of_hosts(
    hosts: u32,
    per_switch: u32,
    cards: HostCards,
    config: CableConfig,
) -> Vec<Cable> {
    let tiers = ("host-up", "host-down");
    let each = |a: u32| {
        let first = hosts + a / per_switch * cards.switches();
        (0..cards.number).map(move |card| {
            let beyond = if cards.homing == Homing::Multi { card } else { 0 };
            Cable { a, b: first + beyond, config, tiers }
        })
    };
    (0..hosts).flat_map(each).collect()
}
