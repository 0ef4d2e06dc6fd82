//! Data-centre bridging: what makes Ethernet lossless and tells sources of congestion.
//!
//! * [`pfc`]: priorities are paused hop by hop before a buffer overflows;
//! * [`pauses`]: what is remembered of them, where that is asked for;
//! * [`deadlock`]: pauses that wait for each other in a circle, and [`dependency`]: whether they could;
//! * [`qcn`]: switches sample queues and tell sources, with a [message](cnm);
//! * [`reaction`](self): sources limit the rates of flows and recover;
//! * `queues`: a queue for each priority; `limits`: a queue for each flow that a host limits;
//! * `dcb`: the state of a port beside its queues;
//! * `port` and `switching`: how a port and a switch do all this;
//! * `quiet`: when a port needs no event at the end of a transmission;
//! * [`settings`]: how scenarios ask for it.
//!
//! Enhanced transmission selection (802.1Qaz) is how [classes of ports](crate::scheduler::PortClass) share a
//! link. A port with any of this is *bridged* and works in the two-event mode, most of the time without the
//! second event; others know nothing of it.

pub mod cnm;
pub(crate) mod config;
pub mod deadlock;
pub mod dependency;
pub(crate) mod eventless;
pub(crate) mod limited_flows;
pub mod pauses;
pub mod pfc;
pub(crate) mod port;
pub(crate) mod port_state;
pub(crate) mod priority_queues;
pub mod qcn;
pub(crate) mod queued_packet;
mod reaction;
pub mod settings;
mod switching;

pub use cnm::Cnm;
pub use config::DcbConfig;
pub use deadlock::Deadlock;
pub use pfc::PfcConfig;
pub use port_state::{InputCounts, OutputCounts};
pub use qcn::QcnConfig;
