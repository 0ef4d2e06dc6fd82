//! Table `events`: one row for each event ([`What`]) of a connection or datagram, in order of time.
//! The first `most` events of a run are stored; the others are only counted.

use crate::table;
use crate::table::Table;
use eastwest_types::{HostId, PacketKind, Time};
use serde::{Deserialize, Serialize};

/// Kind of an event in the table `events`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum What {
    /// A packet was lost: of a connection, or a datagram.
    Drop = 0,
    /// A retransmission timer expired.
    Timeout = 1,
    /// Fast recovery begins.
    Recovery = 2,
    /// All data that was outstanding when fast recovery began, or at a timeout, is acknowledged.
    Recovered = 3,
    /// A retransmission timeout was found to be spurious.
    Spurious = 4,
    /// The connection failed.
    Failed = 5,
}

impl What {
    /// Names of the kinds of events in the table `events`; the index is the number of the kind.
    pub const NAMES: [&str; 6] = ["drop", "timeout", "recovery", "recovered", "spurious", "failed"];
}

/// Event of a connection or datagram: one row of the table `events`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EventRow {
    /// Simulated time of the event.
    pub at: Time,
    /// Kind of the event.
    pub what: What,
    /// Number of the connection; `None` for datagrams.
    pub connection: Option<u64>,
    /// Host that sent the packet or the stream of the event.
    pub src: HostId,
    /// Host to which the packet or the stream of the event was sent.
    pub dst: HostId,
    /// Stream position of the first payload byte that the event concerns; the first byte of the
    /// sender's stream is 0.
    pub stream_start: u64,
    /// Payload bytes that the event concerns: lost, outstanding or acknowledged bytes, depending on
    /// the kind of the event.
    pub bytes: u32,
    /// For a drop: kind of the lost packet, number of the link, number of the cause. Otherwise
    /// `None`.
    pub drop: Option<(PacketKind, u32, u8)>,
    /// For a timeout: number of its cause. For other events `None`.
    pub timeout: Option<u8>,
}

/// Event as the log stores it, in fewer bytes than [`EventRow`], since a run may have many events.
#[derive(Serialize, Deserialize)]
struct Kept {
    at: Time,
    stream_start: u64,
    /// Number of the connection, or [`NONE`] for datagrams.
    connection: u32,
    src: HostId,
    dst: HostId,
    bytes: u32,
    /// Number of the link on which a packet was lost, or [`NONE`] for other events.
    link: u32,
    what: What,
    /// Number of the kind of the dropped packet, from 1; 0 for other events.
    kind: u8,
    /// Number of the cause of the drop or timeout, from 1; 0 for other events.
    cause: u8,
}

const _: () = assert!(std::mem::size_of::<Kept>() == 40);

/// Value of `connection` and `link` in [`Kept`] for an event without connection or link.
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

/// Log of the events of a run: the first `most` events, and the number of further events.
#[derive(Default, Serialize, Deserialize)]
pub struct EventLog {
    rows: Vec<Kept>,
    most: usize,
    left_out: u64,
}

impl EventLog {
    /// Returns the maximum number of events that the log stores; 0 if events are not recorded.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Adds `more` to the number of events that occurred but are not stored in the log.
    pub fn leave_out(&mut self, more: u64) {
        self.left_out += more;
    }

    /// Returns an empty log that stores at most `most` events.
    pub fn new(most: usize) -> EventLog {
        EventLog { rows: Vec::new(), most, left_out: 0 }
    }

    /// Whether the log records events (`most` is above 0).
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Adds an event, which must not be earlier than the last one. If the log is full, only counts
    /// the event; if the log is off (`most` is 0), ignores it.
    pub fn push(&mut self, row: EventRow) {
        debug_assert!(self.rows.last().is_none_or(|last| last.at <= row.at), "events out of order");
        if self.rows.len() < self.most {
            self.rows.push(Kept::new(&row));
        } else if self.is_on() {
            self.left_out += 1;
        }
    }

    /// Returns the number of events that the log stores.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the log stores no event.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of events that are not stored because the log was full.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the table `events`. `drops`: names of the causes of drops; `timeouts`: names of the
    /// causes of timeouts. The index is the number of the cause.
    pub fn into_table(self, drops: &[&str], timeouts: &[&str]) -> Table {
        Events::of(&self.rows, &Causes { drops, timeouts })
    }
}

/// Names of the causes of drops and timeouts, each indexed by its number.
struct Causes<'a> {
    drops: &'a [&'a str],
    timeouts: &'a [&'a str],
}

impl Causes<'_> {
    /// Returns the name of the cause of an event; empty if the event has none.
    fn name(&self, event: &Kept) -> &str {
        let names = if event.what == What::Timeout { self.timeouts } else { self.drops };
        event.cause.checked_sub(1).map_or("", |cause| names[usize::from(cause)])
    }
}

/// Returns the value in the table for the stored number of a connection or link: −1 for [`NONE`].
fn number(kept: u32) -> i64 {
    if kept == NONE { -1 } else { i64::from(kept) }
}

table! {
    /// One row for each event of a connection or datagram, such as a drop or a timeout, in order of
    /// time. The table has the first `measure.events` events; `event_log` in the summary is the
    /// number of further events.
    pub Events = "events" since 2
    of event in &'a Kept, causes: &Causes<'_>;

    /// time of the event
    time_s: seconds = event.at;

    /// `drop`: a packet was lost; `timeout`: a retransmission timer expired; `recovery`: fast
    /// recovery begins; `recovered`: all data that was outstanding when recovery began, or at a
    /// timeout, is acknowledged; `spurious`: an acknowledgement shows that a timeout was spurious;
    /// `failed`: the connection failed
    what: label(&What::NAMES) = event.what as u32;

    /// number of the connection, −1 for datagrams
    connection: i64 = number(event.connection);

    /// host that sent the packet or the stream of the event
    src: u32 = event.src.0;

    /// host to which the packet or the stream of the event was sent
    dst: u32 = event.dst.0;

    /// for a drop, kind of the lost packet, as in `links`: `data`, `retransmission`, `ack`,
    /// `ece_ack`, `syn`, `syn_ack`, `fin`, `datagram`; otherwise empty
    kind: few = event.kind.checked_sub(1).map_or("", |kind| PacketKind::ALL[usize::from(kind)].name());

    /// position in the sender's stream of the first byte that the event concerns, as in `flows`;
    /// for a packet without payload, position of the next byte to send
    stream_start: u64 = event.stream_start;

    /// payload bytes that the event concerns. For `drop`: payload of the packet; for `timeout`,
    /// `recovery` and `failed`: all unacknowledged bytes; for `recovered` and `spurious`: bytes
    /// acknowledged by the packet that ends the recovery or proves the timeout spurious
    bytes: u32 = event.bytes;

    /// for a drop, number of the link on which the packet was lost; otherwise −1
    link: i64 = number(event.link);

    /// for a drop, its cause: `queue-full`, `loss`, `link-down`, `no-route`, `early`,
    /// `shared-buffer`, `sojourn`; for a timeout, its [cause](../mechanisms/tcp-timeouts.md) as
    /// known when the timer expires: `syn`, `syn_ack`, `request`, `full_window`, `tail`,
    /// `few_duplicates`, `lost_retransmission`, `recovery`, `fin`, `ack`, `spurious`; otherwise
    /// empty
    cause: few = causes.name(event);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

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
        assert_eq!(table.column("cause").map(|c| c.text(2)), Some("tail".to_owned()));
        assert_eq!(table.column("connection"), Some(&Column::I64(vec![0, 1, 2])));
        assert_eq!(table.column("link"), Some(&Column::I64(vec![-1; 3])));
        let mut off = EventLog::new(0);
        off.push(row(0));
        assert_eq!((off.is_on(), off.len(), off.left_out()), (false, 0, 0));
    }
}
