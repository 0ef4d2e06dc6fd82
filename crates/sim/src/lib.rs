//! The only crate that knows the others: scenario → plan → world → run → results.

mod actions;
mod digest;
mod messages;
pub mod plan;
mod records;
pub mod scenario;
pub mod world;
