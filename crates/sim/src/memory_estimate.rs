//! Estimate of the minimum memory of a run, made from its scenario before the run is built.
//!
//! Each crate knows the size of its own data; this file adds the sizes. The estimate counts the
//! data that exists before the first packet, the flows that a pattern starts together, and the
//! tables of ports at the end. The memory of packets in flight, and of tables that grow with the
//! length of a run, is not known in advance. docs/internals/memory.md compares the estimates with
//! measurements.

use crate::processing::Processing;
use crate::scenario::{Fidelity, Scenario, WorkloadKind};
use eastwest_engine::tournament::Tournament;
use eastwest_fluid::network::Network;
use eastwest_measure::samples::Samples;
use eastwest_network::footprint::{Footprint, Sizes};
use eastwest_network::routing::{Ecmp, RoutingConfig};
use eastwest_network::topology::Topology;
use eastwest_workload::flow_list::ListedFlow;

/// Bytes that every run needs: code, buffers, and memory kept by the allocator.
const ANY_RUN: u64 = 18_000_000;
/// Bytes of an active connection in packet mode: both ends, messages, timers and packets in flight.
const CONNECTION: u64 = 1_500;
/// Bytes of an active connection in flow mode, and of a flow in link mode.
const FLUID_CONNECTION: u64 = 900;
/// Bytes of a row of the table `links`: its values in memory, and its part of the encoded file.
const LINK_ROW: u64 = 500;

/// One contribution to the memory of a run, such as the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the contribution, for messages.
    pub name: &'static str,
    /// Estimated memory in bytes.
    pub bytes: u64,
    /// Whether the memory is allocated before the first event.
    pub built: bool,
}

/// Estimates the minimum memory of a run of this scenario on `threads` threads. Returns its
/// contributions, the largest first.
pub fn estimate(scenario: &Scenario, threads: u64) -> Vec<Part> {
    let sizes = Sizes::of(&scenario.fabric.topology);
    let Footprint { nodes, routes, ports } = Footprint::of(&scenario.fabric);
    let events = Tournament::bytes(usize::try_from(sizes.ports()).unwrap_or(usize::MAX / 64));
    let samples = sizes.ports() * (Samples::BYTES_PER_LINK + 1);
    let flow = scenario.fidelity == Fidelity::Flow;
    let rates = if flow { sizes.ports() * (Network::bytes_per_port() + 16) } else { 0 };
    let worlds = if may_be_divided(scenario) { threads.max(1) } else { 1 };
    let racks = 4 * sizes.hosts * (1 + scenario.workloads.len() as u64);
    let built = |name, bytes| Part { name, bytes, built: true };
    let mut parts = vec![
        built("names and cables", worlds * (nodes + racks)),
        built("routes", worlds * routes),
        built("ports", worlds * (ports + samples)),
        built("list of events", worlds * events),
        built("any run", ANY_RUN),
        built("rates", rates),
        built("listed flows", worlds * listed(scenario)),
        built("cores of hosts", cores(scenario, sizes.hosts)),
        Part { name: "connections", bytes: connections(scenario, sizes.hosts), built: false },
        Part { name: "table of links", bytes: sizes.ports() * LINK_ROW, built: false },
    ];
    parts.retain(|part| part.bytes > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    parts
}

/// Whether the topology, faults and routing of the scenario allow a partitioned run, in which each
/// thread has its own copy of the state. Other conditions for such a run are not checked.
fn may_be_divided(scenario: &Scenario) -> bool {
    let fabric = &scenario.fabric;
    scenario.fidelity == Fidelity::Packet
        && matches!(fabric.topology, Topology::LeafSpine { .. } | Topology::FatTree { .. })
        && fabric.faults.is_empty()
        && fabric.routing == RoutingConfig::Ecmp(Ecmp)
}

/// Returns the bytes of the CPU cores of all hosts; 0 if the scenario does not simulate the
/// processing time of hosts.
fn cores(scenario: &Scenario, hosts: u64) -> u64 {
    scenario.hosts.map_or(0, |c| Processing::bytes(hosts.saturating_mul(c.cores())))
}

/// Returns the bytes of the flows that input files list: each flow is in memory twice, as read from
/// the file and in the workload.
fn listed(scenario: &Scenario) -> u64 {
    let of = |kind: &WorkloadKind| match kind {
        WorkloadKind::FlowList(c) => 2 * c.flows.len() as u64 * size_of::<ListedFlow>() as u64,
        _ => 0,
    };
    scenario.workloads.iter().map(|w| of(&w.kind)).sum()
}

/// Returns the bytes of the connections that traffic patterns start at the same time.
fn connections(scenario: &Scenario, hosts: u64) -> u64 {
    let together = |kind: &WorkloadKind| match kind {
        WorkloadKind::Stride(c) => hosts.saturating_mul(u64::from(c.count)),
        WorkloadKind::Permutation(_) => hosts,
        WorkloadKind::AllToAll(c) => {
            let others = hosts.saturating_sub(1);
            hosts.saturating_mul(c.parallel.map_or(others, |limit| others.min(u64::from(limit))))
        }
        WorkloadKind::Incast(c) => c.senders.len() as u64,
        WorkloadKind::Bulk(c) => c.pairs.len() as u64 * u64::from(c.connections),
        _ => 0,
    };
    let each = match scenario.fidelity {
        Fidelity::Packet => CONNECTION,
        Fidelity::Flow | Fidelity::Links => FLUID_CONNECTION,
    };
    let all = scenario.workloads.iter().map(|w| together(&w.kind)).fold(0, u64::saturating_add);
    all.saturating_mul(each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Context, read};

    fn parts(fabric: &str, threads: u64) -> Vec<Part> {
        let text = format!(
            "schema = 1\n[fabric]\n{fabric}\nhost_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\n\
             [[workload]]\nname = 'all'\nkind = 'permutation'\nbytes = '1 KB'\n"
        );
        let scenario = read(&text, &Context::default(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
        estimate(&scenario, threads)
    }

    fn bytes(parts: &[Part], name: &str) -> u64 {
        parts.iter().find(|part| part.name == name).map_or(0, |part| part.bytes)
    }

    #[test]
    fn a_large_torus_is_a_matter_of_ports_not_of_routes() {
        let all = parts("kind = 'torus'\nsizes = [300, 300]", 1);
        // a full routing table of 90,000 switches with 90,000 columns would be 32 GB
        assert!(bytes(&all, "routes") < 100_000_000, "{all:?}");
        let ports = bytes(&all, "ports");
        assert!((540_000 * 256..540_000 * 320).contains(&ports), "{all:?}");
        assert!(all.windows(2).all(|two| two[0].bytes >= two[1].bytes));
    }

    #[test]
    fn a_fabric_without_rule_is_a_matter_of_routes() {
        let all = parts("kind = 'dcell'\nn = 10\nlevels = 2", 1);
        // 12,210 hosts that forward packets, one mini-switch for each ten of them, and a column of
        // routes for each host
        assert!(bytes(&all, "routes") > 13_431 * 12_210 * 4, "{all:?}");
    }

    #[test]
    fn every_thread_has_a_world_of_its_own_where_the_fabric_can_be_divided() {
        let fabric = "kind = 'fat-tree'\nk = 16";
        let (one, four) = (parts(fabric, 1), parts(fabric, 4));
        assert_eq!(4 * bytes(&one, "ports"), bytes(&four, "ports"));
        assert_eq!(bytes(&one, "connections"), bytes(&four, "connections"));
        let torus = "kind = 'torus'\nsizes = [4, 4]";
        assert_eq!(parts(torus, 1), parts(torus, 4));
    }
}
