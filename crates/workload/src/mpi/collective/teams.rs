//! Ranks of a group by host, for algorithms in two levels.

use eastwest_types::HostId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ranks of a group by host. All hosts have an equal number of ranks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Teams {
    /// Ranks of each host, in ascending order.
    hosts: Vec<Vec<u32>>,
    /// Host of each rank, and number of the rank on its host.
    places: Vec<(u32, u32)>,
}

impl Teams {
    /// Returns the teams of ranks on the given hosts; `None` if two levels are not possible: the
    /// hosts have different numbers of ranks, or one rank each, or there is only one host.
    pub fn of(hosts: impl Iterator<Item = HostId>) -> Option<Teams> {
        let mut by_host: BTreeMap<HostId, Vec<u32>> = BTreeMap::new();
        for (rank, host) in (0..).zip(hosts) {
            by_host.entry(host).or_default().push(rank);
        }
        let hosts: Vec<Vec<u32>> = by_host.into_values().collect();
        let size = hosts.first()?.len();
        if size < 2 || hosts.len() < 2 || hosts.iter().any(|ranks| ranks.len() != size) {
            return None;
        }
        let mut places = vec![(0, 0); size * hosts.len()];
        for (host, ranks) in (0..).zip(&hosts) {
            for (number, rank) in (0..).zip(ranks) {
                places[*rank as usize] = (host, number);
            }
        }
        Some(Teams { hosts, places })
    }

    /// Returns the host of a rank, and the number of the rank on its host.
    pub(super) fn place(&self, rank: u32) -> (u32, u32) {
        self.places[rank as usize]
    }

    /// Returns the rank that has a number on a host.
    pub(super) fn rank(&self, host: u32, number: u32) -> u32 {
        self.hosts[host as usize][number as usize]
    }

    /// Returns the number of ranks of a host, and the number of hosts.
    pub(super) fn sizes(&self) -> (u32, u32) {
        (self.hosts[0].len() as u32, self.hosts.len() as u32)
    }
}
