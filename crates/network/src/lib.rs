//! Links, ports, switches and routes: everything between two hosts' transports.

pub mod config;
