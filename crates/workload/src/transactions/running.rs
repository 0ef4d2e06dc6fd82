//! A transaction in progress: its calls, their scheduled steps, and their computations.

use super::book::Call;
use super::shape::Shape;
use crate::protocol::Action;
use eastwest_types::{CallRecord, Span, Time};
use serde::{Deserialize, Serialize};

/// State of a transaction in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) shape: Shape,
    pub(super) calls: Vec<CallRecord>,
    /// Number of responses that have not been sent, plus number of responses that have not arrived.
    /// One part of a partitioned run counts the calls that its hosts answer, and those that its hosts
    /// make.
    pub(super) left: u32,
    /// Whether one part of a partitioned run, or the undivided run, has all hosts of the transaction.
    pub(super) is_whole: bool,
    /// Computations of each call; empty if the number of processors is not limited.
    pub(super) work: Vec<Work>,
}

/// Step of a call, from the sending of its request to the arrival of its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// The caller sends the request.
    Send,
    /// The request has arrived at the answering component.
    Arrived,
    /// The answering component sends the response.
    Answer,
    /// The response has arrived at the caller.
    Done,
}

/// A computation of a call: the step that follows it, the call of this step, its length, and the
/// time since which it waits for a processor.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) step: Step,
    pub(super) of: u32,
    pub(super) length: Span,
    pub(super) since: Time,
}

/// Computations of a call that run or wait, and whether the call holds a processor of its
/// component.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) holds: bool,
    /// Number of computations of the call that are running.
    pub(super) running: u32,
    /// Computations of the call that wait for a processor.
    pub(super) waiting: Vec<Piece>,
    /// Time for which the call waited for a processor: before its request, and before its answer.
    pub(super) queued: [Span; 2],
}

/// Purpose of a wake-up: the next transaction arrives. The token of a wake-up is purpose · 2⁶² +
/// number of the transaction · 2³¹ + number of the call.
pub(super) const ARRIVE: u64 = 0;
/// Purpose of a wake-up: the request of a call is sent.
const SEND: u64 = 1;
/// Purpose of a wake-up: the response of a call is sent.
const ANSWER: u64 = 2;
/// Bits of the number of a transaction, and of the number of a call.
const NUMBER: u32 = (1 << 31) - 1;

/// Returns the call that computes before a step of `call`: its caller before the request, the call
/// itself before the answer.
pub(super) fn owner(calls: &[Call], step: Step, call: u32) -> u32 {
    match step {
        Step::Send => calls[call as usize].parent.expect("the first is sent at once"),
        _ => call,
    }
}

/// Returns the action that wakes the workload at the time of a step of a call.
pub(super) fn wake(at: Time, step: Step, number: u32, call: u32) -> Action {
    let kind = if step == Step::Send { SEND } else { ANSWER };
    Action::Wake { at, token: kind << 62 | u64::from(number) << 31 | u64::from(call) }
}

/// Returns the step for which the wake-up with this token is, with the number of the transaction and
/// of the call; `None` if the next transaction arrives.
pub(super) fn step_of(token: u64) -> Option<(Step, u32, u32)> {
    let step = match token >> 62 {
        ARRIVE => return None,
        SEND => Step::Send,
        _ => Step::Answer,
    };
    Some((step, (token >> 31) as u32 & NUMBER, token as u32 & NUMBER))
}
