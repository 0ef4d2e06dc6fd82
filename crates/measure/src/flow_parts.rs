//! What flows spent their time on.
//!
//! The completion time of a flow is split into four parts that add up to it, to the picosecond: see
//! [`Parts`]. They are those of its critical path, the chain of packets of which each was sent because the
//! one before had arrived (Barford and Crovella, *Critical path analysis of TCP transactions*, SIGCOMM
//! 2000); who follows it is no matter of this file.

use crate::table;
use crate::table::{Names, Table};
use eastwest_types::{ClassId, HostId, Span};
use serde::{Deserialize, Serialize};

/// Parts of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Held at hosts before it left for the first time.
    pub injection: Span,
    /// Waiting in switches.
    pub queueing: Span,
    /// Being sent, propagated and processed.
    pub flight: Span,
    /// From the first sending of what was lost to the next.
    pub retransmission: Span,
}

impl Parts {
    /// What they add up to.
    pub fn sum(&self) -> Span {
        self.injection + self.queueing + self.flight + self.retransmission
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Parts) -> Parts {
        Parts {
            injection: self.injection + other.injection,
            queueing: self.queueing + other.queueing,
            flight: self.flight + other.flight,
            retransmission: self.retransmission + other.retransmission,
        }
    }

    /// Without the first `span` of it, where the parts follow each other in this order: held at the host,
    /// queues, flight.
    #[must_use]
    pub fn without_first(mut self, span: Span) -> Parts {
        let mut rest = span;
        for part in [&mut self.injection, &mut self.queueing, &mut self.flight] {
            let cut = Span(part.0.min(rest.0));
            *part = *part - cut;
            rest = rest - cut;
        }
        self
    }
}

/// A flow that has arrived: a message, or a stream of frames with the last frame so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PartsRow {
    /// Number of the row of the message in `flows`, or of the stream in `streams`.
    pub row: u64,
    /// Whether it is a stream of frames.
    pub is_stream: bool,
    /// Index of the workload.
    pub workload: u16,
    /// Traffic class.
    pub class: ClassId,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Payload of a message; bytes of a stream's frames that have arrived.
    pub bytes: u64,
    /// Whether something of it was sent again, or was lost.
    pub with_loss: bool,
    /// What its time went into.
    pub parts: Parts,
}

/// Rows of a run, the first `most` of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PartsTable {
    rows: Vec<PartsRow>,
    most: u64,
    left_out: u64,
}

impl PartsTable {
    /// An empty table for at most this many rows.
    pub fn new(most: u64) -> PartsTable {
        PartsTable { rows: Vec::new(), most, left_out: 0 }
    }

    /// Adds a row.
    pub fn push(&mut self, row: PartsRow) {
        if (self.rows.len() as u64) < self.most {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }

    /// Rows kept, and flows that found the table full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// What the time of each went into.
    pub fn parts(&self) -> impl Iterator<Item = &Parts> {
        self.rows.iter().map(|row| &row.parts)
    }

    /// The table `flow_parts`.
    pub fn table(&self, names: &Names) -> Table {
        FlowParts::of(&self.rows, names)
    }
}

table! {
    /// [What the time of flows went
    /// into](../mechanisms/measuring.md#where-the-time-of-a-flow-goes): one row for each message of
    /// the senders that `measure.flow_parts` names, in the order of `flows`, then one for each of
    /// their streams of raw Ethernet frames of which one has arrived; at most
    /// `measure.flow_parts_rows`, the first ones. The four parts add up to `completion_us`, to the
    /// picosecond as they are computed and to the rounding of a double in this table.
    pub FlowParts = "flow_parts" since 6
    of flow in &'a PartsRow, names: &'a Names;

    /// number of the message in `flows`, −1 for a stream
    flow: i64 = if flow.is_stream { -1 } else { flow.row as i64 };

    /// number of the row in `streams`, from 0; −1 for a message
    stream: i64 = if flow.is_stream { flow.row as i64 } else { -1 };

    /// name of the workload
    workload: label(&names.workloads) = flow.workload;

    /// traffic class
    class: label(&names.classes) = flow.class.0;

    /// sender
    src: u32 = flow.src.0;

    /// receiver
    dst: u32 = flow.dst.0;

    /// payload of the message; bytes of the frames that have arrived
    bytes: u64 = flow.bytes;

    /// `yes` if something of the message was sent again, or a frame of the stream was lost;
    /// otherwise `no`
    loss: few = if flow.with_loss { "yes" } else { "no" };

    /// `fct_us` of the message; of a stream the time from its first frame to the last one that
    /// arrived
    completion_us: us = flow.parts.sum();

    /// held at hosts until it left for the first time
    injection_us: us = flow.parts.injection;

    /// waiting in switches
    queueing_us: us = flow.parts.queueing;

    /// being sent, propagated, and processed by the receiving host
    flight_us: us = flow.parts.flight;

    /// from the first sending of what was lost until it was sent again
    retransmission_us: us = flow.parts.retransmission;
}
