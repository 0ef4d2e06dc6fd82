//! Network cards of hosts with several cards. Each card has its own cable, queue and rate.
//!
//! A host can use its cards in three ways, named after modes of the Linux bonding driver
//! (Documentation/networking/bonding.rst):
//!
//! - [`BondMode::Lacp`], link aggregation (IEEE 802.1AX, formerly 802.3ad): the cards share one
//!   address. The host chooses the card of a packet by a hash of its connection, so that a
//!   connection stays on one card. Switches choose among the cables to the host as among equal
//!   paths. If the cables lead to several switches, the switches act as one switch (MLAG, or EVPN
//!   multihoming, RFC 7432 section 8.4: all these switches announce the host, and the fabric
//!   spreads packets over them).
//! - [`BondMode::RoundRobin`]: one address for all cards, as above, but the host sends packets over
//!   its cards in cyclic order. Packets of a connection may then overtake each other. Switches
//!   choose cables as above.
//! - [`BondMode::Off`]: each card has its own address. A connection is bound to one card of each
//!   host. Rail-optimised fabrics use this mode: an MPI rank uses the card with its number on the
//!   host; other connections use cards with equal numbers at both hosts, chosen by a hash.
//!
//! A host does not use a card whose cable it knows to be down, or whose switch has no route to the
//! receiver (real switches signal a missing route to hosts by uplink tracking, EVPN by core
//! isolation). Hosts learn of a failure at the same time as switches. As in Linux, the connections
//! of all cards are then distributed again over the usable cards. With [`BondMode::Off`], a
//! connection cannot change to another card.
//!
//! Differences from real systems: the hash is a seeded hash of this simulator, not the XOR of
//! Linux; LACP frames are not simulated; the switches of one host have no cable between them (peer
//! link), and a packet at a switch whose cable to the host is down is routed through the fabric to
//! another switch of the host.

use crate::link::Link;
use crate::routing::Routing;
use crate::topology::Graph;
use eastwest_engine::random::mix;
use eastwest_settings::Section;
use eastwest_types::HostId;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Largest number of cards of a host. LACP aggregates of switches and hosts have at most 8 or 16
/// active members.
pub const MOST_CARDS: u32 = 16;

/// Use of the network cards of a host with several cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BondMode {
    /// All cards have one address; a hash chooses the card of a connection.
    #[default]
    Lacp,
    /// All cards have one address; packets are sent over the cards in cyclic order.
    RoundRobin,
    /// Each card has its own address; a connection is bound to one card of each host.
    Off,
}

/// Fields of a packet from which a host computes the hash that chooses the card
/// ([`BondMode::Lacp`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum XmitHashPolicy {
    /// Addresses and ports: the hash of each connection chooses its card.
    #[default]
    Layer34,
    /// Addresses: all connections of two hosts use one card.
    Layer23,
}

/// Settings of the network cards of hosts with several cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CardsConfig {
    /// Use of the cards: bond with hash, bond with round robin, or no bond.
    pub bond_mode: BondMode,
    /// Fields of the hash that chooses the card with [`BondMode::Lacp`].
    pub xmit_hash_policy: XmitHashPolicy,
}

impl CardsConfig {
    /// Reads the settings from `[fabric]`. `several` is whether hosts have several cards; `None` if
    /// this is not known.
    pub fn read(s: &mut Section, several: Option<bool>) -> CardsConfig {
        let bond_mode = s.choice(
            "bond_mode",
            "With several cards for each host: how a host uses them (names of the Linux bonding driver).",
            Some("802.3ad"),
            &[
                (
                    "802.3ad",
                    BondMode::Lacp,
                    "link aggregation (IEEE 802.1AX): one address for all cards; a hash of the connection \
                     chooses the card",
                ),
                (
                    "balance-rr",
                    BondMode::RoundRobin,
                    "one address for all cards; the host sends packets over its cards in turn, so that \
                     packets of a connection can overtake each other",
                ),
                (
                    "off",
                    BondMode::Off,
                    "no bond: an address for each card, to which connections are bound; the use of rails",
                ),
            ],
        );
        let xmit_hash_policy = s.choice(
            "xmit_hash_policy",
            "With bond_mode = \"802.3ad\": fields of the hash by which a host chooses the card (switches hash addresses \
             and ports, too; Linux has layer2 by default, which uses one card for all packets to one router).",
            Some("layer3+4"),
            &[
                (
                    "layer3+4",
                    XmitHashPolicy::Layer34,
                    "addresses and ports: the hash of each connection chooses its card",
                ),
                (
                    "layer2+3",
                    XmitHashPolicy::Layer23,
                    "addresses: all connections of two hosts use one card",
                ),
            ],
        );
        if several == Some(true) && bond_mode != BondMode::Lacp {
            s.demand(!s.has("xmit_hash_policy"), &["xmit_hash_policy"], || {
                "has an effect only with bond_mode = \"802.3ad\"".to_owned()
            });
        }
        if several != Some(true) || bond_mode != BondMode::Lacp {
            s.resolve_without("xmit_hash_policy");
        }
        if several != Some(true) {
            s.resolve_without("bond_mode");
        }
        if several == Some(false) {
            for name in ["bond_mode", "xmit_hash_policy"] {
                s.demand(!s.has(name), &[name], || {
                    "has an effect only if hosts have several cards".to_owned()
                });
            }
        }
        CardsConfig { bond_mode, xmit_hash_policy }
    }
}

/// Network cards of all hosts, in a fabric in which at least one host has several cards.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cards {
    config: CardsConfig,
    /// By host, the number of its first card among the cards of all hosts; a last element has the
    /// number of all cards.
    first: Vec<u32>,
    /// By card, the link from the host to the switch.
    pub(crate) links: Vec<u32>,
    /// By card, whether its cable is up as far as hosts know.
    up: Vec<bool>,
    seed: u64,
    /// By host, the number of packets sent in cyclic order over its cards, modulo 2³²; only with
    /// [`BondMode::RoundRobin`].
    turns: Vec<u32>,
    /// By host, the link of its last packet; only with [`BondMode::RoundRobin`].
    last: Vec<u32>,
    /// Largest number of cards of a host in the fabric.
    radix: u32,
}

impl Cards {
    /// Returns the cards of the hosts of a graph; `None` if every host has one card.
    pub fn new(graph: &Graph, config: CardsConfig, seed: u64) -> Option<Cards> {
        let cables = graph.cables_of_cards()?;
        let mut cards = Cards {
            config,
            first: vec![0],
            links: Vec::new(),
            up: Vec::new(),
            seed,
            turns: Vec::new(),
            last: Vec::new(),
            radix: 1,
        };
        for of_host in &cables {
            cards.links.extend(of_host.iter().map(|cable| 2 * cable));
            cards.radix = cards.radix.max(of_host.len() as u32);
            cards.first.push(cards.links.len() as u32);
        }
        cards.up = vec![true; cards.links.len()];
        if config.bond_mode == BondMode::RoundRobin {
            cards.turns = vec![0; cables.len()];
            cards.last =
                cables.iter().map(|of_host| of_host.first().map_or(0, |c| 2 * c)).collect();
        }
        Some(cards)
    }

    /// Returns the numbers of the cards of a host among the cards of all hosts.
    pub(crate) fn of(&self, host: HostId) -> Range<usize> {
        let host = host.0 as usize;
        self.first[host] as usize..self.first[host + 1] as usize
    }

    /// Returns the links from a host to its switches, card by card.
    pub fn links_of(&self, host: HostId) -> &[u32] {
        &self.links[self.of(host)]
    }

    /// Returns the number (from 0 on the host `host`) of the card whose cable has the link `link`;
    /// `None` if the host has one card, or no card with this link.
    pub fn number_of(&self, host: HostId, link: u32) -> Option<u32> {
        let place = self.links_of(host).iter().position(|&up| up / 2 == link / 2)?;
        (self.links_of(host).len() > 1).then_some(place as u32)
    }

    /// Returns how hosts use their cards.
    pub fn mode(&self) -> BondMode {
        self.config.bond_mode
    }

    /// Records which cables are usable. `usable` returns whether the cable with a given number is
    /// usable.
    pub fn keep_to(&mut self, usable: &dyn Fn(usize) -> bool) {
        for (up, &link) in self.up.iter_mut().zip(&self.links) {
            *up = usable(link as usize / 2);
        }
    }

    /// Returns a flow hash of 15 bits that also contains the card numbers `chosen` of sender and
    /// receiver, modulo the number of cards of each host; returns `hash` unchanged with a bond (one
    /// address for all cards).
    pub fn bind(&self, hash: u16, ends: (HostId, HostId), chosen: (u32, u32)) -> u16 {
        if self.config.bond_mode != BondMode::Off {
            return hash;
        }
        let number = |host: HostId, chosen: u32| chosen % self.of(host).len().max(1) as u32;
        let (from, to) = (number(ends.0, chosen.0), number(ends.1, chosen.1));
        let pairs = self.radix * self.radix;
        let values = (1 << 15) / pairs;
        (u32::from(hash) % values * pairs + from * self.radix + to) as u16
    }

    /// Returns the card numbers of sender and receiver for a connection with the flow hash `hash`,
    /// if the scenario chooses no cards: two equal random numbers. [`Cards::bind`] reduces each
    /// number modulo the number of cards of the host.
    pub fn draw(&self, hash: u16) -> (u32, u32) {
        let card = ((u64::from(mix(u64::from(hash) ^ self.seed) as u32) * u64::from(self.radix))
            >> 32) as u32;
        (card, card)
    }

    /// Returns the destination address of a packet with the flow hash `hash` to the host `to`: the
    /// address of one of its cards with [`BondMode::Off`], otherwise the address of the host. With
    /// [`BondMode::Off`] the host must have the card whose number is in `hash`.
    pub fn address(&self, to: HostId, hash: u16) -> HostId {
        debug_assert!(
            self.config.bond_mode != BondMode::Off
                || self.of(to).len() as u32 > u32::from(hash) % self.radix
        );
        if self.config.bond_mode != BondMode::Off {
            return to;
        }
        let hosts = self.first.len() as u32 - 1;
        HostId(hosts + self.first[to.0 as usize] + u32::from(hash) % self.radix)
    }

    /// Returns the host to which the address `address` belongs.
    pub fn host_of(&self, address: HostId) -> HostId {
        let hosts = self.first.len() as u32 - 1;
        match address.0.checked_sub(hosts) {
            None => address,
            Some(card) => HostId(self.first.partition_point(|&first| first <= card) as u32 - 1),
        }
    }

    /// Returns the link on which a packet with the flow hash `hash` leaves its host; with
    /// [`BondMode::RoundRobin`], the link of the last packet that the host has sent.
    pub fn link(
        &self,
        routing: &Routing,
        links: &[Link],
        ends: (HostId, HostId),
        hash: u16,
    ) -> u32 {
        let of_host = self.of(ends.0);
        let up = self.links_of(ends.0);
        match self.config.bond_mode {
            _ if up.len() == 1 => up[0],
            BondMode::Off => up[(u32::from(hash) / self.radix % self.radix) as usize % up.len()],
            BondMode::RoundRobin => self.last[ends.0.0 as usize],
            BondMode::Lacp => {
                let fields = match self.config.xmit_hash_policy {
                    XmitHashPolicy::Layer34 => u64::from(hash),
                    XmitHashPolicy::Layer23 => u64::from(ends.1.0),
                };
                let random = mix(mix(self.seed ^ u64::from(ends.0.0)) ^ fields);
                self.nth(routing, links, of_host, ends, |usable| {
                    ((u64::from(random as u32) * u64::from(usable)) >> 32) as u32
                })
            }
        }
    }

    /// Returns the link on which a host sends its next packet, and counts the packet.
    pub fn next(
        &mut self,
        routing: &Routing,
        links: &[Link],
        ends: (HostId, HostId),
        hash: u16,
    ) -> u32 {
        let host = ends.0.0 as usize;
        if self.config.bond_mode != BondMode::RoundRobin || self.of(ends.0).len() == 1 {
            return self.link(routing, links, ends, hash);
        }
        let turn = self.turns[host];
        let link = self.nth(routing, links, self.of(ends.0), ends, |usable| turn % usable);
        self.turns[host] = turn.wrapping_add(1);
        self.last[host] = link;
        link
    }

    /// Returns the link of a usable card. `place` returns the position of the card among the usable
    /// cards, for a given number of usable cards. A card is usable if its cable is up and its
    /// switch has a route to the receiver; if no card is usable, all cards count as usable.
    fn nth(
        &self,
        routing: &Routing,
        links: &[Link],
        of_host: Range<usize>,
        (_, to): (HostId, HostId),
        place: impl Fn(u32) -> u32,
    ) -> u32 {
        let hosts = self.first.len() as u32 - 1;
        let is_used = |&card: &usize| {
            let switch = links[self.links[card] as usize].to - hosts;
            self.up[card] && routing.reaches(switch, to)
        };
        let mut used = 0u32;
        let mut places = [0usize; MOST_CARDS as usize];
        for card in of_host.clone().filter(is_used).take(places.len()) {
            places[used as usize] = card;
            used += 1;
        }
        match used {
            0 => self.links[of_host.start + place(of_host.len() as u32) as usize],
            _ => self.links[places[place(used) as usize]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{CableConfig, Homing, HostCards, Topology};
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::ZERO };

    fn cards(number: u32, bond_mode: BondMode) -> (Graph, Cards) {
        let graph = Graph::build(&Topology::LeafSpine {
            leaves: number,
            hosts_per_leaf: 4,
            spines: 2,
            cables_per_spine: 1,
            cards: HostCards { number, homing: Homing::Multi },
            host: CABLE,
            uplink: CABLE,
        });
        let config = CardsConfig { bond_mode, ..CardsConfig::default() };
        let cards = Cards::new(&graph, config, 7).expect("several cards");
        (graph, cards)
    }

    #[test]
    fn hashes_hold_the_cards_of_both_ends() {
        let (_, cards) = cards(3, BondMode::Off);
        let ends = (HostId(1), HostId(2));
        for (hash, chosen) in [(0, (0, 0)), (32_767, (2, 1)), (12_345, (1, 2)), (9, (7, 8))] {
            let bound = cards.bind(hash, ends, chosen);
            assert!(bound < 1 << 15);
            assert_eq!(u32::from(bound) / 3 % 3, chosen.0 % 3);
            let address = cards.address(ends.1, bound);
            assert_eq!(address, HostId(4 + 2 * 3 + chosen.1 % 3));
            assert_eq!(cards.host_of(address), ends.1);
        }
        assert_eq!(cards.host_of(HostId(3)), HostId(3));
    }

    #[test]
    fn a_bond_has_one_address() {
        let (_, cards) = cards(2, BondMode::Lacp);
        let ends = (HostId(0), HostId(3));
        assert_eq!(cards.bind(77, ends, (1, 0)), 77);
        assert_eq!(cards.address(ends.1, 77), ends.1);
    }

    #[test]
    fn cards_know_their_cables() {
        let (graph, cards) = cards(2, BondMode::Lacp);
        for host in (0..graph.hosts).map(HostId) {
            for (number, &link) in (0..).zip(cards.links_of(host)) {
                let cable = graph.cables[link as usize / 2];
                assert_eq!((cable.a, cable.b), (host.0, graph.hosts + number));
                assert_eq!(cards.number_of(host, link ^ 1), Some(number));
            }
        }
        let one = Topology::Star { hosts: 2, cards: 1, host: CABLE };
        assert!(Cards::new(&Graph::build(&one), CardsConfig::default(), 7).is_none());
    }
}
