//! Directions in regular fabrics. From one switch, all edge switches in one direction are reached
//! through the same ports. Therefore the table of next hops needs entries only by switch and
//! direction, not by switch and edge switch.
//!
//! - **Torus**: a direction states for each dimension the shorter way around the ring: none, up,
//!   down or both.
//! - **Tree**: a direction is the child above the edge switch, or up if the edge switch is not
//!   below the switch.

use super::neighbours::Neighbours;
use crate::topology::regular::{Level, Regular};
use serde::{Deserialize, Serialize};

/// Positions of all switches, from which the numbers of their directions follow: first the
/// directions of switch 0, then of switch 1, and so on.
#[derive(Debug, Serialize, Deserialize)]
pub enum Directions {
    /// Positions of switches in a torus, see [`Regular::Torus`].
    Torus(Torus),
    /// Positions of switches in a tree, see [`Regular::Tree`].
    Tree(Tree),
}

/// Positions of switches in a torus.
#[derive(Debug, Serialize, Deserialize)]
pub struct Torus {
    /// Number of switches along each dimension.
    sizes: Vec<u32>,
    /// Coordinates of all switches, one switch after the other; each has one coordinate per
    /// dimension.
    at: Vec<u32>,
    /// Number of directions at each switch.
    each: u32,
}

/// Positions of switches in a tree.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tree {
    levels: Vec<Level>,
    places: Vec<Place>,
    cells: u32,
}

/// Position of a switch in a tree, and the edge switches below it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place {
    /// Number of the first direction of the switch, in the numbering over all switches.
    first: u32,
    /// Number of the first edge switch below the switch. The two next fields are the number of edge
    /// switches below the switch and below each of its children.
    low: u32,
    edges: u32,
    per_child: u32,
    level: u32,
}

/// Returns the number of directions along a ring of `size` switches: none, up, down and, in an even
/// ring, both ways to the opposite point. A ring of two has only none and the opposite point.
fn along(size: u32) -> u32 {
    match size {
        2 => 2,
        size if size % 2 == 0 => 4,
        _ => 3,
    }
}

/// Returns the direction (0 to 3) along a ring of `size` switches to the point `ahead` steps
/// upwards on the ring.
#[inline]
fn turn(size: u32, ahead: u32) -> u32 {
    match 2 * ahead {
        0 => 0,
        twice if twice < size => 1,
        twice if twice > size => 2,
        _ => along(size) - 1,
    }
}

impl Torus {
    fn new(sizes: &[u32]) -> Torus {
        let switches: u32 = sizes.iter().product();
        let mut at = Vec::with_capacity(switches as usize * sizes.len());
        for switch in 0..switches {
            let mut step = switches;
            at.extend(sizes.iter().map(|&size| {
                step /= size;
                switch / step % size
            }));
        }
        Torus { sizes: sizes.to_vec(), at, each: sizes.iter().map(|&size| along(size)).product() }
    }

    fn coordinates(&self, switch: u32) -> &[u32] {
        &self.at[switch as usize * self.sizes.len()..][..self.sizes.len()]
    }

    /// Returns for each dimension its size, and how many steps `to` is ahead of `from` along the
    /// ring.
    #[inline]
    fn ahead(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, u32)> {
        let ends = self.coordinates(from).iter().zip(self.coordinates(to));
        self.sizes.iter().zip(ends).map(|(&size, (&from, &to))| {
            (size, if to >= from { to - from } else { to + size - from })
        })
    }

    fn cell(&self, switch: u32, edge: u32) -> u32 {
        let turns = self
            .ahead(switch, edge)
            .fold(0, |all, (size, ahead)| all * along(size) + turn(size, ahead));
        switch * self.each + turns
    }

    /// Returns an edge switch that lies in the direction `direction` of a switch.
    fn example(&self, switch: u32, direction: u32) -> u32 {
        let (mut left, mut step, mut edge) = (direction, 1, 0);
        for (&size, &at) in self.sizes.iter().zip(self.coordinates(switch)).rev() {
            let ahead = match left % along(size) {
                last if last != 0 && last == along(size) - 1 && size % 2 == 0 => size / 2,
                2 => size - 1,
                turn => turn,
            };
            edge += (at + ahead) % size * step;
            left /= along(size);
            step *= size;
        }
        edge
    }
}

impl Tree {
    fn new(levels: &[Level]) -> Tree {
        let mut tree = Tree { levels: levels.to_vec(), places: Vec::new(), cells: 0 };
        let mut per_child = 1;
        for (number, level) in (0..).zip(levels) {
            for i in 0..level.switches {
                tree.places.push(Place {
                    first: tree.cells,
                    low: i / level.alike * level.edges,
                    edges: level.edges,
                    per_child,
                    level: number,
                });
                tree.cells += level.edges / per_child + 1;
            }
            per_child = level.edges;
        }
        tree
    }

    fn cell(&self, switch: u32, edge: u32) -> u32 {
        let place = &self.places[switch as usize];
        // An edge switch that is not below this switch is in the direction "up". If its number is
        // smaller than `low`, the subtraction wraps to a large number, which also means "up".
        place.first + edge.wrapping_sub(place.low).min(place.edges) / place.per_child
    }

    fn example(&self, switch: u32, direction: u32) -> Option<u32> {
        let place = &self.places[switch as usize];
        let below = direction * place.per_child;
        let edge = (place.low + below) % self.levels[0].switches;
        (below < place.edges || place.edges < self.levels[0].switches).then_some(edge)
    }

    fn hops(&self, switch: u32, edge: u32) -> u32 {
        let place = &self.places[switch as usize];
        let common = |&level: &u32| {
            let edges = self.levels[level as usize].edges;
            place.low / edges == edge / edges
        };
        let top = (place.level..).find(common).expect("the top level is above all nodes");
        (top - place.level) + top
    }
}

impl Directions {
    /// Returns the positions of all switches of a regular fabric.
    pub fn new(regular: &Regular) -> Directions {
        match regular {
            Regular::Torus(sizes) => Directions::Torus(Torus::new(sizes)),
            Regular::Tree(levels) => Directions::Tree(Tree::new(levels)),
        }
    }

    /// Returns the memory in bytes for the positions of all switches of a regular fabric.
    pub fn bytes_of(regular: &Regular) -> u64 {
        let each = match regular {
            Regular::Torus(sizes) => sizes.len() * size_of::<u32>(),
            Regular::Tree(_) => size_of::<Place>(),
        };
        u64::from(regular.switches()) * each as u64
    }

    /// Returns the number of the direction in which the edge switch `edge` lies from `switch`.
    /// Directions of all switches are numbered consecutively.
    #[inline]
    pub fn cell(&self, switch: u32, edge: u32) -> usize {
        match self {
            Directions::Torus(torus) => torus.cell(switch, edge) as usize,
            Directions::Tree(tree) => tree.cell(switch, edge) as usize,
        }
    }

    /// Returns for every direction of a switch, in order, an edge switch in this direction; `None`
    /// if no edge switch is in this direction.
    pub fn examples(&self, switch: u32) -> Vec<Option<u32>> {
        match self {
            Directions::Torus(torus) => {
                (0..torus.each).map(|direction| Some(torus.example(switch, direction))).collect()
            }
            Directions::Tree(tree) => {
                let place = &tree.places[switch as usize];
                (0..=place.edges / place.per_child).map(|d| tree.example(switch, d)).collect()
            }
        }
    }

    /// Returns the number of links on a shortest path from a switch to an edge switch.
    pub fn hops(&self, switch: u32, edge: u32) -> u32 {
        match self {
            Directions::Torus(torus) => {
                torus.ahead(switch, edge).map(|(size, ahead)| ahead.min(size - ahead)).sum()
            }
            Directions::Tree(tree) => tree.hops(switch, edge),
        }
    }
}

/// Returns the number of directions of all switches together. Positions are not computed.
pub fn count(regular: &Regular) -> u64 {
    match regular {
        Regular::Torus(sizes) => {
            let each = |n: u64, &size: &u32| n.saturating_mul(u64::from(along(size)));
            sizes.iter().fold(u64::from(regular.switches()), each)
        }
        Regular::Tree(levels) => {
            let below = std::iter::once(1).chain(levels.iter().map(|level| level.edges));
            let each = |(level, below): (&Level, u32)| {
                u64::from(level.switches) * u64::from(level.edges / below + 1)
            };
            levels.iter().zip(below).map(each).sum()
        }
    }
}

/// Sets `ports` to the ports of `switch` that lead to the edge switch `edge` on shortest paths
/// while all cables are usable, in the order of links.
pub fn towards(
    directions: &Directions,
    all: &Neighbours,
    switch: u32,
    edge: u32,
    ports: &mut Vec<u32>,
) {
    let hops = directions.hops(switch, edge);
    let closer = |&&(_, next): &&(u32, u32)| directions.hops(next, edge) + 1 == hops;
    ports.clear();
    ports.extend(all.of(switch).iter().filter(closer).map(|&(link, _)| link));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_lies_in_its_direction() {
        for sizes in [&[2u32, 3][..], &[4, 5], &[7], &[2, 2, 2], &[6, 4, 3]] {
            let regular = Regular::Torus(sizes.to_vec());
            let directions = Directions::new(&regular);
            let mut cells = 0;
            for switch in 0..regular.switches() {
                for example in directions.examples(switch) {
                    let edge = example.expect("a ring has all directions");
                    assert_eq!(directions.cell(switch, edge), cells, "{sizes:?} {switch}");
                    cells += 1;
                }
            }
            assert_eq!(cells as u64, count(&regular), "{sizes:?}");
        }
    }
}
