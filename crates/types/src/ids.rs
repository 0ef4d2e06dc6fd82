//! Names of things: dense indices, so that tables are plain vectors.

use serde::{Deserialize, Serialize};

/// A host, counted from 0 in the order the topology lists them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// A node of the fabric: hosts first (same number as their [`HostId`]), then switches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// One direction of a cable, with the output port that feeds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// One end of a TCP connection. The low 24 bits are the slot, the high 8 the generation of that
/// slot, so that a late packet of a closed connection never reaches its successor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// Slots an endpoint table can have.
    pub const MAX_SLOTS: usize = 1 << 24;

    /// An endpoint from slot and generation.
    pub fn new(slot: usize, generation: u8) -> EndpointId {
        debug_assert!(slot < Self::MAX_SLOTS);
        EndpointId(slot as u32 | u32::from(generation) << 24)
    }
    /// Index into the endpoint table.
    pub fn slot(self) -> usize {
        (self.0 & 0x00ff_ffff) as usize
    }
    /// How often that slot has been used before, modulo 256.
    pub fn generation(self) -> u8 {
        (self.0 >> 24) as u8
    }
    /// The other end: both ends of a connection lie side by side.
    pub fn peer(self) -> EndpointId {
        EndpointId(self.0 ^ 1)
    }
    /// Which end this is.
    pub fn side(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }
}

/// A connection as a workload names it: each workload numbers its own connections and may reuse a
/// number after it has closed that connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ConnId(pub u32);

/// The two ends of a connection: the client opens it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The end that sent the SYN.
    Client,
    /// The end that was listening.
    Server,
}

impl Side {
    /// The other side.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A traffic class: an index into the scenario's list of classes. It names rows in tables and may
/// map to a priority at ports.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct ClassId(pub u8);
