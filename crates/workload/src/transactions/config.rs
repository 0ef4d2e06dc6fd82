//! Settings of a replay of transactions.

use super::book::Book;
use super::place::Placement;
use eastwest_types::{ClassId, HostId, Span};
use serde::{Deserialize, Serialize};

/// When transactions arrive, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// As they are in the book.
    Recorded,
    /// With exponential gaps of this mean.
    Poisson(Span),
    /// With equal gaps.
    Periodic(Span),
}

/// Settings of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionsConfig {
    /// What is replayed.
    pub book: Book,
    /// Where components run.
    pub placement: Placement,
    /// Hosts from which first requests come, one drawn for each transaction; without any,
    /// transactions begin where their first call is answered.
    pub clients: Vec<HostId>,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// Whether each is drawn from the book, instead of the next one in order.
    pub drawn: bool,
    /// When the first can arrive.
    pub start: Span,
    /// How many there are in all.
    pub count: u64,
    /// Calls that a component computes for at once; `None`: any number.
    pub processors: Option<u32>,
    /// Class of all packets.
    pub class: ClassId,
}
