//! Extended generalised fat trees XGFT(h; m₁…m_h; w₁…w_h) (Öhring, Ibel, Das and Kumar, *On
//! Generalized Fat Trees*, IPPS 1995). The k-ary n-trees (Petrini and Vanneschi, *k-ary n-trees*,
//! IPPS 1997) are the trees XGFT(n; k…k; 1, k…k).
//!
//! A node of level l has m_l children and w_(l+1) parents. Its name has h digits: digit i is below
//! w_i for the first l digits, and below m_i for the other digits. Two nodes of levels l and l + 1
//! are connected if their names agree in all digits except digit l + 1. Hosts are level 0. The
//! first digit changes fastest, so that hosts are numbered switch by switch. w₁ is 1, since a host
//! has one cable.
//!
//! Hosts are named `h0…`, switches of level 1 `s1.0…`. The ports of a switch are first the ports
//! down, then the ports up, both in the order of the digit in which the two nodes differ.

use super::description::{CableConfig, Topology};
use super::graph::number;
use super::regular::{Level, Regular};
use eastwest_engine::interrupt;

/// Shape of an extended generalised fat tree: numbers of children and of parents of the nodes of
/// each level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xgft {
    /// Number of children of a node of each level, from level 1 on (m₁…m_h).
    pub children: Vec<u32>,
    /// Number of parents of a node of each level, from level 0 (hosts) on (w₁…w_h); w₁ is 1.
    pub parents: Vec<u32>,
}

impl Xgft {
    /// Returns the shape of the k-ary n-tree, which has n levels of switches.
    pub fn k_ary_n_tree(k: u32, n: u32) -> Xgft {
        let parents = (0..n).map(|level| if level == 0 { 1 } else { k }).collect();
        Xgft { children: vec![k; n as usize], parents }
    }

    /// Returns the number of nodes of level `level` (0 for hosts): w₁…w_l · m_(l+1)…m_h.
    pub fn nodes(&self, level: usize) -> u64 {
        let below = self.parents[..level].iter();
        let above = self.children[level..].iter();
        below.chain(above).fold(1u64, |n, &d| n.saturating_mul(u64::from(d)))
    }

    /// Returns the number of nodes of all levels, hosts and switches.
    pub fn all_nodes(&self) -> u64 {
        (0..=self.children.len()).map(|level| self.nodes(level)).fold(0, u64::saturating_add)
    }

    /// Returns the number of cables, including cables of hosts.
    pub fn cables(&self) -> u64 {
        let of = |level: usize| self.nodes(level).saturating_mul(u64::from(self.parents[level]));
        (0..self.children.len()).map(of).fold(0, u64::saturating_add)
    }

    /// Returns the rule by which the switches are connected. The caller has checked the size of the
    /// tree.
    fn regular(&self) -> Regular {
        let (mut alike, mut edges) = (1, 1);
        let level = |(level, (&children, &parents)): (usize, (&u32, &u32))| {
            alike *= parents;
            edges *= if level == 0 { 1 } else { children };
            Level { switches: number(self.nodes(level + 1)), alike, edges }
        };
        let levels = self.children.iter().zip(&self.parents).enumerate();
        Regular::Tree(levels.map(level).collect())
    }

    /// Builds the topology of this shape. The caller has checked the number of nodes.
    pub fn build(&self, host: CableConfig, uplink: CableConfig) -> Topology {
        let levels = self.children.len();
        let hosts = (0..self.nodes(0)).map(|i| format!("h{i}")).collect();
        let named = |level: usize| (0..self.nodes(level)).map(move |i| format!("s{level}.{i}"));
        let switches = (1..=levels).flat_map(named).collect();
        let (mut cables, mut below) = (Vec::new(), 0u64);
        for level in 0..levels {
            let above = below + self.nodes(level);
            // Number of combinations of the digits before digit l + 1, in which both nodes agree.
            let low: u64 = self.parents[..level].iter().map(|&w| u64::from(w)).product();
            let (m, w) = (u64::from(self.children[level]), u64::from(self.parents[level]));
            let config = if level == 0 { host } else { uplink };
            for node in 0..self.nodes(level) {
                interrupt::steps(w);
                let (rest, digits) = (node / low / m, node % low);
                for digit in 0..w {
                    let parent = (rest * w + digit) * low + digits;
                    cables.push((number(below + node), number(above + parent), config));
                }
            }
            below = above;
        }
        Topology::Graph { hosts, switches, cables, regular: Some(self.regular()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::*;
    use eastwest_types::{Rate, Span};

    const CABLE: CableConfig = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(1) };

    fn shape(xgft: &Xgft) -> Shape {
        let shape = Shape::of(&xgft.build(CABLE, CABLE));
        assert_eq!(shape.nodes() as u64, xgft.all_nodes());
        assert_eq!(shape.cables() as u64, xgft.cables());
        shape
    }

    #[test]
    fn k_ary_n_trees_have_the_published_size_and_diversity() {
        // There are kⁿ hosts and n kⁿ⁻¹ switches with 2k ports; switches of the top level have k
        // ports.
        for (k, n) in [(2u32, 3u32), (3, 2), (4, 3)] {
            let shape = shape(&Xgft::k_ary_n_tree(k, n));
            let (hosts, per_level) = (k.pow(n) as usize, k.pow(n - 1) as usize);
            assert_eq!((shape.hosts, shape.switches()), (hosts, n as usize * per_level));
            let degrees: Vec<usize> = (hosts..shape.nodes()).map(|s| shape.degree(s)).collect();
            let tops = degrees.iter().filter(|&&d| d == k as usize).count();
            assert_eq!(tops, per_level);
            assert!(degrees.iter().all(|&d| d == k as usize || d == 2 * k as usize));
            // Paths go up to the root and down again, with k choices at each of the n − 1 steps up
            // between switches.
            assert_eq!(shape.diameter(), 2 * n as usize);
            assert_eq!(shape.paths(0, hosts - 1), per_level as u64);
            assert_eq!(shape.paths(0, k as usize - 1), 1);
            // Bisection between two halves of the hosts: it is full, except if k is odd.
            if k % 2 == 0 {
                assert_eq!(shape.bisection_of_hosts(), hosts / 2);
            }
        }
    }

    #[test]
    fn slimmed_trees_are_built_as_their_digits_say() {
        // Two levels, four hosts on each switch, and two parents of each switch: 2:1
        // over-subscription.
        let slim = Xgft { children: vec![4, 4], parents: vec![1, 2] };
        let shape = shape(&slim);
        assert_eq!((shape.hosts, shape.switches()), (16, 6));
        assert_eq!((shape.diameter(), shape.paths(0, 15)), (4, 2));
        assert_eq!(shape.bisection_of_hosts(), 4);
        // A tree with one level is a star.
        let star = Xgft { children: vec![5], parents: vec![1] };
        assert_eq!(self::shape(&star).diameter(), 2);
    }
}
