//! Random valid scenarios, generated from the documentation of all settings (the schema), and the
//! oracles (rules) that their runs must satisfy.
//!
//! * [`draw`] draws a value for a setting of each type; [`generate`] draws whole scenarios, reads
//!   them, and changes the values that the reader refuses. Both use only the documentation of the
//!   settings, so a new setting takes part without a change of this crate.
//! * [`features`] finds in this documentation the settings whose values are combined in pairs, and
//!   counts the pairs.
//! * [`oracles`] runs a scenario in several ways that must agree, and checks rules that hold for
//!   every run.
//! * `frames` receives the state of a run at random times, for an oracle.
//! * [`shrink`] reduces a scenario that violates an oracle to a few lines.
//! * [`campaign`] applies these steps to many cases and adds up the coverage.
//!
//! Case `n` of seed `s` is the same on every machine and for any number of threads.

pub mod campaign;
pub mod draw;
mod early;
pub mod features;
mod frames;
pub mod generate;
pub mod oracles;
pub mod shrink;
pub mod sources;
