//! One end of a connection: its parts, and nothing that happens to them.

use super::config::TcpConfig;
use super::counters::Counters;
use super::interface::Connect;
use super::phases::{Linger, Probe, State};
use super::receiver::Receiver;
use super::recovery::Recovery;
use super::stream::Stream;
use super::timers::{Timers, deadline};
use crate::congestion::{Control, Window};
use eastwest_types::{EndpointId, HostId, Span, Time, ecn};
use serde::{Deserialize, Serialize};

/// Identity of an endpoint, and the fields that are the same in all its packets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) id: EndpointId,
    pub(super) local: HostId,
    pub(super) remote: HostId,
    /// Value for [`Packet::hash`](eastwest_types::Packet::hash).
    pub(super) hash: u16,
    /// Codepoint and ECN field.
    pub(super) tos: u8,
    /// Traffic class, for measuring.
    pub(super) class: u8,
}

/// One end of a connection.
///
/// Four cache lines, in the order in which packets touch them: with thousands of connections the
/// time goes into fetching these lines, not into what is done with them.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Endpoint {
    // --- line 1: who it is, and what it sends ---
    pub(super) address: Address,
    pub(super) peer_window: u32,
    pub(super) state: State,
    /// The application has closed its side.
    pub(super) closing: bool,
    /// See [`ecn`](super::ecn).
    pub(super) ecn: u8,
    /// Twice the number of its [settings](super::Stack), and 1 more where its congestion control has more
    /// state than the window: `control`.
    pub(super) settings: u8,
    pub(super) stream: Stream,
    /// State of the congestion control beside the window, from the first write on.
    pub(super) control: Option<Box<Control>>,
    // --- line 2 ---
    pub(super) receiver: Receiver,
    // --- line 3 ---
    pub(super) timers: Timers,
    // --- line 4: how much may be sent ---
    pub(super) window: Window,
    pub(super) recovery: Recovery,
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

    /// This endpoint's name.
    pub fn id(&self) -> EndpointId {
        self.address.id
    }

    /// The host it is on.
    pub fn local(&self) -> HostId {
        self.address.local
    }

    /// The host at the other end.
    pub fn remote(&self) -> HostId {
        self.address.remote
    }

    /// Traffic class, for measuring.
    pub fn class(&self) -> u8 {
        self.address.class
    }

    /// Bytes the application has written.
    pub fn written(&self) -> u64 {
        self.stream.end - 1
    }

    /// Stream bytes that have arrived in order.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Stream bytes that have arrived and are kept, those behind a gap among them.
    pub fn kept(&self) -> u64 {
        self.receiver.kept()
    }

    /// The first position that has not arrived, and ranges above it that have.
    pub fn has_come(&self) -> (u64, Vec<(u64, u64)>) {
        (self.receiver.next, self.receiver.out_of_order.iter().collect())
    }

    /// Congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    /// Slow start threshold in bytes; `u64::MAX` before the first loss.
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// Bytes sent and not acknowledged, the SYN and FIN counting one each.
    pub fn outstanding(&self) -> u64 {
        self.stream.outstanding()
    }

    /// First position of its stream that is not acknowledged; the SYN is position 0.
    pub fn acknowledged(&self) -> u64 {
        self.stream.una
    }

    /// What this endpoint has counted as a sender.
    pub fn counters(&self) -> Counters {
        self.recovery.counters()
    }

    /// Number of its settings.
    #[inline]
    pub(super) fn settings(&self) -> u8 {
        self.settings >> 1
    }

    /// Whether its congestion control has more state than the window.
    #[inline]
    pub(super) fn is_controlled(&self) -> bool {
        self.settings & 1 != 0
    }

    pub(super) fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// One past the last position to send: the FIN takes one.
    pub(super) fn send_end(&self) -> u64 {
        self.stream.end + u64::from(self.closing)
    }

    /// Position up to which the other end takes data.
    #[inline]
    pub(super) fn right_edge(&self, config: &TcpConfig) -> u64 {
        self.stream.una + u64::from(self.peer_window).min(config.max_window)
    }

    /// Bytes in the network.
    #[inline]
    pub(super) fn pipe(&self, config: &TcpConfig) -> u64 {
        self.recovery.pipe(&self.stream, config)
    }

    /// The timeout to arm now.
    #[inline]
    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        self.timers.rto(config)
    }

    /// When a timer set now strikes.
    #[inline]
    pub(super) fn deadline(&self, now: Time, span: Span, config: &TcpConfig) -> Time {
        deadline(now, span, self.address.local, config)
    }

    /// Starts the retransmission timer anew.
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time, config: &TcpConfig) {
        self.timers.rto_at = self.deadline(now, self.rto(config), config);
    }

    /// Whether its FIN is acknowledged and the peer's has come.
    pub(super) fn is_finished(&self) -> bool {
        self.closing
            && self.stream.una == self.stream.end + 1
            && self.receiver.next > self.receiver.fin_at
    }

    /// Whether it has finished and lingered, or failed.
    pub(super) fn is_done(&self) -> bool {
        self.timers.linger == Linger::Over || self.state == State::Failed
    }

    /// Nothing more is sent, nothing waited for.
    pub(super) fn give_up(&mut self) {
        self.state = State::Failed;
        self.timers.rto_at = Time::NEVER;
        self.receiver.ack_at = Time::NEVER;
        self.timers.probe = Probe::None;
    }

    /// Ends its connection, so that its slot is for another, of this name: gives memory back.
    pub(super) fn vacate(&mut self, name: EndpointId) -> Counters {
        self.address.id = name;
        self.receiver.drop_buffers();
        self.recovery.drop_buffers();
        let counters = self.counters();
        self.recovery.rare = None;
        counters
    }
}
