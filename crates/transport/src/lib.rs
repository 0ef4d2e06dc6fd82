//! Transport protocols as polled state machines. Time is an argument, and requested actions go to a
//! sink ([`tcp::Sink`], [`rocev2::Sink`]) that the simulator provides. The protocols have no access
//! to links or workloads.

pub mod congestion;
pub mod rocev2;
pub mod settings;
pub mod tcp;
