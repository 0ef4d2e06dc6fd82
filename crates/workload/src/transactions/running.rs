//! A transaction in progress: its calls, their scheduled steps, and their computations.

use super::book::Call;
use super::shape::Shape;
use crate::protocol::Action;
use eastwest_types::{CallRecord, Span, Time};
use serde::{Deserialize, Serialize};

/// A transaction in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) number: u32,
    /// Index of the recorded transaction in the book.
    pub(super) recorded: u32,
    /// Sender of the first request: index into the clients.
    pub(super) client: Option<u32>,
    pub(super) shape: Shape,
    pub(super) calls: Vec<CallRecord>,
    /// Number of calls that are not done.
    pub(super) left: u32,
    /// Computations of each call; empty without processors.
    pub(super) work: Vec<Work>,
}

/// A step of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// The request is sent.
    Send,
    /// The request has arrived.
    Arrived,
    /// The response is sent.
    Answer,
    /// The response has arrived.
    Done,
}

/// A computation of a call: next step, call of that step, length, and time since when it waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) step: Step,
    pub(super) of: u32,
    pub(super) length: Span,
    pub(super) since: Time,
}

/// Computations of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) holds: bool,
    /// Number of running computations.
    pub(super) running: u32,
    /// Computations that wait for a processor.
    pub(super) waiting: Vec<Piece>,
    /// Waits for a processor before its request, and before its answer.
    pub(super) queued: [Span; 2],
}

/// Purpose of a wake-up: token = kind · 2⁶² + slot of the transaction · 2³² + number of the call.
pub(super) const ARRIVE: u64 = 0;
pub(super) const SEND: u64 = 1;
pub(super) const ANSWER: u64 = 2;

/// Returns the call that computes before a step of a call: its caller before the request, itself
/// before the answer.
pub(super) fn owner(calls: &[Call], step: Step, call: u32) -> u32 {
    match step {
        Step::Send => calls[call as usize].parent.expect("the first is sent at once"),
        _ => call,
    }
}

/// Returns the action that wakes the workload for a step.
pub(super) fn wake(at: Time, step: Step, slot: u32, call: u32) -> Action {
    let kind = if step == Step::Send { SEND } else { ANSWER };
    Action::Wake { at, token: kind << 62 | u64::from(slot) << 32 | u64::from(call) }
}
