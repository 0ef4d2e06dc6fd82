//! Interface of the transports that carry the messages of workloads as byte streams.

use crate::connections::Opened;
use crate::messages::{Delivered, LossCounts, Message, Messages};
use crate::network::Network;
use crate::probes::Probes;
use eastwest_measure::flows::FlowRow;
use eastwest_measure::frames::Direction;
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Side, Span, Time};
use serde_json::Value;

/// Event of a connection of which the workload that opened it is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNotice {
    /// A message has arrived completely at this receiver.
    Delivered,
    /// The transport has given up the connection after too many timeouts.
    Failed,
}

/// Positions of a stream that have arrived at its receiver, as packets count them.
pub struct Arrived {
    /// First position that has not arrived.
    pub next: u64,
    /// Ranges (start, end) above it that have arrived; `None` if the receiver drops packets that are
    /// not in order.
    pub above: Option<Vec<(u64, u64)>>,
    /// Position of the first byte of the first message.
    pub first: u64,
}

/// How far an endpoint has received and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of payload bytes that have arrived in order.
    pub received: u64,
    /// Position in the stream of the endpoint up to which it has sent, as packets count positions.
    pub sent: u64,
}

/// A transport of byte streams between two endpoints, on which workloads write messages.
pub trait StreamTransport {
    /// Returns the messages in flight on all connections of this transport.
    fn messages(&self) -> &Messages;

    /// Returns mutable access to the messages in flight on all connections of this transport.
    fn messages_mut(&mut self) -> &mut Messages;

    /// Reserves memory for this number of connections.
    fn reserve(&mut self, _connections: usize) {}

    /// Allocates connection `number` for a workload, without sending a packet. `of` is the workload,
    /// its name for the connection and the traffic class; `ends` are client and server; `cards` are
    /// their [network cards](Network::hashes_of_new). Returns the endpoint of the client and the
    /// connection; `None` if all slots are in use.
    fn allocate(
        &mut self,
        network: &mut Network,
        probes: &mut Probes,
        number: u64,
        of: (u16, u32, ClassId),
        ends: (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) -> Option<(EndpointId, Opened)>;

    /// Begins the handshake of an allocated connection at its client. Does nothing for a transport
    /// without handshake.
    fn connect(&mut self, _: &mut Network, _: &mut Probes, _client: EndpointId) {}

    /// Returns the number of bytes that the side `from` has written so far, and the loss counts of
    /// this side.
    fn written(&self, client: EndpointId, from: Side) -> (u64, LossCounts);

    /// Writes a message on the side `from` of a connection. Returns whether no other message of
    /// this side is in flight.
    fn send(
        &mut self,
        network: &mut Network,
        probes: &mut Probes,
        client: EndpointId,
        from: Side,
        message: Message,
    ) -> bool;

    /// Drops the bytes that the side `from` has written but not yet sent.
    fn truncate(&mut self, client: EndpointId, from: Side);

    /// Closes the stream that an endpoint sends. Does nothing for a transport that sends no packet
    /// at the end of a stream.
    fn shut_down(&mut self, _: &mut Network, _: &mut Probes, _: EndpointId) {}

    /// Closes one end of a connection all of whose messages have been delivered. Does nothing in a part
    /// of a partitioned run that does not simulate this end.
    fn close(&mut self, network: &mut Network, probes: &mut Probes, end: EndpointId);

    /// Whether this endpoint still exists: its connection has neither ended nor been aborted.
    fn is_live(&self, end: EndpointId) -> bool;

    /// Removes a connection at once, at time `now`, without sending a packet.
    fn abort(&mut self, now: Time, client: EndpointId);

    /// Returns the number of bytes that this endpoint has received in order.
    fn received(&self, end: EndpointId) -> u64;

    /// Returns the local and the remote host of an endpoint.
    fn hosts(&self, end: EndpointId) -> (HostId, HostId);

    /// Returns the row of an arrived message in the table of flows.
    fn flow_row(&self, network: &Network, receiver: EndpointId, d: &Delivered) -> FlowRow;

    /// Requests a notice to the workload when the next message to this receiver is complete.
    fn watch(&mut self, receiver: EndpointId);

    /// Returns the number of retransmitted packets and of timeouts since the start of the run, over
    /// all connections.
    fn losses(&self) -> (u64, u64);

    /// Returns the name of a connection of this transport in messages to the user, such as "queue
    /// pair".
    fn noun(&self) -> &'static str;

    /// Returns the functions that a partitioned run needs; `None` if a run over this transport uses
    /// one thread.
    fn partitionable(&mut self) -> Option<&mut dyn Partitionable> {
        None
    }

    /// Returns the number of consecutive timeouts after which this endpoint gives up the
    /// connection.
    fn timeouts_to_failure(&self, end: EndpointId) -> u32;
}

/// A transport of byte streams that can be used in a [partitioned](crate::parts) run.
pub trait Partitionable {
    /// Prepares for one part of a partitioned run: records the endpoints for
    /// [`take_late_arrivals`](Partitionable::take_late_arrivals).
    fn become_part(&mut self) {}

    /// Counts a connection between hosts of other parts of a partitioned run. Returns false if all
    /// slots are in use.
    fn skip(&mut self) -> bool;

    /// Whether a connection may have ended before or at the time `now`, so that its slot may be used
    /// again.
    fn has_ended(&self, now: Time) -> bool;

    /// Returns the shortest time after its end from which on the slot of a connection may be used again.
    fn shortest_time_wait(&self) -> Span;

    /// Removes and returns the endpoints at which a packet has arrived since the last call although
    /// their connection may have ended.
    fn take_late_arrivals(&mut self) -> Vec<EndpointId> {
        Vec::new()
    }

    /// Keeps, in a run that is divided after its beginning, only the counters of the endpoints on the
    /// hosts for which `owns` is true. The first part also keeps the counters of ended connections.
    fn keep_own_counters(&mut self, is_first: bool, owns: &dyn Fn(HostId) -> bool);

    /// Returns the host of the endpoint whose timer has this number.
    fn host_of_timer(&self, number: u64) -> HostId;

    /// Returns which positions of the peer's stream have arrived at an endpoint.
    fn arrived(&self, receiver: EndpointId) -> Arrived;

    /// Registers that an endpoint which another part of a partitioned run simulates ends its TIME-WAIT at
    /// the time `until`. Returns true if this part needs an event at this time, with
    /// [`TcpRequest::WaitElsewhere`](crate::tcp::TcpRequest::WaitElsewhere).
    fn wait_elsewhere(&mut self, end: EndpointId, until: Time) -> bool;

    /// Returns how far an endpoint of this part has received and sent.
    fn progress(&self, end: EndpointId) -> Progress;

    /// Sets how far an endpoint has received and sent that another part of a partitioned run simulates.
    fn set_progress(&mut self, end: EndpointId, progress: Progress);
}

/// A transport other than TCP that carries byte streams, such as RoCEv2.
pub trait FurtherTransport: StreamTransport {
    /// Takes over the endpoints on the hosts for which `theirs` is true, from the same transport in
    /// another part of a partitioned run. Only called if the transport is
    /// [partitionable](StreamTransport::partitionable).
    fn take_over(&mut self, _other: &mut Self, _theirs: &dyn Fn(HostId) -> bool)
    where
        Self: Sized,
    {
        unreachable!("runs over a transport that is not partitionable use one thread");
    }

    /// Processes a packet that has reached its host. Returns the traffic class of the packet, and
    /// whether notices to workloads are pending.
    fn on_packet(&mut self, network: &mut Network, packet: &Packet) -> (u8, bool);

    /// Processes the expiry of the transport's timer with the number `number`. Returns whether
    /// notices to workloads are pending.
    fn on_timer(&mut self, network: &mut Network, number: u64) -> bool;

    /// Removes and returns the next notice to a workload, with its endpoint, which still exists;
    /// `None` if no notice is pending.
    fn next_notice(&mut self) -> Option<(EndpointId, StreamNotice)>;

    /// Returns the connection to which a packet belongs, and the position of its payload in the
    /// sender's stream.
    fn origin_of(&self, packet: &Packet) -> (Opened, u64);

    /// Returns the headers of a packet for packet captures, and the number of bytes after its
    /// payload (such as a checksum).
    fn headers(&self, packet: &Packet, direction: &Direction) -> (Vec<u8>, u32);

    /// Returns the counters of this transport, for the summary.
    fn summary(&self) -> Value;
}
