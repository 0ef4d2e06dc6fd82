//! Faults and conditions: effects on links, and their times.
//!
//! A fault acts on directed links for a time. While it is in force a link loses packets at random
//! ([`LossModel`]), sends more slowly, has a longer delay, or is down. The effect on the packets of a link is
//! in [`crate::link`]; this module has the settings and the schedule.

mod effect;
mod loss;
mod schedule;

pub use effect::{Degraded, Effect, Fault, Flapping};
pub(crate) use loss::LossChain;
pub use loss::LossModel;
pub(crate) use schedule::{Change, Schedule};
