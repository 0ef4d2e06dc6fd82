//! A transaction under way: its calls, what is due for them, and what they compute.

use super::book::Call;
use super::shape::Shape;
use crate::protocol::Action;
use eastwest_types::{CallRecord, Span, Time};
use serde::{Deserialize, Serialize};

/// A transaction under way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) number: u32,
    /// Which of the book.
    pub(super) recorded: u32,
    /// Who asks for the first call: index into the clients.
    pub(super) client: Option<u32>,
    pub(super) shape: Shape,
    pub(super) calls: Vec<CallRecord>,
    /// Calls not done yet.
    pub(super) left: u32,
    /// What each call computes, where processors are counted.
    pub(super) work: Vec<Work>,
}

/// What can be due for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// The request leaves.
    Send,
    /// The request has arrived.
    Arrived,
    /// The response leaves.
    Answer,
    /// The response has arrived.
    Done,
}

/// A time that a call is to compute: what follows, of which call, how long, and since when it waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) step: Step,
    pub(super) of: u32,
    pub(super) length: Span,
    pub(super) since: Time,
}

/// What a call computes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) holds: bool,
    /// Times that run.
    pub(super) running: u32,
    /// What begins when it gets a processor.
    pub(super) waiting: Vec<Piece>,
    /// How long its request, and its answer, waited for a processor.
    pub(super) queued: [Span; 2],
}

/// What a wake-up is for: token = kind · 2⁶² + place of the transaction · 2³² + number of the call.
pub(super) const ARRIVE: u64 = 0;
pub(super) const SEND: u64 = 1;
pub(super) const ANSWER: u64 = 2;

/// Which call computes before a step of a call: its caller before the request, itself before the answer.
pub(super) fn owner(calls: &[Call], step: Step, call: u32) -> u32 {
    match step {
        Step::Send => calls[call as usize].parent.expect("the first is sent at once"),
        _ => call,
    }
}

/// Asks to be woken for a step.
pub(super) fn wake(at: Time, step: Step, slot: u32, call: u32) -> Action {
    let kind = if step == Step::Send { SEND } else { ANSWER };
    Action::Wake { at, token: kind << 62 | u64::from(slot) << 32 | u64::from(call) }
}
