//! Properties of the fabric that the settings of workloads depend on.

use crate::scenario::cables::rate_of_all_cards;
use crate::scenario::fabric::Fabric;
use crate::scenario::files::Context;
use crate::scenario::nodes::Nodes;
use eastwest_types::Rate;
use eastwest_workload::Cluster;
use std::cell::Cell;

/// Properties of the fabric that the settings of workloads depend on.
pub struct Ground<'a> {
    /// Nodes by name and number; `None` if the topology could not be read.
    pub nodes: Option<&'a Nodes>,
    /// Hosts and racks; `None` if the topology could not be read.
    pub cluster: Option<Cluster>,
    /// Sum of the rates of the cards of a host; if hosts differ, the smallest sum. Settings call
    /// this value the host rate.
    pub host_rate: Rate,
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
        let host_rate = rate_of_all_cards(nodes.map(|_| &fabric.config.topology));
        let jobs_left = Cell::new(MOST_JOBS);
        Ground { nodes, cluster, host_rate, mtu: fabric.mtu, context, jobs_left }
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
