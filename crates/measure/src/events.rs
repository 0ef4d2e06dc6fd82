//! What happened to connections: packets lost, timers expired, losses repaired. One row each, in
//! order of time; the first `most` of a run are kept, the others counted.

use crate::table::{Column, Table};
use eastwest_types::{HostId, PacketKind, Time};

/// What an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
#[derive(Clone, Copy, Debug)]
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
}

/// Events of a run.
pub struct EventLog {
    rows: Vec<EventRow>,
    most: usize,
    left_out: u64,
}

impl EventLog {
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
            self.rows.push(row);
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

    /// The table `events`; `causes` are the names of the causes of drops.
    pub fn table(&self, causes: &[&str]) -> Table {
        let r = &self.rows;
        // label 0 is the empty text of what is no drop
        let named = |names: &[&str]| [""].iter().chain(names).map(|n| (*n).to_owned()).collect();
        let kinds = PacketKind::ALL.map(PacketKind::name);
        let number = |n: Option<u64>| n.map_or(-1, |n| n as i64);
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
                    Column::Label(
                        r.iter().map(|e| e.drop.map_or(0, |d| d.0 as u32 + 1)).collect(),
                        named(&kinds),
                    ),
                ),
                ("stream_start", Column::U64(r.iter().map(|e| e.stream_start).collect())),
                ("bytes", Column::U32(r.iter().map(|e| e.bytes).collect())),
                (
                    "link",
                    Column::I64(r.iter().map(|e| e.drop.map_or(-1, |d| i64::from(d.1))).collect()),
                ),
                (
                    "cause",
                    Column::Label(
                        r.iter().map(|e| e.drop.map_or(0, |d| u32::from(d.2) + 1)).collect(),
                        named(causes),
                    ),
                ),
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
        };
        let mut log = EventLog::new(3);
        (0..5).for_each(|at| log.push(row(at)));
        assert_eq!((log.len(), log.left_out()), (3, 2));
        let table = log.table(&["queue-full"]);
        assert_eq!(table.column("connection"), Some(&Column::I64(vec![0, 1, 2])));
        let mut off = EventLog::new(0);
        off.push(row(0));
        assert_eq!((off.is_on(), off.len(), off.left_out()), (false, 0, 0));
    }
}
