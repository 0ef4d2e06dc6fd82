//! `[fabric.pfc]` and `[fabric.qcn]`: data-centre bridging. (Enhanced transmission selection is
//! `[[fabric.class]]` with `share`.)
//!
//! Defaults of QCN, and the buffer of a port, are those of the study of the Ethernet-federated data centre
//! (Gusat et al. 2009; Minkenberg et al. 2009), which are the standard's but for the set point. Those of
//! PFC follow from the buffer: XOFF leaves exactly the headroom that the longest cable needs.

use eastwest_network::config::PortSet;
use eastwest_network::dcb::pfc::{Wire, headroom, reaction};
use eastwest_network::dcb::{DcbConfig, PfcConfig, QcnConfig};
use eastwest_network::energy::{EnergyConfig, LinkPolicy};
use eastwest_network::queue::QueueConfig;
use eastwest_network::queue::Room;
use eastwest_network::scheduler::SchedulerConfig;
use eastwest_network::topology::CableConfig;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::{Bytes, Fraction, Octets, Quantity, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Rate, Span};

/// What a host may hold that nobody takes from it: a bound for the memory of a simulation, no more.
const HOST_BACKLOG: &str = "With [fabric.pfc] what a host is not allowed to send waits here: 1 GB.";

/// The room of hosts' queues where frames are not lost.
pub fn room_of_hosts() -> Room {
    Room { limit: "1 GB", doc: HOST_BACKLOG, shared: None, alone: true }
}

/// The rest of the fabric.
pub struct Below<'a> {
    /// What packets take on links.
    pub wire: Wire,
    /// All kinds of cables.
    pub cables: &'a [CableConfig],
    /// Queues of switches and hosts.
    pub queues: [&'a QueueConfig; 2],
    /// How ports serve priorities.
    pub scheduler: &'a SchedulerConfig,
    /// Whether ports share memory.
    pub shared: bool,
    /// Whether links sleep.
    pub energy: &'a EnergyConfig,
}

/// Reads both sections.
pub fn read(s: &mut Section, below: &Below, notes: &mut Vec<String>) -> DcbConfig {
    let (pfc_given, qcn_given) = (s.has("pfc"), s.has("qcn"));
    let mut dcb = DcbConfig::default();
    if pfc_given || s.describing() {
        let doc = "Priority-based flow control (802.1Qbb) on all links; two-event ports. Without it \
                   nothing is paused.";
        let pfc = s.table("pfc", doc, |p| read_pfc(p, below));
        dcb.pfc = pfc_given.then_some(pfc);
    }
    if qcn_given || s.describing() {
        let doc = "Quantised congestion notification (802.1Qau) on all switches and hosts; two-event \
                   ports. Without it nobody is told.";
        let lossless = dcb.pfc.as_ref().map_or(1 << 3, |c| c.priorities);
        let qcn = s.table("qcn", doc, |q| read_qcn(q, lossless, below.wire.mtu, notes));
        dcb.qcn = qcn_given.then_some(qcn);
    }
    for (name, given) in [("pfc", pfc_given), ("qcn", qcn_given)] {
        if given {
            refuse_others(s, name, below);
        }
    }
    dcb
}

/// What is asked to be logged of ports that nobody pauses.
pub fn note_pauses(dcb: &DcbConfig, ports: &PortSet) -> Option<String> {
    (dcb.pfc.is_none() && *ports != PortSet::default()).then(|| {
        "measure.pauses names ports, but nothing is paused without [fabric.pfc]: the table pauses stays \
         empty"
            .to_owned()
    })
}

/// What does not go together.
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
    let awake = |p: &LinkPolicy| matches!(p, LinkPolicy::AlwaysOn | LinkPolicy::Ideal);
    let wrong = [
        (
            below.shared,
            "does not go together with a shared buffer: inputs have buffers of their own",
        ),
        (by_flow, "does not go together with fq-codel, which has queues for flows, not priorities"),
        (!policies.iter().all(awake), "does not go together with links that sleep"),
        (named, "needs classes made of whole priorities, not of single codepoints (dscp)"),
    ];
    for (_, message) in wrong.into_iter().filter(|w| w.0) {
        s.wrong(name, message);
    }
}

/// Whether some but not all codepoints of a priority are among these.
fn splits_a_priority(dscps: u64) -> bool {
    (0..8).any(|p| !matches!(dscps >> (8 * p) & 0xff, 0 | 0xff))
}

/// A list of priorities as bits.
fn read_priorities(s: &mut Section, doc: &'static str, default: Option<u8>) -> u8 {
    let declared = key::<Vec<u32>>("priorities", doc);
    let list = s.get(match default {
        None => declared.value(vec![3]),
        Some(bits) => {
            let these = (0..8).filter(|p| bits >> p & 1 == 1).collect();
            declared.computed("those of fabric.pfc, else [3]", these)
        }
    });
    s.demand(!list.is_empty(), &["priorities"], || "names none".to_owned());
    for &p in &list {
        s.demand(p < 8, &["priorities"], || format!("{p} is not one of 0 to 7"));
    }
    list.iter().filter(|p| **p < 8).fold(0, |bits, p| bits | 1 << p)
}

fn read_pfc(s: &mut Section, below: &Below) -> PfcConfig {
    let priorities = read_priorities(
        s,
        "Lossless priorities, 0 to 7; traffic has one by the `priority` of its [[class]] (3: custom of \
         FCoE and RoCE).",
        None,
    );
    let count = u64::from(priorities.count_ones()).max(1);
    let buffer: Bytes = s.get(
        key(
            "buffer",
            "Bytes of a switch's input port for all lossless priorities (Gusat et al. 2009).",
        )
        .default("150 KB")
        .range("1 KB", "10 GB"),
    );
    let response: Span = s.get(
        key(
            "response",
            "How long a port takes to obey (IEEE 802.3, 31B.3.7: 60 quanta at 10 Gbit/s).",
        )
        .default("3072 ns")
        .range("0 s", "1 ms"),
    );
    let room = |cable: &CableConfig| headroom(cable, &below.wire, response);
    let most = below.cables.iter().max_by_key(|cable| room(cable));
    let needed = most.map_or(0, room);
    let each = buffer.0 / count;
    let free = each.saturating_sub(needed);
    let (xoff, xon) = read_thresholds(s, free, below.wire.mtu);
    let (quanta, refresh, watchdog) = read_pauses(s);
    if let Some(cable) = most {
        check_room(s, &Share { xoff, needed, each, count }, cable, below.wire.mtu);
    }
    s.demand(xon < xoff || xoff == 0, &["xon", "xoff", "buffer"], || {
        "must be below `xoff`".to_owned()
    });
    let config = PfcConfig {
        priorities,
        buffer: buffer.0,
        xoff,
        xon,
        quanta: at_most(quanta),
        refresh: at_most(whole_part(refresh.0 * 65_536.0)),
        response,
        watchdog,
    };
    check_refresh(s, &config, below);
    config
}

/// `xoff` and `xon` in bytes; `free` is what headroom leaves of a priority's buffer.
fn read_thresholds(s: &mut Section, free: u64, mtu: u32) -> (u64, u64) {
    let xoff: Bytes = s.get(
        key(
            "xoff",
            "A sender is paused while so many bytes of a priority, or more, that came over its \
             link are in the switch.",
        )
        .computed("the buffer of a priority less the headroom of the longest link", Bytes(free)),
    );
    let xon: Bytes = s.get(key("xon", "It may go on with so many or fewer.").computed(
        "two largest packets below xoff",
        Bytes(xoff.0.saturating_sub(2 * u64::from(mtu))),
    ));
    (xoff.0, xon.0)
}

/// `quanta`, `refresh` and `watchdog`.
fn read_pauses(s: &mut Section) -> (u32, Fraction, Option<Span>) {
    let quanta: u32 = s.get(
        key("quanta", "Length of a pause in quanta of 512 bit times (IEEE 802.1Q: up to 65535).")
            .default("65535")
            .range("1", "65535"),
    );
    let refresh: Fraction = s.get(
        key("refresh", "A pause is repeated after this share of its length.")
            .default("0.5")
            .range("0.01", "0.99"),
    );
    let watchdog = s.find(
        key(
            "watchdog",
            "A queue that was paused for so long without sending is emptied: what is lost \
             then is counted. It breaks deadlocks.",
        )
        .optional("no watchdog: nothing is lost, and a deadlock ends the run")
        .range("1 us", "1 h"),
    );
    (quanta, refresh, watchdog)
}

/// What a priority has at an input, in bytes.
struct Share {
    xoff: u64,
    /// Headroom of the longest cable.
    needed: u64,
    /// Its part of the buffer.
    each: u64,
    /// Priorities that share the buffer.
    count: u64,
}

/// The threshold and the headroom must fit into the buffer.
fn check_room(s: &mut Section, share: &Share, cable: &CableConfig, mtu: u32) {
    let &Share { xoff, needed, each, count } = share;
    let why = || {
        format!(
            "a link of {} and {} needs {needed} B of headroom for {mtu} B packets",
            cable.rate, cable.delay
        )
    };
    s.demand(needed < each, &["buffer", "response"], || {
        format!("leaves {each} B for each of {count} priorities, but {}", why())
    });
    s.demand(xoff + needed <= each.max(needed), &["xoff", "buffer", "response"], || {
        format!("leaves {} B beyond it, but {}", each.saturating_sub(xoff), why())
    });
    s.demand(xoff > 0, &["xoff", "buffer"], || "must be above 0 B".to_owned());
}

/// A pause must be repeated before it runs out.
fn check_refresh(s: &mut Section, config: &PfcConfig, below: &Below) {
    for cable in below.cables {
        let pause = PfcConfig::pause(cable.rate, config.quanta);
        let repeated =
            config.refresh_every(cable.rate) + reaction(cable, &below.wire, config.response);
        s.demand(repeated < pause, &["quanta", "refresh"], || {
            format!(
                "is too short for a link of {} and {}: a pause lasts {pause}, and its repetition takes \
                 effect after up to {repeated}",
                cable.rate, cable.delay
            )
        });
    }
}

/// A setting with a default and a range.
fn setting<T: Quantity>(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    default: &'static str,
    [least, most]: [&'static str; 2],
) -> T {
    s.get(key(name, doc).default(default).range(least, most))
}

/// An amount in bytes.
fn amount(s: &mut Section, name: &'static str, doc: &'static str, default: &'static str) -> u64 {
    setting::<Bytes>(s, name, doc, default, ["1 KB", "1 GB"]).0
}

fn rate(s: &mut Section, name: &'static str, doc: &'static str, default: &'static str) -> Rate {
    setting(s, name, doc, default, ["1 kbit/s", "1 Tbit/s"])
}

fn read_qcn(s: &mut Section, lossless: u8, mtu: u32, notes: &mut Vec<String>) -> QcnConfig {
    let doc = "Priorities that are congestion-controlled, 0 to 7.";
    let priorities = read_priorities(s, doc, Some(lossless));
    let config = read_points(s, priorities);
    s.demand(priorities >> config.cnm_priority & 1 == 0, &["cnm_priority", "priorities"], || {
        "is congestion-controlled itself".to_owned()
    });
    s.demand(u32::from(config.cnm_bytes) <= mtu, &["cnm_bytes"], || {
        format!("is more than fabric.mtu ({mtu} B), which headroom is reckoned with")
    });
    if config.cnm_bytes > 256 && !s.describing() {
        notes.push(format!(
            "qcn: messages of {} B are larger than the standard's",
            config.cnm_bytes
        ));
    }
    config
}

/// Congestion points, then reaction points; the reference lists settings in this order.
fn read_points(s: &mut Section, priorities: u8) -> QcnConfig {
    let jitter = "Half width of the random part of sampling distances and cycles, as a share.";
    let gain = "Part of the rate that each of 63 steps of feedback takes (G_d).";
    let least = "A message leaves at least this part of the rate.";
    let active = "Added to the target in a cycle of active increase.";
    let hyper = "Added, times the number of the cycle, in hyperactive increase.";
    let extra = "Messages within the first cycle of bytes leave the target alone.";
    QcnConfig {
        priorities,
        q_eq: amount(s, "q_eq", "Bytes at which a queue is to rest (Q_eq).", "33000 B"),
        weight: {
            let doc = "Weight of the growth of a queue against its size (w).";
            setting::<Ratio>(s, "weight", doc, "2", ["0", "100"]).0
        },
        sample: {
            let doc = "Mean bytes between two samples without congestion.";
            amount(s, "sample", doc, "150 KB")
        },
        jitter: setting::<Fraction>(s, "jitter", jitter, "0.15", ["0", "0.9"]).0,
        cnm_priority: {
            at_most(setting::<u32>(s, "cnm_priority", "Priority of the messages.", "7", ["0", "7"]))
        },
        cnm_bytes: {
            let doc = "Bytes of a message without fabric.framing.";
            at_most(setting::<Octets>(s, "cnm_bytes", doc, "64", ["46", "1500"]).0)
        },
        gain: setting::<Ratio>(s, "gain", gain, "0.0078125", ["0.0001", "0.015"]).0,
        min_decrease: setting::<Fraction>(s, "min_decrease", least, "0.5", ["0.01", "0.99"]).0,
        min_rate: rate(s, "min_rate", "No limiter goes below.", "100 kbit/s"),
        byte_limit: amount(s, "byte_limit", "Bytes of a cycle of the byte counter.", "150 KB"),
        timer: setting(s, "timer", "Length of a cycle of the timer.", "15 ms", ["1 us", "100 s"]),
        threshold: setting(s, "threshold", "Cycles of fast recovery.", "5", ["1", "1000"]),
        active_increase: rate(s, "active_increase", active, "5 Mbit/s"),
        hyper_increase: rate(s, "hyper_increase", hyper, "50 Mbit/s"),
        extra_fast_recovery: s.get(key("extra_fast_recovery", extra).default("true")),
    }
}
