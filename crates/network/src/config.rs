//! Settings of a fabric, as the scenario gives them. All values are already checked.

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

/// Settings of a whole fabric; all values are checked.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Nodes and cables of the fabric.
    pub topology: Topology,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Bytes on the link of each packet beyond its IP length.
    pub framing: u32,
    /// Smallest frame on a link in bytes, framing included (Ethernet pads short frames).
    pub min_frame: u32,
    /// Queue of every switch port.
    pub switch_queue: QueueConfig,
    /// Queue of every host's network card.
    pub host_queue: QueueConfig,
    /// Memory that the ports of a switch share, in addition to the limits of their queues; `None`
    /// without it.
    pub shared_buffer: Option<SharedBufferConfig>,
    /// Service of classes of different priority at each port.
    pub scheduler: SchedulerConfig,
    /// Data-centre bridging, on all ports.
    pub dcb: DcbConfig,
    /// Policy by which switches choose among equal paths.
    pub routing: RoutingConfig,
    /// Hash and weights of the choice among equal paths.
    pub equal_paths: EqualPaths,
    /// Width of the uniform delay that a host adds to each arriving packet before it is processed. It keeps ACK
    /// clocks from locking into the phase of a queue (Floyd and Jacobson 1992).
    pub processing_jitter: Span,
    /// Whether every port works in the two-event reference mode.
    pub reference_ports: bool,
    /// Faults of links, with their times.
    pub faults: Vec<Fault>,
    /// Power of links, and their sleep policy.
    pub energy: EnergyConfig,
    /// Ports for which `measure.ports` asks for detailed counts.
    pub measured: PortSet,
}

/// A set of ports, given by the nodes at both ends.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PortSet {
    /// Whether the set contains every port of the fabric.
    pub all: bool,
    /// Nodes all of whose egress ports belong to the set.
    pub nodes: BTreeSet<u32>,
    /// Single ports, as (sending node, receiving node).
    pub ports: BTreeSet<(u32, u32)>,
}

impl PortSet {
    /// Whether the set contains the port from one node to another.
    pub fn contains(&self, from: u32, to: u32) -> bool {
        self.all || self.nodes.contains(&from) || self.ports.contains(&(from, to))
    }
}

impl FabricConfig {
    /// Whether any queue of the fabric only marks packets and never drops any below its limit.
    pub fn only_marks(&self) -> bool {
        self.any_queue(QueueConfig::only_marks)
    }

    /// Whether any queue of the fabric reads the bytes that senders have left.
    pub(crate) fn reads_remaining(&self) -> bool {
        self.any_queue(QueueConfig::reads_remaining)
    }

    fn any_queue(&self, is: fn(&QueueConfig) -> bool) -> bool {
        let classes = self.scheduler.classes();
        let own = classes.iter().filter_map(|class| class.queue.as_ref());
        own.chain([&self.switch_queue, &self.host_queue]).any(is)
    }
}
