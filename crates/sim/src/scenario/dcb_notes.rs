//! Consequences of data-centre bridging for the rest of a scenario: cycles of pauses, and traffic without
//! retransmission.

use super::classes::TrafficClassConfig;
use super::workload::spec::WorkloadSpec;
use crate::stream_transports::Transport;
use eastwest_network::config::FabricConfig;
use eastwest_network::dcb::DcbConfig;
use eastwest_network::dcb::dependency::{self, Dependencies};
use eastwest_settings::reader::Section;

/// Notes where pauses could wait for each other in a cycle.
pub fn note_cycles(fabric: &FabricConfig, notes: &mut Vec<String>) {
    if fabric.dcb.pfc.is_none() {
        return;
    }
    match dependency::look(fabric) {
        Dependencies::Free => {}
        Dependencies::Cycle(nodes) => notes.push(format!(
            "pfc: a deadlock is possible: packets may wait for each other in the circle {} -> {} \
             (Dally and Seitz 1987); `watchdog` would break it, and routes without a circle avoid it",
            nodes.join(" -> "),
            nodes[0],
        )),
        Dependencies::TooLarge => notes.push(
            "pfc: the fabric is too large for a look at whether its routes allow a deadlock"
                .to_owned(),
        ),
    }
}

/// Refuses messages as raw frames where frames may be lost, since nothing retransmits them.
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
        let have = match have.is_empty() {
            true => "there is no [fabric.pfc], whose default is 3".to_owned(),
            false => format!("those of fabric.pfc are {}", have.join(", ")),
        };
        let name = &class.name;
        s.object(&format!(
            "workload.{number}.transport: \"ethernet\" needs a lossless priority, or a lost frame would \
             stop the program: class {name} has priority {priority}, and {have}; [[class]] gives {name} \
             its priority"
        ));
    }
}
