//! Properties of topologies for tests: distances, numbers of shortest paths, and cuts.

use super::Graph;
use super::description::Topology;
use std::collections::VecDeque;

/// Graph of a topology as lists of neighbours.
pub struct Shape {
    /// Number of hosts; nodes are numbered with hosts first.
    pub hosts: usize,
    neighbours: Vec<Vec<usize>>,
}

impl Shape {
    /// Returns the graph of a topology as lists of neighbours.
    pub fn of(topology: &Topology) -> Shape {
        let graph = Graph::build(topology);
        let mut neighbours = vec![Vec::new(); graph.names.len()];
        for cable in &graph.cables {
            neighbours[cable.a as usize].push(cable.b as usize);
            neighbours[cable.b as usize].push(cable.a as usize);
        }
        assert!(neighbours[..graph.hosts as usize].iter().all(|n| n.len() == 1));
        let mut names = graph.names.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), neighbours.len(), "names are unique");
        Shape { hosts: graph.hosts as usize, neighbours }
    }

    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    pub fn switches(&self) -> usize {
        self.nodes() - self.hosts
    }

    pub fn cables(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    pub fn degree(&self, node: usize) -> usize {
        self.neighbours[node].len()
    }

    /// Returns for each node the hop count from `start`, and the number of shortest paths from
    /// there.
    fn from(&self, start: usize) -> (Vec<usize>, Vec<u64>) {
        let mut distance = vec![usize::MAX; self.nodes()];
        let mut paths = vec![0; self.nodes()];
        (distance[start], paths[start]) = (0, 1);
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &next in &self.neighbours[node] {
                if distance[next] == usize::MAX {
                    distance[next] = distance[node] + 1;
                    queue.push_back(next);
                }
                if distance[next] == distance[node] + 1 {
                    paths[next] += paths[node];
                }
            }
        }
        (distance, paths)
    }

    /// Returns the largest number of links on a shortest path between two hosts.
    pub fn diameter(&self) -> usize {
        let farthest = |host| self.from(host).0[..self.hosts].iter().copied().max();
        (0..self.hosts).filter_map(farthest).max().expect("there are hosts")
    }

    /// Returns the number of shortest paths between two nodes.
    pub fn paths(&self, from: usize, to: usize) -> u64 {
        self.from(from).1[to]
    }

    /// Returns the number of cables between two sets of switches. `first` returns whether the
    /// switch with a given number is in the first set.
    pub fn cut(&self, first: impl Fn(usize) -> bool) -> usize {
        let side = |node: usize| first(node - self.hosts);
        let crossing = |a: usize| {
            let others = self.neighbours[a].iter().filter(|&&b| b >= self.hosts);
            others.filter(|&&b| side(a) && !side(b)).count()
        };
        (self.hosts..self.nodes()).map(crossing).sum()
    }

    /// Returns the smallest number of cables that separate the first half of the hosts from the
    /// second half. This number is the maximum flow between the two halves (Ford and Fulkerson), if
    /// each cable has capacity 1 in each direction.
    pub fn bisection_of_hosts(&self) -> usize {
        let mut room: Vec<Vec<i32>> = self.neighbours.iter().map(|n| vec![1; n.len()]).collect();
        let mut flow = 0;
        while let Some(path) = self.augmenting(&room) {
            for &(node, port) in &path {
                let next = self.neighbours[node][port];
                room[node][port] -= 1;
                // Parallel cables are equivalent, so that any of them can carry the reverse flow.
                let back = self.neighbours[next].iter().position(|&n| n == node);
                room[next][back.expect("a cable has two ends")] += 1;
            }
            flow += 1;
        }
        flow
    }

    /// Returns an augmenting path, as (node, port), from a host of the first half to a host of the
    /// second half; `None` if there is no augmenting path.
    fn augmenting(&self, room: &[Vec<i32>]) -> Option<Vec<(usize, usize)>> {
        let half = self.hosts / 2;
        let mut before: Vec<Option<(usize, usize)>> = vec![None; self.nodes()];
        let mut seen: Vec<bool> = (0..self.nodes()).map(|n| n < half).collect();
        let mut queue: VecDeque<usize> = (0..half).collect();
        while let Some(node) = queue.pop_front() {
            for (port, &next) in self.neighbours[node].iter().enumerate() {
                if room[node][port] <= 0 || std::mem::replace(&mut seen[next], true) {
                    continue;
                }
                before[next] = Some((node, port));
                if (half..self.hosts).contains(&next) {
                    let mut path = Vec::new();
                    let mut at = next;
                    while let Some(step) = before[at] {
                        path.push(step);
                        at = step.0;
                    }
                    return Some(path);
                }
                queue.push_back(next);
            }
        }
        None
    }
}
