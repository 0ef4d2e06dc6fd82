//! Parts of the completion times of flows.
//!
//! The completion time of a flow is divided into parts ([`Parts`]), whose sum is the completion
//! time to the picosecond. The parts are times on the critical path of the flow: the chain of
//! packets in which each packet was sent because the previous one had arrived (Barford and
//! Crovella, *Critical path analysis of TCP transactions*, SIGCOMM 2000). Another module follows
//! the path; this module stores the results.

use crate::table;
use crate::table::{Names, Table};
use eastwest_types::{ClassId, HostId, Span, Waits};
use serde::{Deserialize, Serialize};

/// Round trips for which data of a flow waited because the congestion window or the receiver's
/// window had no room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Sum of the times of flight (transmission, propagation and processing) of the packets of
    /// these round trips.
    pub flight: Span,
    /// Number of the round trips counted in `flight`.
    pub count: u32,
}

impl RoundTrips {
    fn and(self, other: RoundTrips) -> RoundTrips {
        RoundTrips { flight: self.flight + other.flight, count: self.count + other.count }
    }
}

/// Parts of the completion time of a flow; their sum is the completion time. The parts are times on
/// the critical path: the chain of packets in which each packet was sent because the previous
/// packet had arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// For a stream of raw Ethernet frames: time from its first frame until its source generated
    /// the frame that arrived last. 0 for a message.
    pub application: Span,
    /// Waiting time of a message behind earlier messages on its connection.
    pub earlier: Span,
    /// Waiting time in the queues of network cards of hosts, and until these queues have room.
    pub host_queue: Span,
    /// Time for which a timer of the sender, such as the pacing timer, deferred the transmission of
    /// data.
    pub pacing: Span,
    /// Time for which the receiver deferred acknowledgements (delayed ACK).
    pub delayed_ack: Span,
    /// Waiting time of packets for the core of their sending host, which processes other work.
    pub send_core_queue: Span,
    /// Processing time of packets at cores of the hosts that send them.
    pub send_core: Span,
    /// Time from the arrival of packets until the network card interrupts the idle core that will
    /// process the packets.
    pub interrupt_delay: Span,
    /// Waiting time of received packets in the ring of a core that processes other work.
    pub receive_core_queue: Span,
    /// Processing time of received packets at cores.
    pub receive_core: Span,
    /// Waiting time in the queues of switches.
    pub queueing: Span,
    /// Time of flight (transmission, propagation, processing) of the packets of the handshake.
    pub handshake: Span,
    /// Round trips for which data waited because slow start had not opened the congestion window.
    pub slow_start: RoundTrips,
    /// Round trips for which data waited because the congestion window was full after slow start.
    pub congestion_window: RoundTrips,
    /// Round trips for which data waited because the receiver's window was full.
    pub receiver_window: RoundTrips,
    /// Transmission time at all hops of the packet with the flow's last data, from the sender to
    /// the receiver.
    pub transmission: Span,
    /// Propagation time of the packet with the flow's last data, from the sender to the receiver.
    pub propagation: Span,
    /// Processing time, at the receiving host, of the packet with the flow's last data.
    pub processing: Span,
    /// Time from the first transmission of lost data to its retransmission; 0 if the critical path
    /// has no lost data.
    pub retransmission: Span,
}

impl Parts {
    /// Returns the time at hosts before data was sent (the parts from `application` to
    /// `delayed_ack`).
    pub fn injection(&self) -> Span {
        self.application + self.earlier + self.host_queue + self.pacing + self.delayed_ack
    }

    /// Returns the time in hosts with cores: waiting for a core and for its interrupt, and
    /// processing by a core, of all packets on the critical path. It is 0 without `[hosts]`.
    pub fn cores(&self) -> Span {
        let sending = self.send_core_queue + self.send_core;
        sending + self.interrupt_delay + self.receive_core_queue + self.receive_core
    }

    /// Returns the time of transmission, propagation and processing of all packets on the critical
    /// path.
    pub fn flight(&self) -> Span {
        let windows = self.slow_start.and(self.congestion_window).and(self.receiver_window);
        self.handshake + windows.flight + self.last_flight()
    }

    /// Returns the time of transmission, propagation and processing of the packet with the flow's
    /// last data.
    fn last_flight(&self) -> Span {
        self.transmission + self.propagation + self.processing
    }

    /// Returns the sum of the parts: the completion time of the flow.
    pub fn sum(&self) -> Span {
        self.injection() + self.cores() + self.queueing + self.flight() + self.retransmission
    }

    /// Returns the sums of the parts of `self` and `other`, part by part.
    #[must_use]
    pub fn and(self, other: Parts) -> Parts {
        Parts {
            application: self.application + other.application,
            earlier: self.earlier + other.earlier,
            host_queue: self.host_queue + other.host_queue,
            pacing: self.pacing + other.pacing,
            delayed_ack: self.delayed_ack + other.delayed_ack,
            send_core_queue: self.send_core_queue + other.send_core_queue,
            send_core: self.send_core + other.send_core,
            interrupt_delay: self.interrupt_delay + other.interrupt_delay,
            receive_core_queue: self.receive_core_queue + other.receive_core_queue,
            receive_core: self.receive_core + other.receive_core,
            queueing: self.queueing + other.queueing,
            handshake: self.handshake + other.handshake,
            slow_start: self.slow_start.and(other.slow_start),
            congestion_window: self.congestion_window.and(other.congestion_window),
            receiver_window: self.receiver_window.and(other.receiver_window),
            transmission: self.transmission + other.transmission,
            propagation: self.propagation + other.propagation,
            processing: self.processing + other.processing,
            retransmission: self.retransmission + other.retransmission,
        }
    }

    /// Returns parts in which the time of flight of the last packet is moved to `handshake`,
    /// because this packet belongs to the handshake.
    #[must_use]
    pub fn after_handshake(mut self) -> Parts {
        self.handshake += self.last_flight();
        self.without_last_flight()
    }

    /// Returns parts in which the time of flight of the last packet is moved to one kind of round
    /// trips, whose number grows by 1. `of` selects the kind: slow start, congestion window or
    /// receiver's window.
    #[must_use]
    pub fn after_round_trip(mut self, of: impl FnOnce(&mut Parts) -> &mut RoundTrips) -> Parts {
        let flight = self.last_flight();
        let trips = of(&mut self);
        *trips = trips.and(RoundTrips { flight, count: 1 });
        self.without_last_flight()
    }

    fn without_last_flight(mut self) -> Parts {
        (self.transmission, self.propagation, self.processing) = Default::default();
        self
    }

    /// Returns the parts of one packet without the first `span` of its time, because the parts of
    /// an earlier packet cover this time. `span` is subtracted from the times of the sending core
    /// and `host_queue`, then from `queueing`, the times of flight and the times of the receiving
    /// core. Also returns the time that was subtracted from `queueing`.
    #[must_use]
    pub fn without_first(mut self, span: Span) -> (Parts, Span) {
        let mut rest = span;
        let queueing = self.queueing;
        for part in [
            &mut self.send_core_queue,
            &mut self.send_core,
            &mut self.host_queue,
            &mut self.queueing,
            &mut self.transmission,
            &mut self.propagation,
            &mut self.processing,
            &mut self.interrupt_delay,
            &mut self.receive_core_queue,
            &mut self.receive_core,
        ] {
            let cut = (*part).min(rest);
            *part = *part - cut;
            rest = rest - cut;
        }
        (self, queueing - self.queueing)
    }
}

/// Row of the table `flow_parts`: a complete message, or a stream of frames up to its latest
/// arrived frame.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PartsRow {
    /// Number of the row of the message in the table `flows`, or of the stream in the table
    /// `streams`; from 0.
    pub row: u64,
    /// Whether the flow is a stream of raw Ethernet frames, not a message.
    pub is_stream: bool,
    /// Index of the workload, from 0.
    pub workload: u16,
    /// Traffic class of the flow.
    pub class: ClassId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload bytes of the message, or bytes of the stream's frames that have arrived.
    pub bytes: u64,
    /// Whether a part of the message was retransmitted, or a frame of the stream was lost.
    pub with_loss: bool,
    /// Parts of the completion time of the flow.
    pub parts: Parts,
}

/// Row of the table `flow_hops`: waiting time of a flow in a switch before one link.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HopRow {
    /// Number of the row of the message in the table `flows`, or of the stream in the table
    /// `streams`; from 0.
    pub row: u64,
    /// Whether the flow is a stream of raw Ethernet frames, not a message.
    pub is_stream: bool,
    /// Number of the link; `None` for the waiting time before all links after the first twelve of
    /// the path.
    pub link: Option<u32>,
    /// Waiting time of the flow in the queue of the switch before the link.
    pub wait: Span,
}

/// Rows of the tables `flow_parts` and `flow_hops` for the first `most` flows that are recorded.
/// Later flows are only counted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PartsTable {
    rows: Vec<PartsRow>,
    hops: Vec<HopRow>,
    most: u64,
    left_out: u64,
}

impl PartsTable {
    /// Returns an empty table for at most `most` rows.
    pub fn new(most: u64) -> PartsTable {
        PartsTable { most, ..PartsTable::default() }
    }

    /// Adds the row of a flow; `waits`: its waiting times in switches by link. If the table is
    /// full, only counts the flow.
    pub fn push(&mut self, row: PartsRow, waits: &Waits) {
        debug_assert_eq!(waits.sum(), row.parts.queueing, "{waits:?} of {row:?}");
        if (self.rows.len() as u64) < self.most {
            let PartsRow { row: number, is_stream, .. } = row;
            self.rows.push(row);
            let hops = waits.iter();
            self.hops.extend(hops.map(|(link, wait)| HopRow {
                row: number,
                is_stream,
                link,
                wait,
            }));
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the number of stored rows, and the number of flows that are not stored because the
    /// table was full.
    pub fn counts(&self) -> (usize, u64) {
        (self.rows.len(), self.left_out)
    }

    /// Returns the parts of the completion time of each flow in the table.
    pub fn parts(&self) -> impl Iterator<Item = &Parts> {
        self.rows.iter().map(|row| &row.parts)
    }

    /// Returns the table `flow_parts`; `names`: names of the workloads and traffic classes.
    pub fn table(&self, names: &Names) -> Table {
        FlowParts::of(&self.rows, names)
    }

    /// Returns the table `flow_hops`; `names`: names of the workloads and traffic classes.
    pub fn hops(&self, names: &Names) -> Table {
        FlowHops::of(&self.hops, names)
    }
}

table! {
    /// [Parts of the completion times of
    /// flows](../mechanisms/measuring.md#where-the-time-of-a-flow-goes): one row for each message
    /// of the senders that `measure.flow_parts` names, in the order of the table `flows`, followed
    /// by one row for each of their streams of raw Ethernet frames of which a frame has arrived;
    /// the first `measure.flow_parts_rows` rows. `completion_us` is the sum of `injection_us`,
    /// `cores_us`, `queueing_us`, `flight_us` and `retransmission_us`, exact to the picosecond
    /// before they are rounded to the doubles of this table. The other times divide `injection_us`,
    /// `cores_us` and `flight_us`.
    pub FlowParts = "flow_parts" since 6
    of flow in &'a PartsRow, names: &'a Names;

    /// number of the message in the table `flows`, −1 for a stream of frames
    flow: i64 = if flow.is_stream { -1 } else { flow.row as i64 };

    /// number of the row of the stream in the table `streams`, from 0; −1 for a message
    stream: i64 = if flow.is_stream { flow.row as i64 } else { -1 };

    /// name of the workload
    workload: label(&names.workloads) = flow.workload;

    /// traffic class of the flow
    class: label(&names.classes) = flow.class.0;

    /// number of the sending host
    src: u32 = flow.src.0;

    /// number of the receiving host
    dst: u32 = flow.dst.0;

    /// payload bytes of the message; for a stream, bytes of the frames that have arrived
    bytes: u64 = flow.bytes;

    /// `yes` if a part of the message was retransmitted or a frame of the stream was lost,
    /// otherwise `no`
    loss: few = if flow.with_loss { "yes" } else { "no" };

    /// `fct_us` of the message; for a stream, the time from its first frame to its last arrived
    /// frame
    completion_us: us = flow.parts.sum();

    /// time at hosts until the data left for the first time: `application_us`, `earlier_us`,
    /// `host_queue_us`, `pacing_us` and `delayed_ack_us`
    injection_us: us = flow.parts.injection();

    /// waiting time in the queues of switches
    queueing_us: us = flow.parts.queueing;

    /// time of transmission, propagation and processing at the receiving host: `handshake_us`,
    /// `slow_start_us`, `congestion_window_us`, `receiver_window_us`, `transmission_us`,
    /// `propagation_us` and `processing_us`
    flight_us: us = flow.parts.flight();

    /// time from the first transmission of lost data until its retransmission
    retransmission_us: us = flow.parts.retransmission;

    /// for a stream, time from its first frame until its source generated the frame that arrived
    /// last; 0 for a message
    application_us since 9: us = flow.parts.application;

    /// waiting time behind earlier messages of the same connection
    earlier_us since 9: us = flow.parts.earlier;

    /// waiting time at the network cards of hosts, behind other packets or because of PAUSE frames,
    /// and until a card has room again (`tcp.small_queues`)
    host_queue_us since 9: us = flow.parts.host_queue;

    /// time for which a timer of the sender deferred data: pacing, rarely a window or tail loss
    /// probe
    pacing_us since 9: us = flow.parts.pacing;

    /// time for which the receiver deferred acknowledgements of the critical path (delayed ACK)
    delayed_ack_us since 9: us = flow.parts.delayed_ack;

    /// time of flight of the handshake, if the connection was opened for the message
    handshake_us since 9: us = flow.parts.handshake;

    /// time of flight of the round trips for which data waited for an acknowledgement, because slow
    /// start had not opened the congestion window
    slow_start_us since 9: us = flow.parts.slow_start.flight;

    /// number of the round trips counted in `slow_start_us`
    slow_start_trips since 9: u32 = flow.parts.slow_start.count;

    /// time of flight of the round trips for which data waited because the congestion window was
    /// full, after slow start or in a recovery
    congestion_window_us since 9: us = flow.parts.congestion_window.flight;

    /// number of the round trips counted in `congestion_window_us`
    congestion_window_trips since 9: u32 = flow.parts.congestion_window.count;

    /// time of flight of the round trips for which data waited because the window that the receiver
    /// offers, or `tcp.max_window`, was full
    receiver_window_us since 9: us = flow.parts.receiver_window.flight;

    /// number of the round trips counted in `receiver_window_us`
    receiver_window_trips since 9: u32 = flow.parts.receiver_window.count;

    /// transmission time at all hops of the last packet to the receiver
    transmission_us since 9: us = flow.parts.transmission;

    /// propagation time of the last packet to the receiver
    propagation_us since 9: us = flow.parts.propagation;

    /// processing time of the last packet at the receiving host
    processing_us since 9: us = flow.parts.processing;

    /// time in the cores of hosts, 0 without [`[hosts]`](../mechanisms/host-processing.md):
    /// `send_core_queue_us`, `send_core_us`, `interrupt_delay_us`, `receive_core_queue_us` and
    /// `receive_core_us`, of all packets of the critical path
    cores_us since 10: us = flow.parts.cores();

    /// waiting time of packets for the core that sends them
    send_core_queue_us since 10: us = flow.parts.send_core_queue;

    /// processing time of packets at the core that sends them, with the other packets of their
    /// burst
    send_core_us since 10: us = flow.parts.send_core;

    /// time of received packets until the card interrupts its idle core (interrupt coalescing)
    interrupt_delay_us since 10: us = flow.parts.interrupt_delay;

    /// waiting time of received packets in the ring of a core that processes other packets
    receive_core_queue_us since 10: us = flow.parts.receive_core_queue;

    /// processing time of received packets at their core, with the packets merged with them
    receive_core_us since 10: us = flow.parts.receive_core;
}

table! {
    /// [Waiting times in switches](../mechanisms/measuring.md#where-the-time-of-a-flow-goes) of the
    /// flows of `flow_parts`, by link, in the order of their paths. Only links have a row before
    /// which the flow waited. The sum over the links of a flow is its `queueing_us`.
    pub FlowHops = "flow_hops" since 9
    of hop in &'a HopRow, _names: &'a Names;

    /// number of the message in the table `flows`, −1 for a stream of frames
    flow: i64 = if hop.is_stream { -1 } else { hop.row as i64 };

    /// number of the row of the stream in the table `streams`, from 0; −1 for a message
    stream: i64 = if hop.is_stream { hop.row as i64 } else { -1 };

    /// number of the link (see `links`) for which packets of the flow waited; −1 for all links
    /// after the first twelve together
    link: i64 = hop.link.map_or(-1, i64::from);

    /// waiting time of the flow in the queue before the link
    queueing_us: us = hop.wait;
}
