//! MPI programs replayed over the network: ranks compute, send, receive and meet in collectives as a
//! trace says or a generator makes up ([`Program`]); the simulated network decides when.
//!
//! **Messages.** Up to `eager_limit` a message is sent as it is called for, and the send is complete
//! at once. A longer one asks first (rendezvous): a request travels, the receiver answers when a
//! receive matches, then the data go; the send is complete when they have arrived. Every message has an
//! envelope beside its bytes. A message matches the first posted receive of its communicator, source
//! and tag, or the first such message meets a receive that is posted later; messages of one pair keep
//! their order. Each pair of ranks on different hosts has one connection, opened by the first
//! that sends (Open MPI's way); over a lossless network messages go as [parcels](crate::Parcel). Ranks of one host pass messages through memory, at a latency and a rate.
//!
//! **Collectives** are made of messages, in a communicator of their own: [`collective`].
//!
//! **Time.** Computing takes operations over a rate; each rank has a core to itself. MPI calls take
//! no time of the processor. Departure from libraries: an eager message matches when its last byte has
//! arrived, not its first; buffers for unexpected messages are unlimited; `test` costs nothing.
//!
//! **Deadlocks** are noticed at once: when nobody computes and nothing is under way, those who wait
//! wait for each other. The report says who waits for what.

pub mod cg;
pub mod check;
pub mod collective;
mod config;
mod engine;
mod matching;
mod placement;
mod rank;
pub mod record;
mod replay;
mod report;
mod steps;
mod trace;

pub use config::MpiConfig;
pub use placement::{Placement, place};
pub use replay::Mpi;
pub use trace::{Program, TraceFile, Trouble};

#[cfg(test)]
mod tests;
