//! Rows that a replay of transactions leaves behind.

use crate::ids::HostId;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// A finished transaction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TransactionRecord {
    /// Number within its workload, from 0 in order of arrival.
    pub number: u32,
    /// Which of the recorded ones it replays.
    pub recorded: u32,
    /// The host its first request came from; `None` where it began in its first component.
    pub client: Option<HostId>,
    /// Part of its response time in which what was waited for was on its way.
    pub network: Span,
    /// Part of it in which components computed, or waited for processors: the rest.
    pub compute: Span,
    /// Part of that in which calls waited for processors.
    pub queued: Span,
    /// Its calls; the first has the arrival of the transaction and its end.
    pub calls: Vec<CallRecord>,
}

impl TransactionRecord {
    /// When it arrived.
    pub fn arrived(&self) -> Time {
        self.calls.first().map_or(Time::ZERO, |c| c.sent)
    }

    /// When its response had arrived.
    pub fn finished(&self) -> Time {
        self.calls.first().map_or(Time::ZERO, |c| c.done)
    }

    /// From its arrival to its response.
    pub fn response_time(&self) -> Span {
        self.finished().since(self.arrived())
    }
}

/// A call of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallRecord {
    /// When the request left.
    pub sent: Time,
    /// When it had arrived.
    pub arrived: Time,
    /// When the response left.
    pub answered: Time,
    /// When it had arrived.
    pub done: Time,
    /// Time of the critical path that request and response were on their way.
    pub network: Span,
    /// Time of the critical path that the component computed.
    pub compute: Span,
}
