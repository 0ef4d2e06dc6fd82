//! Dragonfly topology (Kim, Dally, Scott and Abts, *Technology-Driven, Highly-Scalable Dragonfly
//! Topology*, ISCA 2008). A group has `a` switches, each connected to all others of its group, with
//! `p` hosts and `h` cables to other groups. There are at most a h + 1 groups; with this number, one
//! cable connects each pair of groups.
//!
//! The cables of a group to others are numbered from switch to switch. With g groups, cable j of
//! group i leads to group i + 1 + (j mod (g − 1)), modulo g. If a h is not a multiple of g − 1, the
//! last cables are left out, so that all pairs of groups have an equal number of cables.
//!
//! Routing uses shortest paths: within a group, across one cable between groups, within the other
//! group, or a path through a third group if it has no more cables. The paper's Valiant and adaptive
//! routing (UGAL) is not modelled.

use super::description::{CableConfig, Topology};
use super::graph::number;
use eastwest_engine::interrupt;

/// Size of a dragonfly.
#[derive(Clone, Copy, Debug)]
pub struct Dragonfly {
    /// Number of groups, at least 2.
    pub groups: u32,
    /// Number of switches of a group.
    pub switches: u32,
    /// Number of hosts of a switch.
    pub hosts: u32,
    /// Number of cables of a switch to other groups.
    pub global: u32,
}

impl Dragonfly {
    /// Returns the largest number of groups in which each pair has a cable: a h + 1.
    pub fn most_groups(&self) -> u64 {
        u64::from(self.switches) * u64::from(self.global) + 1
    }

    /// Returns the number of hosts and switches.
    pub fn nodes(&self) -> u64 {
        self.all_switches() * (1 + u64::from(self.hosts))
    }

    fn all_switches(&self) -> u64 {
        u64::from(self.groups) * u64::from(self.switches)
    }

    /// Returns the number of cables between each pair of groups.
    pub fn between(&self) -> u64 {
        u64::from(self.switches) * u64::from(self.global)
            / u64::from(self.groups).saturating_sub(1).max(1)
    }

    /// Returns the number of cables, including those of hosts.
    pub fn cables(&self) -> u64 {
        let (groups, switches) = (u64::from(self.groups), u64::from(self.switches));
        let inside = groups * switches * switches.saturating_sub(1) / 2;
        let across = groups * groups.saturating_sub(1) / 2;
        let of_hosts = self.all_switches() * u64::from(self.hosts);
        of_hosts + inside + across.saturating_mul(self.between())
    }

    /// Builds the fabric: `local` are the cables inside groups, `global` those between groups. The
    /// caller has checked the number of nodes.
    pub fn build(&self, host: CableConfig, local: CableConfig, global: CableConfig) -> Topology {
        let (groups, each) = (self.groups, self.switches);
        let all = number(self.all_switches());
        let hosts = all * self.hosts;
        let mut cables: Vec<_> = (0..hosts).map(|h| (h, hosts + h / self.hosts, host)).collect();
        for group in 0..groups {
            let first = hosts + group * each;
            for i in 0..each {
                interrupt::steps(u64::from(each));
                cables.extend((i + 1..each).map(|j| (first + i, first + j, local)));
            }
        }
        let others = groups - 1;
        let switch = |group: u32, cable: u32| hosts + group * each + cable / self.global;
        for copy in 0..number(self.between()) {
            for group in 0..groups {
                interrupt::steps(u64::from(others));
                // to the groups with larger numbers; their cable has the opposite distance
                for distance in 1..groups - group {
                    let here = copy * others + distance - 1;
                    let there = copy * others + groups - distance - 1;
                    let ends = (switch(group, here), switch(group + distance, there));
                    cables.push((ends.0, ends.1, global));
                }
            }
        }
        let name = |i: u32| format!("g{}.s{}", i / each, i % each);
        Topology::Graph {
            hosts: (0..hosts).map(|i| format!("h{i}")).collect(),
            switches: (0..all).map(name).collect(),
            cables,
            regular: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::*;
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    #[test]
    fn sizes_degrees_and_diameter_are_the_published_ones() {
        // Kim et al., figure 5: p = h = 2, a = 4 has 9 groups and 72 hosts
        for (p, a, h, groups, hosts) in [(2, 4, 2, 9, 72), (1, 2, 1, 3, 6), (3, 6, 3, 19, 342)] {
            let of = Dragonfly { groups, switches: a, hosts: p, global: h };
            assert_eq!(of.most_groups(), u64::from(groups));
            let shape = Shape::of(&of.build(CABLE, CABLE, CABLE));
            assert_eq!(shape.hosts, hosts);
            assert_eq!(shape.nodes() as u64, of.nodes());
            assert_eq!(shape.cables() as u64, of.cables());
            // at most three cables between switches, and two of hosts
            assert_eq!(shape.diameter(), 5);
            let degree = (p + a - 1 + h) as usize;
            assert!((shape.hosts..shape.nodes()).all(|switch| shape.degree(switch) == degree));
        }
    }

    #[test]
    fn all_pairs_of_groups_have_an_equal_number_of_cables() {
        for (groups, between) in [(2, 8), (3, 4), (5, 2), (6, 1), (9, 1)] {
            let of = Dragonfly { groups, switches: 4, hosts: 1, global: 2 };
            assert_eq!(of.between(), between);
            let Topology::Graph { cables, .. } = of.build(CABLE, CABLE, CABLE) else {
                unreachable!("a graph")
            };
            let hosts = groups * 4;
            let group = |node: u32| (node - hosts) / 4;
            for a in 0..groups {
                for b in a + 1..groups {
                    let count = cables
                        .iter()
                        .filter(|(x, y, _)| *x >= hosts && (group(*x), group(*y)) == (a, b));
                    assert_eq!(count.count() as u64, between, "{groups}: {a} {b}");
                }
            }
            let most = (0..4 * groups).map(|i| {
                let node = hosts + i;
                let global = |&&(x, y, _): &&(u32, u32, CableConfig)| {
                    x >= hosts && group(x) != group(y) && (x == node || y == node)
                };
                cables.iter().filter(global).count()
            });
            assert!(most.max() <= Some(2), "no switch has more cables to other groups than h");
        }
    }
}
