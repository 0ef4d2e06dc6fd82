//! Table `flows`: one row for each measured message, with times of sending and arrival,
//! retransmissions and timeouts.

use crate::fairness::Shares;
use crate::table;
use crate::table::{Names, Table};
use eastwest_types::{ClassId, HostId, Purpose, Span, Time};
use serde::{Deserialize, Serialize};

/// Row of the table `flows`: a message that has arrived completely.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FlowRow {
    /// Index of the workload to which the message belongs, from 0.
    pub workload: u16,
    /// Purpose of the message (`shuffle`, `incast` …).
    pub purpose: Purpose,
    /// Traffic class of the message.
    pub class: ClassId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload bytes of the message.
    pub bytes: u64,
    /// Time at which the application wrote the message.
    pub start: Time,
    /// Time at which the last byte of the message had arrived in order.
    pub finish: Time,
    /// Time that the message needs alone on the idle path, without handshake.
    pub ideal: Span,
    /// Number of segments that the sender retransmitted between `start` and `finish`.
    pub retransmits: u32,
    /// Number of retransmission timeouts of the sender between `start` and `finish`.
    pub timeouts: u32,
    /// Number of timeouts between `start` and `finish` at which a whole window of data was lost.
    pub lost_windows: u32,
    /// Number of timeouts between `start` and `finish` at which every ACK of a window was lost.
    pub lost_ack_windows: u32,
    /// Number of the job or transaction to which the message belongs; `None` if it belongs to none.
    pub job: Option<u32>,
    /// Number of the connection that carried the message, from 0 in order of opening.
    pub connection: u64,
    /// Position of the message in the sender's stream on this connection: number of bytes of the
    /// stream before the message.
    pub stream_start: u64,
    /// Number that the workload has given to the message.
    pub tag: u64,
}

/// Totals of all flows of one purpose (`shuffle`, `incast` …), for the summary of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowTotals {
    /// Sum of the payload bytes of the flows.
    pub bytes: u64,
    /// Number of flows during which the sender retransmitted.
    pub with_loss: u64,
    /// Number and sum of the flows' mean rates in bytes per second, and sum of their squares.
    pub rates: Shares,
    /// Number of flows with a timeout at which a whole window of data was lost.
    pub with_lost_windows: u64,
    /// Number of flows with a timeout at which every ACK of a window was lost.
    pub with_lost_ack_windows: u64,
    /// Completion time of each flow (`finish` − `start`), in order of arrival.
    pub times: Vec<Span>,
}

impl FlowTotals {
    fn add(&mut self, row: &FlowRow) {
        self.bytes += row.bytes;
        self.with_loss += u64::from(row.retransmits > 0);
        let span_s = row.finish.since(row.start).as_secs_f64();
        if span_s > 0.0 {
            self.rates.add(row.bytes as f64 / span_s);
        }
        self.with_lost_windows += u64::from(row.lost_windows > 0);
        self.with_lost_ack_windows += u64::from(row.lost_ack_windows > 0);
        self.times.push(row.finish.since(row.start));
    }
}

/// Rows of the table `flows`, in order of arrival. During a long run, [`FlowTable::hand_out`]
/// removes rows from memory; their totals for summaries remain.
#[derive(Default, Serialize, Deserialize)]
pub struct FlowTable {
    rows: Vec<FlowRow>,
    /// Number of rows that [`FlowTable::hand_out`] has removed.
    handed_out: u64,
    /// Totals of the removed rows; the index is the number of the [`Purpose`]. Empty if no row was
    /// removed.
    totals: Vec<FlowTotals>,
}

impl FlowTable {
    /// Adds the row of a message that has arrived completely.
    pub fn push(&mut self, row: FlowRow) {
        self.rows.push(row);
    }

    /// Returns the rows in memory, in order of arrival.
    pub fn rows(&self) -> &[FlowRow] {
        &self.rows
    }

    /// Returns the number of messages that have arrived, including those whose rows were removed
    /// from memory.
    pub fn len(&self) -> u64 {
        self.handed_out + self.held() as u64
    }

    /// Whether no message has arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of rows in memory, which [`FlowTable::hand_out`] has not removed yet.
    pub fn held(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of rows that [`FlowTable::hand_out`] has removed from memory.
    pub fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Returns the totals of all flows for each purpose; the index is the number of the
    /// [`Purpose`].
    pub fn totals(&self) -> Vec<FlowTotals> {
        let mut totals = self.totals.clone();
        add(&mut totals, &self.rows);
        totals
    }

    /// Removes all rows from memory, and returns them as the next part of the table `flows`.
    pub fn hand_out(&mut self, names: &Names) -> Table {
        let rows = std::mem::take(&mut self.rows);
        add(&mut self.totals, &rows);
        let first = self.handed_out;
        self.handed_out += rows.len() as u64;
        Flows::of((first..).zip(&rows), names)
    }
}

fn add(totals: &mut Vec<FlowTotals>, rows: &[FlowRow]) {
    totals.resize(Purpose::ALL.len(), FlowTotals::default());
    rows.iter().for_each(|row| totals[row.purpose as usize].add(row));
}

table! {
    /// One row for each data message that has arrived completely, in order of arrival: a transfer, a
    /// fetched partition group, a chunk to a replica, a request. Several messages can share a
    /// connection. Heartbeats, assignments and other control messages have no row (but their
    /// packets count in `latency`, `links` and the digest).
    pub Flows = "flows"
    of (number, flow) in (u64, &'a FlowRow), names: &'a Names;

    /// number of the row, from 0
    flow: u64 = number;

    /// name of the workload
    workload: label(&names.workloads) = flow.workload;

    /// `flow`, `incast`, `request`, `response`, `shuffle`, `map-input`, `replica`, `re-replication`
    /// (a block that lost replicas, or data for a new datanode of a pipeline), `message` (of an MPI
    /// rank)
    purpose: few = flow.purpose.name();

    /// traffic class of the message
    class: label(&names.classes) = flow.class.0;

    /// number of the sending host
    src: u32 = flow.src.0;

    /// number of the receiving host
    dst: u32 = flow.dst.0;

    /// payload bytes of the message
    bytes: u64 = flow.bytes;

    /// time at which the application wrote the message; the handshake of a new connection follows
    /// it
    start_s: seconds = flow.start;

    /// time at which the last byte of the message had arrived in order at the receiver
    finish_s: seconds = flow.finish;

    /// completion time of the message, `finish_s` − `start_s`, computed in picoseconds
    fct_us: us = flow.finish.since(flow.start);

    /// `fct_us` divided by the time that the message needs alone on the idle path, without
    /// handshake; at least 1 unless links fail (a detour may be faster)
    slowdown: f64 = flow.finish.since(flow.start).0 as f64 / flow.ideal.0.max(1) as f64;

    /// segments that the sender retransmitted between `start_s` and `finish_s`; on a shared
    /// connection this includes retransmissions for the previous message
    retransmits: u32 = flow.retransmits;

    /// retransmission timeouts of the sender between `start_s` and `finish_s`
    timeouts: u32 = flow.timeouts;

    /// number of the job or transaction to which the message belongs; −1 if it belongs to none
    job: i64 = flow.job.map_or(-1, i64::from);

    /// number of the connection that carried the message, from 0 in order of opening
    connection since 2: u64 = flow.connection;

    /// bytes of the sender's stream before this message. The message has the positions
    /// `stream_start` to `stream_start` + `bytes` of the stream from `src` to `dst` on this
    /// connection; a header of the application may follow it
    stream_start since 2: u64 = flow.stream_start;

    /// timeouts between `start_s` and `finish_s` at which [a whole
    /// window](../mechanisms/tcp-timeouts.md#whole-windows) of data was lost
    lost_windows since 5: u32 = flow.lost_windows;

    /// timeouts between `start_s` and `finish_s` at which all ACKs of the arrived data were lost
    lost_ack_windows since 5: u32 = flow.lost_ack_windows;

    /// number that the workload has given to the message; a request and its response have the same
    /// connection and tag ([exchanges](../guide/reading-results.md#exchanges))
    tag since 8: u64 = flow.tag;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;
    use eastwest_types::{ClassId, HostId};

    fn row(n: u64) -> FlowRow {
        FlowRow {
            workload: 0,
            purpose: if n % 3 == 0 { Purpose::Shuffle } else { Purpose::Control },
            class: ClassId(0),
            src: HostId(0),
            dst: HostId(1),
            bytes: 100 + n,
            start: Time(n),
            finish: Time(n * n + n),
            ideal: Span(1),
            retransmits: 0,
            timeouts: 0,
            lost_windows: (n % 2) as u32,
            lost_ack_windows: (n % 5) as u32,
            job: None,
            connection: n,
            stream_start: 0,
            tag: n,
        }
    }

    #[test]
    fn rows_handed_out_on_the_way_are_those_handed_out_at_once() {
        let (mut whole, mut parted) = (FlowTable::default(), FlowTable::default());
        let all = || vec!["all".to_owned()];
        let names = Names { workloads: all(), classes: all(), ..Names::default() };
        let mut numbers = Vec::new();
        for n in 0..100 {
            whole.push(row(n));
            parted.push(row(n));
            if n == 0 || n == 41 || n == 42 {
                let Some(Column::U64(part)) = parted.hand_out(&names).column("flow").cloned()
                else {
                    panic!("the number is a column");
                };
                numbers.extend(part);
            }
        }
        assert_eq!((parted.len(), parted.held(), parted.handed_out()), (100, 57, 43));
        assert_eq!(numbers, (0..43).collect::<Vec<_>>());
        assert_eq!(parted.totals(), whole.totals());
        assert_eq!(whole.totals().iter().map(|t| t.times.len()).sum::<usize>(), 100);
        let last = parted.hand_out(&names);
        let all = whole.hand_out(&names);
        let tail = |t: &Table| match t.column("bytes") {
            Some(Column::U64(values)) => values[values.len() - 57..].to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(tail(&last), tail(&all));
    }
}
