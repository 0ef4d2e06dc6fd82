//! Placement of the ranks of an MPI program on hosts.

use eastwest_engine::random::Stream;
use eastwest_types::HostId;
use std::collections::BTreeMap;

/// Rule for the placement of ranks on hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// The first `per_host` ranks run on the first host, the next ranks on the next host, and so
    /// on.
    Block,
    /// Rank `i` runs on host `i` modulo the number of hosts.
    RoundRobin,
    /// Random placement, drawn with the seed: every assignment of ranks to the places on hosts is
    /// equally likely.
    Random,
    /// Explicit list with the host of each rank.
    List(Vec<HostId>),
}

/// Returns the host of each of `ranks` ranks, with at most `per_host` ranks on a host, or an error
/// if the ranks do not fit.
pub fn place(
    placement: &Placement,
    ranks: u32,
    hosts: u32,
    per_host: u32,
    seed: u64,
) -> Result<Vec<HostId>, String> {
    if let Placement::List(list) = placement {
        return match list.len() == ranks as usize {
            true => Ok(list.clone()),
            false => {
                Err(format!("names the hosts of {} ranks, but there are {ranks} ranks", list.len()))
            }
        };
    }
    let places = u64::from(hosts) * u64::from(per_host);
    if u64::from(ranks) > places {
        return Err(format!(
            "{ranks} ranks do not fit on {hosts} hosts with {per_host} ranks on each: there is \
             room for {places}"
        ));
    }
    Ok(match placement {
        Placement::Block => (0..ranks).map(|r| HostId(r / per_host)).collect(),
        Placement::RoundRobin => (0..ranks).map(|r| HostId(r % hosts)).collect(),
        Placement::Random => {
            let mut free: Vec<HostId> =
                (0..hosts).flat_map(|h| (0..per_host).map(move |_| HostId(h))).collect();
            let mut random = Stream::new(seed, "mpi/placement");
            (0..ranks).map(|_| free.swap_remove(random.below(free.len() as u64) as usize)).collect()
        }
        Placement::List(list) => list.clone(),
    })
}

/// Returns, for each rank, its number among the ranks of its host, from 0.
pub fn local_ranks(hosts: &[HostId]) -> Vec<u32> {
    let mut next: BTreeMap<HostId, u32> = BTreeMap::new();
    let number = |host: &HostId| {
        let next = next.entry(*host).or_insert(0);
        *next += 1;
        *next - 1
    };
    hosts.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(placement: &Placement, ranks: u32, hosts: u32, per_host: u32) -> Vec<u32> {
        let placed = place(placement, ranks, hosts, per_host, 7).expect("they fit");
        placed.into_iter().map(|h| h.0).collect()
    }

    #[test]
    fn ranks_go_where_the_rule_says() {
        assert_eq!(hosts(&Placement::Block, 5, 4, 2), [0, 0, 1, 1, 2]);
        assert_eq!(hosts(&Placement::RoundRobin, 5, 4, 2), [0, 1, 2, 3, 0]);
        let mut random = hosts(&Placement::Random, 8, 4, 2);
        assert_ne!(random, hosts(&Placement::Block, 8, 4, 2));
        random.sort_unstable();
        assert_eq!(random, [0, 0, 1, 1, 2, 2, 3, 3], "no host is full twice");
        let list = Placement::List(vec![HostId(3), HostId(3)]);
        assert_eq!(hosts(&list, 2, 4, 1), [3, 3]);
    }

    #[test]
    fn ranks_are_numbered_on_each_host() {
        let placed = [0, 1, 0, 0, 1, 2].map(HostId);
        assert_eq!(local_ranks(&placed), [0, 0, 1, 2, 1, 0]);
    }

    #[test]
    fn ranks_that_do_not_fit_are_refused() {
        let refused = place(&Placement::Block, 9, 4, 2, 1).expect_err("8 places");
        assert!(refused.contains("room for 8"), "{refused}");
        assert!(place(&Placement::List(vec![HostId(0)]), 2, 4, 1, 1).is_err());
    }
}
