//! Algorithms in two levels: ranks of one host exchange data first, then ranks with the same number
//! on different hosts.

use super::call::{Call, Kind, Step, View, share};
use super::teams::Teams;
use super::{exchange, ring};

/// Returns a step whose ranks are numbers on the host `host`, with their numbers in the group.
fn on_host(teams: &Teams, host: u32, step: Step) -> Step {
    step.renumbered(|number| teams.rank(host, number))
}

/// Returns a step whose ranks are hosts, with the ranks that have the number `number` there.
fn across_hosts(teams: &Teams, number: u32, step: Step) -> Step {
    step.renumbered(|host| teams.rank(host, number))
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
    let (host, number) = teams.place(v.rank);
    let (local, hosts) = teams.sizes();
    let parts: Vec<u64> = (0..local).map(|part| share(v.size(), local, part)).collect();
    let between = Call::new(Kind::Allreduce).size(parts[number as usize]);
    let within = Call::new(Kind::Allgather).sizes(parts);
    let rounds = local - 1;
    let Some(k) = k.checked_sub(rounds) else {
        let step = ring::reduce_scatter(inner(&within, number, local), k)?;
        return Some(on_host(teams, host, step));
    };
    let across = |k| exchange::rabenseifner(inner(&between, host, hosts), k);
    if let Some(step) = across(k) {
        return Some(across_hosts(teams, number, step));
    }
    let steps = (0..k).take_while(|&k| across(k).is_some()).count() as u32;
    let step = ring::allgather(inner(&within, number, local), k - steps)?;
    Some(on_host(teams, host, step))
}

/// Returns step `k` of an alltoall: a rank first sends to each rank of its host the data for all
/// ranks that have the same number on other hosts as this one, then to each host the data of all
/// ranks of its own host; both pairwise (2D hierarchical all-to-all, Hwang et al., *Tutel*, MLSys
/// 2023).
pub(super) fn alltoall(v: View, teams: &Teams, k: u32) -> Option<Step> {
    let (host, number) = teams.place(v.rank);
    let (local, hosts) = teams.sizes();
    match k.checked_sub(local - 1) {
        None => {
            let call = Call::new(Kind::Alltoall).size(v.size() * u64::from(hosts));
            let step = exchange::pairwise(inner(&call, number, local), k)?;
            Some(on_host(teams, host, step))
        }
        Some(k) => {
            let call = Call::new(Kind::Alltoall).size(v.size() * u64::from(local));
            let step = exchange::pairwise(inner(&call, host, hosts), k)?;
            Some(across_hosts(teams, number, step))
        }
    }
}
