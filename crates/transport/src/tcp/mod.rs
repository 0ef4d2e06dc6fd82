//! TCP, split by concern.
//!
//! [`Stack`] holds the endpoints of all hosts; both ends of a connection lie side by side. It is told
//! of packets and wake-ups and answers through a [`Sink`]. One file each for the
//! [handshake and FIN](handshake), [acknowledgements](acks), [sending](output),
//! [receiving], [loss recovery](repair), [round trips](rtt) and [wake-ups](wake).

mod ack_linux;
mod acks;
mod autotune;
mod board;
mod bursts;
mod cause;
pub mod config;
mod control;
mod counters;
mod ecn;
mod endpoint;
mod evidence;
mod frto;
mod handshake;
pub mod info;
mod interface;
mod loss_by_time;
mod needless;
pub mod offload;
mod output;
mod pace;
mod persist;
mod phases;
mod probe;
mod profiles;
mod prr;
mod rack;
pub mod ranges;
mod rare;
pub mod read;
mod receiver;
mod receiving;
mod recovery;
mod reno;
mod reordering;
mod repair;
mod reset;
pub mod rtt;
mod rtt_linux;
pub mod rules;
mod small_queues;
mod stack;
pub mod state;
mod stream;
#[cfg(test)]
mod tests;
mod timers;
mod undo;
mod wake;

pub use cause::Cause;
pub use counters::Counters;
pub use endpoint::Endpoint;
pub use interface::{Connect, Notice, Repair, Sink};
pub use stack::{MOST_SETTINGS, Stack};
