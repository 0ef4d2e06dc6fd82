//! Memory of a fabric, computed from its settings before the fabric is built.
//!
//! The memory of a structure is its size, and the memory that it allocates before the first packet.
//! Packets in flight need additional memory. docs/internals/memory.md compares the computed numbers
//! with measurements.

use crate::cards::BondMode;
use crate::config::FabricConfig;
use crate::dcb::ingress_pool::{PoolUse, SwitchMemory};
use crate::dcb::port_state::DcbPort;
use crate::energy::eee::LpiState;
use crate::fault::Effect;
use crate::link::{Link, PortQueues};
use crate::routing;
use crate::shared_buffer::SharedBuffer;
use crate::topology::Cable;
use crate::topology::Topology;

/// Bytes of memory for the name of a node: its entry in a list, and its text, whose size the
/// allocator rounds up.
const NAME: u64 = (size_of::<String>() + 16) as u64;
/// Additional bytes for each traffic class of a port in two-event mode, which has queues for
/// classes.
const CLASS: u64 = 256;

/// Numbers of nodes and cables of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of hosts.
    pub hosts: u64,
    /// Number of switches.
    pub switches: u64,
    /// Number of edge switches (switches with hosts).
    pub edges: u64,
    /// Number of cables.
    pub cables: u64,
    /// Number of cables of hosts.
    pub host_cables: u64,
    /// Number of hosts with several cards.
    pub with_several_cards: u64,
}

impl Sizes {
    /// Returns the numbers of nodes and cables of a topology without building the topology.
    pub fn of(topology: &Topology) -> Sizes {
        let wide = |n: u32| u64::from(n);
        let regular = topology.regular();
        let (hosts, cables) = match *topology {
            Topology::LeafSpine {
                leaves, hosts_per_leaf, spines, cables_per_spine, cards, ..
            } => {
                let hosts = wide(leaves / cards.switches()) * wide(hosts_per_leaf);
                let of_hosts = hosts * wide(cards.number);
                (hosts, of_hosts + wide(leaves) * wide(spines) * wide(cables_per_spine))
            }
            Topology::Star { hosts, cards, .. } => (wide(hosts), wide(hosts) * wide(cards)),
            Topology::FatTree { k, hosts_per_edge, .. } => {
                let (half, edges) = (wide(k / 2), wide(k) * wide(k / 2));
                (edges * wide(hosts_per_edge), edges * (wide(hosts_per_edge) + 2 * half))
            }
            Topology::Graph { ref hosts, ref cables, .. } => {
                (hosts.len() as u64, cables.len() as u64)
            }
        };
        let (switches, edges) = match (&regular, topology) {
            (Some(regular), _) => (wide(regular.switches()), wide(regular.edges())),
            (None, Topology::Graph { switches, .. }) => (switches.len() as u64, edges_of(topology)),
            (None, &Topology::LeafSpine { leaves, spines, .. }) => {
                (wide(leaves) + wide(spines), wide(leaves))
            }
            (None, Topology::Star { .. }) => (1, 1),
            (None, Topology::FatTree { .. }) => unreachable!("fat trees are regular"),
        };
        let (host_cables, with_several_cards) = match topology {
            Topology::LeafSpine { cards, .. } if cards.number > 1 => {
                (hosts * wide(cards.number), hosts)
            }
            Topology::Star { cards: 2.., .. } => (cables, hosts),
            Topology::Graph { .. } => cards_of(topology),
            _ => (hosts, 0),
        };
        Sizes { hosts, switches, edges, cables, host_cables, with_several_cards }
    }

    /// Returns the number of hosts and switches.
    pub fn nodes(&self) -> u64 {
        self.hosts + self.switches
    }

    /// Returns the number of ports of switches and hosts.
    pub fn ports(&self) -> u64 {
        2 * self.cables
    }
}

/// Returns the number of edge switches (switches with hosts) of a graph; 0 for other topologies.
fn edges_of(topology: &Topology) -> u64 {
    let Topology::Graph { hosts, switches, cables, .. } = topology else { return 0 };
    let mut has_hosts = vec![false; switches.len()];
    for &(a, b, _) in cables {
        let (host, switch) = (a.min(b) as usize, a.max(b) as usize);
        if host < hosts.len() && switch >= hosts.len() {
            has_hosts[switch - hosts.len()] = true;
        }
    }
    has_hosts.iter().filter(|has| **has).count() as u64
}

/// Returns the number of cables of hosts in a graph, and the number of hosts with several cables.
fn cards_of(topology: &Topology) -> (u64, u64) {
    let Topology::Graph { hosts, cables, .. } = topology else { return (0, 0) };
    let mut cards = vec![0u32; hosts.len()];
    for (a, b, _) in cables {
        if let Some(cards) = cards.get_mut(*a.min(b) as usize) {
            *cards += 1;
        }
    }
    let all = cards.iter().map(|&n| u64::from(n)).sum();
    (all, cards.iter().filter(|&&n| n > 1).count() as u64)
}

/// Memory of a newly built fabric, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of memory for names, cables and shared buffers, and for the switch of each host.
    pub nodes: u64,
    /// Bytes of memory for the next hops, including temporary memory to compute them.
    pub routes: u64,
    /// Bytes of memory for ports and their queues.
    pub ports: u64,
}

impl Footprint {
    /// Returns the memory of a fabric with these settings, in bytes.
    pub fn of(config: &FabricConfig) -> Footprint {
        let sizes = Sizes::of(&config.topology);
        let mut nodes = sizes.nodes() * NAME + sizes.cables * size_of::<Cable>() as u64;
        nodes += sizes.hosts * 4 + config.shared_queues().map_or(0, |_| shared(&sizes));
        if let Topology::Graph { .. } = config.topology {
            // The topology exists twice: one copy as read, and one as passed to the builder.
            let cable = size_of::<(u32, u32, crate::topology::CableConfig)>() as u64;
            nodes += 2 * (sizes.nodes() * NAME + sizes.cables * cable);
        }
        let of_hosts = sizes.host_cables * (port(config, true) + port(config, false));
        let between = sizes.ports().saturating_sub(2 * sizes.host_cables) * port(config, false);
        Footprint { nodes, routes: routes(config, &sizes), ports: of_hosts + between }
    }
}

fn shared(sizes: &Sizes) -> u64 {
    sizes.switches * (size_of::<SharedBuffer>() as u64 + 16)
}

fn routes(config: &FabricConfig, sizes: &Sizes) -> u64 {
    let between = 2 * (sizes.cables - sizes.host_cables.min(sizes.cables));
    let regular = config.topology.regular();
    // A host whose cards share an address has its own column.
    let columns = match config.cards.bond_mode {
        BondMode::Off => sizes.edges,
        BondMode::Lacp | BondMode::RoundRobin => sizes.edges + sizes.with_several_cards,
    };
    let (kept, besides) = routing::bytes(sizes.switches, columns, between, regular.as_ref());
    // If links fail, a second table with the routes over all links exists, from which ideal times
    // of messages are computed.
    let down = config.faults.iter().any(|f| matches!(f.effect, Effect::Down { .. }));
    let addresses = sizes.hosts + if sizes.with_several_cards > 0 { sizes.host_cables } else { 0 };
    let each = kept + addresses * 8 + sizes.switches * 4;
    each * (1 + u64::from(down)) + besides
}

/// Returns the bytes of memory for the egress port of a host (`from_host` is true) or of a switch.
fn port(config: &FabricConfig, from_host: bool) -> u64 {
    let queue = if from_host { &config.host_queue } else { &config.switch_queue };
    let classes = config.scheduler.classes().len().max(1) as u64;
    let waits = config.reference_ports
        || (config.shared_queues().is_some() && !from_host)
        || config.dcb.is_on()
        || classes > 1
        || !queue.is_one_fifo();
    let mut bytes = (size_of::<Link>() + size_of::<bool>()) as u64 + queue.memory();
    if waits {
        bytes += size_of::<PortQueues>() as u64 + classes * (CLASS + queue.memory());
    }
    if config.dcb.is_on() {
        bytes += size_of::<DcbPort>() as u64 + 8 * CLASS;
    }
    if config.dcb.has_pool() {
        // Each port has the use of memory by one input, and each node has at least one port.
        bytes += (size_of::<PoolUse>() + size_of::<SwitchMemory>()) as u64;
    }
    let class = if from_host { &config.energy.host } else { &config.energy.fabric };
    if class.policy.falls_asleep() {
        bytes += size_of::<LpiState>() as u64;
    }
    bytes
}
