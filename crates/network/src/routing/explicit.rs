//! Explicit routes: the scenario lists the switches on the path of a pair of hosts. A packet
//! carries the number of its route in the field of the ECMP hash.

use super::chooser::{BuiltIn, RoutingSettings};
use super::ecmp::Ecmp;
use crate::topology::Graph;
use eastwest_settings::Section;
use eastwest_types::HostId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Bit of [`eastwest_types::Packet::hash`] that is set if the other 15 bits are the number of an
/// explicit route. With routing that sees every packet, the bit is set in the hashes of all
/// connections.
pub const EXPLICIT_BIT: u16 = 1 << 15;

/// Largest number of explicit routes: all values of 15 bits, except the value used by
/// [`NOTE_HASH`](crate::dcb::cnm::NOTE_HASH) for congestion notifications.
pub const MOST_ROUTES: usize = EXPLICIT_BIT as usize - 1;

/// Path of all packets from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplicitRoute {
    /// Number of the sending host.
    pub from: u32,
    /// Number of the receiving host.
    pub to: u32,
    /// Switches on the path, as node numbers (hosts first, then switches).
    pub via: Vec<u32>,
}

/// Explicit routes for pairs of hosts; ECMP for all other pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplicitConfig(pub Vec<ExplicitRoute>);

impl BuiltIn for ExplicitConfig {
    const NAME: &'static str = "explicit";
    const DOC: &'static str =
        "by [[fabric.route]] and the file of `routes`; ecmp for all other pairs";

    /// Returns an empty list of routes: routes refer to nodes, so that the scenario reader reads
    /// the routes later, when the nodes are known.
    fn read(_: &mut Section) -> ExplicitConfig {
        ExplicitConfig(Vec::new())
    }
}

impl RoutingSettings for ExplicitConfig {
    type Chooser = Ecmp;

    fn start(&self, _switches: u32, _seed: u64) -> Ecmp {
        Ecmp
    }

    fn is_per_flow(&self) -> bool {
        true
    }
}

/// Error of an explicit route that packets cannot follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// Number of the route in the scenario, counted from 0.
    pub route: usize,
    /// Message that describes the error, with the names of nodes.
    pub message: String,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "route {}: {}", self.route, self.message)
    }
}

/// Explicit routes, in the form in which switches look up the next link.
#[derive(Clone, Serialize, Deserialize)]
pub struct ExplicitRoutes {
    /// Number of the route by (sending host, receiving host), with [`EXPLICIT_BIT`] set.
    of_pair: BTreeMap<(u32, u32), u16>,
    /// Hops of each route: (switch, output link) in the order of the path.
    hops: Vec<Vec<(u32, u32)>>,
    /// Whether switches use the route, by route. A route is not used while switches know that one
    /// of its cables is down.
    usable: Vec<bool>,
}

impl ExplicitRoutes {
    pub fn build(graph: &Graph, routes: &[ExplicitRoute]) -> Result<ExplicitRoutes, RouteError> {
        let mut built =
            ExplicitRoutes { of_pair: BTreeMap::new(), hops: Vec::new(), usable: Vec::new() };
        for (i, route) in routes.iter().enumerate() {
            let fail = |message| RouteError { route: i, message };
            if i >= MOST_ROUTES {
                return Err(fail(format!("exceeds the limit of {MOST_ROUTES} routes")));
            }
            let nodes: Vec<u32> = [route.from]
                .into_iter()
                .chain(route.via.iter().copied())
                .chain([route.to])
                .collect();
            let mut hops = Vec::new();
            for (step, pair) in nodes.windows(2).enumerate() {
                let link = link_between(graph, pair[0], pair[1]).ok_or_else(|| {
                    let name = |n: u32| graph.names.get(n as usize).map_or("?", |s| s.as_str());
                    fail(format!("no cable from {} to {}", name(pair[0]), name(pair[1])))
                })?;
                if step > 0 {
                    let switch = pair[0] - graph.hosts;
                    if hops.iter().any(|&(s, _)| s == switch) {
                        return Err(fail(format!(
                            "visits {} twice, but may visit each switch only once",
                            graph.names[pair[0] as usize]
                        )));
                    }
                    hops.push((switch, link));
                }
            }
            if built.of_pair.insert((route.from, route.to), i as u16 | EXPLICIT_BIT).is_some() {
                return Err(fail("there is another route for the same pair of hosts".into()));
            }
            built.hops.push(hops);
            built.usable.push(true);
        }
        Ok(built)
    }

    /// Returns the value of [`eastwest_types::Packet::hash`] for packets between two hosts; `None`
    /// if the two hosts have no explicit route.
    pub fn find(&self, from: HostId, to: HostId) -> Option<u16> {
        self.of_pair.get(&(from.0, to.0)).copied()
    }

    /// Disables the routes with an unusable cable between switches, and enables all other routes.
    /// `usable` returns whether the cable with a given number is usable.
    pub fn keep_to(&mut self, usable: &dyn Fn(usize) -> bool) {
        for (route, hops) in self.usable.iter_mut().zip(&self.hops) {
            *route = hops.iter().all(|&(_, link)| usable(link as usize / 2));
        }
    }

    /// Returns the link on which `switch` sends packets with the hash `hash`, which has the number
    /// of an explicit route. `None` if the route is not usable or does not pass the switch.
    pub fn next_link(&self, switch: u32, hash: u16) -> Option<&u32> {
        let route = usize::from(hash & !EXPLICIT_BIT);
        if !self.usable[route] {
            return None;
        }
        self.hops[route].iter().find(|(s, _)| *s == switch).map(|(_, link)| link)
    }
}

/// Returns the first link from node `from` to node `to`; `None` if no cable connects the two nodes.
fn link_between(graph: &Graph, from: u32, to: u32) -> Option<u32> {
    graph.cables.iter().enumerate().find_map(|(i, c)| {
        let i = i as u32;
        match (c.a, c.b) {
            ends if ends == (from, to) => Some(2 * i),
            ends if ends == (to, from) => Some(2 * i + 1),
            _ => None,
        }
    })
}
