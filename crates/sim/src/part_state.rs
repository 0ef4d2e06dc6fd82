//! State of one part of a partitioned run: rows and events kept until the parts are united, and checks.

use eastwest_measure::events::EventRow;
use eastwest_measure::flows::FlowRow;
use eastwest_network::losses::EventOrder;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// State of one part of a partitioned run.
#[derive(Default, Serialize, Deserialize)]
pub struct PartState {
    /// Rows of delivered messages whose sender is in this part, with the link that delivered the last byte and
    /// the number of packets on it before.
    pub rows: Vec<(FlowRow, u32, u64)>,
    /// Rows of the table of events.
    pub events: Vec<(EventOrder, EventRow)>,
    /// Number of events beyond the limit, which are not recorded.
    pub events_left_out: u64,
    /// Number of delivered messages whose sender is in this part.
    pub done: u64,
    /// By slot of a receiver in this part, the promised arrival time of the last byte of its message.
    pub promised: Vec<Option<Time>>,
    /// Reason for which the run has to be repeated undivided.
    #[serde(skip)]
    pub abort_reason: Option<&'static str>,
    /// Number of events that every part executes.
    pub repeated: u64,
    /// Number of windows so far.
    pub windows: u64,
    /// Packet transmissions on its own links, counted every 64 windows.
    pub hops: u64,
    /// Whether all parts execute their events on one thread in the order of the undivided run.
    pub in_step: bool,
    /// Time of the last opening of a connection.
    pub last_open: Option<Time>,
    /// Lower bound of the time at which the first connection ended.
    pub first_over: Option<Time>,
}

impl PartState {
    /// Records an event. Events of one part are in order, so the first `most` events of all parts
    /// are among the recorded ones.
    pub fn keep_event(&mut self, most: usize, row: EventRow, order: EventOrder) {
        if self.events.len() < most {
            self.events.push((order, row));
        } else {
            self.events_left_out += 1;
        }
    }
}
