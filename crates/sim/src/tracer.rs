//! Traces of the congestion windows of selected senders. A row is written when congestion window,
//! slow-start threshold or phase differs from the previous row of the sender. The first row is
//! written when the sender first has data to send.

use crate::connections::Connections;
use crate::scenario::Senders;
use eastwest_measure::tcp_trace::{TraceRow, TraceTable};
use eastwest_transport::tcp::Stack;
use eastwest_transport::tcp::sender_state::{SenderState, WindowPhase};
use eastwest_types::{EndpointId, HostId, Time};
use serde::{Deserialize, Serialize};

/// Values of a sender's latest row: congestion window, slow-start threshold (`None` before it is
/// set), and phase.
type Seen = (u64, Option<u64>, WindowPhase);

/// Traces of the congestion windows of selected TCP senders.
#[derive(Serialize, Deserialize)]
pub struct Tracer {
    senders: Senders,
    /// Values of the latest row of each sender, by slot of the endpoint. Outer `None`: the sender
    /// is not traced; inner `None`: the sender has no row yet.
    slots: Vec<Option<Option<Seen>>>,
    /// Rows of the table of congestion windows.
    pub rows: TraceTable,
}

impl Tracer {
    /// Returns a tracer of the congestion windows of these senders; its table has at most `most`
    /// rows.
    pub fn new(senders: Senders, most: u64) -> Tracer {
        Tracer { senders, slots: Vec::new(), rows: TraceTable::new(most as usize) }
    }

    /// Whether the congestion window of at least one sender is traced.
    pub fn is_on(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Registers a TCP connection that has been opened; `end` is one of its endpoints.
    pub fn open(&mut self, end: EndpointId, client: HostId, server: HostId) {
        if !self.is_on() {
            return;
        }
        let slot = end.slot() & !1;
        if slot + 2 > self.slots.len() {
            self.slots.resize(slot + 2, None);
        }
        for (side, (src, dst)) in [(client, server), (server, client)].into_iter().enumerate() {
            self.slots[slot + side] = self.senders.contains(src, dst).then_some(None);
        }
    }

    /// Whether an endpoint is traced and its state differs from its latest row. Stores the state
    /// for the next comparison.
    fn is_news(&mut self, end: EndpointId, state: &SenderState) -> bool {
        let Some(Some(seen)) = self.slots.get_mut(end.slot()) else { return false };
        let now = Some((state.cwnd, state.ssthresh, state.phase));
        std::mem::replace(seen, now) != now
    }

    fn traces(&self, end: EndpointId) -> bool {
        self.slots.get(end.slot()).is_some_and(Option::is_some)
    }

    /// Writes a row for an endpoint if the endpoint is traced and its congestion window, slow-start
    /// threshold or phase has changed.
    pub fn look(&mut self, now: Time, stack: &Stack, connections: &Connections, end: EndpointId) {
        let e = stack.endpoint(end);
        if !self.traces(end) || e.id() != end || e.written() == 0 {
            return;
        }
        let state = stack.sender_state(end);
        if !self.is_news(end, &state) {
            return;
        }
        let connection = connections.of(end);
        let (src, dst) = connection.stream_of(end);
        self.rows.push(TraceRow {
            at: now,
            connection: connection.number,
            src,
            dst,
            cwnd: state.cwnd,
            ssthresh: state.ssthresh,
            srtt: state.srtt,
            rto: state.rto,
            in_flight: state.in_flight,
            phase: state.phase as u8,
        });
    }
}
