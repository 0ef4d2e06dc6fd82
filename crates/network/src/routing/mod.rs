//! Which port a switch sends a packet to.
//!
//! Tables hold, per switch and edge switch, the set of ports on shortest paths, so their size grows
//! with switches × racks and not with hosts. Among several ports the choice is ECMP by the packet's
//! five-tuple hash (mixed with a seed per switch, so that tiers choose independently), or in turn
//! per packet, or that of a [mechanism from outside](CustomRouting), or follows an explicit route. Cables that are known to be down are left out of the
//! tables; an explicit route over one of them gives way to the shortest paths.

mod custom;
mod explicit;
mod shortest;

pub use custom::{Choice, CustomRouting, CustomRoutingConfig, RoutingModel, SwitchPlace, View};
pub use explicit::{EXPLICIT_BIT, RouteError};
use serde::{Deserialize, Serialize};

use crate::config::RoutingConfig;
use crate::topology::Graph;
use eastwest_engine::random::mix;
use eastwest_types::HostId;
use explicit::ExplicitRoutes;
use std::slice::from_ref;

/// Where a host hangs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Attachment {
    /// Column of its edge switch in the table.
    column: u32,
    /// The link down to it.
    down: u32,
}

/// A set of equal ports.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Group {
    first: u32,
    count: u32,
    /// The next one in turn.
    turn: u32,
}

/// An entry of the table is a link, or a group where this bit is set, or one of the two below.
const GROUP_BIT: u32 = 1 << 31;
/// The host hangs on this switch.
const LOCAL: u32 = GROUP_BIT - 1;
/// No path; no link has this number.
pub const NO_ROUTE: u32 = u32::MAX;

/// The routes of a fabric.
#[derive(Serialize, Deserialize)]
pub struct Routing {
    attachments: Vec<Attachment>,
    columns: u32,
    /// By switch × column.
    table: Vec<u32>,
    groups: Vec<Group>,
    members: Vec<u32>,
    /// A seed per switch, mixed into hashes.
    salts: Vec<u32>,
    /// Whether each packet chooses anew: in turn, or as `custom` says where there is such.
    per_packet: bool,
    /// By switch.
    #[serde(skip)]
    custom: Vec<Box<dyn CustomRouting>>,
    explicit: Option<ExplicitRoutes>,
}

impl Routing {
    /// Computes the tables. Every host must have a cable and a path to every other: the scenario
    /// reader refuses others.
    pub fn build(graph: &Graph, config: &RoutingConfig, seed: u64) -> Result<Routing, RouteError> {
        let explicit = match config {
            RoutingConfig::Explicit(routes) => Some(ExplicitRoutes::build(graph, routes)?),
            _ => None,
        };
        let custom: Vec<Box<dyn CustomRouting>> = match config {
            RoutingConfig::Custom(c) => {
                let place = |switch| SwitchPlace { switch, seed };
                (0..graph.switches()).map(|switch| c.0.start(&place(switch))).collect()
            }
            _ => Vec::new(),
        };
        let mut routing = Routing {
            attachments: Vec::new(),
            columns: 0,
            table: Vec::new(),
            groups: Vec::new(),
            members: Vec::new(),
            salts: (0..graph.switches()).map(|s| mix(seed ^ mix(u64::from(s))) as u32).collect(),
            per_packet: *config == RoutingConfig::RoundRobin || !custom.is_empty(),
            custom,
            explicit,
        };
        routing.keep_to(graph, &|_| true);
        Ok(routing)
    }

    /// Computes the tables anew, over the cables that are `usable`.
    pub fn keep_to(&mut self, graph: &Graph, usable: &dyn Fn(usize) -> bool) {
        let tables = shortest::Tables::build(graph, usable);
        self.attachments = vec![Attachment { column: 0, down: NO_ROUTE }; graph.hosts as usize];
        for (i, cable) in graph.cables.iter().enumerate().filter(|(_, c)| c.a < graph.hosts) {
            self.attachments[cable.a as usize] = Attachment {
                column: tables.column_of[(cable.b - graph.hosts) as usize],
                down: if usable(i) { 2 * i as u32 + 1 } else { NO_ROUTE },
            };
        }
        self.columns = tables.columns;
        self.table = tables.entries;
        self.groups = tables.groups;
        self.members = tables.members;
        if let Some(explicit) = &mut self.explicit {
            explicit.keep_to(usable);
        }
    }

    /// The value for [`eastwest_types::Packet::hash`] of a connection: 15 bits of a seeded hash over both hosts and
    /// ports, or the number of an explicit route.
    pub fn flow_hash(&self, from: HostId, to: HostId, five_tuple: u64) -> u16 {
        if let Some(route) = self.explicit.as_ref().and_then(|e| e.find(from, to)) {
            return route;
        }
        (mix(five_tuple) >> 49) as u16
    }

    /// The links on which `switch` could send a packet with this hash to `dst` on; there must be one.
    pub fn links_from(&self, switch: u32, hash: u16, dst: HostId) -> &[u32] {
        if let Some(link) = self.explicit_link(switch, hash) {
            return from_ref(link);
        }
        let at = &self.attachments[dst.0 as usize];
        let entry = &self.table[(switch * self.columns + at.column) as usize];
        match *entry {
            LOCAL => from_ref(&at.down),
            group if group & GROUP_BIT != 0 => {
                let group = self.groups[(group & !GROUP_BIT) as usize];
                &self.members[group.first as usize..(group.first + group.count) as usize]
            }
            _ => from_ref(entry),
        }
    }

    /// Whether packets go to equal links in turn.
    pub fn in_turn(&self) -> bool {
        self.per_packet && self.custom.is_empty()
    }

    #[inline]
    fn explicit_link(&self, switch: u32, hash: u16) -> Option<&u32> {
        if hash & EXPLICIT_BIT == 0 {
            return None;
        }
        self.explicit.as_ref()?.next_link(switch, hash)
    }

    /// The link on which `switch` (counted from 0 among switches) sends a packet to `dst` on; `hash`
    /// is its [`eastwest_types::Packet::hash`]. [`NO_ROUTE`] where there is no way to it. A choice from
    /// outside gets a `view`.
    #[inline(always)]
    pub fn next_link<'f>(
        &mut self,
        switch: u32,
        dst: HostId,
        hash: u16,
        view: impl FnOnce() -> View<'f>,
    ) -> u32 {
        if let Some(link) = self.explicit_link(switch, hash) {
            return *link;
        }
        let at = self.attachments[dst.0 as usize];
        let entry = self.table[(switch * self.columns + at.column) as usize];
        if entry == LOCAL {
            return at.down;
        }
        if entry & GROUP_BIT == 0 {
            return entry;
        }
        if self.per_packet {
            return self.next_per_packet(switch, entry, dst, hash, view());
        }
        let Some(group) = self.groups.get((entry & !GROUP_BIT) as usize) else {
            return NO_ROUTE;
        };
        // murmur3's finaliser; one multiplication leaves the tiers' choices correlated
        let mut x = u32::from(hash) ^ self.salts[switch as usize];
        x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
        x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
        self.members[(group.first + (((x >> 16) * group.count) >> 16)) as usize]
    }

    /// The same where each packet chooses anew.
    #[inline(never)]
    fn next_per_packet(
        &mut self,
        switch: u32,
        entry: u32,
        dst: HostId,
        flow_hash: u16,
        view: View,
    ) -> u32 {
        let Some(group) = self.groups.get_mut((entry & !GROUP_BIT) as usize) else {
            return NO_ROUTE;
        };
        let members = &self.members[group.first as usize..][..group.count as usize];
        if let Some(custom) = self.custom.get_mut(switch as usize) {
            let View { now, packet, links, .. } = view;
            let choice = Choice { now, dst, flow_hash, packet, members, links };
            return members[custom.choose(&choice) % members.len()];
        }
        group.turn = if group.turn + 1 == group.count { 0 } else { group.turn + 1 };
        members[group.turn as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CableConfig, ExplicitRoute, Topology};
    use crate::pool::Stored;
    use eastwest_types::{Packet, Rate, Span, Time};
    use std::sync::Arc;

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    fn packet(dst: u32, hash: u16) -> Packet {
        Packet { hash, ip_len: 1500, payload: 1448, ..Packet::blank(HostId(dst)) }
    }

    /// The nodes a packet visits from `from`, up to 16.
    fn walk(graph: &Graph, routing: &mut Routing, from: u32, p: &Packet) -> Vec<u32> {
        let mut node = graph.cables.iter().find(|c| c.a == from).unwrap().b;
        let (mut seen, stored) = (vec![node], Stored::new(p));
        while node >= graph.hosts && seen.len() < 16 {
            let view = || View { now: Time::ZERO, packet: &stored, links: &[], came: 0 };
            let link = routing.next_link(node - graph.hosts, p.dst, p.hash, view);
            let cable = graph.cables[link as usize / 2];
            node = if link % 2 == 0 { cable.b } else { cable.a };
            seen.push(node);
        }
        seen
    }

    fn fat_tree() -> Graph {
        Graph::build(&Topology::FatTree { k: 4, hosts_per_edge: 2, host: CABLE, uplink: CABLE })
    }

    #[test]
    fn every_pair_is_reached_on_a_shortest_path() {
        let graph = fat_tree();
        for config in [RoutingConfig::Ecmp, RoutingConfig::RoundRobin] {
            let mut routing = Routing::build(&graph, &config, 1).unwrap();
            for from in 0..graph.hosts {
                for to in (0..graph.hosts).filter(|&t| t != from) {
                    let hash =
                        routing.flow_hash(HostId(from), HostId(to), u64::from(from * 99 + to));
                    let path = walk(&graph, &mut routing, from, &packet(to, hash));
                    assert_eq!(*path.last().unwrap(), to);
                    let hops = if from / 2 == to / 2 {
                        2
                    } else if from / 4 == to / 4 {
                        4
                    } else {
                        6
                    };
                    assert_eq!(path.len(), hops, "{from} to {to}: {path:?}");
                }
            }
        }
    }

    #[test]
    fn ecmp_spreads_flows_over_all_cores_and_keeps_each_flow_on_one() {
        let graph = fat_tree();
        let mut routing = Routing::build(&graph, &RoutingConfig::Ecmp, 1).unwrap();
        let mut used = std::collections::BTreeMap::new();
        for flow in 0..4_000u64 {
            let hash = routing.flow_hash(HostId(0), HostId(15), flow);
            let core = walk(&graph, &mut routing, 0, &packet(15, hash))[2];
            assert_eq!(core, walk(&graph, &mut routing, 0, &packet(15, hash))[2]);
            *used.entry(core).or_insert(0) += 1;
        }
        assert_eq!(used.len(), 4);
        assert!(used.values().all(|&n| (850..1150).contains(&n)), "{used:?}");
    }

    /// Every packet of a switch takes the path after the one before.
    #[derive(Debug)]
    struct Next(usize);

    impl CustomRouting for Next {
        fn choose(&mut self, choice: &Choice) -> usize {
            assert_eq!(choice.paths(), 2);
            self.0 += 1;
            self.0
        }
    }

    impl RoutingModel for Next {
        fn start(&self, _: &SwitchPlace) -> Box<dyn CustomRouting> {
            Box::new(Next(self.0))
        }
    }

    #[test]
    fn a_choice_from_outside_is_asked_where_there_are_several_paths_by_each_switch_its_own() {
        let graph = fat_tree();
        let config = RoutingConfig::Custom(CustomRoutingConfig(Arc::new(Next(0))));
        let mut custom = Routing::build(&graph, &config, 1).unwrap();
        let mut in_turn = Routing::build(&graph, &RoutingConfig::RoundRobin, 1).unwrap();
        assert!(in_turn.in_turn() && !custom.in_turn());
        for from in [0, 3, 0, 9, 0, 4, 12] {
            let packet = packet(15, 77);
            let path = walk(&graph, &mut custom, from, &packet);
            assert_eq!(path, walk(&graph, &mut in_turn, from, &packet), "from {from}");
        }
    }

    #[test]
    fn explicit_routes_are_followed_and_others_use_ecmp() {
        let graph = fat_tree();
        let free = walk(
            &graph,
            &mut Routing::build(&graph, &RoutingConfig::Ecmp, 1).unwrap(),
            0,
            &packet(15, 0),
        );
        for core in 0..4u32 {
            let agg = core / 2;
            let via = vec![16, 24 + agg, 32 + core, 24 + 6 + agg, 16 + 7];
            let config =
                RoutingConfig::Explicit(vec![ExplicitRoute { from: 0, to: 15, via: via.clone() }]);
            let mut routing = Routing::build(&graph, &config, 1).unwrap();
            let hash = routing.flow_hash(HostId(0), HostId(15), 7);
            let path = walk(&graph, &mut routing, 0, &packet(15, hash));
            assert_eq!(path, [via, vec![15]].concat());
            assert_eq!(walk(&graph, &mut routing, 0, &packet(15, 0)), free);
        }
        let gap =
            RoutingConfig::Explicit(vec![ExplicitRoute { from: 0, to: 15, via: vec![16, 32] }]);
        assert!(Routing::build(&graph, &gap, 1).is_err());
    }
}
