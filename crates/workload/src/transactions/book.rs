//! Recorded transactions.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// A call of a recorded transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Number of the call within which it is made, smaller than its own; `None` for call 0.
    pub parent: Option<u32>,
    /// Answering component: index into [`Book::components`].
    pub component: u32,
    /// Service of the component: index into [`Book::services`].
    pub service: u32,
    /// Requested operation: index into [`Book::operations`].
    pub operation: u32,
    /// Bytes of the request, at least one.
    pub request_bytes: u64,
    /// Bytes of the response, at least one.
    pub response_bytes: u64,
    /// Calls of the same parent, with smaller numbers, that must be done before it is made.
    pub after: Box<[u32]>,
    /// Computing time of its caller from the end of these calls to the request.
    pub gap: Span,
    /// Computing time of its component from the last awaited answer to its own answer.
    pub rest: Span,
    /// Whether its caller waits for it before it answers.
    pub waited: bool,
}

/// A recorded transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the transaction: untrusted text.
    pub name: String,
    /// Arrival time from the start of the recording.
    pub start: Span,
    /// Calls, at least one; a caller comes before the calls that it makes.
    pub calls: Vec<Call>,
}

/// Recorded transactions and the names in them, which are untrusted text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// In order of arrival, at least one.
    pub transactions: Vec<Recorded>,
    /// Names of components, which run on hosts.
    pub components: Vec<String>,
    /// Names of services, to which components belong.
    pub services: Vec<String>,
    /// Names of operations.
    pub operations: Vec<String>,
}
