//! Settings of a replay of transactions.

use super::book::Book;
use super::place::Placement;
use eastwest_types::{ClassId, HostId, Span};
use serde::{Deserialize, Serialize};

/// Arrival process of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// The recorded arrival times.
    Recorded,
    /// Poisson arrivals: exponentially distributed gaps with this mean.
    Poisson(Span),
    /// Periodic arrivals with gaps of this length.
    Periodic(Span),
}

/// Settings of a replay of recorded transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionsConfig {
    /// Recorded transactions to replay.
    pub book: Book,
    /// Placement of components on hosts.
    pub placement: Placement,
    /// Hosts that send first requests, one drawn for each transaction; if empty, transactions begin
    /// at the component of their first call.
    pub clients: Vec<HostId>,
    /// Arrival process of the transactions.
    pub arrivals: Arrivals,
    /// Whether each transaction is drawn at random from the recorded ones; otherwise they are taken
    /// in order.
    pub drawn: bool,
    /// Time from the start of the simulation from which transactions arrive.
    pub start: Span,
    /// Number of transactions to replay.
    pub count: u64,
    /// Number of processors of each component, of which each computing call needs one; `None` for
    /// no limit.
    pub processors: Option<u32>,
    /// Traffic class of all packets.
    pub class: ClassId,
}
