//! Transport protocols as state machines. The simulator passes the time, packets and timer events;
//! the protocols pass the actions that they request to a sink ([`tcp::Sink`], [`rocev2::Sink`])
//! that the simulator provides. The protocols have no access to links or workloads.

pub mod congestion;
pub mod rocev2;
pub mod settings;
pub mod tcp;
