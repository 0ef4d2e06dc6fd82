//! What flows spent their time on.
//!
//! The completion time of a flow is split into four parts that add up to it, to the picosecond: see
//! [`Parts`]. They are those of its critical path, the chain of packets of which each was sent because the
//! one before had arrived (Barford and Crovella, *Critical path analysis of TCP transactions*, SIGCOMM
//! 2000); who follows it is no matter of this file.

use crate::table::{Column, Table};
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
    pub fn table(&self, workloads: &[String], classes: &[String]) -> Table {
        let r = &self.rows;
        let us = |of: fn(&Parts) -> Span| {
            Column::F64(r.iter().map(|row| of(&row.parts).as_us_f64()).collect())
        };
        let number = |is_stream: bool| {
            let row = |row: &PartsRow| if row.is_stream == is_stream { row.row as i64 } else { -1 };
            Column::I64(r.iter().map(row).collect())
        };
        let label = |of: &dyn Fn(&PartsRow) -> u32, names: Vec<String>| {
            Column::Label(r.iter().map(of).collect(), names)
        };
        let losses = ["no", "yes"].map(str::to_owned).to_vec();
        Table::new(
            "flow_parts",
            vec![
                ("flow", number(false)),
                ("stream", number(true)),
                ("workload", label(&|f| u32::from(f.workload), workloads.to_vec())),
                ("class", label(&|f| u32::from(f.class.0), classes.to_vec())),
                ("src", Column::U32(r.iter().map(|f| f.src.0).collect())),
                ("dst", Column::U32(r.iter().map(|f| f.dst.0).collect())),
                ("bytes", Column::U64(r.iter().map(|f| f.bytes).collect())),
                ("loss", label(&|f| u32::from(f.with_loss), losses)),
                ("completion_us", us(Parts::sum)),
                ("injection_us", us(|p| p.injection)),
                ("queueing_us", us(|p| p.queueing)),
                ("flight_us", us(|p| p.flight)),
                ("retransmission_us", us(|p| p.retransmission)),
            ],
        )
    }
}
