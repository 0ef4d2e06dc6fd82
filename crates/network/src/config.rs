//! What a fabric is made of, as the scenario describes it. Every value is already checked.

use crate::dcb::config::DcbConfig;
use crate::energy::EnergyConfig;
use crate::fault::Fault;
use crate::queue::QueueConfig;
use crate::routing::{EqualPaths, RoutingConfig};
use crate::scheduler::SchedulerConfig;
use crate::shared_buffer::SharedBufferConfig;
use crate::topology::Topology;
use eastwest_types::Span;
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

impl FabricConfig {
    /// Whether a queue can do nothing but mark packets.
    pub fn only_marks(&self) -> bool {
        let classes = self.scheduler.classes();
        let own = classes.iter().filter_map(|class| class.queue.as_ref());
        own.chain([&self.switch_queue, &self.host_queue]).any(QueueConfig::only_marks)
    }
}
