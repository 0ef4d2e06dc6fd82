//! Valid scenarios made at random from the schema, and the oracles that their runs must satisfy.
//!
//! * [`draw`] draws a value of each type of the schema; [`generate`] draws whole scenarios, reads them,
//!   and repairs what the reader objects to. Both know only the rows of the schema: a new setting takes
//!   part without being named here.
//! * [`features`] derives from the same rows which settings are crossed in pairs, and counts the pairs.
//! * [`oracles`] runs a scenario in several ways that must agree, and checks what must hold of any run.
//! * [`shrink`] reduces a scenario that breaks an oracle to a few lines.
//! * [`campaign`] does all of that for many cases and adds up what was covered.
//!
//! Case `n` of seed `s` is the same on every machine and for any number of threads.

pub mod campaign;
pub mod draw;
pub mod features;
pub mod generate;
pub mod oracles;
pub mod shrink;
pub mod sources;
