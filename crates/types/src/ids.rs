//! Identifiers of hosts, nodes, links, endpoints, connections and traffic classes. Identifiers of
//! the fabric are consecutive numbers from 0, so that tables are plain vectors.

use serde::{Deserialize, Serialize};

/// Number of a host, counted from 0 in the order in which the topology lists hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// Number of a node of the fabric: hosts come first, with the number of their [`HostId`], then
/// switches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// Number of a link: one direction of a cable, with the egress port that sends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// Identifier of one end of a TCP connection or queue pair: slot in the endpoint table (low 24
/// bits), and generation of the slot (high 8 bits). Because of the generation, a late packet of a
/// closed connection never reaches the next endpoint in the same slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// Largest number of slots of an endpoint table.
    pub const MAX_SLOTS: usize = 1 << 24;

    /// Returns the identifier of the endpoint in slot `slot` with the generation `generation`.
    pub fn new(slot: usize, generation: u8) -> EndpointId {
        debug_assert!(slot < Self::MAX_SLOTS);
        EndpointId(slot as u32 | u32::from(generation) << 24)
    }
    /// Returns the slot: the index in the endpoint table.
    pub fn slot(self) -> usize {
        (self.0 & 0x00ff_ffff) as usize
    }
    /// Returns the generation of the slot (0 to 255), which differs between successive endpoints in
    /// the slot.
    pub fn generation(self) -> u8 {
        (self.0 >> 24) as u8
    }
    /// Returns the endpoint at the other end of the connection; both ends have adjacent slots.
    pub fn peer(self) -> EndpointId {
        EndpointId(self.0 ^ 1)
    }
    /// Returns whether the endpoint is the client or the server of its connection.
    pub fn side(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }
}

/// Number of a connection within its workload. A workload may reuse the number after the connection
/// is closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ConnId(pub u32);

/// End of a connection: client or server. The client opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The end that sent the SYN.
    Client,
    /// The end that was listening.
    Server,
}

impl Side {
    /// Returns the other end of the connection: the server for the client, and the client for the
    /// server.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// Number of a traffic class: index in the scenario's list of classes. Result tables have a row for
/// each class, and ports may map a class to a priority.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct ClassId(pub u8);
