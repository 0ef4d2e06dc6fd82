//! Where the time of a transaction goes: its critical path, from the end back to the beginning.
//!
//! What was waited for last is what counts. The response of the first call was on its way, before that
//! its component computed, back to the last answer it waited for, whose response was on its way …, or
//! to the arrival of the request, which was on its way, sent by a caller that computed since then. The
//! pieces add up to the response time to the picosecond.

use super::book::Call;
use super::running::Work;
use eastwest_types::{CallRecord, Span};

/// Where the time on a critical path went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sums {
    pub network: Span,
    /// Time in components, waits for processors included.
    pub compute: Span,
    /// That part of it.
    pub queued: Span,
}

/// Notes in every call which part of the time on the critical path is its network's and its
/// component's; gives the sums. Without processors there is no `work`.
pub(super) fn trace(calls: &[Call], work: &[Work], records: &mut [CallRecord]) -> Sums {
    let last_awaited = last_awaited(calls, records);
    let (mut network, mut compute) = (Span::ZERO, Span::ZERO);
    let mut queued = Span::ZERO;
    let waited =
        |call: usize, answer: usize| work.get(call).map_or(Span::ZERO, |work| work.queued[answer]);
    let mut add_compute = |records: &mut [CallRecord], call: usize, span: Span| {
        records[call].compute += span;
        compute += span;
    };
    let mut add_network = |records: &mut [CallRecord], call: usize, span: Span| {
        records[call].network += span;
        network += span;
    };
    let mut call = 0usize;
    loop {
        // back from the response to the last thing that was waited for
        loop {
            let CallRecord { arrived, answered: sent_back, done, .. } = records[call];
            add_network(records, call, done.since(sent_back));
            queued += waited(call, 1);
            let Some(last) = last_awaited[call] else {
                add_compute(records, call, sent_back.since(arrived));
                break;
            };
            let since = records[last as usize].done;
            add_compute(records, call, sent_back.since(since));
            call = last as usize;
        }
        // back from the arrival of the request to what it came after
        loop {
            let CallRecord { sent, arrived, .. } = records[call];
            add_network(records, call, arrived.since(sent));
            queued += waited(call, 0);
            let Some(parent) = calls[call].parent.map(|p| p as usize) else {
                return Sums { network, compute, queued };
            };
            let after = calls[call].after.iter().map(|&a| a as usize);
            match after.max_by_key(|&a| records[a].done) {
                Some(last) => {
                    let since = records[last].done;
                    add_compute(records, parent, sent.since(since));
                    call = last;
                    break;
                }
                None => {
                    let since = records[parent].arrived;
                    add_compute(records, parent, sent.since(since));
                    call = parent;
                }
            }
        }
    }
}

/// Per call, the one it waited for that was done last.
fn last_awaited(calls: &[Call], records: &[CallRecord]) -> Vec<Option<u32>> {
    let mut last: Vec<Option<u32>> = vec![None; calls.len()];
    for (i, call) in calls.iter().enumerate() {
        if let (Some(parent), true) = (call.parent, call.waited) {
            let last = &mut last[parent as usize];
            if last.is_none_or(|l| records[l as usize].done <= records[i].done) {
                *last = Some(i as u32);
            }
        }
    }
    last
}
