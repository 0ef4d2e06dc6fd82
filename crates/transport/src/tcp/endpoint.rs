//! One end of a connection: its fields and simple functions on them. Each mechanism of TCP has its
//! own file.

use super::config::TcpConfig;
use super::counters::Counters;
use super::interface::Connect;
use super::receiver::Receiver;
use super::recovery::Recovery;
use super::states::{RackTimer, State, TimeWait};
use super::stream::Stream;
use super::timers::{Timers, deadline};
use crate::congestion::{Control, Window};
use eastwest_types::{EndpointId, HostId, Span, Time, ecn};
use serde::{Deserialize, Serialize};

/// Identity of an endpoint, and the header fields that are the same in all its packets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) id: EndpointId,
    pub(super) local: HostId,
    pub(super) remote: HostId,
    /// Flow hash in all packets of the endpoint, by which ECMP chooses paths
    /// ([`Packet::hash`](eastwest_types::Packet::hash)).
    pub(super) hash: u16,
    /// Traffic class field of the IP header: 6 bits of the codepoint (DSCP) and 2 bits of ECN.
    pub(super) tos: u8,
    /// Number of the traffic class under which the connection is measured.
    pub(super) class: u8,
}

/// One end of a TCP connection.
///
/// The fields lie in four cache lines in the order in which packets access them: with thousands of
/// connections most time is spent fetching these lines.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Endpoint {
    // --- cache line 1: identity, and the stream that the endpoint sends ---
    pub(super) address: Address,
    pub(super) peer_window: u32,
    pub(super) state: State,
    /// Whether the application has closed its sending direction, so that a FIN follows the data.
    pub(super) closing: bool,
    /// State of ECN of this endpoint: bits that are declared in [`ecn`](super::ecn).
    pub(super) ecn: u8,
    /// Number of the endpoint's [settings](super::Stack), multiplied by 2; plus 1 if its congestion
    /// control has state beside the window (`control`).
    pub(super) settings: u8,
    pub(super) stream: Stream,
    /// State of the congestion control beside the window, from the first write on; `None` if the
    /// settings need none.
    pub(super) control: Option<Box<Control>>,
    // --- cache line 2: receiving ---
    pub(super) receiver: Receiver,
    // --- cache line 3: timers ---
    pub(super) timers: Timers,
    // --- cache line 4: how much may be sent ---
    pub(super) window: Window,
    pub(super) recovery: Recovery,
    /// Time at which the last segment with data or FIN was sent.
    pub(super) last_sent: Time,
}

const _: () = assert!(std::mem::size_of::<Endpoint>() == 256);
const _: () = assert!(std::mem::offset_of!(Endpoint, receiver) == 64);
const _: () = assert!(std::mem::offset_of!(Endpoint, timers) == 128);
const _: () = assert!(std::mem::offset_of!(Endpoint, window) == 192);

impl Endpoint {
    pub(super) fn new(
        id: EndpointId,
        local: HostId,
        remote: HostId,
        hash: u16,
        connect: &Connect,
        (settings, config): (u8, &TcpConfig),
    ) -> Endpoint {
        let initial = u64::from(config.initial_window) * u64::from(config.segment);
        let tos = connect.dscp << 2 | if config.rules.ecn.all_packets { ecn::ECT0 } else { 0 };
        Endpoint {
            address: Address { id, local, remote, hash, tos, class: connect.class },
            peer_window: 0,
            state: State::Listen,
            closing: false,
            ecn: 0,
            settings: settings << 1 | u8::from(!config.is_plain()),
            stream: Stream::new(),
            control: None,
            receiver: Receiver::new(),
            timers: Timers::new(),
            window: Window::new(initial),
            recovery: Recovery::new(),
            last_sent: Time::ZERO,
        }
    }

    /// Returns the identifier of this endpoint.
    pub fn id(&self) -> EndpointId {
        self.address.id
    }

    /// Returns the host of this end of the connection.
    pub fn local(&self) -> HostId {
        self.address.local
    }

    /// Returns the host of the other end of the connection.
    pub fn remote(&self) -> HostId {
        self.address.remote
    }

    /// Returns the number of the traffic class under which the connection is measured.
    pub fn class(&self) -> u8 {
        self.address.class
    }

    /// Returns the payload bytes that the application has written to the stream of this end.
    pub fn written(&self) -> u64 {
        self.stream.end - 1
    }

    /// Returns the payload bytes that have arrived in order at this end.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Returns the sequence number that this end sends next, without retransmissions.
    pub fn sent_to(&self) -> u64 {
        self.stream.next
    }

    /// Returns the payload bytes that have arrived at this end, including out-of-order bytes above
    /// a gap.
    pub fn buffered(&self) -> u64 {
        self.receiver.buffered()
    }

    /// Returns the first position of the peer's stream that has not arrived, and the out-of-order
    /// ranges (start, end) above it that have arrived. The SYN is position 0.
    pub fn received_ranges(&self) -> (u64, Vec<(u64, u64)>) {
        (self.receiver.next, self.receiver.out_of_order.iter().collect())
    }

    /// Returns the congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    /// Returns the slow start threshold in bytes; `u64::MAX` until slow start ends for the first
    /// time.
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// Returns the bytes that this end has sent and that are not acknowledged; SYN and FIN count
    /// one each.
    pub fn outstanding(&self) -> u64 {
        self.stream.outstanding()
    }

    /// Returns the first position of this end's stream that is not acknowledged (SND.UNA); the SYN
    /// is position 0.
    pub fn acknowledged(&self) -> u64 {
        self.stream.una
    }

    /// Returns the counters of this endpoint as a sender.
    pub fn counters(&self) -> Counters {
        self.recovery.counters()
    }

    /// Returns the number of the endpoint's settings in the [`Stack`](super::Stack).
    #[inline]
    pub(super) fn settings(&self) -> u8 {
        self.settings >> 1
    }

    /// Whether the endpoint's congestion control has state beside the window.
    #[inline]
    pub(super) fn has_control_state(&self) -> bool {
        self.settings & 1 != 0
    }

    pub(super) fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Returns the stream position after the last one to send. A FIN counts one position, if the
    /// application has closed the stream.
    pub(super) fn send_end(&self) -> u64 {
        self.stream.end + u64::from(self.closing)
    }

    /// Returns the first position beyond the peer's receive window: SND.UNA + SND.WND.
    #[inline]
    pub(super) fn right_edge(&self, config: &TcpConfig) -> u64 {
        self.stream.una + u64::from(self.peer_window).min(config.max_window)
    }

    /// Returns the bytes in flight (RFC 6675, `pipe`).
    #[inline]
    pub(super) fn pipe(&self, config: &TcpConfig) -> u64 {
        self.recovery.pipe(&self.stream, config)
    }

    /// Returns the retransmission timeout with the current backoff.
    #[inline]
    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        self.timers.rto(config)
    }

    /// Returns the expiry time of a timer of length `span` that is armed at `now`.
    #[inline]
    pub(super) fn deadline(&self, now: Time, span: Span, config: &TcpConfig) -> Time {
        deadline(now, span, self.address.local, config)
    }

    /// Restarts the retransmission timer.
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time, config: &TcpConfig) {
        self.timers.rto_at = self.deadline(now, self.rto(config), config);
    }

    /// Whether the FIN of this end is acknowledged and the peer's FIN has arrived.
    pub(super) fn is_finished(&self) -> bool {
        self.closing
            && self.stream.una == self.stream.end + 1
            && self.receiver.next > self.receiver.fin_at
    }

    /// Whether this end has finished: TIME-WAIT is over, or the connection has failed.
    pub(super) fn is_done(&self) -> bool {
        self.timers.time_wait == TimeWait::Over || self.state == State::Failed
    }

    /// Marks the connection as failed and stops its timers.
    pub(super) fn fail(&mut self) {
        self.state = State::Failed;
        self.timers.rto_at = Time::NEVER;
        self.receiver.ack_at = Time::NEVER;
        self.timers.rack_timer = RackTimer::Off;
    }

    /// Releases the slot and the buffers of the endpoint. The identifier becomes `next_id`, so that
    /// late packets and timer events of the connection are ignored. Returns the counters of the
    /// ended connection.
    pub(super) fn vacate(&mut self, next_id: EndpointId) -> Counters {
        self.address.id = next_id;
        self.receiver.drop_buffers();
        self.recovery.drop_buffers();
        let counters = self.counters();
        self.recovery.cold = None;
        counters
    }
}
