//! Shortest paths in any graph, by one breadth-first search per edge switch.

use super::entry::{LOCAL, NO_ROUTE};
use super::neighbours::Neighbours;
use super::sets::Sets;
use eastwest_engine::interrupt;
use std::collections::VecDeque;

/// Returns the next hops on shortest paths: table entries by switch and column. `edges` has the
/// edge switch of each column.
pub fn entries(neighbours: &Neighbours, edges: &[u32], sets: &mut Sets) -> Vec<u32> {
    let switches = neighbours.switches();
    // The table is filled row by row, since the system needs a second or two to provide a gigabyte,
    // and the user may interrupt between rows.
    let mut entries = Vec::with_capacity(switches as usize * edges.len());
    for _ in 0..switches {
        interrupt::steps(edges.len() as u64);
        entries.resize(entries.len() + edges.len(), NO_ROUTE);
    }
    let mut search = Search::new(switches);
    let mut ports = Vec::new();
    for (column, &edge) in edges.iter().enumerate() {
        interrupt::steps(u64::from(switches));
        search.from(neighbours, edge);
        for switch in 0..switches {
            let hops = search.hops[switch as usize];
            let closer = |&&(_, n): &&(u32, u32)| search.hops[n as usize].wrapping_add(1) == hops;
            ports.clear();
            if hops != u32::MAX {
                ports.extend(neighbours.of(switch).iter().filter(closer).map(|&(link, _)| link));
            }
            entries[switch as usize * edges.len() + column] =
                if switch == edge { LOCAL } else { sets.entry(&ports) };
        }
    }
    entries
}

/// Breadth-first search of hop counts from one switch, with its result.
struct Search {
    /// Hop count of every switch from the start; `u32::MAX` if there is no path.
    hops: Vec<u32>,
    queue: VecDeque<u32>,
}

impl Search {
    fn new(switches: u32) -> Search {
        Search { hops: vec![u32::MAX; switches as usize], queue: VecDeque::new() }
    }

    fn from(&mut self, neighbours: &Neighbours, start: u32) {
        self.hops.fill(u32::MAX);
        self.hops[start as usize] = 0;
        self.queue.push_back(start);
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
