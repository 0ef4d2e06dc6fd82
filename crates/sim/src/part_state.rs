//! State of one part of a partitioned run (one run on several threads): rows and events that are
//! stored until the parts are united, and data of consistency checks.

use crate::messages::Message;
use crate::stream_transports::number::TransportNumber;
use crate::wakes::Executed;
use eastwest_engine::order::{Class, Key};
use eastwest_measure::events::EventRow;
use eastwest_measure::flows::FlowRow;
use eastwest_network::losses::{EventOrder, Lost};
use eastwest_types::{EndpointId, Time};
use eastwest_workload::Action;
use eastwest_workload::mpi::Envelope;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// State of one part of a partitioned run (one run on several threads), in addition to its network
/// and transports.
#[derive(Default, Serialize, Deserialize)]
pub struct PartState {
    /// Rows of delivered messages whose sender is in this part: (row, number of the link that
    /// delivered the last byte, number of packets that had arrived on this link before). Link and
    /// packet count determine the order of the rows of all parts.
    pub rows: Vec<(FlowRow, u32, u64)>,
    /// Recorded events of connections (drops, timeouts …).
    pub events: Vec<PartEvent>,
    /// Number of events of connections that were not recorded because the limit was reached.
    pub events_left_out: u64,
    /// Number of delivered flows whose sender is in this part, without requests for flows and
    /// without flows of background workloads.
    pub done: u64,
    /// By workload: whether the run waits for its end (it is not a background workload).
    pub awaited: Vec<bool>,
    /// Transport of all connections of the run.
    pub transport: TransportNumber,
    /// For each slot of a receiving endpoint in this part: the arrival times of the messages in
    /// flight that this part has promised to the part of the sender, in order.
    pub promised: Vec<VecDeque<Time>>,
    /// Reason for which the run must be repeated on one thread; `None` if the partitioned run can
    /// continue.
    #[serde(skip)]
    pub abort_reason: Option<&'static str>,
    /// Parts that execute the current event, and therefore the wake-ups that it schedules.
    pub executed: Executed,
    /// Number of events that every part executes (wake-ups of workloads). For the whole run, such
    /// an event counts once.
    pub repeated: u64,
    /// Number of wake-ups that are copies of wake-ups of another part. For the whole run, such an
    /// event does not count.
    pub copied: u64,
    /// Number of time windows that this part has executed.
    pub windows: u64,
    /// Packet transmissions on the links of this part, updated every 64 windows.
    pub hops: u64,
    /// Whether one thread currently executes the events of all parts in the order of the undivided
    /// run.
    pub in_step: bool,
    /// Connections between hosts of other parts that will be opened: time and rank of the wake-up of
    /// each, in reverse order once workloads have started.
    pub opened_elsewhere: Vec<(Time, u64)>,
    /// By number of another part: messages that were written to its hosts since the last exchange.
    pub written: Vec<Vec<Written>>,
    /// Whether a workload reports in the parts, so that rows of messages and reports of all workloads
    /// are put into one order.
    pub has_reports: bool,
    /// Place of the next report of a workload.
    pub place: Place,
    /// Reports of workloads: place, number of the workload, report.
    pub reports: Vec<(Place, u16, Report)>,
    /// Numbers of reported states of ranks and of reported iterations.
    pub states: u64,
    pub iterations: u64,
    /// Number of these reports that were not kept because the limit was reached.
    pub rows_left_out: u64,
    /// Number of actions of replicated workloads at one simulated time, and this time.
    pub actions: (u32, Time),
    /// Times of wake-ups at which a replicated workload asks for received bytes, which one thread
    /// executes for all parts.
    pub asks: BTreeSet<Time>,
    /// Timers that end the TIME-WAIT of endpoints of other parts: expiry, and number of the timer.
    pub waits_elsewhere: BTreeSet<(Time, u64)>,
    /// Workloads of raw Ethernet frames whose last frame may have arrived, or may be found to be lost, in
    /// the current event or window; and whether a search for lost frames follows if this is not so.
    pub last_frames: BTreeMap<u16, bool>,
    /// Event (key, source) that has ended the run, if the parts replicate workloads.
    pub ended: Option<(Key, u32)>,
    /// Simulated time at which a connection was last opened; `None` before the first one.
    pub last_open: Option<Time>,
    /// Lower bound of the simulated time at which the first connection ended; `None` if none has
    /// ended.
    pub first_over: Option<Time>,
}

/// A recorded event of a connection in one part of a partitioned run.
#[derive(Serialize, Deserialize)]
pub enum PartEvent {
    /// Event of an endpoint of this part: row, and order among the events of all parts.
    OfEndpoint(EventRow, EventOrder),
    /// Lost packet. The switch that has dropped it can belong to another part than both hosts, so
    /// that only the united parts know its connection.
    Lost(Lost),
}

impl PartState {
    /// Records an event of a connection; at most `most` events of this part are stored. Events of
    /// one part are in order, so the first `most` events of the whole run are among the stored
    /// events of all parts.
    pub fn keep_event(&mut self, most: usize, event: PartEvent) {
        if self.events.len() < most {
            self.events.push(event);
        } else {
            self.events_left_out += 1;
        }
    }
}

/// A message that an endpoint in one part of a partitioned run has written to an endpoint in another
/// part.
#[derive(Serialize, Deserialize)]
pub struct Written {
    pub workload: u16,
    pub sender: EndpointId,
    /// The message as the part of the sender has it, with its positions in the stream.
    pub message: Message,
    /// Content of the MPI message; `None` if the part of the receiver knows it already.
    pub envelope: Option<Envelope>,
}

/// Place of a report of a workload in the order of an undivided run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Event in which the report was made.
    pub event: EventOrder,
    /// Number of the message among those that have arrived in this event.
    delivered: u32,
    /// 0: the row of this message in the table of flows; then the rounds of the ranks that continue.
    round: u32,
    /// Whether the event is a copy of an event in the part of the receiver.
    is_copy: bool,
}

impl Default for Place {
    fn default() -> Place {
        let event = ((Key::new(Time::ZERO, Class::Change), 0), 0);
        Place { event, delivered: 0, round: 0, is_copy: false }
    }
}

/// Report of a workload in one part of a partitioned run.
#[derive(Serialize, Deserialize)]
pub enum Report {
    /// Row of the table of flows.
    Flow(FlowRow),
    /// Report of a rank of an MPI program, or of a transaction.
    OfWorkload(Action),
}

impl PartState {
    /// Returns the current event (key, source), in which reports are made.
    pub fn event(&self) -> (Key, u32) {
        let (key, rank_and_source) = self.place.event.0;
        (key, rank_and_source as u32)
    }

    /// Sets the event in which the next reports are made.
    pub fn begin_reports(&mut self, event: EventOrder, is_copy: bool) {
        let is_same = self.place.event == event;
        let delivered = if is_same { self.place.delivered + 1 } else { 0 };
        self.place = Place { event, delivered, round: 1, is_copy };
    }

    /// Keeps a report of the workload `workload` until the parts are united; at most `most` states and
    /// iterations of an MPI program.
    pub fn keep_report(&mut self, workload: u16, report: Action, most: u64) {
        let kept = match report {
            Action::MpiNextRound => return self.place.round += 1,
            Action::CallsDone { calls } => {
                let counts = self.awaited[usize::from(workload)];
                return self.done += u64::from(calls) * u64::from(counts);
            }
            Action::MpiState(_) => Some(&mut self.states),
            Action::MpiIteration(_) => Some(&mut self.iterations),
            Action::MpiRank(_) => {
                self.done += u64::from(self.awaited[usize::from(workload)]);
                None
            }
            _ => None,
        };
        if let Some(kept) = kept {
            *kept += 1;
            if *kept > most {
                return self.rows_left_out += 1;
            }
        }
        self.reports.push((self.place, workload, Report::OfWorkload(report)));
    }

    /// Keeps the row of a message in the order of the reports until the parts are united.
    pub fn keep_row(&mut self, row: FlowRow) {
        self.reports.push((Place { round: 0, ..self.place }, row.workload, Report::Flow(row)));
    }
}
