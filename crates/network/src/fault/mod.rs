//! Faults of links, their effects and times.
//!
//! A fault affects directed links during an interval of time. In this interval a link loses packets
//! at random ([`LossModel`]), has a lower rate or a longer delay, or is down. This module has the
//! settings and the schedule; [`crate::link`] applies the effects to packets.

mod effect;
mod loss;
mod schedule;

pub use effect::{Degraded, Effect, Fault, Flapping};
pub(crate) use loss::LossChain;
pub use loss::LossModel;
pub(crate) use schedule::{Change, Schedule};
