//! A rank: what it is at.

use super::collective::{Call, Kind};
use super::trace::Source;
use eastwest_types::name::Name;
use eastwest_types::{Activity, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a rank is at.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Doing {
    /// The next record.
    Next,
    /// A computation or a sleep, or what must come before a call returns.
    Busy,
    /// Waiting for so many requests.
    Waiting(u32),
    /// A collective: its number, its next step, and how many requests of the last one are open.
    Collective { call: Box<Call>, number: u64, step: u32, open: u32 },
    /// Nothing more.
    Through,
}

/// A rank of the program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rank {
    pub(super) source: Source,
    pub(super) doing: Doing,
    /// What it is doing, in which call, and since when.
    pub(super) activity: Activity,
    #[serde(with = "eastwest_types::name")]
    pub(super) call: Name,
    pub(super) since: Time,
    /// Its open requests of non-blocking calls, in the order of the calls.
    pub(super) open: VecDeque<u32>,
    /// Receives that have met no message, in the order of their posting.
    pub(super) posted: VecDeque<u32>,
    /// Messages that have met no receive, in the order of their arrival.
    pub(super) unexpected: VecDeque<u32>,
    /// Collectives it has entered.
    pub(super) collectives: u64,
    pub(super) spent: [Span; Activity::ALL.len()],
    pub(super) sent: (u64, u64),
    pub(super) sent_in_collectives: (u64, u64),
}

/// A collective that not all have left.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Meeting {
    pub(super) kind: Kind,
    pub(super) root: u32,
    /// Who came first.
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

    /// It begins to do something.
    pub(super) fn begin(&mut self, now: Time, activity: Activity, call: Name) {
        (self.activity, self.call, self.since) = (activity, call, now);
    }
}
