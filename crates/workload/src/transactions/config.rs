//! Settings of a replay of transactions.

use super::book::Book;
use super::place::Placement;
use eastwest_types::{ClassId, HostId, Span};
use serde::{Deserialize, Serialize};

/// Arrival process of the replayed transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Transactions arrive at their recorded times.
    Recorded,
    /// Poisson arrivals: exponentially distributed gaps; the value is their mean.
    Poisson(Span),
    /// Periodic arrivals: equal gaps; the value is their length.
    Periodic(Span),
}

/// Settings of a replay of recorded transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionsConfig {
    /// Recorded transactions to replay.
    pub book: Book,
    /// Rule for the placement of components on hosts.
    pub placement: Placement,
    /// Hosts that send the first request of a transaction; one host is drawn for each transaction.
    /// If empty, a transaction begins at the component of its first call.
    pub clients: Vec<HostId>,
    /// Arrival process of the transactions.
    pub arrivals: Arrivals,
    /// Whether each transaction is drawn at random from the recorded transactions; otherwise these
    /// are replayed in order.
    pub drawn: bool,
    /// Time from the start of the simulation at which arrivals of transactions begin.
    pub start: Span,
    /// Number of transactions to replay.
    pub count: u64,
    /// Number of processors of each component; a call needs a processor while it computes. `None`:
    /// no limit.
    pub processors: Option<u32>,
    /// Traffic class of all packets of the transactions.
    pub class: ClassId,
}
