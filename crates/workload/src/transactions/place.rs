//! Where components run.

use crate::protocol::Cluster;
use eastwest_engine::random::Stream;
use eastwest_types::HostId;
use serde::{Deserialize, Serialize};

/// How components come to hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// The host of every component.
    Given(Vec<HostId>),
    /// `per_host` on the first host, `per_host` on the next: neighbours share hosts and racks.
    Block {
        /// The hosts to fill.
        hosts: Vec<HostId>,
        /// Components on each; as few as suffice where it is not said.
        per_host: Option<u32>,
    },
    /// One on the first host of every rack, then on the second of every rack …: neighbours are apart.
    RoundRobin(Vec<HostId>),
    /// Shuffled by the seed, on as many hosts as there are.
    Random(Vec<HostId>),
}

impl Placement {
    /// The host of each of so many components, or why there is none.
    pub(super) fn hosts(&self, count: usize, cluster: &Cluster) -> Result<Vec<HostId>, String> {
        let (Placement::Given(hosts)
        | Placement::Block { hosts, .. }
        | Placement::RoundRobin(hosts)
        | Placement::Random(hosts)) = self;
        let known = cluster.rack_of.len();
        if let Some(host) = hosts.iter().find(|h| h.0 as usize >= known) {
            return Err(format!("hosts: there is no host {}, there are {known}", host.0));
        }
        if hosts.is_empty() {
            return Err("hosts: at least one is needed".to_owned());
        }
        match self {
            Placement::Given(hosts) if hosts.len() == count => Ok(hosts.clone()),
            Placement::Given(hosts) => {
                Err(format!("placement: {} hosts for {count} components", hosts.len()))
            }
            Placement::Block { hosts, per_host } => {
                let fewest = count.div_ceil(hosts.len()).max(1);
                let each = per_host.map_or(fewest, |n| n as usize);
                if each < fewest {
                    return Err(format!(
                        "per_host: {count} components on {} hosts need at least {fewest} on each",
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

/// Returns `count` hosts, again from the first after the last.
fn around(hosts: &[HostId], count: usize) -> Vec<HostId> {
    hosts.iter().copied().cycle().take(count).collect()
}

/// The first of every rack, then the second of every rack …, racks in order.
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
