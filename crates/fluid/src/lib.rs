//! Flow mode: the network as a fluid, in which flows have fair rates instead of packets.
//!
//! Flow mode serves fabrics and traces that are too large for a packet simulation.
//! [`network::Network`] receives connections and messages, and returns the arrival times of
//! messages; ports are numbers, and paths are lists of ports. [`share`] computes rates,
//! [`transfer`] models the effects of TCP on a message, and [`delay`] computes the latency of a
//! message. The results are approximate: docs/mechanisms/flow-mode.md lists what the model omits.

mod agenda;
pub mod delay;
pub mod network;
pub mod share;
mod stream;
pub mod transfer;
