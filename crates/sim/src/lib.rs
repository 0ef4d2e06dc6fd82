//! The only crate that knows the others: scenario → plan → world → run → results.

mod actions;
mod approximate;
mod capture;
pub mod checkpoint;
mod connections;
mod dcb;
mod digest;
mod energy;
mod flow_energy;
pub mod flow_world;
mod incidents;
mod lpi;
pub mod mechanisms;
mod messages;
pub mod parameters;
pub mod plan;
mod ports;
mod records;
pub mod results;
pub mod run;
pub mod scenario;
mod streams;
pub mod switch_power;
mod tracer;
mod transactions;
mod wakes;
pub mod world;
