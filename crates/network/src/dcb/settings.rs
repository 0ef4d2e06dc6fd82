//! Settings of data-centre bridging: the tables `[fabric.pfc]` and `[fabric.qcn]`. (The setting of
//! enhanced transmission selection is `share` in `[[fabric.class]]`.)
//!
//! The defaults of QCN, and the buffer of a port, are the values in the study of the
//! Ethernet-federated data centre (Gusat et al. 2009; Minkenberg et al. 2009). The values of QCN
//! are equal to the defaults of IEEE 802.1Q, except the equilibrium length of a queue. The default
//! thresholds of PFC follow from the buffer: XOFF leaves exactly the headroom that the longest
//! cable needs.

use super::config::DcbConfig;
use super::pfc::{PfcConfig, Wire};
use super::qcn::QcnConfig;
use crate::energy::{EnergyConfig, LinkPolicy};
use crate::queue::{QueueConfig, Room};
use crate::scheduler::SchedulerConfig;
use crate::topology::CableConfig;
use eastwest_settings::Section;

/// Explanation of the limit of host queues with PFC. The limit only bounds the memory of a
/// simulation.
const HOST_BACKLOG: &str = "With [fabric.pfc] packets of paused priorities wait here: 1 GB.";

/// Returns the default limit of the queues of hosts in a fabric with PFC: 1 GB.
pub fn room_of_hosts() -> Room {
    Room { limit: "1 GB", doc: HOST_BACKLOG, shared: None, alone: true }
}

/// Settings of the fabric that exclude some settings of data-centre bridging.
pub struct Below<'a> {
    /// Queue disciplines of switches and of hosts.
    pub queues: [&'a QueueConfig; 2],
    /// Scheduler of the traffic classes of each port.
    pub scheduler: &'a SchedulerConfig,
    /// Whether the ports of a switch share memory.
    pub shared: bool,
    /// Energy settings of links. Links that sleep cannot have data-centre bridging.
    pub energy: &'a EnergyConfig,
}

/// Reads the tables `[fabric.pfc]` and `[fabric.qcn]`. `wire` has the sizes of frames on links, and
/// `cables` all kinds of cables in the fabric, by rate and delay.
pub fn read(
    s: &mut Section,
    wire: &Wire,
    cables: &[CableConfig],
    notes: &mut Vec<String>,
) -> DcbConfig {
    let (pfc_given, qcn_given) = (s.has("pfc"), s.has("qcn"));
    let mut dcb = DcbConfig::default();
    if pfc_given || s.describing() {
        let doc = "Priority-based flow control (802.1Qbb) on all links; makes all ports two-event \
                   ports. Without this table no link is paused.";
        let pfc = s.table("pfc", doc, |p| PfcConfig::read(p, cables, wire, notes));
        dcb.pfc = pfc_given.then_some(pfc);
    }
    if qcn_given || s.describing() {
        let doc = "Quantised congestion notification (802.1Qau) on all switches and hosts; makes \
                   all ports two-event ports. Without this table no notifications are sent.";
        let lossless = dcb.pfc.as_ref().map_or(1 << 3, |c| c.priorities);
        let qcn = s.table("qcn", doc, |q| QcnConfig::read(q, lossless, wire.mtu, notes));
        dcb.qcn = qcn_given.then_some(qcn);
    }
    dcb
}

/// Reports an error for each setting of the fabric that cannot be combined with data-centre
/// bridging (DCB).
pub fn refuse_others(s: &mut Section, below: &Below) {
    for name in ["pfc", "qcn"] {
        if s.has(name) {
            refuse_with(s, name, below);
        }
    }
}

/// Reports an error for each setting that cannot be combined with the table `name` (`pfc` or `qcn`)
/// of data-centre bridging (DCB).
fn refuse_with(s: &mut Section, name: &'static str, below: &Below) {
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
            "cannot be used with fabric.shared_buffer: with PFC, `shared` and `lossy` in \
             [fabric.pfc] are the memory of the switch",
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

/// Whether the mask `dscps` of codepoints contains some but not all codepoints of a priority.
fn splits_a_priority(dscps: u64) -> bool {
    (0..8).any(|p| !matches!(dscps >> (8 * p) & 0xff, 0 | 0xff))
}
