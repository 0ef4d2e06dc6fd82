//! State of a rank of a replayed MPI program.

use super::collective::{Call, Kind};
use super::trace::Source;
use eastwest_types::name::Name;
use eastwest_types::{Activity, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Present action of a rank of an MPI program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Doing {
    /// The rank will execute its next record.
    Next,
    /// The rank sleeps or computes; includes the computation at the end of a collective call.
    Busy,
    /// The rank waits until this number of requests is complete.
    Waiting(u32),
    /// The rank is in a collective call: its number, the next step, and the number of unfinished
    /// requests of the present step.
    Collective { call: Box<Call>, number: u64, step: u32, open: u32 },
    /// The rank has finished.
    Through,
}

/// State of a rank of an MPI program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rank {
    pub(super) source: Source,
    pub(super) doing: Doing,
    /// Present activity of the rank, such as computing or waiting; the time since `since` counts
    /// for it.
    pub(super) activity: Activity,
    #[serde(with = "eastwest_types::name")]
    pub(super) call: Name,
    /// Time at which the present activity began.
    pub(super) since: Time,
    /// Requests of non-blocking calls that the program has not waited for, in the order of the
    /// calls.
    pub(super) open: VecDeque<u32>,
    /// Posted receives that are not matched yet, in the order of posting.
    pub(super) posted: VecDeque<u32>,
    /// Arrived messages that are not matched yet, in the order of arrival.
    pub(super) unexpected: VecDeque<u32>,
    /// Number of collective calls that the rank has entered.
    pub(super) collectives: u64,
    pub(super) spent: [Span; Activity::ALL.len()],
    pub(super) sent: (u64, u64),
    pub(super) sent_in_collectives: (u64, u64),
}

/// A collective call that some ranks have entered and not all ranks have left.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Meeting {
    pub(super) kind: Kind,
    pub(super) root: u32,
    /// Rank that entered the collective call first.
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

    /// Starts an activity of the rank at the time `now`.
    pub(super) fn begin(&mut self, now: Time, activity: Activity, call: Name) {
        (self.activity, self.call, self.since) = (activity, call, now);
    }
}
