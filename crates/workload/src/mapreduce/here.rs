//! Host at which an event takes place, and the check that its handler uses only the state of this
//! host.
//!
//! Hosts that act only on their own messages, disks and timers could be simulated in different parts
//! of a run (`docs/internals/partitions.md`). The check applies to runs that
//! [`MapReduceConfig::acts_by_messages`] names, until the first failure.

use super::config::{Framework, MapReduceConfig};
use eastwest_types::HostId;

/// Host whose message, disk or timer causes the present event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Here {
    /// The event may use the state of all hosts.
    #[default]
    Anywhere,
    /// The event takes place at this host, and uses only the state of this host.
    At(HostId),
}

impl Here {
    /// Checks in debug builds that the present event may use the state of a host.
    pub fn may_use(self, host: HostId) {
        debug_assert!(
            self == Here::Anywhere || self == Here::At(host),
            "an event {self:?} uses the state of {host:?}"
        );
    }
}

impl MapReduceConfig {
    /// Whether each host acts only on its own messages, disks and timers: Hadoop 1 with a machine
    /// for each worker, without failing attempts, speculation, approximations and stand-alone
    /// clients of HDFS.
    pub fn acts_by_messages(&self) -> bool {
        let (failures, speculation) = (&self.failures, &self.speculation);
        self.framework == Framework::Mr1
            && self.node.workers_per_machine == 1
            && failures.attempts == 0.0
            && failures.tasks.is_empty()
            && !speculation.maps
            && !speculation.reduces
            && !self.coarse.is_on()
            && self.jobs.iter().all(|job| job.clients.is_none())
    }
}
