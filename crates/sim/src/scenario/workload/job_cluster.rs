//! The cluster that a job runs on, as far as its numbers of tasks depend on it.

use eastwest_types::HostId;

/// What the numbers of tasks depend on besides bytes.
pub struct Cluster {
    /// The master.
    pub master: HostId,
    /// Number of workers.
    pub workers: u32,
    /// Reduce slots of each.
    pub reduce_slots: u32,
}

impl Cluster {
    /// Returns the reduce slots of all workers.
    pub fn reduce_slots(&self) -> u64 {
        u64::from(self.workers) * u64::from(self.reduce_slots)
    }
}
