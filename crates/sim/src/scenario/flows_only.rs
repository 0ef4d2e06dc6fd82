//! Checks for settings that flow mode (simulation without packets) does not support.

use super::checked::Scenario;
use super::fidelity::Fidelity;
use super::workload::spec::{WorkloadKind, WorkloadSpec};
use eastwest_network::queue::QueueConfig;
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_settings::reader::Section;

/// Returns the settings of a scenario that flow mode does not support, because they need packets:
/// pairs of the key and the reason.
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

/// In flow mode, reports every setting that needs packets as a problem, and adds notes about
/// settings without effect. Returns the scenario with these notes; in packet mode, unchanged.
pub fn check(s: &mut Section, mut scenario: Scenario) -> Scenario {
    if scenario.fidelity == Fidelity::Packet || s.describing() {
        return scenario;
    }
    for (path, what) in refused(&scenario) {
        let message = format!(
            "{path} {what}, which is not possible with fidelity = \"flow\": remove it or use \
             fidelity = \"packet\""
        );
        s.object(&message);
    }
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
