//! Transport protocols as polled state machines: time is an argument, and what should happen next
//! goes into a sink ([`tcp::Sink`], [`rocev2::Sink`]) that the simulator provides. Nothing here knows of
//! links or workloads.

pub mod congestion;
pub mod rocev2;
pub mod tcp;
