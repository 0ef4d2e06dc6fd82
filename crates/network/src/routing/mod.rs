//! Routing: decides through which port a switch sends a packet.
//!
//! A [`table`] has, for each pair of switch and edge switch, the set of ports on shortest paths. If
//! a set has several ports, a policy chooses one. Each policy is one file with its settings, and
//! one line in the list of [`BUILT_IN`] policies. The choice of [ECMP](ecmp) is not in its file:
//! [`Routing::next_link`] chooses by the hash of the five-tuple of the packet, mixed with a seed of
//! the switch, so that the choices of different tiers are independent. A port with a larger weight
//! occurs several times in its set. Cables that switches know to be down are left out of the table;
//! packets of an explicit route over a cable that is down use shortest paths instead.

mod adaptive;
mod changes;
mod chooser;
mod custom;
mod directions;
mod ecmp;
mod entry;
mod equal_paths;
mod explicit;
mod flowlet;
mod modulo;
mod neighbours;
mod query;
mod round_robin;
mod sets;
mod shortest;
mod spray;
mod table;

pub use adaptive::{AdaptiveConfig, AdaptiveCounts, Persistence};
pub use custom::{Choice, CustomRouting, CustomRoutingConfig, ReadRouting, RoutingModel, Transit};
pub use ecmp::Ecmp;
pub use entry::{ABSORBED, NO_ROUTE};
pub use equal_paths::EqualPaths;
pub use explicit::{EXPLICIT_BIT, ExplicitConfig, ExplicitRoute, MOST_ROUTES, RouteError};
pub use flowlet::FlowletConfig;
pub use modulo::Modulo;
pub use query::{SwitchPlace, View};
pub use round_robin::RoundRobin;
pub use spray::SprayConfig;
pub use table::bytes;

use crate::dcb::cnm::{Cnm, NOTE_HASH};
use crate::topology::{Graph, reverse};
use adaptive::Snooped;
use chooser::{BuiltIn, Chooser as _, RoutingSettings};
use eastwest_engine::random::mix;
use eastwest_settings::{Entry, Section};
use eastwest_types::{HostId, Time};
use entry::{GROUP_BIT, LOCAL};
use explicit::ExplicitRoutes;
use query::Query;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::slice::from_ref;
use table::{Table, columns};

/// Name, explanation and keys of a built-in policy that chooses among equal paths.
pub struct Named {
    /// Name of the policy in scenarios, such as `flowlet` in `routing = "flowlet"`.
    pub name: &'static str,
    /// One-line explanation of the policy.
    pub doc: &'static str,
    /// Keys of the table `[fabric]` that have an effect only with this policy.
    keys: &'static [&'static str],
    read: fn(&mut Section) -> RoutingConfig,
}

/// Defines the enums of settings and choosers and the list of built-in policies, and forwards each
/// call to the selected policy. `$d` stands for the dollar sign in the macros that this macro
/// defines.
macro_rules! family {
    ($d:tt $($name:ident($settings:ty)),* $(,)?) => {
        /// Settings of the policy by which switches choose among equal paths.
        #[derive(Clone, Debug, PartialEq)]
        pub enum RoutingConfig {
            $(#[doc = concat!("See [`", stringify!($settings), "`].")] $name($settings),)*
            /// A policy of the user, from another crate or a Python file.
            Custom(CustomRoutingConfig),
        }

        /// Chooser of the selected policy, with its state for all switches.
        #[derive(Serialize, Deserialize)]
        enum Chooser {
            $($name(<$settings as RoutingSettings>::Chooser),)*
            /// Chooser of a policy from another crate, which checkpoints do not support.
            #[serde(skip)]
            Custom(custom::Custom),
        }

        /// Built-in policies that choose among equal paths.
        pub const BUILT_IN: &[Named] = &[$(Named {
            name: <$settings>::NAME,
            doc: <$settings>::DOC,
            keys: <$settings>::KEYS,
            read: |s| RoutingConfig::$name(<$settings>::read(s)),
        }),*];

        impl RoutingConfig {
            fn start(&self, switches: u32, seed: u64) -> Chooser {
                match self {
                    $(RoutingConfig::$name(c) => Chooser::$name(c.start(switches, seed)),)*
                    RoutingConfig::Custom(c) => Chooser::Custom(c.start(switches, seed)),
                }
            }
        }

        /// Forwards a call to the settings or the chooser of the selected policy.
        macro_rules! member {
            ($d family:ident, $d this:ident, $d member:ident => $d call:expr) => {
                match $d this {
                    $($d family::$name($d member) => $d call,)*
                    $d family::Custom($d member) => $d call,
                }
            };
        }
    };
}

family! {
    $
    Ecmp(Ecmp),
    RoundRobin(RoundRobin),
    Explicit(ExplicitConfig),
    Modulo(Modulo),
    Spray(SprayConfig),
    Flowlet(FlowletConfig),
    Adaptive(AdaptiveConfig),
}

impl RoutingConfig {
    /// Whether all packets of a flow use one path, which can be computed before the first packet.
    pub fn is_per_flow(&self) -> bool {
        member!(RoutingConfig, self, c => c.is_per_flow())
    }

    /// Whether the policy supports weights of ports.
    pub fn weighs(&self) -> bool {
        member!(RoutingConfig, self, c => c.weighs())
    }

    /// Whether the policy reads queue lengths. Ports must then know their queue length at every
    /// time.
    pub(crate) fn looks_at_queues(&self) -> bool {
        member!(RoutingConfig, self, c => c.looks_at_queues())
    }
}

impl chooser::Chooser for Chooser {
    fn goes_by_hash(&self) -> bool {
        member!(Chooser, self, c => c.goes_by_hash())
    }

    fn deals(&self) -> bool {
        member!(Chooser, self, c => c.deals())
    }

    fn choose<'f>(
        &mut self,
        query: &Query,
        turn: &mut u32,
        view: impl FnOnce() -> View<'f>,
    ) -> usize {
        member!(Chooser, self, c => c.choose(query, turn, view))
    }

    fn possible<'m>(&self, dst: HostId, members: &'m [u32]) -> &'m [u32] {
        member!(Chooser, self, c => c.possible(dst, members))
    }
}

/// Reads from the table `[fabric]` the policy that chooses among equal paths. `others` are policies
/// from other crates.
pub fn read(s: &mut Section, others: &[Entry<ReadRouting>]) -> RoutingConfig {
    let built_in = BUILT_IN.iter().map(|named| (named.name, Ok(named), named.doc));
    let named = others.iter().map(|entry| (entry.name, Err(entry), entry.doc));
    let choices: Vec<_> = built_in.chain(named).collect();
    let doc = "How switches choose among equal paths.";
    let chosen = s.open_choice("routing", doc, Some(Ecmp::NAME), &choices);
    let own = |s: &mut Section, entry: &Entry<ReadRouting>| {
        s.table("routing_parameters", entry.doc, |p| {
            p.belongs_to(entry.name);
            (entry.read)(p)
        })
    };
    if s.describing() {
        others.iter().for_each(|entry| drop(own(s, entry)));
    }
    let mut routing =
        chosen.err().map(|entry| RoutingConfig::Custom(CustomRoutingConfig(own(s, entry))));
    for named in BUILT_IN {
        let own = (named.read)(s);
        if chosen.is_ok_and(|chosen| chosen.name == named.name) {
            routing = Some(own);
            continue;
        }
        for key in named.keys {
            if s.has(key) && s.good(&[key]) {
                s.wrong(key, format!("has an effect only with routing = \"{}\"", named.name));
            }
        }
    }
    routing.unwrap_or(RoutingConfig::Ecmp(Ecmp))
}

/// Edge switch to which a host is connected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Attachment {
    /// Column of the edge switch in the table of next hops.
    column: u32,
    /// Link from the edge switch to the host.
    down: u32,
}

/// Routes of a fabric: next hops of all switches, and the policy that chooses among equal paths.
#[derive(Serialize, Deserialize)]
pub struct Routing {
    attachments: Vec<Attachment>,
    table: Table,
    /// Seed of each switch, which is mixed into the hashes of packets.
    salts: Vec<u32>,
    /// Weights of links by link number; links that are not listed have weight 1.
    weights: BTreeMap<u32, u32>,
    /// Whether `chooser` chooses among equal paths; if not, the hash of the packet decides (ECMP).
    chooses: bool,
    chooser: Chooser,
    /// Whether the chooser is called for every packet at every switch; the hashes of all
    /// connections then have [`EXPLICIT_BIT`].
    sees_all: bool,
    explicit: Option<ExplicitRoutes>,
}

impl Routing {
    /// Computes the next hops of all switches. Every host must have a cable and a path to every
    /// other host, which the scenario reader guarantees. Returns an error if an explicit route
    /// cannot be followed.
    pub fn build(
        graph: &Graph,
        config: &RoutingConfig,
        equal_paths: &EqualPaths,
        seed: u64,
    ) -> Result<Routing, RouteError> {
        let explicit = match config {
            RoutingConfig::Explicit(c) => Some(ExplicitRoutes::build(graph, &c.0)?),
            _ => None,
        };
        let salt = |switch| {
            let switch = if equal_paths.same_hash { 0 } else { switch };
            mix(seed ^ mix(u64::from(switch))) as u32
        };
        let mut chooser = config.start(graph.switches(), seed);
        if let Chooser::Custom(custom) = &mut chooser {
            custom.attach(graph);
        }
        let weights = weights_of(graph, equal_paths);
        let routing = Routing {
            attachments: attachments(graph, &|_| true),
            table: Table::build(graph, &weights, &|_| true),
            salts: (0..graph.switches()).map(salt).collect(),
            weights,
            chooses: !chooser.goes_by_hash(),
            sees_all: matches!(&chooser, Chooser::Custom(custom) if custom.sees_all()),
            chooser,
            explicit,
        };
        Ok(routing)
    }

    /// Computes all next hops again over usable cables. `usable` returns whether the cable with a
    /// given number is usable.
    pub fn keep_to(&mut self, graph: &Graph, usable: &dyn Fn(usize) -> bool) {
        self.attachments = attachments(graph, usable);
        self.table = Table::build(graph, &self.weights, usable);
        if let Some(explicit) = &mut self.explicit {
            explicit.keep_to(usable);
        }
    }

    /// Returns the value of [`eastwest_types::Packet::hash`] for a connection: 15 bits of a seeded
    /// hash of both hosts and ports, or the number of an explicit route.
    pub fn flow_hash(&self, from: HostId, to: HostId, five_tuple: u64) -> u16 {
        if let Some(route) = self.explicit.as_ref().and_then(|e| e.find(from, to)) {
            return route;
        }
        let hash = (mix(five_tuple) >> 49) as u16;
        // With the bit, no packet uses the fast path (`next_by_hash`). The value NOTE_HASH is
        // reserved for congestion notification messages (CNM).
        if self.sees_all { (hash | EXPLICIT_BIT).min(NOTE_HASH - 1) } else { hash }
    }

    /// Whether [`Routing::forward`] must be called for packets with the hash `hash`.
    pub(crate) fn is_shown(&self, hash: u16) -> bool {
        self.sees_all && hash & EXPLICIT_BIT != 0 && hash != NOTE_HASH
    }

    /// Calls the routing policy of the user for a packet that `switch` forwards. Returns the tag
    /// with which the packet leaves.
    pub(crate) fn forward(&mut self, switch: u32, transit: Transit) -> u64 {
        match &mut self.chooser {
            Chooser::Custom(custom) => custom.forward(switch, transit),
            _ => 0,
        }
    }

    /// Returns the hash of packets between two hosts with an explicit route; 0 if they have no
    /// explicit route.
    pub fn route_of(&self, from: HostId, to: HostId) -> u16 {
        self.explicit.as_ref().and_then(|e| e.find(from, to)).unwrap_or(0)
    }

    /// Returns the links on which `switch` (counted from 0 among switches) may send a packet with
    /// the hash `hash` to `dst`; no links if the switch has no route to `dst`.
    pub fn links_from(&self, switch: u32, hash: u16, dst: HostId) -> &[u32] {
        if let Some(link) = self.explicit_link(switch, hash) {
            return from_ref(link);
        }
        let at = &self.attachments[dst.0 as usize];
        let entry = match self.table.entry(switch, at.column) {
            &LOCAL => &at.down,
            entry => entry,
        };
        match *entry {
            NO_ROUTE => &[],
            group if group & GROUP_BIT != 0 => {
                self.chooser.possible(dst, self.table.members_of(group))
            }
            _ => from_ref(entry),
        }
    }

    /// Whether a switch has a route to an address.
    pub fn reaches(&self, switch: u32, address: HostId) -> bool {
        let at = &self.attachments[address.0 as usize];
        match *self.table.entry(switch, at.column) {
            LOCAL => at.down != NO_ROUTE,
            entry => entry != NO_ROUTE,
        }
    }

    /// Returns the number of addresses: one for each host and, if cards have addresses, one for
    /// each card.
    pub fn addresses(&self) -> u32 {
        self.attachments.len() as u32
    }

    /// Whether packets of one flow may be spread over several equal links.
    pub fn deals(&self) -> bool {
        self.chooser.deals()
    }

    /// Returns the next link of a congestion notification message (CNM) to `dst`. With adaptive
    /// routing, the switch reads the CNM; a CNM that is not absorbed uses the path of its flow in
    /// reverse. With other policies, a CNM is routed like other packets.
    #[cold]
    #[inline(never)]
    fn next_of_note(&mut self, switch: u32, dst: HostId, view: View) -> u32 {
        let note = Cnm::of(view.packet).filter(|_| matches!(self.chooser, Chooser::Adaptive(_)));
        if let Some(cnm) = note {
            if self.snoop(view.now, switch, &cnm, reverse(view.ingress)) == Snooped::Absorbed {
                return ABSORBED;
            }
            if let Some(link) = self.backwards(switch, &cnm, &view) {
                return link;
            }
        }
        let hash = mix(u64::from(dst.0)) as u16 & !EXPLICIT_BIT;
        self.next_link(switch, dst, hash, || view)
    }

    /// Calls adaptive routing for a congestion notification message (CNM) that entered the switch
    /// from the far end of its output link `link`, see [`adaptive`]. Returns whether the CNM is
    /// absorbed or sent on.
    fn snoop(&mut self, now: Time, switch: u32, cnm: &Cnm, link: u32) -> Snooped {
        let entry = self.entry(switch, cnm.congested);
        // An edge switch and a switch with a single port towards the receiver have no other path.
        if entry & GROUP_BIT == 0 || entry == NO_ROUTE {
            return Snooped::Pass;
        }
        let members = self.table.members_of(entry);
        let Chooser::Adaptive(adaptive) = &mut self.chooser else { return Snooped::Pass };
        adaptive.snoop(now, switch, cnm.congested, members, (link, cnm.fb))
    }

    /// Returns the reverse of the link on which packets of the flow of a congestion notification
    /// message (CNM) arrive at `switch`. The current path of the flow is followed from its source;
    /// `None` if this path no longer passes the switch.
    fn backwards(&self, switch: u32, cnm: &Cnm, view: &View) -> Option<u32> {
        let Chooser::Adaptive(adaptive) = &self.chooser else { return None };
        let hosts = self.attachments.len() as u32;
        let mut link = reverse(self.attachments[cnm.source.0 as usize].down);
        for _ in 0..self.salts.len() {
            let at = view.links.get(link as usize)?.to.checked_sub(hosts)?;
            if at == switch {
                return Some(reverse(link));
            }
            let entry = self.entry(at, cnm.congested);
            link = match entry {
                LOCAL | NO_ROUTE => return None,
                entry if entry & GROUP_BIT != 0 => {
                    let members = self.table.members_of(entry);
                    members[adaptive.prefer(view.now, at, cnm.congested, members)]
                }
                only => only,
            };
        }
        None
    }

    fn entry(&self, switch: u32, dst: HostId) -> u32 {
        *self.table.entry(switch, self.attachments[dst.0 as usize].column)
    }

    /// Returns the counts of adaptive routing; `None` with another policy.
    pub fn adaptive_counts(&self) -> Option<AdaptiveCounts> {
        match &self.chooser {
            Chooser::Adaptive(adaptive) => Some(adaptive.counts),
            _ => None,
        }
    }

    #[inline]
    fn explicit_link(&self, switch: u32, hash: u16) -> Option<&u32> {
        if hash & EXPLICIT_BIT == 0 {
            return None;
        }
        self.explicit.as_ref()?.next_link(switch, hash)
    }

    /// Returns the link on which `switch` (counted from 0 among switches) sends a packet to `dst`;
    /// [`NO_ROUTE`] if there is no path. `hash` is the [`eastwest_types::Packet::hash`] of the
    /// packet. Policies other than ECMP also read the state of the network from `view`.
    pub fn next_link<'f>(
        &mut self,
        switch: u32,
        dst: HostId,
        hash: u16,
        view: impl FnOnce() -> View<'f>,
    ) -> u32 {
        let hash = if self.is_shown(hash) { hash & !EXPLICIT_BIT } else { hash };
        if let Some(link) = self.next_by_hash(switch, dst, hash) {
            return link;
        }
        if hash == NOTE_HASH {
            return self.next_of_note(switch, dst, view());
        }
        let entry = self.entry(switch, dst);
        self.next_chosen((switch, entry), dst, hash, view)
    }

    /// Returns the next link like [`Routing::next_link`] if the packet has a single next link, or
    /// if its hash chooses among equal paths (ECMP). `None` if the choice needs more than the hash.
    #[inline(always)]
    pub fn next_by_hash(&self, switch: u32, dst: HostId, hash: u16) -> Option<u32> {
        if hash & EXPLICIT_BIT != 0 {
            if hash == NOTE_HASH || self.sees_all {
                return None;
            }
            if let Some(link) = self.explicit_link(switch, hash) {
                return Some(*link);
            }
        }
        let at = self.attachments[dst.0 as usize];
        let entry = *self.table.entry(switch, at.column);
        if entry == LOCAL {
            return Some(at.down);
        }
        if entry & GROUP_BIT == 0 {
            return Some(entry);
        }
        if self.chooses {
            return None;
        }
        let Some(group) = self.table.groups.get((entry & !GROUP_BIT) as usize) else {
            return Some(NO_ROUTE);
        };
        // The next lines are the finaliser of murmur3. With a single multiplication, the choices of
        // different tiers would be correlated.
        let mut x = u32::from(hash) ^ self.salts[switch as usize];
        x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
        x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
        let chosen = (u64::from(x >> 16) * u64::from(group.count)) >> 16;
        Some(self.table.members[group.first as usize + chosen as usize])
    }

    /// Returns the next link if a policy other than ECMP chooses among the equal ports.
    #[inline(never)]
    fn next_chosen<'f>(
        &mut self,
        (switch, entry): (u32, u32),
        dst: HostId,
        flow_hash: u16,
        view: impl FnOnce() -> View<'f>,
    ) -> u32 {
        let Some(group) = self.table.groups.get_mut((entry & !GROUP_BIT) as usize) else {
            return NO_ROUTE;
        };
        let members = &self.table.members[group.first as usize..][..group.count as usize];
        let query = Query { switch, dst, flow_hash, members };
        members[self.chooser.choose(&query, &mut group.turn, view)]
    }
}

/// Returns the edge switch and link of each address; a host whose cable is not `usable` has
/// [`NO_ROUTE`] as link. If cards have addresses, they follow the addresses of hosts; the address
/// of a host then means its first card.
fn attachments(graph: &Graph, usable: &dyn Fn(usize) -> bool) -> Vec<Attachment> {
    let columns = columns(graph);
    let mut attachments = vec![Attachment { column: 0, down: NO_ROUTE }; graph.hosts as usize];
    let of_cable = |i: usize, switch: u32| Attachment {
        column: columns.of_switch[(switch - graph.hosts) as usize],
        down: if usable(i) { 2 * i as u32 + 1 } else { NO_ROUTE },
    };
    let Some(cards) = graph.cables_of_cards() else {
        for (i, cable) in graph.cables.iter().enumerate().filter(|(_, c)| c.a < graph.hosts) {
            attachments[cable.a as usize] = of_cable(i, cable.b);
        }
        return attachments;
    };
    let of_card = |&cable: &u32| of_cable(cable as usize, graph.cables[cable as usize].b);
    let mut column = columns.edges.len() as u32;
    for (at, cables) in attachments.iter_mut().zip(&cards) {
        if cables.len() == 1 || graph.card_addresses {
            cables.first().into_iter().for_each(|cable| *at = of_card(cable));
        } else if cables.len() > 1 {
            at.column = column;
            column += 1;
        }
    }
    if graph.card_addresses {
        attachments.extend(cards.iter().flatten().map(of_card));
    }
    attachments
}

/// Returns the weights of links by link number, from the settings, which have weights by pairs of
/// nodes.
fn weights_of(graph: &Graph, equal_paths: &EqualPaths) -> BTreeMap<u32, u32> {
    let wanted: BTreeMap<(u32, u32), u32> =
        equal_paths.weights.iter().map(|&(from, to, weight)| ((from, to), weight)).collect();
    let mut weights = BTreeMap::new();
    if wanted.is_empty() {
        return weights;
    }
    for (cable, link) in graph.cables.iter().zip((0u32..).step_by(2)) {
        for (link, ends) in [(link, (cable.a, cable.b)), (link + 1, (cable.b, cable.a))] {
            weights.extend(wanted.get(&ends).map(|&weight| (link, weight)));
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Stored;
    use crate::routing::adaptive::AdaptiveConfig;
    use crate::routing::explicit::ExplicitRoute;
    use crate::routing::flowlet::FlowletConfig;
    use crate::topology::{CableConfig, Topology};
    use eastwest_types::{Packet, Rate, Span, Time};
    use std::sync::Arc;

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    fn build(graph: &Graph, config: &RoutingConfig) -> Result<Routing, RouteError> {
        Routing::build(graph, config, &EqualPaths::default(), 1)
    }

    fn packet(dst: u32, hash: u16) -> Packet {
        Packet { hash, ip_len: 1500, payload: 1448, ..Packet::blank(HostId(dst)) }
    }

    /// Returns the nodes that a packet visits from host `from` on, at most 16.
    fn walk(graph: &Graph, routing: &mut Routing, from: u32, p: &Packet) -> Vec<u32> {
        let mut node = graph.cables.iter().find(|c| c.a == from).unwrap().b;
        let (mut seen, stored) = (vec![node], Stored::new(p));
        while node >= graph.hosts && seen.len() < 16 {
            let view = || View { now: Time::ZERO, packet: &stored, links: &[], ingress: 0, tag: 0 };
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
        let gap = Span::from_us(500);
        for config in [
            RoutingConfig::Ecmp(Ecmp),
            RoutingConfig::RoundRobin(RoundRobin),
            RoutingConfig::Spray(SprayConfig),
            RoutingConfig::Modulo(Modulo),
            RoutingConfig::Flowlet(FlowletConfig { gap, entries: 64 }),
            RoutingConfig::Adaptive(AdaptiveConfig {
                timer: gap,
                ageing: false,
                persistence: None,
            }),
        ] {
            let mut routing = build(&graph, &config).unwrap();
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
        let mut routing = build(&graph, &RoutingConfig::Ecmp(Ecmp)).unwrap();
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

    /// Returns the number of packets by core switch, with one packet of each of 4,000 flows from
    /// host 0 to host 15.
    fn cores(graph: &Graph, routing: &mut Routing) -> BTreeMap<u32, u32> {
        let mut used = BTreeMap::new();
        for flow in 0..4_000u64 {
            let hash = routing.flow_hash(HostId(0), HostId(15), flow);
            *used.entry(walk(graph, routing, 0, &packet(15, hash))[2]).or_insert(0) += 1;
        }
        used
    }

    #[test]
    fn one_hash_at_every_tier_leaves_half_of_the_cores_idle() {
        let graph = fat_tree();
        let same = EqualPaths { same_hash: true, ..EqualPaths::default() };
        let mut routing = Routing::build(&graph, &RoutingConfig::Ecmp(Ecmp), &same, 1).unwrap();
        // With one hash at all tiers, a flow that takes the left port at the edge switch also takes
        // the left port at the aggregation switch.
        let used = cores(&graph, &mut routing);
        assert_eq!(used.keys().copied().collect::<Vec<_>>(), [32, 35], "{used:?}");
    }

    #[test]
    fn weights_shift_flows_and_packets_in_turn() {
        let graph = fat_tree();
        // The ports of edge switch 0 to its two aggregation switches have the weights 3 : 1.
        let weights = vec![(16, 24, 30), (16, 25, 10)];
        let equal_paths = EqualPaths { weights, ..EqualPaths::default() };
        let left = |used: &BTreeMap<u32, u32>| used.range(..34).map(|(_, n)| n).sum::<u32>();
        let of = |config| Routing::build(&graph, &config, &equal_paths, 1).unwrap();
        let by_hash = left(&cores(&graph, &mut of(RoutingConfig::Ecmp(Ecmp))));
        assert!((2_880..3_120).contains(&by_hash), "{by_hash}");
        assert_eq!(left(&cores(&graph, &mut of(RoutingConfig::RoundRobin(RoundRobin)))), 3_000);
        let sprayed = left(&cores(&graph, &mut of(RoutingConfig::Spray(SprayConfig))));
        assert!((2_880..3_120).contains(&sprayed) && sprayed != by_hash, "{sprayed}");
    }

    #[test]
    fn the_receiver_alone_decides_with_modulo() {
        let graph = fat_tree();
        let mut routing = build(&graph, &RoutingConfig::Modulo(Modulo)).unwrap();
        for (from, to) in [(0, 14), (0, 15), (1, 14), (9, 3)] {
            let paths: Vec<_> =
                (0..20).map(|h| walk(&graph, &mut routing, from, &packet(to, h))).collect();
            assert!(paths.windows(2).all(|w| w[0] == w[1]));
            // There are two ports at the edge switch and two at the aggregation switch. Packets to
            // odd receivers take the right port at both.
            assert_eq!(paths[0][2], 32 + 3 * (to % 2), "{from} to {to}");
            let links = routing.links_from(from / 2, 0, HostId(to));
            assert_eq!(links.len(), 1);
        }
    }

    /// Test policy: each packet takes the path after the path of the previous packet at this
    /// switch.
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
        let mut custom = build(&graph, &config).unwrap();
        let mut in_turn = build(&graph, &RoutingConfig::RoundRobin(RoundRobin)).unwrap();
        assert!(in_turn.deals() && !custom.deals());
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
            &mut build(&graph, &RoutingConfig::Ecmp(Ecmp)).unwrap(),
            0,
            &packet(15, 0),
        );
        for core in 0..4u32 {
            let agg = core / 2;
            let via = vec![16, 24 + agg, 32 + core, 24 + 6 + agg, 16 + 7];
            let config = RoutingConfig::Explicit(ExplicitConfig(vec![ExplicitRoute {
                from: 0,
                to: 15,
                via: via.clone(),
            }]));
            let mut routing = build(&graph, &config).unwrap();
            let hash = routing.flow_hash(HostId(0), HostId(15), 7);
            let path = walk(&graph, &mut routing, 0, &packet(15, hash));
            assert_eq!(path, [via, vec![15]].concat());
            assert_eq!(walk(&graph, &mut routing, 0, &packet(15, 0)), free);
        }
        let gap = RoutingConfig::Explicit(ExplicitConfig(vec![ExplicitRoute {
            from: 0,
            to: 15,
            via: vec![16, 32],
        }]));
        assert!(build(&graph, &gap).is_err());
    }
}
