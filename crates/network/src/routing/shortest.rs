//! Shortest paths in any graph, by one breadth-first search per edge switch.

use super::entry::{LOCAL, NO_ROUTE};
use super::neighbours::Neighbours;
use super::sets::Sets;
use eastwest_engine::interrupt;
use std::collections::VecDeque;

/// Usable cable of a host, as (its switch, link from this switch to the host).
pub type Attached = (u32, u32);

/// Returns the next hops on shortest paths: table entries by switch × column. `edges` has the edge
/// switches of the first columns, one for each column; `hosts` has, for each further column, the
/// usable cables of its host.
pub fn entries(
    neighbours: &Neighbours,
    (edges, hosts): (&[u32], &[Vec<Attached>]),
    sets: &mut Sets,
) -> Vec<u32> {
    let switches = neighbours.switches();
    let columns = edges.len() + hosts.len();
    // Rows are added one by one, so that the run can be interrupted: allocating a gigabyte needs
    // one or two seconds.
    let mut entries = Vec::with_capacity(switches as usize * columns);
    for _ in 0..switches {
        interrupt::steps(columns as u64);
        entries.resize(entries.len() + columns, NO_ROUTE);
    }
    let mut search = Search::new(switches);
    let mut ports = Vec::new();
    for (column, &edge) in edges.iter().enumerate() {
        interrupt::steps(u64::from(switches));
        search.from(neighbours, &[edge]);
        for switch in 0..switches {
            search.closer(neighbours, switch, &mut ports);
            entries[switch as usize * columns + column] =
                if switch == edge { LOCAL } else { sets.entry(&ports) };
        }
    }
    let mut before: Vec<u32> = Vec::new();
    for (column, cables) in (edges.len()..).zip(hosts) {
        interrupt::steps(u64::from(switches));
        let mut starts: Vec<u32> = cables.iter().map(|cable| cable.0).collect();
        starts.sort_unstable();
        starts.dedup();
        // Next hops to two hosts on the same switches differ only at these switches.
        let alike = column > edges.len() && starts == before;
        if !alike {
            search.from(neighbours, &starts);
        }
        for switch in 0..switches {
            let place = switch as usize * columns + column;
            entries[place] = if starts.binary_search(&switch).is_ok() {
                ports.clear();
                ports.extend(cables.iter().filter(|cable| cable.0 == switch).map(|cable| cable.1));
                sets.entry(&ports)
            } else if alike {
                entries[place - 1]
            } else {
                search.closer(neighbours, switch, &mut ports);
                sets.entry(&ports)
            };
        }
        before = starts;
    }
    entries
}

/// Breadth-first search of hop counts from one or several switches, with its result.
struct Search {
    /// Hop count of every switch from the nearest start switch; `u32::MAX` if there is no path.
    hops: Vec<u32>,
    queue: VecDeque<u32>,
}

impl Search {
    fn new(switches: u32) -> Search {
        Search { hops: vec![u32::MAX; switches as usize], queue: VecDeque::new() }
    }

    /// Sets `ports` to the links of a switch to neighbours that are closer to the start switches.
    fn closer(&self, neighbours: &Neighbours, switch: u32, ports: &mut Vec<u32>) {
        let hops = self.hops[switch as usize];
        let closer = |&&(_, n): &&(u32, u32)| self.hops[n as usize].wrapping_add(1) == hops;
        ports.clear();
        if hops != u32::MAX {
            ports.extend(neighbours.of(switch).iter().filter(closer).map(|&(link, _)| link));
        }
    }

    /// Searches from the switches `starts`, which have hop count 0.
    fn from(&mut self, neighbours: &Neighbours, starts: &[u32]) {
        self.hops.fill(u32::MAX);
        for &start in starts {
            self.hops[start as usize] = 0;
            self.queue.push_back(start);
        }
        while let Some(switch) = self.queue.pop_front() {
            for &(_, next) in neighbours.of(switch) {
                if self.hops[next as usize] == u32::MAX {
                    self.hops[next as usize] = self.hops[switch as usize] + 1;
                    self.queue.push_back(next);
                }
            }
        }
    }
}
