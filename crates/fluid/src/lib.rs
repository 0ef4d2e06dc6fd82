//! The network as fluid: flows with fair rates instead of packets.
//!
//! For fabrics and traces that are too large for packets. [`network::Network`] is given connections
//! and messages and returns the arrival times of messages; ports are numbers, and paths are given.
//! [`share`] computes rates, [`transfer`] models the effects of TCP on a message, [`delay`] its
//! latency. Approximate: docs/mechanisms/flow-mode.md lists what is left out.

mod agenda;
pub mod delay;
pub mod network;
pub mod share;
mod stream;
pub mod transfer;
