//! What a part of a run in parts keeps for the end of the run.

use eastwest_measure::events::EventRow;
use eastwest_measure::flows::FlowRow;
use eastwest_network::losses::EventOrder;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// What a part keeps for the end of the run.
#[derive(Default, Serialize, Deserialize)]
pub struct Share {
    /// Rows of messages sent from here that have arrived, and the link that brought the last byte
    /// after so many other packets.
    pub rows: Vec<(FlowRow, u32, u64)>,
    /// Rows of the table of events.
    pub events: Vec<(EventOrder, EventRow)>,
    /// Those beyond the most that are kept.
    pub events_left_out: u64,
    /// Messages sent from here that have arrived.
    pub done: u64,
    /// By the slot of a receiver here, when the last byte comes that was promised.
    pub promised: Vec<Option<Time>>,
    /// What was not foreseen: the run has to be done in one, and is kept no more.
    #[serde(skip)]
    pub wrong: Option<&'static str>,
    /// Events that every part carries out.
    pub repeated: u64,
    /// Windows so far, and packet transmissions on its own links, which are counted now and then.
    pub windows: u64,
    /// See [`Share::windows`].
    pub hops: u64,
    /// All parts are at the same event.
    pub in_step: bool,
    /// When a connection was opened last.
    pub last_open: Option<Time>,
    /// When a connection was first seen to be over, or before.
    pub first_over: Option<Time>,
}

impl Share {
    /// Keeps an event. Those of one part are in order, so that the first `most` of all parts are among those
    /// that are kept.
    pub fn keep_event(&mut self, most: usize, row: EventRow, order: EventOrder) {
        if self.events.len() < most {
            self.events.push((order, row));
        } else {
            self.events_left_out += 1;
        }
    }
}
