//! Hosts with several cards in a fabric: the card of a packet, names of ports, ideal times.

use super::Fabric;
use crate::cards::BondMode;
use crate::link::Link;
use crate::pace::{Pace, Train};
use crate::packet_handle::PacketHandle;
use eastwest_types::{HostId, Rate, Span, Time};
use std::collections::BTreeMap;

impl Fabric {
    /// Chooses the card from which a host sends a packet, and returns the link of this card. If
    /// cards have addresses, the packet is also addressed to a card of the receiver. In a partitioned
    /// fabric, [observes](Fabric::observe_sent) the packet.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_card(&mut self, from: HostId, handle: &mut PacketHandle) -> u32 {
        let Some(cards) = &mut self.cards else {
            self.observe_sent(*handle);
            return self.up[from.0 as usize];
        };
        let (to, hash) = (handle.dst(), handle.hash());
        *handle = handle.to_address(cards.address(to, hash));
        cards.next(&self.routing, &self.links, (from, to), hash)
    }

    /// Returns the link on which packets of a flow leave their host. If a host sends over its cards
    /// by round robin, this is the link of the last packet of the host.
    #[inline]
    pub fn up_link(&self, from: HostId, to: HostId, hash: u16) -> u32 {
        match &self.cards {
            None => self.up[from.0 as usize],
            Some(cards) => cards.link(&self.routing, &self.links, (from, to), hash),
        }
    }

    /// Returns the number of the card (from 0 on its host) from which packets of a flow are sent; 0
    /// if hosts have one card.
    pub fn card_of(&self, from: HostId, to: HostId, hash: u16) -> u32 {
        let Some(cards) = &self.cards else { return 0 };
        cards.number_of(from, self.up_link(from, to, hash)).unwrap_or(0)
    }

    /// Returns the number of network cards of all hosts.
    pub fn number_of_cards(&self) -> u32 {
        self.cards.as_ref().map_or(self.up.len(), |cards| cards.links.len()) as u32
    }

    /// Returns the number of the card, among the cards of all hosts, from which packets of a flow
    /// are sent.
    pub fn card_among_all(&self, from: HostId, to: HostId, hash: u16) -> u32 {
        let first = self.cards.as_ref().map_or(from.0, |cards| cards.of(from).start as u32);
        first + self.card_of(from, to, hash)
    }

    /// Returns the card numbers of sender and receiver for a connection with the flow hash `hash`,
    /// if the scenario chooses no cards; (0, 0) if hosts have one card.
    pub fn draw_cards(&self, hash: u16) -> (u32, u32) {
        self.cards.as_ref().map_or((0, 0), |cards| cards.draw(hash))
    }

    /// Returns a flow hash that also contains the cards `chosen` of sender and receiver, see
    /// [`Cards::bind`](crate::cards::Cards::bind).
    pub fn bind_to_cards(&self, hash: u16, ends: (HostId, HostId), chosen: (u32, u32)) -> u16 {
        self.cards.as_ref().map_or(hash, |cards| cards.bind(hash, ends, chosen))
    }

    /// Returns the host to which the destination address of a packet belongs.
    #[inline]
    pub fn host_of(&self, address: HostId) -> HostId {
        match &self.cards {
            Some(cards) if address.0 >= self.graph.hosts => cards.host_of(address),
            _ => address,
        }
    }

    /// Returns the name of the node at one end of a link. The name of a host with several cards
    /// includes the card: `h3:eth1`.
    fn end_name(&self, node: u32, link: u32) -> String {
        let name = &self.graph.names[node as usize];
        let of_host = self.cards.as_ref().filter(|_| node < self.graph.hosts);
        match of_host.and_then(|cards| cards.number_of(HostId(node), link)) {
            Some(card) => format!("{name}:eth{card}"),
            None => name.clone(),
        }
    }

    /// Returns the name of the port that sends into a link, such as `leaf0->h3`; `leaf0->h3:eth1`
    /// if the host has several cards.
    pub fn port_name(&self, link: usize) -> String {
        let (l, number) = (&self.links[link], link as u32);
        format!("{}->{}", self.end_name(l.from, number), self.end_name(l.to, number))
    }

    /// Returns the result of [`Fabric::ideal_time`] for hosts with several cards: a lower bound
    /// over all cards of both hosts.
    #[cold]
    #[inline(never)]
    pub(super) fn ideal_time_of_cards(&self, from: HostId, to: HostId, train: &Train) -> Span {
        let Some(cards) = &self.cards else { return Span::ZERO };
        let routing = self.faults.whole.as_ref().unwrap_or(&self.routing);
        let ups = cards.links_of(from);
        let in_turn = cards.mode() == BondMode::RoundRobin && ups.len() > 1;
        let addresses: Vec<HostId> = match cards.mode() {
            BondMode::Off => {
                (0..cards.links_of(to).len() as u16).map(|card| cards.address(to, card)).collect()
            }
            BondMode::Lacp | BondMode::RoundRobin => vec![to],
        };
        let mut best: Option<Pace> = None;
        for address in addresses {
            let mut at: BTreeMap<u32, Pace> = BTreeMap::new();
            for &up in ups {
                let link = &self.links[up as usize];
                let pace = match in_turn {
                    true => Pace::default().dealt().over_each(link, train, ups.len() as u64),
                    false => Pace::default().over(link, train, false),
                };
                at.entry(link.to).and_modify(|p| *p = p.or(pace)).or_insert(pace);
            }
            // Paths from different cards may have different numbers of hops.
            for _ in 0..self.graph.names.len() {
                let mut next: BTreeMap<u32, Pace> = BTreeMap::new();
                for (node, mut pace) in at {
                    let links = routing.links_from(node - self.graph.hosts, 0, address);
                    if links.len() > 1 && routing.deals() {
                        pace = pace.dealt();
                    }
                    for &link in links {
                        let Some(l) = self.links.get(link as usize) else { continue };
                        if l.to != to.0 {
                            let pace = pace.over(l, train, false);
                            next.entry(l.to).and_modify(|p| *p = p.or(pace)).or_insert(pace);
                            continue;
                        }
                        // Packets that were spread over paths or cards before arrive on all cards
                        // of the receiver.
                        let pace = match pace.is_dealt() {
                            true => pace.over_each(l, train, cards.links_of(to).len() as u64),
                            false => pace.over(l, train, true),
                        };
                        best = Some(best.map_or(pace, |other| other.or(pace)));
                    }
                }
                if next.is_empty() {
                    break;
                }
                at = next;
            }
        }
        best.map_or(Span::ZERO, Pace::arrival)
    }

    /// Returns the time at which all packets with DSCP `dscp` on the card of a flow will have left
    /// it, unless later packets overtake them or a fault changes the link.
    #[inline]
    pub fn leaves_at(&self, (from, to): (HostId, HostId), hash: u16, dscp: u8) -> Time {
        self.links[self.up_link(from, to, hash) as usize].clear_at(dscp)
    }

    /// Returns the rate of the first card of a host.
    pub fn host_rate(&self, host: HostId) -> Rate {
        self.links[self.up[host.0 as usize] as usize].cable.rate
    }

    /// Returns the time at which the port of a flow's card accepts the next packet, see
    /// [`Link::takes_more_at`].
    pub fn card_takes_more_at(
        &mut self,
        now: Time,
        ((from, to), hash): ((HostId, HostId), u16),
        dscp: u8,
        packet: (u32, bool),
    ) -> Time {
        let link = self.up_link(from, to, hash);
        self.links[link as usize].takes_more_at(now, dscp, packet, &mut self.pool)
    }

    /// Returns the port of the card on which packets of a flow leave their host.
    pub fn card(&self, (from, to): (HostId, HostId), hash: u16) -> &Link {
        &self.links[self.up_link(from, to, hash) as usize]
    }
}
