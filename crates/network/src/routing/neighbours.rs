//! Neighbours of each switch, and the links to them.

use crate::topology::{Cable, Graph};

/// Links between switches: for every switch a list of (output link, neighbour switch), in the order
/// of cables.
pub struct Neighbours {
    /// Index in `list` of the first entry of each switch; a last element has the length of `list`.
    first: Vec<u32>,
    list: Vec<(u32, u32)>,
}

impl Neighbours {
    /// Returns the neighbours of all switches over usable cables. `usable` returns whether the
    /// cable with a given number is usable.
    pub fn new(graph: &Graph, usable: &dyn Fn(usize) -> bool) -> Neighbours {
        let between = |(i, c): &(usize, &Cable)| c.a >= graph.hosts && usable(*i);
        let cables = || graph.cables.iter().enumerate().filter(between);
        let mut first = vec![0; graph.switches() as usize + 1];
        for (_, c) in cables() {
            first[(c.a - graph.hosts) as usize + 1] += 1;
            first[(c.b - graph.hosts) as usize + 1] += 1;
        }
        for switch in 1..first.len() {
            first[switch] += first[switch - 1];
        }
        let mut list = vec![(0, 0); first[first.len() - 1] as usize];
        let mut next = first.clone();
        for (i, c) in cables() {
            let (a, b) = (c.a - graph.hosts, c.b - graph.hosts);
            for (from, to, link) in [(a, b, 2 * i as u32), (b, a, 2 * i as u32 + 1)] {
                list[next[from as usize] as usize] = (link, to);
                next[from as usize] += 1;
            }
        }
        Neighbours { first, list }
    }

    /// Returns (output link, neighbour switch) for each neighbour of a switch.
    pub fn of(&self, switch: u32) -> &[(u32, u32)] {
        let (first, end) = (self.first[switch as usize], self.first[switch as usize + 1]);
        &self.list[first as usize..end as usize]
    }

    /// Returns the number of switches.
    pub fn switches(&self) -> u32 {
        self.first.len() as u32 - 1
    }
}
