//! Settings of YARN: containers, the application master, its heartbeats.

use eastwest_types::Span;

/// Containers and application masters; only looked at with the framework `yarn`.
#[derive(Clone, Debug, PartialEq)]
pub struct YarnConfig {
    /// Memory a worker has for containers (`yarn.nodemanager.resource.memory-mb`: 8192 MiB).
    pub node_memory: u64,
    /// Virtual cores a worker has for containers (`yarn.nodemanager.resource.cpu-vcores`: 8).
    pub node_vcores: u32,
    /// Container of a map (`mapreduce.map.memory.mb`: 1024 MiB).
    pub map_memory: u64,
    /// Container of a reduce (`mapreduce.reduce.memory.mb`: 1024 MiB).
    pub reduce_memory: u64,
    /// Container of an application master (`yarn.app.mapreduce.am.resource.mb`: 1536 MiB).
    pub am_memory: u64,
    /// Containers are rounded up to multiples of this (`yarn.scheduler.minimum-allocation-mb`:
    /// 1024 MiB).
    pub min_allocation: u64,
    /// Virtual cores of a map (`mapreduce.map.cpu.vcores`: 1).
    pub map_vcores: u32,
    /// Virtual cores of a reduce (`mapreduce.reduce.cpu.vcores`: 1).
    pub reduce_vcores: u32,
    /// Virtual cores of an application master (`yarn.app.mapreduce.am.resource.cpu-vcores`: 1).
    pub am_vcores: u32,
    /// Whether virtual cores limit containers too (`DominantResourceCalculator`). The Capacity
    /// scheduler's default calculator looks at memory only: false.
    pub count_vcores: bool,
    /// Time between two calls of an application master to the resource manager
    /// (`yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms`: 1000).
    pub am_heartbeat: Span,
    /// From the launch of an application master until it asks for containers: localization, virtual
    /// machine, job set-up (measured: 4–5 s from submission to the first map in all).
    pub am_start: Span,
    /// From a container's launch until its virtual machine begins to start: localization, script.
    pub container_launch: Span,
    /// Time between two questions of a reduce for finished maps (`SLEEP_TIME` of Hadoop's
    /// EventFetcher: 1 s).
    pub event_poll: Span,
    /// Part of a job's containers that reduces may have while maps still wait
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
            count_vcores: false,
            am_heartbeat: Span::from_secs(1),
            am_start: Span::from_ms(1500),
            container_launch: Span::from_ms(200),
            event_poll: Span::from_secs(1),
            rampup_limit: 0.5,
        }
    }
}
