//! What happened to connections: packets lost, timers expired, losses repaired. One row each, in
//! order of time; the first `most` of a run are kept, the others counted.

use crate::table::{Column, Table};
use eastwest_types::{HostId, PacketKind, Time};
use serde::{Deserialize, Serialize};

/// What an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum What {
    /// A packet was lost.
    Drop = 0,
    /// A retransmission timer has expired.
    Timeout = 1,
    /// Fast recovery begins.
    Recovery = 2,
    /// Everything outstanding when recovery began, or at a timeout, is acknowledged.
    Recovered = 3,
    /// A timeout turned out to have been needless.
    Spurious = 4,
    /// A connection was given up.
    Failed = 5,
}

impl What {
    /// Names in tables, in the order of the numbers.
    pub const NAMES: [&str; 6] = ["drop", "timeout", "recovery", "recovered", "spurious", "failed"];
}

/// An event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EventRow {
    /// When.
    pub at: Time,
    /// What.
    pub what: What,
    /// Number of the connection; `None` for datagrams.
    pub connection: Option<u64>,
    /// Sender of the stream, or of the packet.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// Payload position of the first byte it is about.
    pub stream_start: u64,
    /// Payload bytes it is about.
    pub bytes: u32,
    /// Of drops: the kind of packet, the link, and the number of the cause.
    pub drop: Option<(PacketKind, u32, u8)>,
    /// Of timeouts: the number of the cause.
    pub timeout: Option<u8>,
}

/// An event as it is kept: half as large, for a run may have many.
#[derive(Serialize, Deserialize)]
struct Kept {
    at: Time,
    stream_start: u64,
    /// Or [`NONE`].
    connection: u32,
    src: HostId,
    dst: HostId,
    bytes: u32,
    /// Or [`NONE`].
    link: u32,
    what: What,
    /// Of drops: number of the kind of packet, from 1; 0 where it is none.
    kind: u8,
    /// Of drops and timeouts: number of the cause, from 1; 0 where it is neither.
    cause: u8,
}

const _: () = assert!(std::mem::size_of::<Kept>() == 40);

/// No connection, no link.
const NONE: u32 = u32::MAX;

impl Kept {
    fn new(row: &EventRow) -> Kept {
        let connection = row.connection.map(|n| u32::try_from(n).unwrap_or(NONE));
        let timeout = row.timeout.map_or(0, |cause| cause + 1);
        let (kind, link, cause) = row
            .drop
            .map_or((0, NONE, timeout), |(kind, link, cause)| (kind as u8 + 1, link, cause + 1));
        Kept {
            at: row.at,
            stream_start: row.stream_start,
            connection: connection.unwrap_or(NONE),
            src: row.src,
            dst: row.dst,
            bytes: row.bytes,
            link,
            what: row.what,
            kind,
            cause,
        }
    }
}

/// Events of a run.
#[derive(Default, Serialize, Deserialize)]
pub struct EventLog {
    rows: Vec<Kept>,
    most: usize,
    left_out: u64,
}

impl EventLog {
    /// The most rows that are kept.
    pub fn most(&self) -> usize {
        self.most
    }

    /// So many more are left out.
    pub fn leave_out(&mut self, more: u64) {
        self.left_out += more;
    }

    /// An empty log for at most this many rows.
    pub fn new(most: usize) -> EventLog {
        EventLog { rows: Vec::new(), most, left_out: 0 }
    }

    /// Whether events are wanted at all.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Adds an event, not earlier than those before it.
    pub fn push(&mut self, row: EventRow) {
        debug_assert!(self.rows.last().is_none_or(|last| last.at <= row.at), "events out of order");
        if self.rows.len() < self.most {
            self.rows.push(Kept::new(&row));
        } else if self.is_on() {
            self.left_out += 1;
        }
    }

    /// Rows kept.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Events that found the log full.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The table `events`; `drops` are the names of the causes of drops, `timeouts` those of the
    /// causes of timeouts. The rows are given back.
    pub fn into_table(self, drops: &[&str], timeouts: &[&str]) -> Table {
        let r = &self.rows;
        // label 0 is the empty text of what has none
        let named = |names: &[&str]| [""].iter().chain(names).map(|n| (*n).to_owned()).collect();
        let causes = [drops, timeouts].concat();
        let cause = |e: &Kept| match (e.cause, e.what) {
            (n @ 1.., What::Timeout) => u32::from(n) + drops.len() as u32,
            (n, _) => u32::from(n),
        };
        let kinds = PacketKind::ALL.map(PacketKind::name);
        let number = |n: u32| if n == NONE { -1 } else { i64::from(n) };
        Table::new(
            "events",
            vec![
                ("time_s", Column::F64(r.iter().map(|e| e.at.as_secs_f64()).collect())),
                (
                    "what",
                    Column::Label(
                        r.iter().map(|e| e.what as u32).collect(),
                        What::NAMES.map(String::from).to_vec(),
                    ),
                ),
                ("connection", Column::I64(r.iter().map(|e| number(e.connection)).collect())),
                ("src", Column::U32(r.iter().map(|e| e.src.0).collect())),
                ("dst", Column::U32(r.iter().map(|e| e.dst.0).collect())),
                (
                    "kind",
                    Column::Label(r.iter().map(|e| u32::from(e.kind)).collect(), named(&kinds)),
                ),
                ("stream_start", Column::U64(r.iter().map(|e| e.stream_start).collect())),
                ("bytes", Column::U32(r.iter().map(|e| e.bytes).collect())),
                ("link", Column::I64(r.iter().map(|e| number(e.link)).collect())),
                ("cause", Column::Label(r.iter().map(cause).collect(), named(&causes))),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_keeps_the_first_and_counts_the_rest() {
        let row = |at| EventRow {
            at: Time(at),
            what: What::Timeout,
            connection: Some(at),
            src: HostId(0),
            dst: HostId(1),
            stream_start: 0,
            bytes: 0,
            drop: None,
            timeout: Some(1),
        };
        let mut log = EventLog::new(3);
        (0..5).for_each(|at| log.push(row(at)));
        assert_eq!((log.len(), log.left_out()), (3, 2));
        let table = log.into_table(&["queue-full"], &["syn", "tail"]);
        let names = ["", "queue-full", "syn", "tail"].map(String::from).to_vec();
        assert_eq!(table.column("cause"), Some(&Column::Label(vec![3; 3], names)));
        assert_eq!(table.column("connection"), Some(&Column::I64(vec![0, 1, 2])));
        assert_eq!(table.column("link"), Some(&Column::I64(vec![-1; 3])));
        let mut off = EventLog::new(0);
        off.push(row(0));
        assert_eq!((off.is_on(), off.len(), off.left_out()), (false, 0, 0));
    }
}
