//! Links, ports, switches and routes: the network between the transports of hosts.

pub mod account;
pub mod cards;
pub mod config;
pub mod dcb;
pub mod energy;
pub mod fabric;
pub mod fault;
pub mod footprint;
pub mod journeys;
pub mod link;
pub mod losses;
mod pace;
pub mod packet_handle;
pub mod partition;
pub mod pool;
pub mod queue;
mod ring;
pub mod routing;
pub mod scheduler;
pub mod shared_buffer;
pub mod taps;
pub mod telemetry;
pub mod topology;
