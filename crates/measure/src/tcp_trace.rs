//! The windows of chosen senders over time: a row whenever one changes, the first `most` of a run.

use crate::table::{Column, Table};
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// The window of one sender from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRow {
    /// When.
    pub at: Time,
    /// Number of the connection.
    pub connection: u64,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes, once there is one.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Span>,
    /// Retransmission timeout.
    pub rto: Span,
    /// Bytes taken to be in the network.
    pub in_flight: u64,
    /// Number of what the window does.
    pub phase: u8,
}

/// Rows of a run.
#[derive(Serialize, Deserialize)]
pub struct TraceTable {
    rows: Vec<TraceRow>,
    most: usize,
    left_out: u64,
}

impl TraceTable {
    /// An empty table for at most this many rows.
    pub fn new(most: usize) -> TraceTable {
        TraceTable { rows: Vec::new(), most, left_out: 0 }
    }

    /// Adds a row.
    pub fn push(&mut self, row: TraceRow) {
        if self.rows.len() < self.most {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }

    /// Rows kept, and changes that found the table full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// The table `tcp_trace`; `phases` are the names of what windows do.
    pub fn table(&self, phases: &[&str]) -> Table {
        let r = &self.rows;
        let u64s = |f: &dyn Fn(&TraceRow) -> u64| Column::U64(r.iter().map(f).collect());
        let us = |f: &dyn Fn(&TraceRow) -> Span| {
            Column::F64(r.iter().map(|row| f(row).as_us_f64()).collect())
        };
        let threshold = |row: &TraceRow| row.ssthresh.map_or(-1, |bytes| bytes as i64);
        Table::new(
            "tcp_trace",
            vec![
                ("time_s", Column::F64(r.iter().map(|row| row.at.as_secs_f64()).collect())),
                ("connection", u64s(&|row| row.connection)),
                ("src", Column::U32(r.iter().map(|row| row.src.0).collect())),
                ("dst", Column::U32(r.iter().map(|row| row.dst.0).collect())),
                ("cwnd_bytes", u64s(&|row| row.cwnd)),
                ("ssthresh_bytes", Column::I64(r.iter().map(threshold).collect())),
                ("srtt_us", us(&|row| row.srtt.unwrap_or(Span::ZERO))),
                ("rto_us", us(&|row| row.rto)),
                ("in_flight_bytes", u64s(&|row| row.in_flight)),
                (
                    "phase",
                    Column::Label(
                        r.iter().map(|row| u32::from(row.phase)).collect(),
                        phases.iter().map(|p| (*p).to_owned()).collect(),
                    ),
                ),
            ],
        )
    }
}
