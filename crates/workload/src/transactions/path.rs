//! Critical path of a transaction, followed from its end back to its beginning.
//!
//! The critical path follows the event that was awaited last. Before the response of a call was
//! sent, its component computed, since the last answer that it waited for or since the arrival of
//! the request. In the first case the path goes on with the call of this answer; in the second case
//! it goes through the network to the caller, which had computed before it sent the request. The
//! pieces of the path add up to the response time, exactly to the picosecond.

use super::book::Call;
use super::running::Work;
use eastwest_types::{CallRecord, Span};

/// Sums of the times on the critical path of a transaction: network, computing, waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sums {
    pub network: Span,
    /// Time in components on the path, including waits for processors.
    pub compute: Span,
    /// Part of `compute` during which a call waited for a processor.
    pub queued: Span,
}

/// Writes the network time and computing time of every call on the critical path into its record.
/// Returns the sums of these times. `work` is empty if the number of processors is not limited.
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
        // follows the path from the response of a call back to the last awaited event
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
        // follows the path from the arrival of a request back to the event that caused the request
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

/// Returns for each call the call that it waited for and that was done last; `None` if it waited
/// for none.
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
