//! Properties of the fabric that the settings of workloads depend on.

use crate::scenario::cables::rates_of_hosts;
use crate::scenario::fabric::Fabric;
use crate::scenario::files::Context;
use crate::scenario::nodes::Nodes;
use eastwest_types::{HostId, Rate};
use eastwest_workload::Cluster;
use std::cell::Cell;

/// Properties of the fabric that the settings of workloads depend on.
pub struct Ground<'a> {
    /// Nodes by name and number; `None` if the topology could not be read.
    pub nodes: Option<&'a Nodes>,
    /// Hosts and racks; `None` if the topology could not be read.
    pub cluster: Option<Cluster>,
    /// Sum of the rates of the cards of each host, indexed by host; empty if the topology could not
    /// be read.
    host_rates: Vec<Rate>,
    /// MTU in bytes; `None` if the setting is wrong.
    pub mtu: Option<u32>,
    /// Directories, files and mechanisms that the scenario may use.
    pub context: &'a Context,
    /// Number of MapReduce jobs that further workloads of the scenario may have.
    /// [`Ground::admit_jobs`] reduces this number.
    jobs_left: Cell<usize>,
}

/// Maximum number of MapReduce jobs of a scenario.
const MOST_JOBS: usize = 200_000;

impl<'a> Ground<'a> {
    /// Returns the properties of a fabric; `seed` is the seed of the scenario.
    pub fn new(fabric: &'a Fabric, seed: u64, context: &'a Context) -> Ground<'a> {
        let nodes = fabric.nodes.as_ref();
        let cluster = nodes.map(|n| Cluster { rack_of: n.racks(), seed });
        let host_rates = rates_of_hosts(nodes.map(|_| &fabric.config.topology));
        let jobs_left = Cell::new(MOST_JOBS);
        Ground { nodes, cluster, host_rates, mtu: fabric.mtu, context, jobs_left }
    }

    /// Returns the rate of the slowest host, as the sum of the rates of its cards; 1 Gbit/s if the
    /// topology could not be read.
    pub fn slowest_host_rate(&self) -> Rate {
        self.host_rates.iter().copied().min().unwrap_or(Rate::gbit(1))
    }

    /// Returns the mean of the rates of `hosts` in bit/s. The rate of a host is the sum of the
    /// rates of its cards. An empty list stands for all hosts. The result is 1 Gbit/s if the
    /// topology could not be read.
    pub fn mean_host_rate(&self, hosts: &[HostId]) -> f64 {
        let of_host = |host: &HostId| self.host_rates.get(host.0 as usize).copied();
        let rates: Vec<Rate> = match hosts {
            [] => self.host_rates.clone(),
            hosts => hosts.iter().filter_map(of_host).collect(),
        };
        mean(&rates).unwrap_or(1e9)
    }

    /// Counts `jobs` further MapReduce jobs. Fails with a message if the scenario has more jobs
    /// than allowed.
    pub fn admit_jobs(&self, jobs: usize) -> Result<(), String> {
        match self.jobs_left.get().checked_sub(jobs) {
            Some(left) => {
                self.jobs_left.set(left);
                Ok(())
            }
            None => Err(format!("leads to too many jobs: a scenario has at most {MOST_JOBS}")),
        }
    }
}

/// Returns the mean of `rates` in bit/s; `None` without rates. The mean of equal rates is exactly
/// this rate, also where the sum exceeds the 53 bits of a floating-point number.
fn mean(rates: &[Rate]) -> Option<f64> {
    let first = rates.first()?;
    let above: i128 = rates.iter().map(|rate| i128::from(rate.0) - i128::from(first.0)).sum();
    Some(first.0 as f64 + above as f64 / rates.len() as f64)
}
