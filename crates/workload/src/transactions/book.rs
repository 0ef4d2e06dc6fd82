//! Recorded transactions.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// A call of a recorded transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Number of the call in which it is made, below its own; `None` for the first, number 0.
    pub parent: Option<u32>,
    /// Who answers: index into [`Book::components`].
    pub component: u32,
    /// What it belongs to: index into [`Book::services`].
    pub service: u32,
    /// What is asked for: index into [`Book::operations`].
    pub operation: u32,
    /// Bytes of the request, at least one.
    pub request_bytes: u64,
    /// Bytes of the response, at least one.
    pub response_bytes: u64,
    /// Calls of the same parent, with lower numbers, that are done before it is made.
    pub after: Box<[u32]>,
    /// Time its caller takes from then to the request.
    pub gap: Span,
    /// Time from the last answer that is waited for to its own.
    pub rest: Span,
    /// Whether its caller waits for it before it answers.
    pub waited: bool,
}

/// A recorded transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its name: untrusted text.
    pub name: String,
    /// When it arrives, from the start of the recording.
    pub start: Span,
    /// Its calls, at least one, callers before those they call.
    pub calls: Vec<Call>,
}

/// Recorded transactions and the names in them, which are untrusted text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// In order of arrival, at least one.
    pub transactions: Vec<Recorded>,
    /// What runs on hosts.
    pub components: Vec<String>,
    /// What components belong to.
    pub services: Vec<String>,
    /// What is asked for.
    pub operations: Vec<String>,
}
