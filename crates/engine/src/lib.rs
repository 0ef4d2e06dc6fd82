//! Basis of all simulations: event order, event list, timers, named random streams and histograms.
//! Independent of packet contents, TCP and jobs.

pub mod histogram;
pub mod interrupt;
pub mod meeting;
pub mod memory;
pub mod order;
pub mod random;
pub mod timers;
pub mod tournament;
