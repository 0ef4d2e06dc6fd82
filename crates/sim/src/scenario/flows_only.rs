//! Settings that flows do not support.

use super::checked::Scenario;
use super::fidelity::Fidelity;
use super::workload::spec::{WorkloadKind, WorkloadSpec};
use eastwest_network::queue::QueueConfig;
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_settings::reader::Section;

/// Returns the settings of a scenario that need packets: name of the key, and what to do.
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
        (own_queue, "fabric", "has a queue of your own, which only packets can meet"),
        (per_packet, "fabric", "has a routing that chooses for every packet"),
        (c.tcp.custom.is_some(), "tcp", "has a congestion control of your own"),
        (!c.tcp_overrides.is_empty(), "tcp", "has settings of some endpoints (tcp.override)"),
        (c.further.first_used().is_some(), "workload", "has another transport than TCP"),
        (!f.faults.is_empty(), "fault", "happens to packets"),
        (c.workloads.iter().any(datagrams), "workload", "sends packets without connection"),
        (c.workloads.iter().any(bulk), "workload", "sends for a time (kind = \"bulk\")"),
        (!c.measure.capture.ports.is_empty(), "measure", "asks for a capture of packets"),
        (!c.measure.tcp_trace.is_empty(), "measure", "asks for a trace of windows"),
        (!c.measure.flow_parts.is_empty(), "measure", "asks where the time of flows went"),
        (c.measure.ports != Default::default(), "measure", "asks for queues packet for packet"),
        (!c.measure.flow_samples.senders.is_empty(), "measure", "asks for throughput over time"),
        (c.measure.lpi.ports != Default::default(), "measure", "asks for single naps of links"),
        (
            c.measure.pauses.ports != Default::default(),
            "measure",
            "asks for single pauses of ports",
        ),
    ]
    .into_iter()
    .filter(|r| r.0)
    .map(|r| (r.1, r.2))
    .collect()
}

/// Refuses settings that flows do not support, and notes what they ignore.
pub fn check(s: &mut Section, mut scenario: Scenario) -> Scenario {
    if scenario.fidelity == Fidelity::Packet || s.describing() {
        return scenario;
    }
    for (path, what) in refused(&scenario) {
        let message = format!(
            "{path}: {what}: not possible with fidelity = \"flow\"; leave it out or run with \
             fidelity = \"packet\""
        );
        s.object(&message);
    }
    let f = &scenario.fabric;
    scenario.notes.push(
        "flow-level: rates are max–min fair shares, no packet is sent or lost: times are \
         approximate"
            .to_owned(),
    );
    if f.scheduler != SchedulerConfig::Fifo {
        scenario.notes.push(
            "flow-level: classes of ports are not told apart: all packets wait in one queue"
                .to_owned(),
        );
    }
    scenario
}
