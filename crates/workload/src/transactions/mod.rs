//! Transactions: requests to a data centre with all the calls they cause, replayed with their causes
//! and effects (Gusat et al., *Benchmarking the Ethernet-Federated Datacenter*, IBM Research 2009,
//! section 1: a transaction is an ordered set of packet flows and computation times).
//!
//! A transaction is a tree of calls. A call goes from the component that makes it to one that answers
//! it: the request travels, the component computes and makes calls of its own, the response travels
//! back. What is recorded is who waits for whom and how long everybody computes; when something happens
//! follows from the simulated network. A call begins `gap` after the last of those it comes `after` is
//! done, or after its caller's request has arrived where there are none; a component answers `rest` after
//! the last of the calls it waits for, or after the request's arrival.
//!
//! Each pair of components keeps one TCP connection, opened at the first call; calls over it are
//! pipelined. Components on one host talk without network and at once. Arrivals do not wait for earlier
//! transactions (open loop). Components compute for any number of calls at once, or have [`processors`]
//! for which calls queue.

mod book;
mod config;
mod path;
mod place;
mod processors;
mod replay;
mod running;
mod shape;
#[cfg(test)]
mod tests;

pub use book::{Book, Call, Recorded};
pub use config::{Arrivals, TransactionsConfig};
pub use place::Placement;
pub use replay::Transactions;
