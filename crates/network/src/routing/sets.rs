//! Sets of equal ports, to which the table of next hops refers.

use super::entry::{GROUP_BIT, Group, NO_ROUTE};
use std::collections::BTreeMap;

/// Sets of equal ports in the order in which they were found. Equal sets are stored once.
pub struct Sets<'a> {
    weights: &'a BTreeMap<u32, u32>,
    pub groups: Vec<Group>,
    pub members: Vec<u32>,
    known: BTreeMap<Vec<u32>, u32>,
}

impl<'a> Sets<'a> {
    /// Returns an empty collection of sets. `weights` has the weights of links by link number;
    /// other links have weight 1.
    pub fn new(weights: &'a BTreeMap<u32, u32>) -> Sets<'a> {
        Sets { weights, groups: Vec::new(), members: Vec::new(), known: BTreeMap::new() }
    }

    /// Returns the entry in the table of next hops for a set of ports: no route, a single link, or
    /// a reference to the set, which is stored if it is new.
    pub fn entry(&mut self, ports: &[u32]) -> u32 {
        match *ports {
            [] => NO_ROUTE,
            [only] => only,
            _ => {
                if let Some(&entry) = self.known.get(ports) {
                    return entry;
                }
                let first = self.members.len() as u32;
                self.members.extend(repeated(ports, self.weights));
                let count = self.members.len() as u32 - first;
                self.groups.push(Group { first, count, turn: 0 });
                let entry = GROUP_BIT | (self.groups.len() - 1) as u32;
                self.known.insert(ports.to_vec(), entry);
                entry
            }
        }
    }

    /// Records `entry` as the entry in the table of next hops for the set of ports `ports`.
    pub fn remember(&mut self, ports: &[u32], entry: u32) {
        self.known.insert(ports.to_vec(), entry);
    }

    /// Clears the index of known sets of ports, so that later sets are stored as new sets. Stored
    /// sets remain.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

/// Returns the ports, each repeated according to its weight in lowest terms (WCMP: Zhou et al.,
/// EuroSys 2014), so that all elements can be chosen with equal probability. Copies of a port are
/// spread out for round robin.
fn repeated(ports: &[u32], weights: &BTreeMap<u32, u32>) -> Vec<u32> {
    if weights.is_empty() {
        return ports.to_vec();
    }
    let weight = |port: &u32| weights.get(port).copied().unwrap_or(1);
    let divisor = ports.iter().map(weight).fold(0, greatest_common_divisor);
    let times: Vec<(u32, u32)> = ports.iter().map(|p| (*p, weight(p) / divisor)).collect();
    let most = times.iter().map(|t| t.1).max().unwrap_or(0);
    (0..most).flat_map(|round| times.iter().filter(move |t| t.1 > round).map(|t| t.0)).collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
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
