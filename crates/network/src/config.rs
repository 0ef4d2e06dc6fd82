//! Settings of a fabric, as in the scenario. The reader of scenarios has checked all values.

use crate::cards::{BondMode, CardsConfig};
use crate::dcb::config::DcbConfig;
use crate::energy::EnergyConfig;
use crate::fault::Fault;
use crate::queue::QueueConfig;
use crate::routing::{EqualPaths, RoutingConfig};
use crate::scheduler::SchedulerConfig;
use crate::shared_buffer::SharedBufferConfig;
use crate::topology::{Graph, Topology};
use eastwest_types::Span;
use std::collections::BTreeSet;

/// Settings of a whole fabric. The reader of scenarios has checked all values.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Nodes and cables of the fabric.
    pub topology: Topology,
    /// Settings of network cards, for hosts with several cards.
    pub cards: CardsConfig,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Framing in bytes: bytes of a packet on the link in addition to its IP length.
    pub framing: u32,
    /// Smallest length of a packet on the link in bytes, framing included (Ethernet pads short
    /// frames).
    pub min_frame: u32,
    /// Queue discipline and limit of every switch port.
    pub switch_queue: QueueConfig,
    /// Queue discipline and limit of the network card of every host.
    pub host_queue: QueueConfig,
    /// Memory shared by the ports of a switch, in addition to the limits of their queues; `None` if
    /// ports share no memory.
    pub shared_buffer: Option<SharedBufferConfig>,
    /// Scheduler by which each port serves its traffic classes.
    pub scheduler: SchedulerConfig,
    /// Data-centre bridging (PFC and QCN), for all ports.
    pub dcb: DcbConfig,
    /// Policy by which switches choose among equal paths.
    pub routing: RoutingConfig,
    /// Hash and weights of the choice among equal paths.
    pub equal_paths: EqualPaths,
    /// Width in time of the uniform random delay that a host adds to each arriving packet before it
    /// is processed. The delay prevents synchronization of ACK clocks with the phase of a queue
    /// (Floyd and Jacobson 1992).
    pub processing_jitter: Span,
    /// Whether every port uses the two-event reference mode, in which an event ends each
    /// transmission.
    pub reference_ports: bool,
    /// Faults of links, with their times.
    pub faults: Vec<Fault>,
    /// Power and sleep policy of links.
    pub energy: EnergyConfig,
    /// Whether switch ports write [telemetry](crate::telemetry) into packets. Ports of switches are
    /// then two-event ports, which know their queue when they begin to send a packet.
    pub telemetry: bool,
    /// Whether NICs of hosts read the queues of their ports between the events of the link (RoCEv2).
    /// Host ports with several queues are then two-event ports.
    pub nics_read_queues: bool,
    /// Ports in `measure.ports`, which record arrivals, queue lengths and waiting times.
    pub measured: PortSet,
}

/// A set of ports, each identified by the nodes at its two ends.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PortSet {
    /// Whether the set contains every port of the fabric.
    pub all: bool,
    /// Nodes whose egress ports all belong to the set.
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
    /// Returns the nodes and cables of the fabric, by number.
    pub fn graph(&self) -> Graph {
        let card_addresses = self.cards.bond_mode == BondMode::Off;
        Graph { card_addresses, ..Graph::build(&self.topology) }
    }

    /// Returns the memory that the queues of a switch share; `None` if queues share no memory. With
    /// PFC, this is the memory of lossy queues.
    pub fn shared_queues(&self) -> Option<SharedBufferConfig> {
        self.shared_buffer.or(self.dcb.lossy_pool().map(|lossy| lossy.queues))
    }

    /// Returns the queues of the fabric that are meant only to mark packets, and therefore need
    /// ECN-capable transports.
    pub fn marking_queues(&self) -> impl Iterator<Item = &QueueConfig> {
        self.queues().filter(|queue| queue.only_marks())
    }

    /// Whether at least one queue of the fabric reads [remaining
    /// bytes](crate::queue::Arrival::remaining).
    pub(crate) fn reads_remaining(&self) -> bool {
        self.queues().any(QueueConfig::reads_remaining)
    }

    /// Returns the settings of the queues of switches, of hosts and of traffic classes.
    pub fn queues(&self) -> impl Iterator<Item = &QueueConfig> {
        let classes = match &self.scheduler {
            SchedulerConfig::Classes(classes) => classes.as_slice(),
            SchedulerConfig::Fifo | SchedulerConfig::StrictPriority => &[],
        };
        let own = classes.iter().filter_map(|class| class.queue.as_ref());
        own.chain([&self.switch_queue, &self.host_queue])
    }
}
