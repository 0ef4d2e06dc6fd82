//! Properties of the cluster of a job that determine its numbers of tasks.

use eastwest_types::HostId;

/// Properties of a Hadoop cluster from which, with the bytes of a job, its numbers of tasks follow.
pub struct Cluster {
    /// Host of namenode and jobtracker (master).
    pub master: HostId,
    /// Number of workers.
    pub workers: u32,
    /// Reduce slots of each worker.
    pub reduce_slots: u32,
}

impl Cluster {
    /// Returns the reduce slots of all workers.
    pub fn reduce_slots(&self) -> u64 {
        u64::from(self.workers) * u64::from(self.reduce_slots)
    }
}
