//! The network as fluid: flows with fair rates in place of packets.
//!
//! For fabrics and traces that are too large for packets. [`network::Network`] is told of connections
//! and messages and says when these have arrived; it knows ports by number and paths as it is given
//! them. [`share`] finds rates, [`transfer`] says what TCP makes of a message, [`delay`] how long it is
//! under way beside. Approximate: docs/mechanisms/flow-mode.md says what is left out.

mod agenda;
pub mod delay;
pub mod network;
pub mod share;
mod stream;
pub mod transfer;
