//! The table `yarn` of a MapReduce workload: containers and application masters.

use super::fields::{Range, bytes, count, flag, share, span};
use eastwest_settings::quantity::Fraction;
use eastwest_settings::reader::{Section, key};
use eastwest_workload::mapreduce::YarnConfig;

const MEMORY: Range = ("1 MB", "1000 TB");
const VCORES: Range = ("1", "100000");
const WAIT: Range = ("0 s", "1 h");
const PERIOD: Range = ("1 ms", "1 h");

/// Reads the table `yarn`: containers and application masters. `usual` are the defaults.
pub fn read(s: &mut Section, usual: &YarnConfig) -> YarnConfig {
    let doc = "Memory of a node for containers (yarn.nodemanager.resource.memory-mb).";
    let node_memory = bytes(s, "node_memory", doc, usual.node_memory, MEMORY);
    let doc = "Virtual cores of a node for containers (yarn.nodemanager.resource.cpu-vcores).";
    let node_vcores = count(s, "node_vcores", doc, usual.node_vcores, VCORES);
    let doc = "Memory of a map's container (mapreduce.map.memory.mb).";
    let map_memory = bytes(s, "map_memory", doc, usual.map_memory, MEMORY);
    let doc = "Memory of a reduce's container (mapreduce.reduce.memory.mb).";
    let reduce_memory = bytes(s, "reduce_memory", doc, usual.reduce_memory, MEMORY);
    let doc = "Memory of an application master's container (yarn.app.mapreduce.am.resource.mb).";
    let am_memory = bytes(s, "am_memory", doc, usual.am_memory, MEMORY);
    let doc = "Minimum memory of a container; larger requests are rounded up to a multiple of it \
               (yarn.scheduler.minimum-allocation-mb).";
    let min_allocation = bytes(s, "min_allocation", doc, usual.min_allocation, MEMORY);
    let doc = "Virtual cores of a map (mapreduce.map.cpu.vcores).";
    let map_vcores = count(s, "map_vcores", doc, usual.map_vcores, VCORES);
    let doc = "Virtual cores of a reduce (mapreduce.reduce.cpu.vcores).";
    let reduce_vcores = count(s, "reduce_vcores", doc, usual.reduce_vcores, VCORES);
    let doc = "Virtual cores of an application master (yarn.app.mapreduce.am.resource.cpu-vcores).";
    let am_vcores = count(s, "am_vcores", doc, usual.am_vcores, VCORES);
    let doc = "Share of the cluster's memory for application masters; the first one always fits \
               (yarn.scheduler.capacity.maximum-am-resource-percent).";
    let am_share = s.get(key("am_share", doc).value(Fraction(usual.am_share)).range("0", "0.5")).0;
    let doc = "Whether virtual cores limit the number of containers too \
               (DominantResourceCalculator).";
    let count_vcores = flag(s, "count_vcores", doc, usual.count_vcores);
    let doc = "Time between two calls of an application master to the resource manager \
               (yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms).";
    let am_heartbeat = span(s, "am_heartbeat", doc, usual.am_heartbeat, PERIOD);
    let doc = "Time from the launch of an application master until it requests containers \
               (measured).";
    let am_start = span(s, "am_start", doc, usual.am_start, WAIT);
    let doc = "Time from the launch of a container until its Java virtual machine starts \
               (measured).";
    let container_launch = span(s, "container_launch", doc, usual.container_launch, WAIT);
    let doc = "Time between two requests of a reduce for finished maps (EventFetcher: 1 s).";
    let event_poll = span(s, "event_poll", doc, usual.event_poll, PERIOD);
    let doc = "Share of a job's containers that reduces may use while maps wait \
               (yarn.app.mapreduce.am.job.reduce.rampup.limit).";
    let rampup_limit = share(s, "rampup_limit", doc, usual.rampup_limit);
    YarnConfig {
        node_memory,
        node_vcores,
        map_memory,
        reduce_memory,
        am_memory,
        min_allocation,
        map_vcores,
        reduce_vcores,
        am_vcores,
        am_share,
        count_vcores,
        am_heartbeat,
        am_start,
        container_launch,
        event_poll,
        rampup_limit,
    }
}
