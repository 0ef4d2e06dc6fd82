//! Equal-cost shortest paths over usable cables, one breadth-first search per edge switch.

use super::{GROUP_BIT, Group, LOCAL, NO_ROUTE};
use crate::topology::{Cable, Graph};
use std::collections::{BTreeMap, VecDeque};

/// Tables by switch × edge switch.
pub struct Tables {
    /// Number of edge switches.
    pub columns: u32,
    /// Column of every switch that is an edge switch.
    pub column_of: Vec<u32>,
    /// See [`super::Routing`].
    pub entries: Vec<u32>,
    pub groups: Vec<Group>,
    pub members: Vec<u32>,
}

impl Tables {
    /// Paths over the cables that are `usable`, by their numbers; links weigh 1 where `weights`, by
    /// link, does not say otherwise.
    pub fn build(
        graph: &Graph,
        weights: &BTreeMap<u32, u32>,
        usable: &dyn Fn(usize) -> bool,
    ) -> Tables {
        let switches = graph.switches() as usize;
        // (link out, neighbour) of every switch, towards switches only
        let mut neighbours: Vec<Vec<(u32, u32)>> = vec![Vec::new(); switches];
        let between = |(i, c): &(usize, &Cable)| c.a >= graph.hosts && usable(*i);
        for (i, c) in graph.cables.iter().enumerate().filter(between) {
            let (a, b) = (c.a - graph.hosts, c.b - graph.hosts);
            neighbours[a as usize].push((2 * i as u32, b));
            neighbours[b as usize].push((2 * i as u32 + 1, a));
        }
        let mut column_of = vec![u32::MAX; switches];
        let mut edges = Vec::new();
        for edge in graph.edge_of_host() {
            if edge != u32::MAX && column_of[edge as usize] == u32::MAX {
                column_of[edge as usize] = edges.len() as u32;
                edges.push(edge);
            }
        }
        let mut tables = Tables {
            columns: edges.len() as u32,
            column_of,
            entries: vec![NO_ROUTE; switches * edges.len()],
            groups: Vec::new(),
            members: Vec::new(),
        };
        let mut known = BTreeMap::new();
        for (column, &edge) in edges.iter().enumerate() {
            let distance = distances(&neighbours, edge);
            for switch in 0..switches {
                let entry = if switch == edge as usize {
                    LOCAL
                } else {
                    let ports: Vec<u32> = neighbours[switch]
                        .iter()
                        .filter(|(_, n)| {
                            distance[switch] != u32::MAX
                                && distance[*n as usize] + 1 == distance[switch]
                        })
                        .map(|&(link, _)| link)
                        .collect();
                    tables.entry(ports, weights, &mut known)
                };
                tables.entries[switch * edges.len() + column] = entry;
            }
        }
        tables
    }

    /// The entry for a set of ports; equal sets share a group.
    fn entry(
        &mut self,
        ports: Vec<u32>,
        weights: &BTreeMap<u32, u32>,
        known: &mut BTreeMap<Vec<u32>, u32>,
    ) -> u32 {
        match ports[..] {
            [] => NO_ROUTE,
            [only] => only,
            _ => {
                let (groups, members) = (&mut self.groups, &mut self.members);
                *known.entry(ports).or_insert_with_key(|ports| {
                    let first = members.len() as u32;
                    members.extend(repeated(ports, weights));
                    groups.push(Group { first, count: members.len() as u32 - first, turn: 0 });
                    GROUP_BIT | (groups.len() - 1) as u32
                })
            }
        }
    }
}

/// Ports as often as their weights say, in lowest terms (the replication of WCMP: Zhou et al., EuroSys
/// 2014): the choice among members stays one among equals. Copies of a port stand apart, for those who
/// go by turns.
fn repeated(ports: &[u32], weights: &BTreeMap<u32, u32>) -> Vec<u32> {
    let weight = |port: &u32| weights.get(port).copied().unwrap_or(1);
    let divisor = ports.iter().map(weight).fold(0, greatest_common_divisor);
    let times: Vec<(u32, u32)> = ports.iter().map(|p| (*p, weight(p) / divisor)).collect();
    let most = times.iter().map(|t| t.1).max().unwrap_or(0);
    (0..most).flat_map(|round| times.iter().filter(move |t| t.1 > round).map(|t| t.0)).collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Hops from every switch to `from`; `u32::MAX` where there is no path.
fn distances(neighbours: &[Vec<(u32, u32)>], from: u32) -> Vec<u32> {
    let mut distance = vec![u32::MAX; neighbours.len()];
    distance[from as usize] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(s) = queue.pop_front() {
        for &(_, n) in &neighbours[s as usize] {
            if distance[n as usize] == u32::MAX {
                distance[n as usize] = distance[s as usize] + 1;
                queue.push_back(n);
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_repeated_by_their_weights_in_lowest_terms() {
        let weights = |list: &[(u32, u32)]| list.iter().copied().collect::<BTreeMap<_, _>>();
        assert_eq!(repeated(&[4, 7, 9], &BTreeMap::new()), [4, 7, 9]);
        assert_eq!(repeated(&[4, 7], &weights(&[(4, 30), (7, 10)])), [4, 7, 4, 4]);
        assert_eq!(repeated(&[4, 7], &weights(&[(4, 64), (7, 64)])), [4, 7]);
        assert_eq!(repeated(&[4, 7, 9], &weights(&[(7, 2), (1, 9)])), [4, 7, 9, 7]);
    }
}
