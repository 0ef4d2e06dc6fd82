//! MPI programs replayed over the network: ranks compute, send, receive and take part in
//! collectives as given by a trace or a generator ([`Program`]); times follow from the simulated
//! network.
//!
//! **Messages.** A message of up to `eager_limit` bytes is sent at once, and the send is complete
//! at once. A longer message needs a rendezvous: a request to send goes to the receiver, the
//! receiver answers when a receive matches, then the data is sent; the send is complete when the
//! data has arrived. Every message has an envelope in addition to its bytes. A message matches the
//! first posted receive of its communicator, source and tag. If no receive is posted, the message
//! waits, and a receive that is posted later matches the first waiting message. Messages between
//! two ranks keep their order. Each pair of ranks on different hosts has one connection, which the
//! rank with the smaller number opens when one of them first sends; over a lossless network
//! messages are sent as [parcels](crate::Parcel). Messages between ranks of one host go through
//! memory, with a latency and a rate.
//!
//! **Collectives** consist of messages in a separate communicator: [`collective`].
//!
//! **Time.** The time of a computation is its operations divided by a rate; each rank has its own
//! core. MPI calls take no processor time. Differences from libraries: an eager message matches
//! when its last byte has arrived, not its first; buffers for unexpected messages are unlimited;
//! `test` takes no time.
//!
//! **Deadlocks** are detected at once: no rank computes and no message is in flight, so all waiting
//! ranks wait for each other. The report lists the requests for which each rank waits.

pub mod cg;
pub mod check;
pub mod collective;
mod config;
mod engine;
mod execute;
pub mod groups;
mod in_parts;
mod matching;
mod placement;
mod rank;
pub mod record;
mod replay;
mod report;
mod resolve;
mod trace;
pub mod training;

pub use config::MpiConfig;
pub use engine::Envelope;
pub use in_parts::{Outline, UnitedSlots};
pub use placement::{Placement, local_ranks, place};
pub use replay::Mpi;
pub use trace::{Program, TraceFile, Trouble};

#[cfg(test)]
mod closed_forms;
#[cfg(test)]
mod tests;
