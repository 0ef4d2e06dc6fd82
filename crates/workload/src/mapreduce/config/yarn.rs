//! Settings of YARN: containers, the application master, its heartbeats.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Settings of containers and application masters; used with the framework `yarn` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct YarnConfig {
    /// Memory of a worker that containers may use, in bytes (`yarn.nodemanager.resource.memory-mb`:
    /// 8192 MiB).
    pub node_memory: u64,
    /// Number of virtual cores of a worker that containers may use
    /// (`yarn.nodemanager.resource.cpu-vcores`: 8).
    pub node_vcores: u32,
    /// Memory of a map's container in bytes (`mapreduce.map.memory.mb`: 1024 MiB).
    pub map_memory: u64,
    /// Memory of a reduce's container in bytes (`mapreduce.reduce.memory.mb`: 1024 MiB).
    pub reduce_memory: u64,
    /// Memory of an application master's container in bytes (`yarn.app.mapreduce.am.resource.mb`:
    /// 1536 MiB).
    pub am_memory: u64,
    /// The memory of each container is rounded up to a multiple of this number of bytes
    /// (`yarn.scheduler.minimum-allocation-mb`: 1024 MiB).
    pub min_allocation: u64,
    /// Virtual cores of a map's container (`mapreduce.map.cpu.vcores`: 1).
    pub map_vcores: u32,
    /// Virtual cores of a reduce's container (`mapreduce.reduce.cpu.vcores`: 1).
    pub reduce_vcores: u32,
    /// Virtual cores of an application master's container
    /// (`yarn.app.mapreduce.am.resource.cpu-vcores`: 1).
    pub am_vcores: u32,
    /// Fraction of the cluster's memory that all application masters together may use; the first
    /// master is always allowed (`yarn.scheduler.capacity.maximum-am-resource-percent`: 0.1).
    pub am_share: f64,
    /// Whether the number of virtual cores limits the containers of a node in addition to its
    /// memory (`DominantResourceCalculator`). False by default, since the Capacity scheduler's
    /// default calculator uses memory only.
    pub count_vcores: bool,
    /// Time between two calls of an application master to the resource manager
    /// (`yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms`: 1000).
    pub am_heartbeat: Span,
    /// CPU time from the launch of an application master until it can call the resource manager:
    /// localization, Java virtual machine, job set-up (measured: 4–5 s in total from submission to
    /// the first map).
    pub am_start: Span,
    /// Time from a container's launch to the start of its Java virtual machine: localization of
    /// files, start script.
    pub container_launch: Span,
    /// Time between two requests of a reduce for finished maps (`SLEEP_TIME` of Hadoop's
    /// EventFetcher: 1 s).
    pub event_poll: Span,
    /// Largest fraction of a job's containers that reduces may have while maps wait
    /// (`yarn.app.mapreduce.am.job.reduce.rampup.limit`: 0.5).
    pub rampup_limit: f64,
}

impl Default for YarnConfig {
    fn default() -> Self {
        YarnConfig {
            node_memory: 8192 << 20,
            node_vcores: 8,
            map_memory: 1024 << 20,
            reduce_memory: 1024 << 20,
            am_memory: 1536 << 20,
            min_allocation: 1024 << 20,
            map_vcores: 1,
            reduce_vcores: 1,
            am_vcores: 1,
            am_share: 0.1,
            count_vcores: false,
            am_heartbeat: Span::from_secs(1),
            am_start: Span::from_ms(1500),
            container_launch: Span::from_ms(200),
            event_poll: Span::from_secs(1),
            rampup_limit: 0.5,
        }
    }
}

impl YarnConfig {
    /// Returns the memory in bytes that a container gets if it requests `memory` bytes: rounded up
    /// to a multiple of `min_allocation`.
    pub fn allocated(&self, memory: u64) -> u64 {
        let least = self.min_allocation.max(1);
        memory.div_ceil(least).saturating_mul(least)
    }

    /// Returns the largest number of map containers on a worker without reduces, and of reduce
    /// containers on a worker without maps.
    pub fn slots(&self) -> [u32; 2] {
        let map = self.containers(self.map_memory, self.map_vcores);
        [map, self.containers(self.reduce_memory, self.reduce_vcores)]
    }

    /// Returns the largest number of containers of `memory` bytes and `vcores` virtual cores on a
    /// worker.
    fn containers(&self, memory: u64, vcores: u32) -> u32 {
        let by_memory = self.node_memory / self.allocated(memory).max(1);
        let by_vcores = if self.count_vcores { self.node_vcores / vcores.max(1) } else { u32::MAX };
        u32::try_from(by_memory).unwrap_or(u32::MAX).min(by_vcores)
    }
}
