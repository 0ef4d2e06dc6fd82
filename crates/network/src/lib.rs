//! Links, ports, switches and routes: everything between two hosts' transports.

pub mod config;
pub mod fabric;
pub mod link;
pub mod pool;
pub mod routing;
pub mod topology;
