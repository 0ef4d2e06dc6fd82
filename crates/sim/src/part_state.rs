//! State of one part of a partitioned run: rows and events kept until the parts are united, and checks.

use eastwest_measure::events::EventRow;
use eastwest_measure::flows::FlowRow;
use eastwest_network::losses::EventOrder;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// State of one part of a partitioned run.
#[derive(Default, Serialize, Deserialize)]
pub struct PartState {
    /// Rows of delivered messages whose sender is in this part. Each with the link that delivered
    /// the last byte, and the number of packets on that link before.
    pub rows: Vec<(FlowRow, u32, u64)>,
    /// Recorded events of connections, with their order among the events of all parts.
    pub events: Vec<(EventOrder, EventRow)>,
    /// Number of events of connections beyond the limit, which are not recorded.
    pub events_left_out: u64,
    /// Number of delivered messages whose sender is in this part.
    pub done: u64,
    /// For each slot of a receiver in this part: the arrival time of the last byte of its message,
    /// as promised to the part of the sender.
    pub promised: Vec<Option<Time>>,
    /// Reason for which the run has to be repeated undivided.
    #[serde(skip)]
    pub abort_reason: Option<&'static str>,
    /// Number of events that every part executes (wake-ups), and that count once for the run.
    pub repeated: u64,
    /// Number of windows that this part has executed.
    pub windows: u64,
    /// Packet transmissions on the links of this part, updated every 64 windows.
    pub hops: u64,
    /// Whether all parts execute their events on one thread in the order of the undivided run.
    pub in_step: bool,
    /// Time at which a connection was last opened; `None` before the first one.
    pub last_open: Option<Time>,
    /// Lower bound of the time at which the first connection ended; `None` if none has ended.
    pub first_over: Option<Time>,
}

impl PartState {
    /// Records an event of a connection, up to `most` of them. Events of one part are in order, so
    /// the first `most` events of all parts are among the recorded ones.
    pub fn keep_event(&mut self, most: usize, row: EventRow, order: EventOrder) {
        if self.events.len() < most {
            self.events.push((order, row));
        } else {
            self.events_left_out += 1;
        }
    }
}
