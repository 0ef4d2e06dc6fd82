//! Checks for settings that the approximate modes (flow mode and link mode) do not support.

use super::checked::Scenario;
use super::fidelity::Fidelity;
use super::nodes::racks;
use super::workload::spec::{WorkloadKind, WorkloadSpec};
use eastwest_network::queue::QueueConfig;
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_settings::reader::Section;
use eastwest_workload::Cluster;
use eastwest_workload::poisson::Until;

/// Returns the settings of a scenario that neither flow mode nor link mode supports, because they
/// need the packets of the whole fabric: pairs of the key and the reason.
fn refused(c: &Scenario) -> Vec<(&'static str, &'static str)> {
    let f = &c.fabric;
    let queues = [&f.switch_queue, &f.host_queue];
    let own_queue = queues.iter().any(|q| matches!(q, QueueConfig::Custom(_)));
    let per_packet = !f.routing.is_per_flow();
    let datagrams = |w: &WorkloadSpec| match &w.kind {
        WorkloadKind::Datagrams(_) | WorkloadKind::Ethernet(_) => true,
        WorkloadKind::Mpi(c) => c.frame.is_some(),
        _ => false,
    };
    let bulk = |w: &WorkloadSpec| matches!(w.kind, WorkloadKind::Bulk(_));
    [
        (own_queue, "fabric", "uses a queue of your own"),
        (per_packet, "fabric", "has a routing that chooses a path for every packet"),
        (c.tcp.custom.is_some(), "tcp", "uses a congestion control of your own"),
        (
            !c.tcp_overrides.is_empty(),
            "tcp",
            "has other settings for some endpoints (tcp.override)",
        ),
        (c.further.are_used(), "workload", "uses a transport other than TCP"),
        (c.hosts.is_some(), "hosts", "delays packets in hosts by their processing time"),
        (!f.faults.is_empty(), "fault", "contains faults of links, which act on packets"),
        (c.workloads.iter().any(datagrams), "workload", "sends packets without a connection"),
        (
            c.workloads.iter().any(bulk),
            "workload",
            "sends for a given time, not a given number of \
             bytes (kind = \"bulk\")",
        ),
        (!c.measure.capture.ports.is_empty(), "measure", "captures packets (capture)"),
        (!c.measure.tcp_trace.is_empty(), "measure", "traces congestion windows (tcp_trace)"),
        (
            !c.measure.flow_parts.is_empty(),
            "measure",
            "splits the times of flows into parts \
             (flow_parts)",
        ),
        (c.measure.ports != Default::default(), "measure", "records every packet at ports (ports)"),
        (
            !c.measure.flow_samples.senders.is_empty(),
            "measure",
            "records throughput over time \
             (flow_samples)",
        ),
        (
            !c.measure.packet_hops.senders.is_empty(),
            "measure",
            "records the ways of packets (packet_hops)",
        ),
        (
            c.measure.lpi.ports != Default::default(),
            "measure",
            "logs the low-power idle of links \
             (lpi)",
        ),
        (
            c.measure.pauses.ports != Default::default(),
            "measure",
            "logs the pauses of ports (pauses)",
        ),
    ]
    .into_iter()
    .filter(|r| r.0)
    .map(|r| (r.1, r.2))
    .collect()
}

/// Returns the settings that link mode does not support: pairs of the key and the reason.
fn refused_by_links(c: &Scenario) -> Vec<(&'static str, &'static str)> {
    let f = &c.fabric;
    let sleeps = f.energy.host.policy.falls_asleep() || f.energy.fabric.policy.falls_asleep();
    let endless =
        |w: &WorkloadSpec| matches!(&w.kind, WorkloadKind::Poisson(c) if c.until == Until::Forever);
    [
        (f.shared_queues().is_some(), "fabric", "has switches whose ports share memory"),
        (f.dcb.is_on(), "fabric", "has PFC or QCN, by which one port pauses or slows others"),
        (f.telemetry, "fabric", "has telemetry, which packets collect along their paths"),
        (sleeps, "fabric", "has links that sleep"),
        (f.graph().cables_of_cards().is_some(), "fabric", "has hosts with several cards"),
        (
            c.duration.is_none() && c.workloads.iter().any(endless),
            "workload",
            "starts flows without end, and the scenario has no `duration`",
        ),
    ]
    .into_iter()
    .filter(|r| r.0)
    .map(|r| (r.1, r.2))
    .collect()
}

/// Whether the flows of a workload start independently of the ends of other flows.
fn is_open_loop(kind: &WorkloadKind, cluster: &Cluster) -> bool {
    match kind {
        WorkloadKind::Poisson(_) | WorkloadKind::FlowList(_) => true,
        WorkloadKind::AllToAll(c) if c.request_bytes > 0 => false,
        WorkloadKind::Stride(_) | WorkloadKind::Permutation(_) | WorkloadKind::AllToAll(_) => {
            kind.build(cluster).is_ok_and(|w| w.local_flows().is_some())
        }
        _ => false,
    }
}

/// In flow mode and link mode, reports every setting that these modes do not support as a problem,
/// and adds notes about settings without effect. Returns the scenario with these notes; in packet
/// mode, unchanged.
pub fn check(s: &mut Section, scenario: Scenario) -> Scenario {
    if scenario.fidelity == Fidelity::Packet || s.describing() {
        return scenario;
    }
    let links = scenario.fidelity == Fidelity::Links;
    let mode = if links { "links" } else { "flow" };
    let further = if links { refused_by_links(&scenario) } else { Vec::new() };
    for (path, what) in refused(&scenario).into_iter().chain(further) {
        let message = format!(
            "{path} {what}, which is not possible with fidelity = \"{mode}\": remove it or use \
             fidelity = \"packet\""
        );
        s.object(&message);
    }
    if links { check_links(s, scenario) } else { note_flows(scenario) }
}

/// Reports workloads whose flows wait for others as problems of link mode. Returns the scenario
/// with a note on the mode.
fn check_links(s: &mut Section, mut scenario: Scenario) -> Scenario {
    let cluster = Cluster { rack_of: racks(&scenario.fabric.topology), seed: scenario.seed };
    for w in scenario.workloads.iter().filter(|w| !is_open_loop(&w.kind, &cluster)) {
        s.object(&format!(
            "workload {} is closed-loop: its transfers wait for the ends of others. With fidelity = \
             \"links\" all flows must start independently of each other (poisson, flow-list; \
             stride, permutation and all-to-all with all flows at once and without requests): use \
             fidelity = \"flow\" or \"packet\"",
            w.name
        ));
    }
    scenario.notes.push(
        "link by link: links are simulated one by one, and the delays of each flow are joined, so \
         that all times are approximate"
            .to_owned(),
    );
    scenario
}

/// Returns the scenario with notes on flow mode and on settings that have no effect there.
fn note_flows(mut scenario: Scenario) -> Scenario {
    let f = &scenario.fabric;
    scenario.notes.push(
        "flow-level: rates are max–min fair shares and no packets are simulated, so that all \
         times are approximate"
            .to_owned(),
    );
    if f.scheduler != SchedulerConfig::Fifo {
        scenario.notes.push(
            "flow-level: fabric.scheduler has no effect, because all classes share one queue"
                .to_owned(),
        );
    }
    scenario
}
