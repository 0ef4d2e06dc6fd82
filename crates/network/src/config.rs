//! What a fabric is made of, as the scenario describes it. Every value is already checked.

use crate::dcb::DcbConfig;
use crate::energy::EnergyConfig;
use crate::fault::Fault;
use crate::queue::QueueConfig;
use crate::routing::CustomRoutingConfig;
use crate::shared_buffer::SharedBufferConfig;
use crate::topology::regular::Regular;
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The whole fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Nodes and cables.
    pub topology: Topology,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Bytes each packet occupies on a link beyond its IP length.
    pub framing: u32,
    /// Smallest packet on a link in bytes, framing included (Ethernet pads short frames).
    pub min_frame: u32,
    /// Queue of every switch port.
    pub switch_queue: QueueConfig,
    /// Queue of every host's network card.
    pub host_queue: QueueConfig,
    /// Memory that the ports of a switch share, beside the limits of their queues.
    pub shared_buffer: Option<SharedBufferConfig>,
    /// How ports choose among packets of different priority.
    pub scheduler: SchedulerConfig,
    /// Data-centre bridging, on all ports.
    pub dcb: DcbConfig,
    /// How switches choose among equal paths.
    pub routing: RoutingConfig,
    /// Hash and weights of this choice.
    pub equal_paths: EqualPaths,
    /// Width of the uniform delay a host adds to each arriving packet before it is processed.
    /// Keeps ACK clocks from locking into the phase of a queue (Floyd and Jacobson 1992).
    pub processing_jitter: Span,
    /// Force every port into the two-event reference mode.
    pub reference_ports: bool,
    /// What happens to links, and when.
    pub faults: Vec<Fault>,
    /// What links draw, and whether they sleep.
    pub energy: EnergyConfig,
    /// Ports that are looked at closely.
    pub measured: PortSet,
}

/// Ports, by the nodes at their ends.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PortSet {
    /// Every port.
    pub all: bool,
    /// All ports of these nodes.
    pub nodes: BTreeSet<u32>,
    /// These, from one node to another.
    pub ports: BTreeSet<(u32, u32)>,
}

impl PortSet {
    /// Whether the port from one node to another is among them.
    pub fn contains(&self, from: u32, to: u32) -> bool {
        self.all || self.nodes.contains(&from) || self.ports.contains(&(from, to))
    }
}

/// Rate and propagation delay of a cable, both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableConfig {
    /// Bits per second each way.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
}

/// Nodes and cables.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Two tiers: every leaf is joined to every spine.
    LeafSpine {
        /// Number of leaves (racks).
        leaves: u32,
        /// Hosts on each leaf.
        hosts_per_leaf: u32,
        /// Number of spines.
        spines: u32,
        /// Parallel cables between each leaf and each spine.
        cables_per_spine: u32,
        /// Host to leaf.
        host: CableConfig,
        /// Leaf to spine.
        uplink: CableConfig,
    },
    /// One switch.
    Star {
        /// Number of hosts.
        hosts: u32,
        /// Host to switch.
        host: CableConfig,
    },
    /// The three-tier fat tree of Al-Fares et al. (2008) with `k` pods of `k/2` edge and `k/2`
    /// aggregation switches and `(k/2)²` cores.
    FatTree {
        /// Ports per switch towards other switches, even.
        k: u32,
        /// Hosts on each edge switch (`k/2` for full bisection).
        hosts_per_edge: u32,
        /// Host to edge.
        host: CableConfig,
        /// Edge to aggregation, aggregation to core.
        uplink: CableConfig,
    },
    /// Any graph.
    Graph {
        /// Names of hosts; a host has exactly one cable.
        hosts: Vec<String>,
        /// Names of switches.
        switches: Vec<String>,
        /// Cables between nodes, by index: hosts first, then switches.
        cables: Vec<(u32, u32, CableConfig)>,
        /// The rule by which they are laid out, if there is one.
        regular: Option<Regular>,
    },
}

impl FabricConfig {
    /// Whether a queue can do nothing but mark packets.
    pub fn only_marks(&self) -> bool {
        let classes = self.scheduler.classes();
        let own = classes.iter().filter_map(|class| class.queue.as_ref());
        own.chain([&self.switch_queue, &self.host_queue]).any(QueueConfig::only_marks)
    }
}

/// How a port serves its priorities.
#[derive(Clone, Debug, PartialEq)]
pub enum SchedulerConfig {
    /// One queue for all.
    Fifo,
    /// Two queues, each with the port's limit: codepoints 32–63 (priorities 4–7) before 0–31, without
    /// preemption.
    StrictPriority,
    /// A queue for each of these, which together have every codepoint once.
    Classes(Vec<PortClass>),
}

impl SchedulerConfig {
    /// The classes of a port; none where it has one queue for all.
    pub fn classes(&self) -> Vec<PortClass> {
        match self {
            SchedulerConfig::Fifo => Vec::new(),
            SchedulerConfig::StrictPriority => [u64::MAX << 32, u64::MAX >> 32]
                .map(|dscps| PortClass { dscps, weight: None, queue: None })
                .to_vec(),
            SchedulerConfig::Classes(classes) => classes.clone(),
        }
    }
}

/// A queue of a port for some of the packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PortClass {
    /// Bit d is set for the differentiated services codepoint d.
    pub dscps: u64,
    /// Its share of what strict classes leave, in proportion to the others'; none if it is strict
    /// itself: served before all weighted ones, and before strict ones that come later.
    pub weight: Option<u32>,
    /// Its discipline, if not the port's.
    pub queue: Option<QueueConfig>,
}

/// How switches choose among equal paths.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutingConfig {
    /// Per flow, by a seeded hash of the five-tuple.
    Ecmp,
    /// Per packet, in turn.
    RoundRobin,
    /// Per packet, at random.
    Spray,
    /// Per flowlet, at random.
    Flowlet(FlowletConfig),
    /// By the number of the receiving host modulo the number of paths.
    Modulo,
    /// The same, and around congestion that notifications tell of.
    Adaptive(AdaptiveConfig),
    /// Given paths for given pairs of hosts; ECMP for all others.
    Explicit(Vec<ExplicitRoute>),
    /// As a mechanism from outside says.
    Custom(CustomRoutingConfig),
}

/// Settings of [`RoutingConfig::Flowlet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowletConfig {
    /// A packet that comes later than this after the one before it begins a new flowlet.
    pub gap: Span,
    /// Entries of each switch's table, a power of two up to 65,536.
    pub entries: u32,
}

/// Settings of [`RoutingConfig::Adaptive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveConfig {
    /// A mark counts for so long after the latest notification.
    pub timer: Span,
    /// The severity of a mark falls with its age, linearly to nothing at the end of `timer`.
    pub ageing: bool,
    /// What shows that a hotspot persists; without it, a notification goes on towards its source as soon
    /// as all eligible ports are marked.
    pub persistence: Option<Persistence>,
}

/// A hotspot persists on a port that was taken when all eligible ones were marked: whichever is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persistence {
    /// After so many notifications about this port since.
    pub cnms: Option<u32>,
    /// So long after the port was taken.
    pub time: Option<Span>,
}

/// What the choice among equal paths is based on, whatever makes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EqualPaths {
    /// Every switch takes the hash as it is, in place of mixing a seed of its own into it.
    pub same_hash: bool,
    /// Ports that get more than others, as (from, to, weight); all others weigh 1. All parallel cables
    /// between two nodes are meant.
    pub weights: Vec<(u32, u32, u32)>,
}

/// The path of all packets from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplicitRoute {
    /// Sending host.
    pub from: u32,
    /// Receiving host.
    pub to: u32,
    /// Switches on the way, as node numbers (hosts first, then switches).
    pub via: Vec<u32>,
}
