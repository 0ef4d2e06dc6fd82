//! Interface of the transports that carry the messages of workloads as byte streams.

use crate::connections::Opened;
use crate::messages::{Delivered, LossCounts, Message, Messages};
use crate::network::Network;
use crate::probes::Probes;
use eastwest_measure::flows::FlowRow;
use eastwest_measure::frames::Direction;
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Side};
use serde_json::Value;

/// Event of a connection that its workload is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNotice {
    /// A message is complete at this receiver.
    Delivered,
    /// The connection was given up.
    Failed,
}

/// Transport of byte streams between two ends, on which messages are written.
pub trait StreamTransport {
    /// Returns the messages in flight.
    fn messages(&self) -> &Messages;

    /// Returns the messages in flight.
    fn messages_mut(&mut self) -> &mut Messages;

    /// Opens connection `number` for a workload: `of` is the workload, its name for the connection and the
    /// traffic class, `ends` are client and server. Returns `None` if all slots are in use.
    fn open(
        &mut self,
        network: &mut Network,
        probes: &mut Probes,
        number: u64,
        of: (u16, u32, ClassId),
        ends: (HostId, HostId),
    ) -> Option<(EndpointId, Opened)>;

    /// Returns the bytes that a side has written so far, and the counts of losses of its sender.
    fn written(&self, client: EndpointId, from: Side) -> (u64, LossCounts);

    /// Writes a message. Returns whether its sender has no other in flight.
    fn send(
        &mut self,
        network: &mut Network,
        probes: &mut Probes,
        client: EndpointId,
        from: Side,
        message: Message,
    ) -> bool;

    /// Drops the bytes that a side has written and not sent.
    fn truncate(&mut self, client: EndpointId, from: Side);

    /// Closes one direction. Does nothing where no packet marks the end of a stream.
    fn shut_down(&mut self, _: &mut Network, _: &mut Probes, _: EndpointId) {}

    /// Closes a connection when all is delivered.
    fn close(&mut self, network: &mut Network, probes: &mut Probes, client: EndpointId);

    /// Whether this end still exists.
    fn is_live(&self, end: EndpointId) -> bool;

    /// Removes a connection at once.
    fn abort(&mut self, client: EndpointId);

    /// Returns the bytes that this end has received in order.
    fn received(&self, end: EndpointId) -> u64;

    /// Returns the local and the remote host of an end.
    fn hosts(&self, end: EndpointId) -> (HostId, HostId);

    /// Returns the row of a message that has arrived.
    fn flow_row(&self, network: &Network, receiver: EndpointId, d: &Delivered) -> FlowRow;

    /// Requests a notice when the next message to this receiver is complete.
    fn watch(&mut self, receiver: EndpointId);

    /// Returns the transport's word for a connection, for messages to the user.
    fn noun(&self) -> &'static str;

    /// Returns the number of consecutive timeouts after which this end gives up.
    fn timeouts_to_failure(&self, end: EndpointId) -> u32;
}

/// Transport beside TCP: its packets are datagrams for the network.
pub trait FurtherTransport: StreamTransport {
    /// Processes a packet that has reached its host.
    fn on_packet(&mut self, network: &mut Network, packet: &Packet);

    /// Processes an expired timer, by the number with which it was armed.
    fn on_timer(&mut self, network: &mut Network, number: u64);

    /// Takes the next notice of an end that still exists; forgets ends that have closed.
    fn next_notice(&mut self) -> Option<(EndpointId, StreamNotice)>;

    /// Returns the traffic class of an end.
    fn class(&self, end: EndpointId) -> u8;

    /// Returns the connection of a packet, and the position of its payload in the sender's stream.
    fn origin_of(&self, packet: &Packet) -> (Opened, u64);

    /// Returns the headers of a packet for captures, and the number of bytes after its payload.
    fn headers(&self, packet: &Packet, direction: &Direction) -> (Vec<u8>, u32);

    /// Returns the counters for the summary.
    fn summary(&self) -> Value;
}
