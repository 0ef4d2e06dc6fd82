//! Checks of data-centre bridging (PFC) against the rest of a scenario: deadlocks, headroom, and
//! traffic without retransmission.

use super::classes::TrafficClassConfig;
use super::workload::spec::WorkloadSpec;
use crate::stream_transports::Transport;
use eastwest_network::config::FabricConfig;
use eastwest_network::dcb::DcbConfig;
use eastwest_network::dcb::dependency::{self, Dependencies};
use eastwest_network::dcb::headroom_pools::{self, OverSubscribed};
use eastwest_settings::reader::Section;

/// Adds a note if PFC allows a deadlock, in which paused packets wait for each other in a cycle of
/// links, or if the fabric is too large for this check.
pub fn note_cycles(fabric: &FabricConfig, notes: &mut Vec<String>) {
    if fabric.dcb.pfc.is_none() {
        return;
    }
    match dependency::look(fabric) {
        Dependencies::Free => {}
        Dependencies::Cycle(nodes) => notes.push(format!(
            "fabric.pfc: a deadlock is possible, because packets may wait for each other in the \
             cycle {} -> {} (Dally and Seitz 1987). Set fabric.pfc.watchdog to end deadlocks, or \
             use routes without a cycle",
            nodes.join(" -> "),
            nodes[0],
        )),
        Dependencies::TooLarge => notes.push(
            "fabric.pfc: the fabric is too large to check whether its routes allow a deadlock"
                .to_owned(),
        ),
    }
}

/// Adds a note if the headroom pool of a switch (buffer for packets that arrive after a pause) is
/// smaller than the sum of the headrooms of its inputs.
pub fn note_headroom(fabric: &FabricConfig, notes: &mut Vec<String>) {
    let Some(found) = headroom_pools::most_over_subscribed(fabric) else { return };
    let OverSubscribed { switch, pool, sum, count } = found;
    notes.push(format!(
        "fabric.pfc: the headroom pool of {switch} has {pool} B, but the headrooms of its {count} \
         lossless priorities of inputs are {sum} B together. If too many of these priorities are \
         paused at the same time, lossless packets are lost (dcb.overflow_drops)"
    ));
}

/// Reports a problem for every workload that sends raw Ethernet frames in a priority without PFC:
/// no transport retransmits lost frames.
pub fn refuse_lossy(
    s: &mut Section,
    workloads: &[WorkloadSpec],
    classes: &[TrafficClassConfig],
    dcb: &DcbConfig,
) {
    if s.describing() {
        return;
    }
    for (number, w) in workloads.iter().enumerate() {
        let Some(class) = classes.get(usize::from(w.class.0)) else { continue };
        let priority = class.dscp >> 3;
        let lossless = dcb.pfc.as_ref().map_or(0, |c| c.priorities);
        if w.transport != Transport::Ethernet || lossless >> priority & 1 == 1 {
            continue;
        }
        let have: Vec<String> =
            (0..8).filter(|p| lossless >> p & 1 == 1).map(|p| p.to_string()).collect();
        let name = &class.name;
        let have = match have.is_empty() {
            true => format!(
                "no priority is lossless without [fabric.pfc]. Add [fabric.pfc], and set the \
                 priority of {name} in [[class]] to one of its priorities (default: 3)"
            ),
            false => format!(
                "the lossless priorities of fabric.pfc are {}. Set the priority of {name} in \
                 [[class]] to one of them",
                have.join(", ")
            ),
        };
        s.object(&format!(
            "workload.{number}.transport: \"ethernet\" needs a lossless priority, because a lost \
             frame would stop the program. Class {name} has priority {priority}, but {have}"
        ));
    }
}
