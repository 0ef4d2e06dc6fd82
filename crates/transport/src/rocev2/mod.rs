//! RDMA over converged Ethernet, version 2 (InfiniBand Architecture Specification, volume 1, annex
//! A17): reliable queue pairs over UDP, as a NIC implements them.
//!
//! [`Stack`] holds both ends of every queue pair side by side in memory. A [queue pair](queue_pair)
//! has no window: it sends as fast as its rate and its NIC allow. After a loss it retransmits
//! everything from the first lost packet on (go-back-N). All queue pairs of a host and codepoint
//! share a NIC queue (`stack.rs`). The NIC queue serves the queue pairs in turn, and hands no
//! packet to the port before the port has room. While the port is paused, data waits in the host's
//! memory, so that a reduction of the rate still affects this data.
//!
//! A queue pair can send as soon as it is opened, without a handshake. Closing a queue pair sends
//! nothing.

pub mod config;
pub mod control;
pub mod counters;
pub mod dcqcn;
mod interface;
pub mod queue_pair;
pub mod rate_control;
mod requester;
mod stack;
#[cfg(test)]
mod tests;

pub use config::RoceV2Config;
pub use counters::Counters;
pub use interface::{Connect, Flow, Notice, Sink, TimerTarget};
pub use queue_pair::QueuePair;
pub use stack::Stack;
