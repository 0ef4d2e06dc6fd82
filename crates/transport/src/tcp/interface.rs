//! Interface of TCP to the simulator: parameters of a connection, requests of endpoints, events for
//! applications.

use super::config::TcpConfig;
use super::timeout_cause::TimeoutCause;
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Time};

/// Receives the actions of endpoints: packets, timers, events for applications.
pub trait Sink {
    /// Whether [`Sink::remaining`] is called before each packet with payload.
    const READS_REMAINING: bool = false;
    /// States the payload bytes that the sender of the next packet has left: those that are written and not
    /// acknowledged, the ones in the packet included.
    fn remaining(&mut self, _bytes: u64) {}
    /// Sends a packet through the network card (NIC) of `from`.
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>);
    /// Returns the time at which all packets handed to the NIC of `from` with this codepoint will
    /// have left it. Called only with [small queues](crate::congestion::small_queue); the default
    /// is a NIC without a queue.
    fn leaves_at(&self, _from: HostId, _dscp: u8) -> Time {
        Time::ZERO
    }
    /// Arms a timer: [`super::Stack::on_timer`] is to be called for this endpoint at time `at`.
    fn arm(&mut self, at: Time, endpoint: EndpointId);
    /// Notifies the application of an endpoint of an event.
    fn notify(&mut self, endpoint: EndpointId, notice: Notice);
}

/// Context of an event at an endpoint: time, settings, and where its actions go.
pub(super) struct Context<'a, S> {
    /// Simulated time.
    pub(super) now: Time,
    /// The settings of the endpoint.
    pub(super) config: &'a TcpConfig,
    /// Receives the actions of the endpoint.
    pub(super) sink: &'a mut S,
}

/// Event of a connection, of which the application is notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The bytes up to the position given to [`super::Stack::expect`] have arrived in order.
    Delivered,
    /// The connection is given up: there were too many timeouts in a row (RFC 9293, 3.8.3), or the other
    /// end has reset it.
    Failed,
    /// A step of loss detection or recovery, for the event log. It concerns the stream positions `from..to`,
    /// of which the SYN is 0 and the first byte 1.
    LossRecovery {
        /// Kind of the step.
        event: RecoveryEvent,
        /// First stream position of the step.
        from: u64,
        /// Stream position after the last one of the step.
        to: u64,
    },
    /// Both ends are done; the slots are free for another connection.
    Closed,
}

/// Step of loss detection or recovery at a sender, see [`Notice::LossRecovery`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryEvent {
    /// The retransmission timer has expired, by this cause. Positions: all that is not acknowledged.
    Timeout(TimeoutCause),
    /// Fast recovery begins. Positions: all that is not acknowledged.
    Recovery,
    /// All that was outstanding at the timeout or at the begin of fast recovery is acknowledged.
    /// Positions: those that the last ACK acknowledges.
    Recovered,
    /// An ACK shows that a timeout was spurious (see [`super::Counters::spurious_timeouts`]). Positions: what
    /// this ACK acknowledges.
    Spurious,
}

/// Parameters of a new TCP connection.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// Host that sends the SYN.
    pub client: HostId,
    /// Host that listens.
    pub server: HostId,
    /// Values of [`Packet::hash`], by which ECMP chooses paths: client to server, server to client.
    pub hashes: (u16, u16),
    /// Differentiated services codepoint of all packets of the connection, 0–63.
    pub dscp: u8,
    /// Traffic class, for measuring.
    pub class: u8,
    /// Numbers of the settings of client and server, see [`super::Stack::add_settings`].
    pub settings: (u8, u8),
}
