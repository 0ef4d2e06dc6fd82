//! Records of transactions that a run has replayed.

use crate::ids::HostId;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Record of a finished transaction, which is the replay of a recorded transaction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TransactionRecord {
    /// Number of the transaction within its workload, from 0 in order of arrival.
    pub number: u32,
    /// Number of the recorded transaction that this transaction replays.
    pub recorded: u32,
    /// Host that sent the first request; `None` if the transaction began in its first component.
    pub client: Option<HostId>,
    /// Part of the response time during which the critical path was in the network.
    pub network: Span,
    /// Part of the response time during which components on the critical path computed or waited
    /// for processors: the response time without `network`.
    pub compute: Span,
    /// Part of `compute` during which calls waited for processors.
    pub queued: Span,
    /// All calls of the transaction. The first call has the arrival and end times of the
    /// transaction.
    pub calls: Vec<CallRecord>,
}

impl TransactionRecord {
    /// Returns the arrival time of the transaction.
    pub fn arrived(&self) -> Time {
        self.calls.first().map_or(Time::ZERO, |c| c.sent)
    }

    /// Returns the time at which the response of the transaction arrived.
    pub fn finished(&self) -> Time {
        self.calls.first().map_or(Time::ZERO, |c| c.done)
    }

    /// Returns the response time: from the arrival of the transaction to the arrival of its
    /// response.
    pub fn response_time(&self) -> Span {
        self.finished().since(self.arrived())
    }
}

/// Record of one call in a transaction: request, computation and response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallRecord {
    /// Time at which the request was sent.
    pub sent: Time,
    /// Arrival time of the request at the called component.
    pub arrived: Time,
    /// Time at which the response was sent.
    pub answered: Time,
    /// Arrival time of the response at the calling component.
    pub done: Time,
    /// Time during which the request or response of the call was on the critical path in the
    /// network.
    pub network: Span,
    /// Time during which the called component computed or waited for processors, on the critical
    /// path.
    pub compute: Span,
}
