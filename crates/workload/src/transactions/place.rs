//! Placement of the components of transactions on hosts.

use crate::protocol::Cluster;
use eastwest_engine::random::Stream;
use eastwest_types::HostId;
use serde::{Deserialize, Serialize};

/// Rule for the placement of components on hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// Explicit list with the host of each component.
    Given(Vec<HostId>),
    /// The first `per_host` components run on the first host, the next on the next host: components
    /// with neighbouring numbers share hosts and racks.
    Block {
        /// Hosts in the order in which they are filled.
        hosts: Vec<HostId>,
        /// Number of components on each host; `None`: the smallest sufficient number.
        per_host: Option<u32>,
    },
    /// Components run on the first host of every rack, then on the second host of every rack, and
    /// so on: components with neighbouring numbers are in different racks.
    RoundRobin(Vec<HostId>),
    /// Components run on the listed hosts in an order shuffled by the seed.
    Random(Vec<HostId>),
}

impl Placement {
    /// Returns the host of each of `count` components, or an error if they cannot be placed.
    pub(super) fn hosts(&self, count: usize, cluster: &Cluster) -> Result<Vec<HostId>, String> {
        let (Placement::Given(hosts)
        | Placement::Block { hosts, .. }
        | Placement::RoundRobin(hosts)
        | Placement::Random(hosts)) = self;
        let known = cluster.rack_of.len();
        if let Some(host) = hosts.iter().find(|h| h.0 as usize >= known) {
            return Err(format!("hosts: there is no host {}; there are {known} hosts", host.0));
        }
        if hosts.is_empty() {
            return Err("hosts: at least one host is needed".to_owned());
        }
        match self {
            Placement::Given(hosts) if hosts.len() == count => Ok(hosts.clone()),
            Placement::Given(hosts) => Err(format!(
                "placement: names {} hosts for {count} components, but each component needs one \
                 host",
                hosts.len()
            )),
            Placement::Block { hosts, per_host } => {
                let fewest = count.div_ceil(hosts.len()).max(1);
                let each = per_host.map_or(fewest, |n| n as usize);
                if each < fewest {
                    return Err(format!(
                        "per_host: {count} components on {} hosts need at least {fewest} \
                         components on each host",
                        hosts.len()
                    ));
                }
                Ok((0..count).map(|i| hosts[i / each]).collect())
            }
            Placement::RoundRobin(hosts) => Ok(around(&over_racks(hosts, &cluster.rack_of), count)),
            Placement::Random(hosts) => {
                let mut hosts = hosts.clone();
                Stream::new(cluster.seed, "transactions/placement").shuffle(&mut hosts);
                Ok(around(&hosts, count))
            }
        }
    }
}

/// Returns the first `count` hosts of the list, repeated from its start as often as necessary.
fn around(hosts: &[HostId], count: usize) -> Vec<HostId> {
    hosts.iter().copied().cycle().take(count).collect()
}

/// Returns the hosts in the order: first host of every rack, second host of every rack, and so on.
/// `rack_of`: rack of each host of the fabric, by host number.
fn over_racks(hosts: &[HostId], rack_of: &[u32]) -> Vec<HostId> {
    let racks = rack_of.iter().max().map_or(0, |&last| last as usize + 1);
    let mut within = vec![0u32; racks];
    let mut order: Vec<(u32, u32, HostId)> = hosts
        .iter()
        .map(|&host| {
            let rack = rack_of[host.0 as usize];
            let place = &mut within[rack as usize];
            *place += 1;
            (*place, rack, host)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, host)| host).collect()
}
