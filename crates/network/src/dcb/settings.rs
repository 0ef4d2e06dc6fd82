//! `[fabric.pfc]` and `[fabric.qcn]`: data-centre bridging. (Enhanced transmission selection is
//! `[[fabric.class]]` with `share`.)
//!
//! Defaults of QCN, and the buffer of a port, are those of the study of the Ethernet-federated data centre
//! (Gusat et al. 2009; Minkenberg et al. 2009), which are the standard's but for the set point. Those of
//! PFC follow from the buffer: XOFF leaves exactly the headroom that the longest cable needs.

use super::config::DcbConfig;
use super::pfc::{PfcConfig, Wire};
use super::qcn::QcnConfig;
use crate::energy::{EnergyConfig, LinkPolicy};
use crate::queue::{QueueConfig, Room};
use crate::scheduler::SchedulerConfig;
use crate::topology::CableConfig;
use eastwest_settings::Section;

/// Documentation of the capacity of a host's queue: it only bounds the memory of a simulation.
const HOST_BACKLOG: &str = "With [fabric.pfc] packets of paused priorities wait here: 1 GB.";

/// Returns the default capacity of the queues of hosts in a fabric with PFC: 1 GB.
pub fn room_of_hosts() -> Room {
    Room { limit: "1 GB", doc: HOST_BACKLOG, shared: None, alone: true }
}

/// Settings of the fabric on which the settings of DCB depend.
pub struct Below<'a> {
    /// Sizes of frames on links.
    pub wire: Wire,
    /// All kinds of cables of the fabric.
    pub cables: &'a [CableConfig],
    /// Queues of switches and hosts.
    pub queues: [&'a QueueConfig; 2],
    /// How ports serve priorities.
    pub scheduler: &'a SchedulerConfig,
    /// Whether the ports of a switch share memory.
    pub shared: bool,
    /// Energy settings of links; DCB refuses links that sleep.
    pub energy: &'a EnergyConfig,
}

/// Reads the tables `[fabric.pfc]` and `[fabric.qcn]`, and refuses settings that cannot be used
/// with them.
pub fn read(s: &mut Section, below: &Below, notes: &mut Vec<String>) -> DcbConfig {
    let (pfc_given, qcn_given) = (s.has("pfc"), s.has("qcn"));
    let mut dcb = DcbConfig::default();
    if pfc_given || s.describing() {
        let doc = "Priority-based flow control (802.1Qbb) on all links; makes all ports two-event \
                   ports. Without this table no link is paused.";
        let pfc = s.table("pfc", doc, |p| PfcConfig::read(p, below.cables, &below.wire));
        dcb.pfc = pfc_given.then_some(pfc);
    }
    if qcn_given || s.describing() {
        let doc = "Quantised congestion notification (802.1Qau) on all switches and hosts; makes \
                   all ports two-event ports. Without this table no notifications are sent.";
        let lossless = dcb.pfc.as_ref().map_or(1 << 3, |c| c.priorities);
        let qcn = s.table("qcn", doc, |q| QcnConfig::read(q, lossless, below.wire.mtu, notes));
        dcb.qcn = qcn_given.then_some(qcn);
    }
    for (name, given) in [("pfc", pfc_given), ("qcn", qcn_given)] {
        if given {
            refuse_others(s, name, below);
        }
    }
    dcb
}

/// Refuses settings that DCB does not go together with.
fn refuse_others(s: &mut Section, name: &'static str, below: &Below) {
    let named = match below.scheduler {
        SchedulerConfig::Classes(classes) => classes.iter().any(|c| splits_a_priority(c.dscps)),
        _ => false,
    };
    let queues = match below.scheduler {
        SchedulerConfig::Classes(classes) => {
            classes.iter().filter_map(|c| c.queue.as_ref()).collect()
        }
        _ => Vec::new(),
    };
    let by_flow = below.queues.into_iter().chain(queues).any(|q| !q.is_one_fifo());
    let policies = [below.energy.host.policy, below.energy.fabric.policy];
    let wrong = [
        (
            below.shared,
            "cannot be used with fabric.shared_buffer: `fabric.pfc.shared` is the memory that inputs \
             share with PFC",
        ),
        (
            by_flow,
            "cannot be used with fq-codel or a queue of your own with ranks or trimming, which have a \
             queue for each flow or an order of their own and not a queue for each priority",
        ),
        (
            policies.iter().any(LinkPolicy::falls_asleep),
            "cannot be used with links that sleep (fabric.energy.kind other than \"always-on\")",
        ),
        (
            named,
            "needs classes that are defined by `priorities`, not by single codepoints (`dscp`)",
        ),
    ];
    for (_, message) in wrong.into_iter().filter(|w| w.0) {
        s.wrong(name, message);
    }
}

/// Whether these codepoints contain some but not all codepoints of a priority.
fn splits_a_priority(dscps: u64) -> bool {
    (0..8).any(|p| !matches!(dscps >> (8 * p) & 0xff, 0 | 0xff))
}
