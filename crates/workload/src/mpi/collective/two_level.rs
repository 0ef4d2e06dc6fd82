//! Algorithms in two levels: ranks of one host exchange data first, then ranks with the same number
//! on different hosts.

use super::call::{Call, Kind, Step, View, share};
use super::{exchange, ring};
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

    /// Returns a step whose ranks are numbers on the host `host`, with their numbers in the group.
    fn on_host(&self, host: u32, step: Step) -> Step {
        step.renumbered(|number| self.hosts[host as usize][number as usize])
    }

    /// Returns a step whose ranks are hosts, with the ranks that have the number `number` there.
    fn across(&self, number: u32, step: Step) -> Step {
        step.renumbered(|host| self.hosts[host as usize][number as usize])
    }

    /// Returns the number of ranks of a host, and the number of hosts.
    fn sizes(&self) -> (u32, u32) {
        (self.hosts[0].len() as u32, self.hosts.len() as u32)
    }
}

/// Returns the view of a rank of a smaller call, which has one lane.
fn inner(call: &Call, rank: u32, ranks: u32) -> View<'_> {
    View { call, rank, ranks, lane: 0, lanes: 1, teams: None }
}

/// Returns step `k` of an allreduce: a ring on each host scatters the sum of its ranks,
/// Rabenseifner's algorithm sums each part across hosts, and a ring on each host gathers the parts
/// (hierarchical allreduce, Jia et al., *Highly scalable deep learning training system with
/// mixed-precision*, 2018, with scattered parts in place of one leader).
pub(super) fn allreduce(v: View, teams: &Teams, k: u32) -> Option<Step> {
    let (host, number) = teams.places[v.rank as usize];
    let (local, hosts) = teams.sizes();
    let parts: Vec<u64> = (0..local).map(|part| share(v.size(), local, part)).collect();
    let between = Call::new(Kind::Allreduce).size(parts[number as usize]);
    let within = Call::new(Kind::Allgather).sizes(parts);
    let rounds = local - 1;
    let Some(k) = k.checked_sub(rounds) else {
        let step = ring::reduce_scatter(inner(&within, number, local), k)?;
        return Some(teams.on_host(host, step));
    };
    let across = |k| exchange::rabenseifner(inner(&between, host, hosts), k);
    if let Some(step) = across(k) {
        return Some(teams.across(number, step));
    }
    let steps = (0..k).take_while(|&k| across(k).is_some()).count() as u32;
    let step = ring::allgather(inner(&within, number, local), k - steps)?;
    Some(teams.on_host(host, step))
}

/// Returns step `k` of an alltoall: a rank first sends to each rank of its host the data for all
/// ranks that have the same number on other hosts as this one, then to each host the data of all
/// ranks of its own host; both pairwise (2D hierarchical all-to-all, Hwang et al., *Tutel*, MLSys
/// 2023).
pub(super) fn alltoall(v: View, teams: &Teams, k: u32) -> Option<Step> {
    let (host, number) = teams.places[v.rank as usize];
    let (local, hosts) = teams.sizes();
    match k.checked_sub(local - 1) {
        None => {
            let call = Call::new(Kind::Alltoall).size(v.size() * u64::from(hosts));
            let step = exchange::pairwise(inner(&call, number, local), k)?;
            Some(teams.on_host(host, step))
        }
        Some(k) => {
            let call = Call::new(Kind::Alltoall).size(v.size() * u64::from(local));
            let step = exchange::pairwise(inner(&call, host, hosts), k)?;
            Some(teams.across(number, step))
        }
    }
}
