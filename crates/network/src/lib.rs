//! Links, ports, switches and routes: everything between two hosts' transports.

pub mod config;
pub mod fabric;
pub mod link;
mod pace;
pub mod pool;
mod ring;
pub mod routing;
pub mod topology;
