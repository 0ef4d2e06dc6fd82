//! Parts of the completion times of flows.
//!
//! The completion time of a flow is split into four parts ([`Parts`]) that add up to it, to the picosecond.
//! They are those of its critical path, the chain of packets in which each was sent because the one before had
//! arrived (Barford and Crovella, *Critical path analysis of TCP transactions*, SIGCOMM 2000). Another module
//! follows the path; this one keeps the results.

use crate::table;
use crate::table::{Names, Table};
use eastwest_types::{ClassId, HostId, Span};
use serde::{Deserialize, Serialize};

/// Parts of the completion time of a flow; their sum is the completion time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Time at the sending host before the first transmission.
    pub injection: Span,
    /// Waiting time in queues of switches.
    pub queueing: Span,
    /// Time of transmission, propagation and processing at the receiving host.
    pub flight: Span,
    /// Time from the first transmission of lost data to its retransmission.
    pub retransmission: Span,
}

impl Parts {
    /// Returns the sum of the four parts: the completion time of the flow.
    pub fn sum(&self) -> Span {
        self.injection + self.queueing + self.flight + self.retransmission
    }

    /// Returns the parts of `self` and `other` added, part by part.
    #[must_use]
    pub fn and(self, other: Parts) -> Parts {
        Parts {
            injection: self.injection + other.injection,
            queueing: self.queueing + other.queueing,
            flight: self.flight + other.flight,
            retransmission: self.retransmission + other.retransmission,
        }
    }

    /// Returns the parts after `span` is subtracted from the start of the time: first from
    /// `injection`, then from `queueing`, then from `flight`.
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

/// Row of the table `flow_parts`: a complete message, or a stream of frames up to its latest
/// arrival.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PartsRow {
    /// Number of the row of the message in the table `flows`, or of the stream in the table
    /// `streams`; from 0.
    pub row: u64,
    /// Whether the flow is a stream of raw Ethernet frames, not a message.
    pub is_stream: bool,
    /// Index of the workload, from 0.
    pub workload: u16,
    /// Traffic class.
    pub class: ClassId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload bytes of the message, or bytes of the stream's frames that have arrived.
    pub bytes: u64,
    /// Whether part of the flow was retransmitted or lost.
    pub with_loss: bool,
    /// Parts of the completion time.
    pub parts: Parts,
}

/// Rows of the table `flow_parts`: the first `most` flows. Later flows are only counted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PartsTable {
    rows: Vec<PartsRow>,
    most: u64,
    left_out: u64,
}

impl PartsTable {
    /// Returns an empty table for at most `most` rows.
    pub fn new(most: u64) -> PartsTable {
        PartsTable { rows: Vec::new(), most, left_out: 0 }
    }

    /// Adds the row of a flow. If the table is full, only counts the flow.
    pub fn push(&mut self, row: PartsRow) {
        if (self.rows.len() as u64) < self.most {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the number of rows kept, and of flows that were not kept because the table was full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// Returns the parts of the completion time of each flow in the table.
    pub fn parts(&self) -> impl Iterator<Item = &Parts> {
        self.rows.iter().map(|row| &row.parts)
    }

    /// Returns the table `flow_parts`.
    pub fn table(&self, names: &Names) -> Table {
        FlowParts::of(&self.rows, names)
    }
}

table! {
    /// [Parts of the completion times of
    /// flows](../mechanisms/measuring.md#where-the-time-of-a-flow-goes): one row for each message
    /// of the senders that `measure.flow_parts` names, in the order of the table `flows`, then one
    /// row for each of their streams of raw Ethernet frames of which a frame has arrived; at most
    /// `measure.flow_parts_rows` rows, the first ones. The sum of the four parts is
    /// `completion_us`, exact to the picosecond before they are rounded to the doubles of this
    /// table.
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

    /// `yes` if a part of the message was retransmitted or a frame of the stream was lost,
    /// otherwise `no`
    loss: few = if flow.with_loss { "yes" } else { "no" };

    /// `fct_us` of the message; for a stream, the time from its first frame to its last arrived
    /// frame
    completion_us: us = flow.parts.sum();

    /// time at hosts until the data left for the first time
    injection_us: us = flow.parts.injection;

    /// waiting time in switches
    queueing_us: us = flow.parts.queueing;

    /// time of transmission, propagation and processing at the receiving host
    flight_us: us = flow.parts.flight;

    /// time from the first transmission of lost data until its retransmission
    retransmission_us: us = flow.parts.retransmission;
}
