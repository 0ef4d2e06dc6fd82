//! Checks whether routes allow PFC pauses that wait for each other in a cycle: a cycle in the
//! channel dependency graph (Dally and Seitz, *Deadlock-free message routing in multiprocessor
//! interconnection networks*, 1987).
//!
//! A channel is a link between two switches. A channel depends on the next channel of each packet
//! that arrives on it: while the next channel is paused, packets for that channel cannot leave, and
//! block the packets behind them. Routes whose dependencies have no cycle cannot deadlock. With a
//! cycle, a deadlock is possible if there is traffic on all channels of the cycle at an
//! unfavourable moment. The check considers all pairs of hosts, and all links on which their
//! packets may travel.

use crate::config::FabricConfig;
use crate::footprint::Footprint;
use crate::routing::{Routing, RoutingConfig};
use crate::topology::Graph;
use crate::topology::Topology;
use eastwest_types::HostId;

/// Number of steps of the search after which a fabric counts as too large for the check.
const MOST_STEPS: u64 = 20_000_000;
/// Largest size in bytes of routing tables that are computed only for this check.
const MOST_BYTES: u64 = 256 << 20;

/// Result of the search for a cycle of channel dependencies, which would make a PFC deadlock
/// possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// There is no cycle: no deadlock is possible while no link fails.
    Free,
    /// There is a cycle. The values are names of switches: each switch sends to the next, and the
    /// last to the first.
    Cycle(Vec<String>),
    /// The fabric is too large for the check.
    TooLarge,
}

/// Searches for a cycle of channel dependencies in the routes of a fabric. Star, leaf–spine and fat
/// tree are searched only with explicit routes: their shortest paths go up and then down, which
/// excludes a cycle.
pub fn look(config: &FabricConfig) -> Dependencies {
    let explicit = matches!(config.routing, RoutingConfig::Explicit(_));
    if !explicit && !matches!(config.topology, Topology::Graph { .. }) {
        return Dependencies::Free;
    }
    if Footprint::of(config).routes > MOST_BYTES {
        return Dependencies::TooLarge;
    }
    let graph = config.graph();
    let Ok(routing) = Routing::build(&graph, &config.routing, &config.equal_paths, 0) else {
        return Dependencies::Free; // the error is reported when the fabric is built
    };
    let mut channels = Channels::new(&graph, &routing);
    for to in (0..routing.addresses()).map(HostId) {
        for from in (0..graph.hosts).map(HostId).filter(|from| *from != to) {
            channels.follow(from, to);
        }
        if channels.steps > MOST_STEPS {
            return Dependencies::TooLarge;
        }
    }
    match channels.cycle() {
        None => Dependencies::Free,
        Some(links) => {
            let name = |link: u32| graph.names[ends(&graph, link).0 as usize].clone();
            Dependencies::Cycle(links.into_iter().map(name).collect())
        }
    }
}

/// Returns the sending and the receiving node of a link.
fn ends(graph: &Graph, link: u32) -> (u32, u32) {
    let cable = &graph.cables[link as usize / 2];
    if link % 2 == 0 { (cable.a, cable.b) } else { (cable.b, cable.a) }
}

struct Channels<'a> {
    graph: &'a Graph,
    routing: &'a Routing,
    /// Switches of each host.
    edges: Vec<Vec<u32>>,
    /// By link, the links on which it depends.
    next: Vec<Vec<u32>>,
    /// For each switch, the destination and the route (each counted from 1) for which the links of
    /// the switch were last followed; (0, 0) before the first.
    seen: Vec<(u32, u32)>,
    steps: u64,
}

impl<'a> Channels<'a> {
    fn new(graph: &'a Graph, routing: &'a Routing) -> Channels<'a> {
        let mut edges = vec![Vec::new(); graph.hosts as usize];
        for cable in graph.cables.iter().filter(|cable| cable.a < graph.hosts) {
            edges[cable.a as usize].push(cable.b - graph.hosts);
        }
        Channels {
            graph,
            routing,
            edges,
            next: vec![Vec::new(); 2 * graph.cables.len()],
            seen: vec![(0, 0); graph.switches() as usize],
            steps: 0,
        }
    }

    /// Adds the channel dependencies of the packets from one host to another.
    fn follow(&mut self, from: HostId, to: HostId) {
        // If the packets have an explicit route, their hash is its number. Without explicit route,
        // all hashes are possible.
        let hash = self.routing.route_of(from, to);
        let mark = (to.0 + 1, u32::from(hash) + 1);
        let mut switches = self.edges[from.0 as usize].clone();
        while let Some(switch) = switches.pop() {
            self.steps += 1;
            if std::mem::replace(&mut self.seen[switch as usize], mark) == mark {
                continue;
            }
            for &link in self.routing.links_from(switch, hash, to) {
                let Some(after) = self.switch_after(link) else { continue };
                for &beyond in self.routing.links_from(after, hash, to) {
                    self.steps += 1;
                    if self.switch_after(beyond).is_some()
                        && !self.next[link as usize].contains(&beyond)
                    {
                        self.next[link as usize].push(beyond);
                    }
                }
                switches.push(after);
            }
        }
    }

    /// Returns the switch at the far end of a link; `None` if the far end is a host, or if `link`
    /// is not the number of a link.
    fn switch_after(&self, link: u32) -> Option<u32> {
        if link as usize >= self.next.len() {
            return None;
        }
        ends(self.graph, link).1.checked_sub(self.graph.hosts)
    }

    /// Returns the links of a cycle of dependencies; `None` if there is no cycle.
    fn cycle(&self) -> Option<Vec<u32>> {
        // State of each link in the depth-first search: 0 not visited, 1 on the current path, 2
        // done.
        let mut state = vec![0u8; self.next.len()];
        for first in 0..self.next.len() as u32 {
            let mut way: Vec<(u32, usize)> = Vec::new();
            if state[first as usize] == 0 {
                state[first as usize] = 1;
                way.push((first, 0));
            }
            while let Some((link, tried)) = way.last_mut() {
                let Some(&next) = self.next[*link as usize].get(*tried) else {
                    state[*link as usize] = 2;
                    way.pop();
                    continue;
                };
                *tried += 1;
                match state[next as usize] {
                    0 => {
                        state[next as usize] = 1;
                        way.push((next, 0));
                    }
                    1 => {
                        let links = way.iter().map(|(link, _)| *link);
                        return Some(links.skip_while(|link| *link != next).collect());
                    }
                    _ => {}
                }
            }
        }
        None
    }
}
