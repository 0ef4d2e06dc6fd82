//! Table `tcp_trace`: windows of selected TCP senders over time, with a row at each change and at
//! most `most` rows for a run.

use crate::table;
use crate::table::Table;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Row of the table `tcp_trace`: state of a sender's congestion control from the time `at` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRow {
    /// Time of the change; the values hold until the sender's next row.
    pub at: Time,
    /// Number of the connection to which the sender belongs.
    pub connection: u64,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` before the first loss.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Current retransmission timeout of the sender.
    pub rto: Span,
    /// Bytes assumed to be in flight (RFC 6675, `pipe`).
    pub in_flight: u64,
    /// Number of the phase of congestion control; the table shows its name.
    pub phase: u8,
}

/// Rows of the table `tcp_trace`. The first `most` changes are stored; later changes are only
/// counted.
#[derive(Serialize, Deserialize)]
pub struct TraceTable {
    rows: Vec<TraceRow>,
    most: usize,
    left_out: u64,
}

impl TraceTable {
    /// Returns an empty table that stores at most `most` rows.
    pub fn new(most: usize) -> TraceTable {
        TraceTable { rows: Vec::new(), most, left_out: 0 }
    }

    /// Adds the row of a change. If the table is full, only counts the change.
    pub fn push(&mut self, row: TraceRow) {
        if self.rows.len() < self.most {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the number of stored rows, and the number of changes that are not stored because the
    /// table was full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// Returns the table `tcp_trace`; `phases`: names of the phases of congestion control, by
    /// number.
    pub fn table(&self, phases: &[&str]) -> Table {
        TcpTrace::of(&self.rows, phases)
    }
}

table! {
    /// Congestion windows of the senders that `measure.tcp_trace` names: one row whenever the
    /// congestion window, the slow-start threshold or the phase of a sender has changed. The table
    /// has the first `measure.tcp_trace_rows` changes. The first row of a sender belongs to the
    /// first time at which it has data to send.
    pub TcpTrace = "tcp_trace" since 2
    of row in &'a TraceRow, phases: &'a [&'a str];

    /// time of the change; the values hold until the sender's next row
    time_s: seconds = row.at;

    /// number of the connection to which the sender belongs
    connection: u64 = row.connection;

    /// number of the sending host
    src: u32 = row.src.0;

    /// number of the receiving host
    dst: u32 = row.dst.0;

    /// congestion window in bytes
    cwnd_bytes: u64 = row.cwnd;

    /// slow-start threshold in bytes, −1 before the first loss
    ssthresh_bytes: i64 = row.ssthresh.map_or(-1, |bytes| bytes as i64);

    /// smoothed round-trip time in µs, 0 before the first sample
    srtt_us: us = row.srtt.unwrap_or(Span::ZERO);

    /// current retransmission timeout in µs
    rto_us: us = row.rto;

    /// sender's estimate of the bytes in the network (RFC 6675, `pipe`)
    in_flight_bytes: u64 = row.in_flight;

    /// phase of congestion control: `slow-start`, `congestion-avoidance`, `recovery` (fast
    /// recovery), `loss` (after a timeout, until all data outstanding then is acknowledged)
    phase: label(phases) = row.phase;
}
