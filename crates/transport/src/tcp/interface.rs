//! What endpoints are made of, what they want to happen, and what they tell.

use super::cause::Cause;
use super::config::TcpConfig;
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Time};

/// What an endpoint wants to happen next.
pub trait Sink {
    /// Hand this packet to the network card of `from`.
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>);
    /// When all that has been handed to the network card of `from` with this codepoint will have left it.
    /// Asked only with [small queues](crate::congestion::small_queue); without an answer nothing ever waits
    /// there.
    fn leaves_at(&self, _from: HostId, _dscp: u8) -> Time {
        Time::ZERO
    }
    /// Call [`super::Stack::on_wake`] for this endpoint at this time.
    fn arm(&mut self, at: Time, endpoint: EndpointId);
    /// Tell the application.
    fn notify(&mut self, endpoint: EndpointId, notice: Notice);
}

/// Context of an event at an endpoint: time, settings, and where its actions go.
pub(super) struct Context<'a, S> {
    /// Simulated time.
    pub(super) now: Time,
    /// The settings of the endpoint.
    pub(super) config: &'a TcpConfig,
    /// Takes what the endpoint wants to happen.
    pub(super) sink: &'a mut S,
}

/// Event of a connection that the application is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The bytes up to the position given to [`super::Stack::expect`] have arrived in order.
    Delivered,
    /// The connection is given up: there were too many timeouts in a row (RFC 9293, 3.8.3), or the other
    /// end has reset it.
    Failed,
    /// A step of noticing and repairing losses, for those who look on: concerns the stream positions
    /// `from..to`, of which the SYN is 0 and the first byte 1.
    Repair {
        /// What it is.
        step: Repair,
        /// First position.
        from: u64,
        /// Position after the last.
        to: u64,
    },
    /// The connection is gone and its slot free for another.
    Closed,
}

/// What a sender does about losses, see [`Notice::Repair`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// The retransmission timer has expired, for what seems to be this cause; of all that is not
    /// acknowledged.
    Timeout(Cause),
    /// Fast recovery begins; of all that is not acknowledged.
    Recovery,
    /// All that was outstanding when recovery began, or at a timeout, is acknowledged; of what the
    /// last ACK acknowledged.
    Recovered,
    /// An ACK shows that a timeout was not needed (see [`super::Counters::spurious_timeouts`]); of what it
    /// acknowledges.
    Spurious,
}

/// What a new connection is made of.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// Who sends the SYN.
    pub client: HostId,
    /// Who listens.
    pub server: HostId,
    /// Values for [`Packet::hash`]: client to server, server to client.
    pub hashes: (u16, u16),
    /// Differentiated services codepoint of all packets, 0–63.
    pub dscp: u8,
    /// Traffic class, for measuring.
    pub class: u8,
    /// Numbers of the settings of client and server, see [`super::Stack::add_settings`].
    pub settings: (u8, u8),
}
