//! Transactions: requests to a data centre with all calls that they cause, replayed with their
//! dependencies (Gusat et al., *Benchmarking the Ethernet-Federated Datacenter*, IBM Research 2009,
//! section 1: a transaction is an ordered set of packet flows and computation times).
//!
//! A transaction is a tree of calls. A call is a request from one component to another, which
//! computes, makes further calls, and sends a response. The recording contains dependencies and
//! computing times; the times of events follow from the simulated network. A call is made `gap`
//! after the end of the last call in its `after` or, if `after` is empty, after the arrival of its
//! caller's request. A component answers `rest` after the last call that it waits for, or after the
//! arrival of the request if it waits for none.
//!
//! Each pair of components has one TCP connection, opened at the first call; calls over it are
//! pipelined. A connection gets its number when the first transaction that will use it arrives, so that
//! its path does not depend on which component calls first. Between components of one host messages take no time. Arrivals do not wait for
//! earlier transactions (open loop). A component computes for any number of calls at once, or has a
//! limited number of [`processors`], at which calls queue.

mod book;
mod config;
mod in_parts;
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
