//! RDMA over converged Ethernet, version 2 (InfiniBand Architecture Specification, volume 1, annex A17):
//! reliable queue pairs over UDP, as a NIC implements them.
//!
//! [`Stack`] holds both ends of every queue pair side by side. A [queue pair](queue_pair) has no window: it
//! sends as fast as its rate and its NIC allow, and goes back to the first lost packet (go-back-N). All queue
//! pairs of a host and codepoint share a NIC queue (`stack.rs`), which serves them in turn and hands no packet
//! to the port before there is room: while the port is paused, data waits in the host's memory, where its rate
//! can still be reduced.
//!
//! Queue pairs are set up beforehand: there is no handshake, and nothing is sent when one is closed.

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
pub use interface::{Connect, Notice, Sink, TimerTarget};
pub use queue_pair::QueuePair;
pub use stack::Stack;
