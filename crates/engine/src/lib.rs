//! Basis of all simulations: order of events, event list, timers, named random streams, histograms,
//! and the barrier of parallel runs. This crate does not depend on packet contents, TCP or jobs.

pub mod histogram;
pub mod interrupt;
pub mod meeting;
pub mod memory;
pub mod order;
pub mod random;
pub mod timers;
pub mod tournament;
