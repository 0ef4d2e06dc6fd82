//! What workloads may rely on: the fabric below them.

use crate::scenario::cables::host_rate;
use crate::scenario::fabric::Fabric;
use crate::scenario::files::Context;
use crate::scenario::nodes::Nodes;
use eastwest_types::Rate;
use eastwest_workload::Cluster;
use std::cell::Cell;

/// What workloads may rely on: the fabric below them.
pub struct Ground<'a> {
    /// Its nodes, where the topology could be read.
    pub nodes: Option<&'a Nodes>,
    /// Its hosts and racks, likewise.
    pub cluster: Option<Cluster>,
    /// Rate of the (slowest) host cable.
    pub host_rate: Rate,
    /// Largest packet, where known.
    pub mtu: Option<u32>,
    /// Where files are.
    pub context: &'a Context,
    /// How many more jobs the scenario may have.
    jobs_left: Cell<usize>,
}

/// Most jobs of a scenario.
const MOST_JOBS: usize = 200_000;

impl<'a> Ground<'a> {
    /// The ground a fabric gives.
    pub fn new(fabric: &'a Fabric, seed: u64, context: &'a Context) -> Ground<'a> {
        let nodes = fabric.nodes.as_ref();
        let cluster = nodes.map(|n| Cluster { rack_of: n.racks(), seed });
        let host_rate = host_rate(nodes.map(|_| &fabric.config.topology));
        let jobs_left = Cell::new(MOST_JOBS);
        Ground { nodes, cluster, host_rate, mtu: fabric.mtu, context, jobs_left }
    }

    /// Makes room for so many jobs, or says why there is none.
    pub fn admit_jobs(&self, jobs: usize) -> Result<(), String> {
        match self.jobs_left.get().checked_sub(jobs) {
            Some(left) => {
                self.jobs_left.set(left);
                Ok(())
            }
            None => Err(format!("makes too many jobs: a scenario has at most {MOST_JOBS}")),
        }
    }
}
