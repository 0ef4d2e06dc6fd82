//! Interface of TCP to the simulator: parameters of a connection, requests of endpoints, events for
//! applications.

use super::config::TcpConfig;
use super::timeout_cause::TimeoutCause;
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Time};

/// Receives the actions of endpoints: packets, timers, events for applications.
pub trait Sink {
    /// Whether [`Sink::remaining`] is called before each packet with payload.
    const READS_REMAINING: bool = false;
    /// Passes the number of payload bytes that the sender of the next packet has written and that
    /// are not acknowledged, including the bytes in this packet.
    fn remaining(&mut self, _bytes: u64) {}
    /// Sends a packet through the network card (NIC) of host `from`.
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>);
    /// Returns the time at which all packets with this codepoint that were handed to a network card
    /// will have left the card. The two hosts (sender, receiver) and the flow hash determine the
    /// card. Called only with [small queues](crate::congestion::small_queue), after a packet was
    /// sent. The default is time 0, for a card without a queue.
    fn leaves_at(&self, _ends: (HostId, HostId), _hash: u16, _dscp: u8) -> Time {
        Time::ZERO
    }
    /// Arms a timer: [`super::Stack::on_timer`] is to be called for this endpoint at time `at`.
    fn arm(&mut self, at: Time, endpoint: EndpointId);
    /// Reports that `endpoint` has entered TIME-WAIT, which lasts until the time `until`: one of its
    /// timers then ends its connection, unless the connection is aborted before.
    fn waits(&mut self, _endpoint: EndpointId, _until: Time) {}
    /// Notifies the application of `endpoint` of an event.
    fn notify(&mut self, endpoint: EndpointId, notice: Notice);
}

/// Context of an event at an endpoint: time, settings, and the sink that receives its actions.
pub(super) struct Context<'a, S> {
    /// Current simulated time.
    pub(super) now: Time,
    /// Settings of the endpoint.
    pub(super) config: &'a TcpConfig,
    /// Receives the actions of the endpoint: packets, timers, notices.
    pub(super) sink: &'a mut S,
}

/// Event of a connection, of which the application is notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The bytes up to the position given to [`super::Stack::expect`] have arrived in order.
    Delivered,
    /// The connection has failed: there were too many consecutive timeouts (RFC 9293, 3.8.3), or
    /// the other end has reset it.
    Failed,
    /// A step of loss detection or recovery, for the event log. It concerns the stream positions
    /// `from..to`; the SYN is position 0 and the first byte position 1.
    LossRecovery {
        /// Kind of the step of loss detection or recovery.
        event: RecoveryEvent,
        /// First stream position that the step concerns.
        from: u64,
        /// Stream position after the last one that the step concerns.
        to: u64,
    },
    /// Both ends have finished; their slots are free for another connection.
    Closed,
}

/// Step of loss detection or recovery at a sender, see [`Notice::LossRecovery`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryEvent {
    /// The retransmission timer has expired for the given cause. The stream positions of the step
    /// are those of all data not acknowledged.
    Timeout(TimeoutCause),
    /// Fast recovery begins. The stream positions of the step are those of all data not
    /// acknowledged.
    Recovery,
    /// Recovery ends: all data that was outstanding at its begin is acknowledged. The stream
    /// positions of the step are those that the last ACK acknowledges.
    Recovered,
    /// An ACK shows that a timeout was spurious (see [`super::Counters::spurious_timeouts`]). The
    /// stream positions of the step are those that this ACK acknowledges.
    Spurious,
}

/// Parameters of a new TCP connection.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// Host that sends the SYN.
    pub client: HostId,
    /// Host that receives the SYN.
    pub server: HostId,
    /// Values of [`Packet::hash`], by which ECMP chooses paths: from client to server, and from
    /// server to client.
    pub hashes: (u16, u16),
    /// Differentiated services codepoint of all packets of the connection, 0–63.
    pub dscp: u8,
    /// Number of the traffic class under which the connection is measured.
    pub class: u8,
    /// Numbers of the settings of the client and of the server, see [`super::Stack::add_settings`].
    pub settings: (u8, u8),
}
