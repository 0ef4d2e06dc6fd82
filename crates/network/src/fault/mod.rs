//! Faults and conditions: what happens to links, and when.
//!
//! A fault acts on directed links for a time. While it is in force a link loses packets at random
//! ([`LossModel`]), sends more slowly, takes longer, or is down. What that does to the packets on a
//! link is told in [`crate::link`]; this module holds what a scenario says and works off its times.

mod effect;
mod loss;
mod schedule;

pub use effect::{Degraded, Effect, Fault, Flapping};
pub(crate) use loss::LossChain;
pub use loss::LossModel;
pub(crate) use schedule::{Change, Schedule};
