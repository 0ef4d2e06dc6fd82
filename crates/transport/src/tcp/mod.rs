//! TCP, one file for each mechanism.
//!
//! [`Stack`] holds the endpoints of all hosts; both ends of a connection lie side by side in
//! memory. The stack processes packets and timer expiries, and passes packets, timers and notices
//! to a [`Sink`].
//!
//! | file | contents |
//! |---|---|
//! | [`stack`], [`endpoint`] | all endpoints; one endpoint and the layout of its fields |
//! | [`connection`] | handshake, FIN, reset (RFC 9293) |
//! | [`input`], [`ack_slow_path`] | packet input and ACK fast path; ACKs with SACK, ECE or in a recovery |
//! | [`receiving`], [`receiver`], [`linux_acks`], [`autotune`] | reassembly, ACKs sent, receive window |
//! | [`output`], [`pacing`], [`tso_bursts`], [`small_queues`] | segments that may be sent now; construction of packets |
//! | [`timers`] | deadlines of the timers |
//! | [`rtt`], [`rtt_linux`] | RTT estimation, and the RTO that follows from it (`rto`) |
//! | [`timer_expiry`], [`timeout_cause`] | actions when a timer expires; causes of RTO expiries |
//! | [`recovery`], [`fast_recovery`], [`prr`], [`reno`], [`reordering`] | recovery without RACK; the window during a recovery |
//! | [`scoreboard`], [`rack`], [`rack_tlp`] | loss detection by time and tail loss probe (RFC 8985) |
//! | [`spurious_retransmission`], [`undo`] | Eifel, DSACK, F-RTO and the undo of reductions |
//! | [`congestion`], [`ecn`] | interface to congestion control; ECN |
//! | [`persist`] | probes of a closed window |

mod ack_slow_path;
mod autotune;
mod cold_state;
pub mod config;
mod congestion;
mod connection;
mod counters;
mod ecn;
mod endpoint;
mod fast_recovery;
pub mod info;
mod input;
mod interface;
mod linux_acks;
pub mod offload;
mod output;
mod pacing;
mod persist;
mod profiles;
mod prr;
mod rack;
mod rack_tlp;
pub mod range_set;
pub mod read_config;
mod receiver;
mod receiving;
mod recovery;
mod reno;
mod reordering;
pub mod rtt;
mod rtt_linux;
pub mod rules;
mod scoreboard;
pub mod sender_state;
mod small_queues;
mod spurious_retransmission;
mod stack;
mod states;
mod stream;
#[cfg(test)]
mod tests;
mod timeout_cause;
mod timer_expiry;
mod timers;
mod tso_bursts;
mod undo;

pub use counters::Counters;
pub use endpoint::Endpoint;
pub use interface::{Connect, Notice, RecoveryEvent, Sink};
pub use pacing::SendWait;
pub use stack::{MAX_SETTINGS, Stack};
pub use timeout_cause::TimeoutCause;
