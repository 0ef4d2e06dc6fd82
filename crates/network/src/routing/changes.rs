//! Changes of routes in a regular fabric when cables are down, found without a search of the whole
//! fabric.
//!
//! For each edge switch: a switch that has lost all its shortest paths to the edge switch is **cut
//! off**. Whether a switch is cut off depends on switches nearer to the edge switch, so that
//! switches are examined in the order of their hop counts without failures. New paths for the
//! switches that are cut off are then computed, in the order of their new hop counts (Ramalingam
//! and Reps, *An Incremental Algorithm for a Generalization of the Shortest-Path Problem*, 1996).
//! The hop count of a switch that is not cut off does not change, and the switch can only lose
//! ports, since no hop count has decreased.

use super::directions::{Directions, towards};
use super::entry::{GROUP_BIT, NO_ROUTE};
use super::neighbours::Neighbours;
use super::sets::Sets;
use eastwest_engine::interrupt;
use std::collections::{BTreeMap, BTreeSet};

/// Positions and cables of a regular fabric in which some cables are down.
pub struct Changes<'a> {
    /// Positions of switches, from which routes without failures follow.
    pub directions: &'a Directions,
    /// Neighbours of each switch over all cables.
    pub all: &'a Neighbours,
    /// Neighbours of each switch over usable cables.
    pub usable: &'a Neighbours,
}

/// Changes of the next hops towards one edge switch that are caused by failed cables.
#[derive(Default)]
struct OfEdge {
    /// New hop counts of the switches that were cut off, by switch; `u32::MAX` if no path is left.
    cut_off: BTreeMap<u32, u32>,
    /// Switches that have lost some, but not all, ports on shortest paths.
    poorer: Vec<u32>,
}

impl Changes<'_> {
    /// Returns the next hops that change because cables are down, by switch and column (edge
    /// switch). `down` has the two switches of each cable that is down, and `entries` the next hops
    /// without failures, by direction.
    pub fn find(
        &self,
        down: &[(u32, u32)],
        columns: u32,
        entries: &[u32],
        sets: &mut Sets,
    ) -> BTreeMap<(u32, u32), u32> {
        let (mut changed, mut met) = (BTreeMap::new(), BTreeSet::new());
        let mut ports = Vec::new();
        for edge in 0..columns {
            interrupt::steps(down.len() as u64);
            let of_edge = self.of_edge(down, edge);
            for &switch in of_edge.cut_off.keys().chain(&of_edge.poorer) {
                if met.insert(switch) {
                    self.remember_sets(switch, entries, sets);
                }
                self.ports(&of_edge, switch, edge, &mut ports);
                changed.insert((switch, edge), sets.entry(&ports));
            }
        }
        changed
    }

    /// Records the sets of ports that a switch uses while all its cables are up, so that no second
    /// entry is created for an equal set.
    fn remember_sets(&self, switch: u32, entries: &[u32], sets: &mut Sets) {
        let mut ports = Vec::new();
        for edge in self.directions.examples(switch).into_iter().flatten() {
            let entry = entries[self.directions.cell(switch, edge)];
            if entry & GROUP_BIT != 0 && entry != NO_ROUTE {
                towards(self.directions, self.all, switch, edge, &mut ports);
                sets.remember(&ports, entry);
            }
        }
    }

    fn of_edge(&self, down: &[(u32, u32)], edge: u32) -> OfEdge {
        let hops = |switch| self.directions.hops(switch, edge);
        let mut found = OfEdge::default();
        let mut next = BTreeSet::new();
        for &(a, b) in down {
            let (at_a, at_b) = (hops(a), hops(b));
            if at_b + 1 == at_a {
                next.insert((at_a, a));
            } else if at_a + 1 == at_b {
                next.insert((at_b, b));
            }
        }
        while let Some((at, switch)) = next.pop_first() {
            let ways = self.usable.of(switch).iter();
            let left = |&(_, n): &(u32, u32)| hops(n) + 1 == at && !found.cut_off.contains_key(&n);
            if ways.clone().any(left) {
                found.poorer.push(switch);
                continue;
            }
            found.cut_off.insert(switch, u32::MAX);
            let farther = ways.filter(|(_, n)| hops(*n) == at + 1);
            next.extend(farther.map(|&(_, n)| (at + 1, n)));
        }
        self.reconnect(&mut found.cut_off, &hops);
        found
    }

    /// Computes the new hop counts of the switches that were cut off. `hops` returns the hop count
    /// of a switch without failures.
    fn reconnect(&self, cut_off: &mut BTreeMap<u32, u32>, hops: &dyn Fn(u32) -> u32) {
        let mut next = BTreeSet::new();
        for &switch in cut_off.keys() {
            let others = self.usable.of(switch).iter().filter(|(_, n)| !cut_off.contains_key(n));
            next.extend(others.map(|&(_, n)| (hops(n) + 1, switch)));
        }
        while let Some((at, switch)) = next.pop_first() {
            match cut_off.get_mut(&switch) {
                Some(known) if *known > at => *known = at,
                _ => continue,
            }
            let others = self.usable.of(switch).iter().filter(|(_, n)| cut_off.contains_key(n));
            next.extend(others.map(|&(_, n)| (at + 1, n)));
        }
    }

    /// Sets `ports` to the ports that now lead from a switch to the edge switch on shortest paths.
    fn ports(&self, of_edge: &OfEdge, switch: u32, edge: u32, ports: &mut Vec<u32>) {
        let hops = |switch: u32| match of_edge.cut_off.get(&switch) {
            Some(&hops) => hops,
            None => self.directions.hops(switch, edge),
        };
        let at = hops(switch);
        let closer = |&&(_, n): &&(u32, u32)| at != u32::MAX && hops(n).wrapping_add(1) == at;
        ports.clear();
        ports.extend(self.usable.of(switch).iter().filter(closer).map(|&(link, _)| link));
    }
}
