//! Settings of a replay of transactions.

use super::book::Book;
use super::place::Placement;
use eastwest_types::{ClassId, HostId, Span};
use serde::{Deserialize, Serialize};

/// Arrival process of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Recorded arrival times.
    Recorded,
    /// Exponential gaps with this mean.
    Poisson(Span),
    /// Equal gaps.
    Periodic(Span),
}

/// Settings of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionsConfig {
    /// Recorded transactions to replay.
    pub book: Book,
    /// Placement of components on hosts.
    pub placement: Placement,
    /// Hosts that send first requests, one drawn for each transaction; if empty, transactions begin
    /// at the component of their first call.
    pub clients: Vec<HostId>,
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Whether transactions are drawn from the book; otherwise they are taken in order.
    pub drawn: bool,
    /// Earliest arrival.
    pub start: Span,
    /// Number of transactions.
    pub count: u64,
    /// Processors of each component, one for each computing call; `None` for no limit.
    pub processors: Option<u32>,
    /// Traffic class of all packets.
    pub class: ClassId,
}
