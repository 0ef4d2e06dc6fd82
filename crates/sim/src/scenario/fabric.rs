//! `[fabric]`: nodes, cables, queues and routes.
//!
//! Sources of the defaults:
//!
//! * Ethernet framing: IEEE 802.3 (preamble 8 B, header 14 B, FCS 4 B, gap 12 B); MTU: RFC 894.
//! * Delay of a link, 5 µs: it stands for cable, switch pipeline and a share of the delay of hosts.
//!   The base round trip of a leaf–spine fabric is then between 40 and 100 µs at 1 Gbit/s (the
//!   fabric of Alizadeh et al. 2010 stays below 250 µs).
//! * Switch ports of 200 packets: shallow buffers (E-EON, table 5.1).
//! * NIC queues of 1000 packets: Linux, txqueuelen.
//!
//! Numbers of nodes and rates have no default.

use super::cables::{
    cable, cables, host_rate, link_rates, rates, read_host_cable, read_uplink_cable,
};
use super::files::{Context, Files};
use super::graph;
use super::nodes::Nodes;
use super::shapes::Shape;
use super::{routes, several_cards, shapes};
use crate::switch_power::SwitchPower;
use eastwest_network::cards::CardsConfig;
use eastwest_network::config::{FabricConfig, PortSet};
use eastwest_network::dcb::pfc::Wire;
use eastwest_network::dcb::settings::{self, Below};
use eastwest_network::energy::EnergyConfig;
use eastwest_network::footprint::Sizes;
use eastwest_network::queue::{self, Ports, Room};
use eastwest_network::scheduler;
use eastwest_network::shared_buffer::SharedBufferConfig;
use eastwest_network::topology::Topology;
use eastwest_settings::quantity::Octets;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Rate, Span};

/// Maximum value of the setting `processing_jitter`.
const MOST_JITTER: Span = Span::from_secs(1);

/// Maximum number of nodes of a fabric.
const MOST_NODES: u64 = 2_000_000;
/// Maximum number of cables of a fabric.
const MOST_CABLES: u64 = 8_000_000;

#[derive(Clone, Copy)]
enum Kind {
    LeafSpine,
    Star,
    FatTree,
    Shape(shapes::Shape),
    Graph,
}

/// Settings of the fabric, and properties of the fabric that other settings depend on.
pub struct Fabric {
    /// Checked settings of the fabric; placeholder values where a problem was reported.
    pub config: FabricConfig,
    /// Power model of the switches of the fabric.
    pub switch_power: SwitchPower,
    /// Nodes by name and number; `None` if the topology could not be read.
    pub nodes: Option<Nodes>,
    /// MTU in bytes; `None` if the setting is wrong.
    pub mtu: Option<u32>,
}

const SWITCH_QUEUE: &str = "Limit of the queue, in packets or IP bytes. The packet on the link \
                            does not count (E-EON, table 5.1: 200 packets; deep: 2000).";
const HOST_QUEUE: &str = "Limit of the queue, in packets or IP bytes (Linux, txqueuelen: 1000).";

/// Reads all settings of the fabric, from the table `[fabric]`.
pub fn read(
    s: &mut Section,
    context: &Context,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Fabric {
    let topology = read_topology(s, context, files, notes);
    let nodes = topology.as_ref().map(Nodes::new);
    let several = topology.as_ref().map(|topology| Sizes::of(topology).with_several_cards > 0);
    let cards = CardsConfig::read(s, several);
    let Packets { mtu, framing, min_frame } = read_packets(s);
    let packet = host_rate(topology.as_ref()).time_for(u64::from(mtu) + u64::from(framing));
    // at very low rates the transmission of a packet takes longer than the maximum of the setting
    let processing_jitter = read_jitter(s, packet.min(MOST_JITTER));
    let reference_ports = s.get(
        key::<bool>(
            "reference_ports",
            "Whether every port uses the two-event reference mode, which is slower and has \
             identical results.",
        )
        .default("false"),
    );
    let known_mtu = s.good(&["mtu"]).then_some(mtu);
    let (rates, mechanisms) = (rates(topology.as_ref()), &context.mechanisms);
    let ports = Ports { mtu: known_mtu, framing, rates };
    let shared_buffer = SharedBufferConfig::read(s, ports.mtu.unwrap_or(0));
    let wire = Wire { mtu, framing, min_frame };
    let dcb = settings::read(s, &wire, &cables(topology.as_ref()), notes);
    let lossy = dcb.lossy_pool().filter(|_| s.good(&["pfc"])).map(|lossy| lossy.queues);
    let shared = shared_buffer.filter(|_| s.good(&["shared_buffer"])).or(lossy);
    let at_switch = Room { limit: "200 packets", doc: SWITCH_QUEUE, shared, alone: true };
    let at_host = Room { limit: "1000 packets", doc: HOST_QUEUE, shared: None, alone: true };
    let scheduler = scheduler::read(s, &ports, at_switch, &mechanisms.queues, notes);
    let switch_queue = s.table("queue", "Queue of every port of a switch.", |q| {
        queue::read(q, &ports, at_switch, &mechanisms.queues, notes)
    });
    let at_host = if s.has("pfc") { settings::room_of_hosts() } else { at_host };
    let host_queue = s.table("host_queue", "Queue of every host's network card.", |q| {
        queue::read(q, &ports, at_host, &mechanisms.queues, notes)
    });
    let (routing, equal_paths) = routes::read(s, nodes.as_ref(), context, files);
    let energy = EnergyConfig::read(s, &link_rates(topology.as_ref()));
    settings::refuse_others(
        s,
        &Below {
            queues: [&switch_queue, &host_queue],
            scheduler: &scheduler,
            shared: shared_buffer.is_some(),
            energy: &energy,
        },
    );
    let switch_power = SwitchPower::read(s);
    let config = FabricConfig {
        topology: topology.unwrap_or(Topology::Star {
            hosts: 2,
            cards: 1,
            host: cable(Rate::gbit(1), Span::ZERO),
        }),
        cards,
        mtu,
        framing,
        min_frame,
        switch_queue,
        host_queue,
        shared_buffer,
        scheduler,
        dcb,
        routing,
        equal_paths,
        processing_jitter,
        energy,
        // `plan.rs` sets `measured` from `measure.ports`; `top.rs` sets `faults`, `telemetry` and
        // `nics_read_queues`
        measured: PortSet::default(),
        reference_ports,
        telemetry: false,
        nics_read_queues: false,
        faults: Vec::new(),
    };
    Fabric { config, switch_power, nodes, mtu: known_mtu }
}

fn read_jitter(s: &mut Section, packet: Span) -> Span {
    s.get(
        key::<Span>(
            "processing_jitter",
            "Upper end of the uniform random delay that a host adds to each arriving packet. It \
             prevents phase effects between ACK clocks and queues (Floyd and Jacobson 1992).",
        )
        .computed("the transmission time of one full packet at the host rate, at most 1 s", packet)
        .range("0 s", "1 s"),
    )
}

/// Sizes of packets on a link, in bytes.
struct Packets {
    mtu: u32,
    framing: u32,
    min_frame: u32,
}

fn read_packets(s: &mut Section) -> Packets {
    let mtu = s.get(
        key::<Octets>("mtu", "Largest IP packet in bytes (RFC 894; 9000 for jumbo frames).")
            .default("1500")
            .range("68", "9216"),
    );
    let framing = s.get(
        key::<Octets>(
            "framing",
            "Bytes that each packet occupies on a link in addition to its IP length: preamble, \
             header, FCS and gap (IEEE 802.3). With 0 only IP bytes count.",
        )
        .default("38")
        .range("0", "256"),
    );
    let min_frame = s.get(
        key::<Octets>(
            "min_frame",
            "Smallest size of a packet on a link in bytes, including framing (IEEE 802.3: 64 B \
             plus preamble and gap).",
        )
        .computed("84, or 0 if framing is 0", Octets(if framing.0 == 0 { 0 } else { 84 }))
        .range("0", "1024"),
    );
    Packets { mtu: mtu.0, framing: framing.0, min_frame: min_frame.0 }
}

fn read_kind(s: &mut Section) -> Option<Kind> {
    s.kind(
        "Topology of the fabric.",
        Some("leaf-spine"),
        &[
            (
                "leaf-spine",
                Kind::LeafSpine,
                "two tiers: every leaf has cables to every spine; nodes h0…, leaf0…, spine0…",
            ),
            ("star", Kind::Star, "one switch; nodes h0…, switch0"),
            (
                "fat-tree",
                Kind::FatTree,
                "three tiers of k-port switches (Al-Fares et al. \
                         2008); nodes h0…, edge0…, agg0…, core0…",
            ),
            (
                "k-ary-n-tree",
                Kind::Shape(Shape::KAryNTree),
                "n levels of switches with k ports down and k up (Petrini and Vanneschi 1997); \
                 nodes h0…, s1.0… by level",
            ),
            (
                "xgft",
                Kind::Shape(Shape::Xgft),
                "extended generalised fat tree (Öhring et al. 1995); nodes h0…, s1.0… by level",
            ),
            (
                "torus",
                Kind::Shape(Shape::Torus),
                "switches in a ring along every dimension, hosts at each; nodes h0…, s0.0… by \
                 coordinates",
            ),
            (
                "dcell",
                Kind::Shape(Shape::DCell),
                "servers that forward for each other (Guo et al. 2008); nodes h0…, relay0…, mini0…",
            ),
            (
                "dragonfly",
                Kind::Shape(Shape::Dragonfly),
                "groups of switches with cables between all pairs of groups (Kim et al. 2008); \
                 nodes h0…, g0.s0…",
            ),
            (
                "dumbbell",
                Kind::Shape(Shape::Dumbbell),
                "two switches with one cable between them (the uplink); nodes h0…, left, right",
            ),
            (
                "two-groups",
                Kind::Shape(Shape::TwoGroups),
                "two groups of hosts with several paths between them; static routing by the \
                 receiver's number does not use all of them; nodes h0…, left, near0…, far0…, \
                 right",
            ),
            ("graph", Kind::Graph, "any graph, read from a file that also names the nodes"),
        ],
    )
}

fn read_topology(
    s: &mut Section,
    context: &Context,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Option<Topology> {
    let kind = read_kind(s)?;
    let topology = match kind {
        Kind::LeafSpine => read_leaf_spine(s, notes),
        Kind::Star => read_star(s),
        Kind::FatTree => read_fat_tree(s, notes),
        Kind::Shape(shape) => return shapes::read(s, shape),
        Kind::Graph => return graph::read(s, context, files),
    };
    if s.describing() {
        return None;
    }
    let size = Sizes::of(&topology);
    let (nodes, cables) = (size.nodes(), size.cables);
    let sizes: &[&str] = match kind {
        Kind::LeafSpine => {
            &["hosts_per_leaf", "leaves", "spines", "cables_per_spine", "cards", "homing"]
        }
        Kind::Star => &["hosts", "cards"],
        Kind::FatTree => &["k", "hosts_per_edge"],
        Kind::Shape(_) | Kind::Graph => &[],
    };
    s.demand(nodes <= MOST_NODES, sizes, || {
        format!("leads to a fabric of {nodes} nodes; at most {MOST_NODES} are allowed")
    });
    s.demand(cables <= MOST_CABLES, sizes, || {
        format!("leads to a fabric of {cables} cables; at most {MOST_CABLES} are allowed")
    });
    s.good(sizes).then_some(topology)
}

fn read_leaf_spine(s: &mut Section, notes: &mut Vec<String>) -> Topology {
    const MOST: &str = "1000000";
    let leaves = s.get(key("leaves", "Number of leaves (racks).").range("1", MOST));
    let hosts_per_leaf =
        s.get(key(
            "hosts_per_leaf",
            "Number of hosts on each leaf. With homing = \"multi-homed\", the leaves of a group share these hosts.",
        ).range("1", MOST));
    let spines = s.get(key("spines", "Number of spines.").range("1", MOST));
    let cables_per_spine = s.get(
        key("cables_per_spine", "Number of parallel cables between each leaf and each spine.")
            .default("1")
            .range("1", "1000"),
    );
    let cards = several_cards::read(s, leaves);
    let host = read_host_cable(s);
    let uplink = read_uplink_cable(s);
    let cards_per_leaf = u128::from(hosts_per_leaf) * u128::from(cards.number / cards.switches());
    let down = u128::from(host.rate.0) * cards_per_leaf;
    let up = u128::from(uplink.rate.0) * u128::from(spines) * u128::from(cables_per_spine);
    if leaves > 1 {
        note_over_subscription(notes, "leaf–spine", "leaf", down, up);
    }
    Topology::LeafSpine { leaves, hosts_per_leaf, spines, cables_per_spine, cards, host, uplink }
}

fn read_star(s: &mut Section) -> Topology {
    let hosts = s.get(key("hosts", "Number of hosts.").range("2", "1000000"));
    let cards = several_cards::read_number(s);
    Topology::Star { hosts, cards, host: read_host_cable(s) }
}

fn read_fat_tree(s: &mut Section, notes: &mut Vec<String>) -> Topology {
    let k: u32 = s.get(
        key(
            "k",
            "Number of ports of each switch, an even number: the fabric has k pods with k/2 edge \
             and k/2 aggregation switches each, and (k/2)² core switches.",
        )
        .range("2", "256"),
    );
    s.demand(k % 2 == 0, &["k"], || {
        "must be even, because half of the ports go up and half go \
                                     down"
            .to_owned()
    });
    let hosts_per_edge = s.get(
        key(
            "hosts_per_edge",
            "Number of hosts on each edge switch; more than k/2 cause \
                               over-subscription.",
        )
        .computed("k/2, full bisection", (k / 2).max(1))
        .range("1", "100000"),
    );
    let host = read_host_cable(s);
    let uplink = read_uplink_cable(s);
    let down = u128::from(host.rate.0) * u128::from(hosts_per_edge);
    let up = u128::from(uplink.rate.0) * u128::from(k / 2);
    note_over_subscription(notes, "fat tree", "edge switch", down, up);
    Topology::FatTree { k, hosts_per_edge, host, uplink }
}

/// Adds a note if the total rate of the hosts of a switch exceeds the rate of its uplinks
/// (over-subscription).
fn note_over_subscription(
    notes: &mut Vec<String>,
    fabric: &str,
    switch: &str,
    down: u128,
    up: u128,
) {
    let bits = |n: u128| Rate(u64::try_from(n).unwrap_or(u64::MAX)).to_string();
    if down > up {
        let ratio = hundredths(down, up);
        notes.push(format!(
            "the {fabric} is over-subscribed {ratio}:1: the links of the hosts of each {switch} \
             have {} in total, but its uplinks only {}",
            bits(down),
            bits(up)
        ));
    }
}

/// Returns `down / up` as text, rounded up to hundredths, without trailing zeros: "1.25", "2".
fn hundredths(down: u128, up: u128) -> String {
    let ratio = (down * 100).div_ceil(up.max(1));
    let digits = format!("{}.{:02}", ratio / 100, ratio % 100);
    digits.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::hundredths;

    #[test]
    fn a_ratio_is_rounded_up_and_has_no_zeros_at_its_end() {
        let shown = [(5, 4), (2, 1), (100, 1), (3, 2), (4, 3), (1_000_001, 1_000_000)];
        let shown = shown.map(|(down, up)| hundredths(down, up));
        assert_eq!(shown, ["1.25", "2", "100", "1.5", "1.34", "1.01"]);
    }
}
