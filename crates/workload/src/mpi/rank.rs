//! State of a rank.

use super::collective::{Call, Kind};
use super::trace::Source;
use eastwest_types::name::Name;
use eastwest_types::{Activity, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Present action of a rank.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Doing {
    /// Takes its next record.
    Next,
    /// Computes or sleeps, or waits for the end of a call's own time.
    Busy,
    /// Waits for this many requests.
    Waiting(u32),
    /// In a collective: its number, the next step, and the number of open requests of the last step.
    Collective { call: Box<Call>, number: u64, step: u32, open: u32 },
    /// Finished.
    Through,
}

/// A rank of the program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rank {
    pub(super) source: Source,
    pub(super) doing: Doing,
    /// Activity, its MPI call, and its start.
    pub(super) activity: Activity,
    #[serde(with = "eastwest_types::name")]
    pub(super) call: Name,
    pub(super) since: Time,
    /// Open requests of non-blocking calls, in the order of the calls.
    pub(super) open: VecDeque<u32>,
    /// Posted receives without match, in the order of posting.
    pub(super) posted: VecDeque<u32>,
    /// Arrived messages without match, in the order of arrival.
    pub(super) unexpected: VecDeque<u32>,
    /// Number of collectives that it has entered.
    pub(super) collectives: u64,
    pub(super) spent: [Span; Activity::ALL.len()],
    pub(super) sent: (u64, u64),
    pub(super) sent_in_collectives: (u64, u64),
}

/// A collective that not all ranks have left.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Meeting {
    pub(super) kind: Kind,
    pub(super) root: u32,
    /// Rank that entered first.
    pub(super) first: u32,
    pub(super) left: u32,
}

impl Rank {
    pub(super) fn new(source: Source) -> Rank {
        Rank {
            source,
            doing: Doing::Next,
            activity: Activity::Compute,
            call: "init",
            since: Time::ZERO,
            open: VecDeque::new(),
            posted: VecDeque::new(),
            unexpected: VecDeque::new(),
            collectives: 0,
            spent: [Span::ZERO; Activity::ALL.len()],
            sent: (0, 0),
            sent_in_collectives: (0, 0),
        }
    }

    /// Starts an activity and records the one before.
    pub(super) fn begin(&mut self, now: Time, activity: Activity, call: Name) {
        (self.activity, self.call, self.since) = (activity, call, now);
    }
}
