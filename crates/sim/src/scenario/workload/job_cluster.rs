//! Size of a Hadoop cluster, from which the numbers of tasks of a job follow.

use eastwest_types::HostId;

/// Properties of a Hadoop cluster that determine, together with the bytes of a job, its numbers of
/// tasks.
pub struct Cluster {
    /// Host of the master (namenode and jobtracker).
    pub master: HostId,
    /// Number of workers, the nodes that execute tasks.
    pub workers: u32,
    /// Number of reduce tasks that a worker executes at the same time (reduce slots).
    pub reduce_slots: u32,
}

impl Cluster {
    /// Returns the number of reduce slots of all workers together.
    pub fn reduce_slots(&self) -> u64 {
        u64::from(self.workers) * u64::from(self.reduce_slots)
    }
}
