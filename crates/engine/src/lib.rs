//! The machinery under every simulation: the event order, the list of timers, named random streams
//! and histograms. It knows nothing of packets' contents, TCP or jobs.

pub mod histogram;
pub mod interrupt;
pub mod meeting;
pub mod memory;
pub mod order;
pub mod random;
pub mod timers;
pub mod tournament;
