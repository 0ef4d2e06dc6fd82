//! `yarn`: containers and application masters.

use crate::scenario::quantity::{Bytes, Fraction};
use crate::scenario::reader::{Section, key};
use eastwest_types::Span;
use eastwest_workload::mapreduce::YarnConfig;

fn memory(s: &mut Section, name: &'static str, doc: &'static str, usual: u64) -> u64 {
    s.get(key(name, doc).value(Bytes(usual)).range("1 MB", "1000 TB")).0
}

fn vcores(s: &mut Section, name: &'static str, doc: &'static str, usual: u32) -> u32 {
    s.get(key(name, doc).value(usual).range("1", "100000"))
}

fn span(s: &mut Section, name: &'static str, doc: &'static str, usual: Span) -> Span {
    s.get(key(name, doc).value(usual).range("0 s", "1 h"))
}

/// Reads the table.
pub fn read(s: &mut Section, usual: &YarnConfig) -> YarnConfig {
    let doc = "Memory for containers (yarn.nodemanager.resource.memory-mb).";
    let node_memory = memory(s, "node_memory", doc, usual.node_memory);
    let doc = "Virtual cores for containers (yarn.nodemanager.resource.cpu-vcores).";
    let node_vcores = vcores(s, "node_vcores", doc, usual.node_vcores);
    let doc = "Container of a map (mapreduce.map.memory.mb).";
    let map_memory = memory(s, "map_memory", doc, usual.map_memory);
    let doc = "Container of a reduce (mapreduce.reduce.memory.mb).";
    let reduce_memory = memory(s, "reduce_memory", doc, usual.reduce_memory);
    let doc = "Container of an application master (yarn.app.mapreduce.am.resource.mb).";
    let am_memory = memory(s, "am_memory", doc, usual.am_memory);
    let doc = "Containers are multiples of this (yarn.scheduler.minimum-allocation-mb).";
    let min_allocation = memory(s, "min_allocation", doc, usual.min_allocation);
    let doc = "Virtual cores of a map (mapreduce.map.cpu.vcores).";
    let map_vcores = vcores(s, "map_vcores", doc, usual.map_vcores);
    let doc = "Virtual cores of a reduce (mapreduce.reduce.cpu.vcores).";
    let reduce_vcores = vcores(s, "reduce_vcores", doc, usual.reduce_vcores);
    let doc = "Virtual cores of an application master (yarn.app.mapreduce.am.resource.cpu-vcores).";
    let am_vcores = vcores(s, "am_vcores", doc, usual.am_vcores);
    let doc = "Part of the cluster's memory for application masters; a first one always fits \
               (yarn.scheduler.capacity.maximum-am-resource-percent).";
    let am_share = s.get(key("am_share", doc).value(Fraction(usual.am_share)).range("0", "0.5")).0;
    let doc = "Whether virtual cores limit containers too (DominantResourceCalculator).";
    let count_vcores = s.get(key("count_vcores", doc).value(usual.count_vcores));
    let doc = "Time between two calls of an application master to the resource manager \
               (yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms).";
    let am_heartbeat =
        s.get(key("am_heartbeat", doc).value(usual.am_heartbeat).range("1 ms", "1 h"));
    let doc = "From an application master's launch until it asks for containers (measured).";
    let am_start = span(s, "am_start", doc, usual.am_start);
    let doc = "From a container's launch until its virtual machine starts (measured).";
    let container_launch = span(s, "container_launch", doc, usual.container_launch);
    let doc = "Time between two questions of a reduce for finished maps (EventFetcher: 1 s).";
    let event_poll = s.get(key("event_poll", doc).value(usual.event_poll).range("1 ms", "1 h"));
    let doc = "Part of a job's containers that reduces may have while maps wait \
               (yarn.app.mapreduce.am.job.reduce.rampup.limit).";
    let rampup_limit =
        s.get(key("rampup_limit", doc).value(Fraction(usual.rampup_limit)).range("0", "1")).0;
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
