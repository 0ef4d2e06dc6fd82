//! RDMA over converged Ethernet, version 2 (InfiniBand Architecture Specification, volume 1, annex A17): reliable
//! queue pairs over UDP, as a network card carries them out.
//!
//! [`Stack`] holds both ends of every queue pair side by side. A [queue pair](queue_pair) has no window: it
//! sends as fast as its rate and its card let it, and goes back to the first packet that was lost (go-back-N).
//! All queue pairs of a host and codepoint share a card (`stack.rs`), which takes them in turn and hands no packet to the
//! port before there is room: what is paused waits in the host's memory, where its rate can still be cut.
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
pub use interface::{Alarm, Connect, Notice, Sink};
pub use queue_pair::QueuePair;
pub use stack::Stack;
