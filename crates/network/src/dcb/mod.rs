//! Data-centre bridging: what makes Ethernet lossless and tells sources of congestion.
//!
//! * [`cnm`]: the message with which a switch tells a source of congestion.

pub mod cnm;

pub use cnm::Cnm;
