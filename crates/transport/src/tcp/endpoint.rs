//! One end of a connection: its state, and nothing that happens to it.

use super::Connect;
use super::board::Board;
use super::cause::Cause;
use super::config::TcpConfig;
use super::inbound::Inbound;
use super::ranges::Ranges;
use super::rare::Rare;
use super::rtt::RttEstimator;
use crate::congestion::{Control, Window};
use eastwest_types::{EndpointId, HostId, Time, ecn};
use serde::{Deserialize, Serialize};

/// Where a connection stands (RFC 9293, 3.3.2). The states of closing are two flags of
/// [`Endpoint`]: both ends of a simulated connection close independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// The server before the SYN.
    Listen,
    /// The client after its SYN.
    SynSent,
    /// The server after its SYN-ACK.
    SynReceived,
    /// Both know of each other.
    Established,
    /// Given up.
    Failed,
}

/// What the sender is doing about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// None known.
    Open,
    /// Fast recovery (RFC 6675, RFC 6582).
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// What a sender's second timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Probe {
    /// Nothing.
    None,
    /// The [tail loss probe](super::probe).
    Tail,
    /// Judging segments that may only have been [overtaken](super::rack).
    Reorder,
}

/// Counters of one endpoint as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Segments sent again.
    pub retransmits: u32,
    /// Retransmission timeouts, those of SYN and FIN included.
    pub timeouts: u32,
    /// Entries into fast recovery.
    pub fast_recoveries: u32,
    /// Timeouts after which an ACK still answered the first transmission (Eifel detection, RFC
    /// 3522): nothing had been lost. Counted only with timestamps.
    pub spurious_timeouts: u32,
    /// Times the window was cut because of marks.
    pub ecn_reductions: u32,
    /// Fast recoveries that timestamps or DSACKs showed to be needless, and that were undone.
    pub spurious_recoveries: u32,
    /// Retransmissions that RACK found lost themselves.
    pub lost_retransmits: u32,
    /// Tail loss probes sent.
    pub probes: u32,
    /// Tail losses that a probe repaired.
    pub probe_recoveries: u32,
    /// Reports of segments that arrived twice (DSACK, RFC 2883).
    pub dsacks: u32,
    /// Timeouts of which the first thing known is that nothing arrived of all that was outstanding.
    pub lost_windows: u32,
    /// The same where data had arrived and every ACK of it was lost.
    pub lost_ack_windows: u32,
    /// Timeouts by [`Cause`]; their sum is `timeouts`.
    pub causes: [u32; Cause::COUNT],
}

impl Counters {
    /// Adds another endpoint's counters.
    pub fn add(&mut self, other: &Counters) {
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.fast_recoveries += other.fast_recoveries;
        self.spurious_timeouts += other.spurious_timeouts;
        self.ecn_reductions += other.ecn_reductions;
        self.spurious_recoveries += other.spurious_recoveries;
        self.lost_retransmits += other.lost_retransmits;
        self.probes += other.probes;
        self.probe_recoveries += other.probe_recoveries;
        self.dsacks += other.dsacks;
        self.lost_windows += other.lost_windows;
        self.lost_ack_windows += other.lost_ack_windows;
        self.causes.iter_mut().zip(other.causes).for_each(|(sum, n)| *sum += n);
    }
}

/// What a connection does once both FINs are through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Linger {
    /// They are not.
    NotYet,
    /// Stays to answer a FIN that comes again, until the retransmission timer, now idle, expires.
    Until,
    /// Has stayed long enough.
    Over,
}

/// One end of a connection. Positions count stream bytes from 1; the SYN is position 0, the FIN
/// comes after the last byte.
///
/// Four cache lines, in the order in which packets touch them: with thousands of connections the
/// time goes into fetching these lines, not into what is done with them.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Endpoint {
    // --- line 1: who it is, and receiving ---
    pub(super) id: EndpointId,
    pub(super) local: HostId,
    pub(super) remote: HostId,
    pub(super) ts_recent_us: u32,
    pub(super) unacked_segments: u16,
    /// Timeouts since an ACK last moved on.
    pub(super) retries: u16,
    pub(super) hash: u16,
    pub(super) tos: u8,
    /// Traffic class, for measuring.
    pub class: u8,
    pub(super) state: State,
    pub(super) phase: Phase,
    pub(super) closing: bool,
    pub(super) linger: Linger,
    /// Duplicate ACKs in a row (without SACK: segments that have arrived out of order).
    pub(super) dup_acks: u32,
    pub(super) rcv_nxt: u64,
    pub(super) last_ack_sent: u64,
    pub(super) fin_at: u64,
    /// Position that interests the application.
    pub(super) notify_at: u64,

    // --- line 2: what is under way, and timers ---
    /// First byte not acknowledged.
    pub(super) snd_una: u64,
    /// Next byte to be sent for the first time.
    pub(super) snd_max: u64,
    /// One past the last byte written.
    pub(super) write_end: u64,
    pub(super) out_of_order: Ranges,
    pub(super) sacked: Ranges,
    pub(super) rto_at: Time,
    pub(super) ack_at: Time,
    /// The earliest wake-up that is pending.
    pub(super) armed_at: Time,

    // --- line 3: how much may be sent ---
    pub(super) window: Window,
    pub(super) rtt: RttEstimator,
    pub(super) last_sent: Time,
    pub(super) peer_window: u32,
    /// How often the timeout has been doubled since the last good sample (RFC 6298, 5.5).
    pub(super) backoff: u8,
    /// See [`ecn`](super::ecn).
    pub(super) ecn: u8,
    /// Twice the number of its [settings](super::Stack), and 1 more where its congestion control has more
    /// state than the window: `control`.
    pub(super) settings: u8,
    /// What the timer of the [board](super::board) is for.
    pub(super) probe: Probe,

    // --- line 4: recovery, rarely touched ---
    /// Where [`Phase`] returns to open.
    pub(super) recover: u64,
    /// A segment timed without timestamps: its end (0: none) and when it was sent.
    pub(super) timed_end: u64,
    pub(super) timed_at: Time,
    /// With RACK: what is outstanding, segment by segment, once something has been sent.
    pub(super) board: Option<Box<Board>>,
    pub(super) rare: Option<Box<Rare>>,
    /// What a receiver that acknowledges or offers its window as Linux does keeps in mind.
    pub(super) inbound: Option<Box<Inbound>>,
    /// State of the congestion control beside the window, from the first write on.
    pub(super) control: Option<Box<Control>>,
    /// First position of what was written last.
    pub(super) written_from: u64,
}

const _: () = assert!(std::mem::size_of::<Endpoint>() == 256);

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
        Endpoint {
            id,
            local,
            remote,
            ts_recent_us: 0,
            unacked_segments: 0,
            retries: 0,
            hash,
            tos: connect.dscp << 2 | if config.rules.ecn.all_packets { ecn::ECT0 } else { 0 },
            class: connect.class,
            state: State::Listen,
            phase: Phase::Open,
            closing: false,
            linger: Linger::NotYet,
            dup_acks: 0,
            rcv_nxt: 0,
            last_ack_sent: 0,
            fin_at: u64::MAX,
            notify_at: u64::MAX,
            snd_una: 0,
            snd_max: 0,
            write_end: 1,
            out_of_order: Ranges::default(),
            sacked: Ranges::default(),
            rto_at: Time::NEVER,
            ack_at: Time::NEVER,
            armed_at: Time::NEVER,
            window: Window::new(initial),
            rtt: RttEstimator::default(),
            last_sent: Time::ZERO,
            peer_window: 0,
            backoff: 0,
            ecn: 0,
            settings: settings << 1 | u8::from(!config.is_plain()),
            probe: Probe::None,
            recover: 0,
            inbound: None,
            timed_end: 0,
            timed_at: Time::ZERO,
            board: None,
            rare: None,
            control: None,
            written_from: 1,
        }
    }

    /// This endpoint's name.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// The host it is on.
    pub fn local(&self) -> HostId {
        self.local
    }

    /// The host at the other end.
    pub fn remote(&self) -> HostId {
        self.remote
    }

    /// Bytes the application has written.
    pub fn written(&self) -> u64 {
        self.write_end - 1
    }

    /// Stream bytes that have arrived in order.
    pub fn received(&self) -> u64 {
        let fin = u64::from(self.rcv_nxt > self.fin_at);
        self.rcv_nxt.saturating_sub(1 + fin)
    }

    /// Stream bytes that have arrived and are kept, those behind a gap among them.
    pub fn kept(&self) -> u64 {
        let fin = u64::from(self.out_of_order.end() > self.fin_at);
        self.received() + self.out_of_order.total() - fin
    }

    /// The first position that has not arrived, and ranges above it that have.
    pub fn has_come(&self) -> (u64, Vec<(u64, u64)>) {
        (self.rcv_nxt, self.out_of_order.iter().collect())
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
        self.snd_max - self.snd_una
    }

    /// First position of its stream that is not acknowledged; the SYN is position 0.
    pub fn acknowledged(&self) -> u64 {
        self.snd_una
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
        self.write_end + u64::from(self.closing)
    }

    /// Whether its FIN is acknowledged and the peer's has come.
    pub(super) fn is_finished(&self) -> bool {
        self.closing && self.snd_una == self.write_end + 1 && self.rcv_nxt > self.fin_at
    }

    /// Whether it has finished and lingered, or failed.
    pub(super) fn is_done(&self) -> bool {
        self.linger == Linger::Over || self.state == State::Failed
    }

    /// Nothing more is sent, nothing waited for.
    pub(super) fn give_up(&mut self) {
        self.state = State::Failed;
        self.rto_at = Time::NEVER;
        self.ack_at = Time::NEVER;
        self.probe = Probe::None;
    }

    /// Gives memory back that a gone connection needs no more.
    pub(super) fn drop_buffers(&mut self) {
        self.sacked = Ranges::default();
        self.board = None;
        self.inbound = None;
        self.out_of_order = Ranges::default();
    }
}
