//! Table `packet_hops`: the way of every packet of selected senders, with one row for each link that
//! the packet has crossed. The first `most` rows of a run are stored; the others are only counted.

use crate::table;
use eastwest_types::{HostId, PacketKind, Span, Time};
use serde::{Deserialize, Serialize};

/// A packet that has crossed a link: one row of the table `packet_hops`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PacketHop {
    /// Number of the packet, from 0 in the order in which packets reach their first switch.
    pub packet: u64,
    /// Number of the hop on the way of this packet, from 0 for the link of the sending host.
    pub hop: u32,
    /// Number of the connection; `None` for datagrams and raw Ethernet frames.
    pub connection: Option<u64>,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Stream position of the first payload byte; the first byte of the sender's stream is 0.
    pub stream_start: u64,
    /// Payload of the packet in bytes.
    pub bytes: u32,
    /// Number of the link that the packet has crossed.
    pub link: u32,
    /// Time at which the last bit of the packet arrived at the far end of the link.
    pub arrived: Time,
    /// Time that the packet waited before its transmission on the link.
    pub waited: Span,
    /// Transmission time on the link.
    pub transmission: Span,
    /// Propagation delay of the link.
    pub propagation: Span,
}

/// Rows of the table `packet_hops`: the first `most` rows, and the number of further rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PacketHopLog {
    rows: Vec<PacketHop>,
    most: u64,
    left_out: u64,
}

impl PacketHopLog {
    /// Returns an empty log that stores at most `most` rows.
    pub fn new(most: u64) -> PacketHopLog {
        PacketHopLog { rows: Vec::new(), most, left_out: 0 }
    }

    /// Adds a row, or only counts it if the log is full.
    pub fn push(&mut self, row: PacketHop) {
        if (self.rows.len() as u64) < self.most {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the number of stored rows, and the number of rows that are not stored because the
    /// table was full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// Returns the table `packet_hops`.
    pub fn table(&self) -> table::Table {
        PacketHops::of(&self.rows, ())
    }
}

table! {
    /// [The way of single packets](../mechanisms/measuring.md#the-way-of-a-packet): one row for each
    /// link that a packet of the senders in `measure.packet_hops` has crossed, in the order of
    /// arrival at the far ends of links. A packet that was lost has no row for the link on which,
    /// or in the queue of which, it was lost; see the table `events`. The table has at most
    /// `measure.packet_hops_rows` rows.
    pub PacketHops = "packet_hops" since 11
    of row in &'a PacketHop, _names: ();

    /// number of the packet, from 0 in the order in which packets reach their first switch; a
    /// retransmission is another packet
    packet: u64 = row.packet;

    /// number of the hop on the way of the packet, from 0 for the link of the sending host
    hop: u32 = row.hop;

    /// number of the connection or queue pair, −1 for datagrams and raw Ethernet frames
    connection: i64 = row.connection.map_or(-1, |number| number as i64);

    /// number of the sending host
    src: u32 = row.src.0;

    /// number of the receiving host
    dst: u32 = row.dst.0;

    /// kind of the packet, as in the table `events`
    kind: few = row.kind.name();

    /// position of the first payload byte in the sender's stream, as in the tables `flows` and
    /// `events`; 0 for datagrams and raw Ethernet frames
    stream_start: u64 = row.stream_start;

    /// payload of the packet in bytes
    bytes: u32 = row.bytes;

    /// number of the link
    link: u32 = row.link;

    /// time at which the last bit of the packet arrived at the far end of the link
    arrived_s: seconds = row.arrived;

    /// time that the packet waited before its transmission: in the queue of the switch, or between
    /// its creation and its transmission at the sending host
    waited_us: us = row.waited;

    /// transmission time of the packet on the link
    transmission_us: us = row.transmission;

    /// propagation delay of the link
    propagation_us: us = row.propagation;
}
