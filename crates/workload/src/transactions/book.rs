//! Recorded transactions: their calls, and the names of components, services and operations.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// A call of a recorded transaction: a request of one component to another, and its response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Number of the call that makes this call, smaller than its own number; `None` for call 0.
    pub parent: Option<u32>,
    /// Component that answers the call: index into [`Book::components`].
    pub component: u32,
    /// Service of the answering component: index into [`Book::services`].
    pub service: u32,
    /// Operation that the call requests: index into [`Book::operations`].
    pub operation: u32,
    /// Payload bytes of the request, at least one.
    pub request_bytes: u64,
    /// Payload bytes of the response, at least one.
    pub response_bytes: u64,
    /// Numbers of the calls that must be done before this call is made. They have the same parent
    /// and smaller numbers.
    pub after: Box<[u32]>,
    /// Computing time of the caller before it sends the request: since the end of the last call in
    /// `after`, or since the arrival of the caller's own request if `after` is empty.
    pub gap: Span,
    /// Computing time of the answering component before it sends its response: since the last
    /// response that it waits for, or since the arrival of the request if it waits for none.
    pub rest: Span,
    /// Whether the caller waits for the response of this call before it sends its own response.
    pub waited: bool,
}

/// A recorded transaction with all its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the transaction (untrusted text).
    pub name: String,
    /// Arrival time of the transaction, since the start of the recording.
    pub start: Span,
    /// Calls of the transaction, at least one; a call comes before the calls that it makes.
    pub calls: Vec<Call>,
}

/// Recorded transactions, and the names that occur in them (untrusted text).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// Recorded transactions in order of arrival, at least one.
    pub transactions: Vec<Recorded>,
    /// Names of components, which run on hosts.
    pub components: Vec<String>,
    /// Names of the services to which components belong.
    pub services: Vec<String>,
    /// Names of the operations that calls request from components.
    pub operations: Vec<String>,
}
