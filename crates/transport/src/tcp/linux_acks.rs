//! ACK policy of Linux: quick ACKs, delayed ACKs and SACK compression (`tcp_event_data_recv`,
//! `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, `tcp_cleanup_rbuf`).
//!
//! The receiver acknowledges at once
//! * the first 16 segments of a connection (half the window in segments, if that is less), and the
//!   same number after a pause longer than an RTO (*quick-ACK* mode);
//! * a segment that lets the offered window grow;
//! * two segments after the first CE mark, or after a segment without ECT where others had ECT;
//! * any segment with which more than one full segment is unacknowledged;
//! * a segment that is small or the last of a write: the first of these segments only outside
//!   *ping-pong* mode (in which the connection answers its peer's data), the second in any case,
//!   since the application reads at once.
//!
//! It acknowledges all other segments after the ACK timeout (ATO). The ATO is 40 ms, or longer if
//! the gaps between segments are almost that long: up to the smoothed RTT, but at most 200 ms. An
//! expiry of the timer doubles the ATO or ends ping-pong mode.
//!
//! With `compress` (SACK compression, Linux 4.18) ACKs of out-of-order segments beyond the third in
//! a row wait for a twentieth of the RTT, at most 1 ms. At most 44 ACKs wait. A segment that begins
//! or touches a third range sends the waiting ACK at once.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Minimum ACK timeout, and minimum delay of an ACK (`TCP_ATO_MIN`, `TCP_DELACK_MIN`).
const ATO_MIN: Span = Span::from_ms(40);
/// Maximum delay of an ACK (Linux, `TCP_DELACK_MAX`).
const DELAY_MAX: Span = Span::from_ms(200);
const HALF_SECOND: Span = Span::from_ms(500);
/// Maximum number of segments that quick-ACK mode acknowledges at once (Linux,
/// `TCP_MAX_QUICKACKS`).
const MAX_QUICK: u32 = 16;
/// Number of segments that are acknowledged at once after the first CE mark.
const QUICK_AFTER_MARK: u8 = 2;
/// Payload bytes below which a segment does not count as a full one (Linux, `TCP_MSS_DEFAULT`).
const DEFAULT_MSS: u16 = 536;
/// Maximum number of ACKs that SACK compression delays (Linux, `tcp_comp_sack_nr`).
const MAX_COMPRESSED: u8 = 44;
/// Longest delay of an ACK by SACK compression (Linux, `tcp_comp_sack_delay_ns`).
const COMPRESS_DELAY: Span = Span::from_ms(1);
/// Number of duplicate ACKs that are sent before SACK compression begins.
const COMPRESS_AFTER: u8 = 3;

/// State of Linux's ACK policy at one receiver.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LinuxAcks {
    /// ACK timeout (ATO); zero before the first data.
    ato: Span,
    last_received: Time,
    /// Payload bytes of the largest recent segment (Linux, `rcv_mss`).
    rcv_mss: u16,
    last_payload: u16,
    /// Number of further segments to be acknowledged at once (quick-ACK mode).
    quick_acks: u8,
    pingpong: bool,
    /// Number of unacknowledged segments that are small or end a write: 0, 1, or 2 for two or more.
    pushed: u8,
    /// Number of duplicate ACKs sent since data last arrived in order.
    duplicates: u8,
    /// Number of duplicate ACKs that SACK compression has delayed since the last ACK was sent.
    compressed: u8,
}

/// Arrival of a segment in order, for Linux's ACK policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Time,
    pub(super) payload: u16,
    /// Whether the segment ends a write of the sending application (PSH).
    pub(super) pushes: bool,
    /// Payload bytes received and not yet acknowledged, including this segment.
    pub(super) unacked: u64,
    pub(super) window: u64,
    /// Whether the segment increases the offered window.
    pub(super) grows: bool,
}

impl LinuxAcks {
    #[inline(never)]
    fn go_quick(&mut self, window: u64) {
        let segments = window / (2 * u64::from(self.rcv_mss.max(1)));
        let quick_acks = if segments == 0 { 2 } else { segments.min(u64::from(MAX_QUICK)) };
        self.quick_acks = self.quick_acks.max(quick_acks as u8);
    }

    /// Estimates the peer's segment size and counts small segments (Linux, `tcp_measure_rcv_mss`).
    fn measure(&mut self, a: &Arrival) {
        if self.rcv_mss == 0 {
            self.rcv_mss = DEFAULT_MSS;
        }
        if a.payload >= self.rcv_mss {
            self.rcv_mss = a.payload;
            if a.pushes {
                self.pushed = self.pushed.max(1);
            }
            return;
        }
        if a.payload >= DEFAULT_MSS {
            let same = std::mem::replace(&mut self.last_payload, a.payload) == a.payload;
            if same {
                self.rcv_mss = a.payload;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    /// Handles a segment that has arrived in order. Returns whether it is acknowledged at once.
    /// `rto` returns the retransmission timeout, which few segments need.
    #[inline]
    pub(super) fn on_data(&mut self, a: &Arrival, rto: impl Fn() -> Span) -> bool {
        self.measure(a);
        if self.ato == Span::ZERO {
            self.go_quick(a.window);
            self.ato = ATO_MIN;
        } else {
            let gap = a.now.since(self.last_received);
            if gap.0 <= ATO_MIN.0 / 2 {
                self.ato = Span(self.ato.0 / 2 + ATO_MIN.0 / 2);
            } else if gap < self.ato {
                self.ato = Span(self.ato.0 / 2 + gap.0).min(rto());
            } else if gap > rto() {
                self.go_quick(a.window);
            }
        }
        if a.grows {
            self.on_growth();
        }
        self.last_received = a.now;
        self.duplicates = 0;
        let read = self.pushed > 1 || (self.pushed > 0 && !self.pingpong);
        a.unacked > u64::from(self.rcv_mss) || (self.quick_acks > 0 && !self.pingpong) || read
    }

    /// Handles growth of the offered window: one segment is acknowledged at once
    /// (`tcp_grow_window`).
    pub(super) fn on_growth(&mut self) {
        self.quick_acks |= 1;
    }

    /// Handles the first CE mark since ECE was last cleared, or a segment without ECT on an ECN
    /// connection, which is a retransmission: two segments are acknowledged at once, since the
    /// sender's window may be small (`__tcp_ecn_check_ce`).
    pub(super) fn on_mark(&mut self) {
        if self.ato == Span::ZERO {
            return; // the first data is acknowledged at once in any case
        }
        self.quick_acks = self.quick_acks.max(QUICK_AFTER_MARK);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// Handles a duplicate segment: enters quick-ACK mode (`tcp_enter_quickack_mode`).
    pub(super) fn on_duplicate(&mut self, window: u64) {
        self.go_quick(window);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// Returns the time for which an ACK is delayed; `srtt`: smoothed RTT, if one is known.
    pub(super) fn delay(&self, srtt: Option<Span>) -> Span {
        let mut ato = self.ato;
        if ato > ATO_MIN {
            let slow = self.pingpong || self.pushed > 0;
            let mut max_delay = if slow { DELAY_MAX } else { HALF_SECOND };
            if let Some(srtt) = srtt {
                max_delay = max_delay.min(srtt.max(ATO_MIN));
            }
            ato = ato.min(max_delay);
        }
        ato.min(DELAY_MAX)
    }

    /// Handles the expiry of the delayed-ACK timer: doubles the ACK timeout, or ends ping-pong
    /// mode.
    pub(super) fn on_timer(&mut self, rto: Span) {
        if self.pingpong {
            self.pingpong = false;
            self.ato = ATO_MIN;
        } else {
            self.ato = Span(self.ato.0 * 2).min(rto);
        }
    }

    /// Handles the transmission of a packet, which acknowledges all data in order. `data`: whether
    /// it has payload; `owed`: whether an ACK was due or delayed.
    pub(super) fn on_sent(&mut self, data: bool, now: Time, owed: bool) {
        if data && now.since(self.last_received) < self.ato {
            self.pingpong = true;
        }
        self.pushed = 0;
        self.compressed = 0;
        if self.quick_acks > 0 && owed {
            self.quick_acks -= 1;
            if self.quick_acks == 0 {
                self.ato = ATO_MIN;
            }
        }
    }

    /// Whether an ACK of out-of-order segments is being delayed by SACK compression.
    pub(super) fn compresses_ack(&self) -> bool {
        self.compressed > 0
    }

    /// Handles an out-of-order segment. Returns whether its ACK is sent at once or is delayed, or a
    /// delayed ACK already covers it.
    pub(super) fn compress(&mut self, rtt: Option<Span>) -> Compression {
        if self.quick_acks > 0 && !self.pingpong {
            self.quick_acks -= 1;
            return Compression::Send;
        }
        if self.duplicates < COMPRESS_AFTER {
            self.duplicates += 1;
            return Compression::Send;
        }
        if self.compressed >= MAX_COMPRESSED {
            return Compression::Send;
        }
        self.compressed += 1;
        if self.compressed > 1 {
            return Compression::AlreadyDelayed;
        }
        Compression::DelayBy(rtt.map_or(COMPRESS_DELAY, |r| Span(r.0 / 20).min(COMPRESS_DELAY)))
    }
}

/// Treatment of the ACK of an out-of-order segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    /// The ACK is sent at once.
    Send,
    /// The ACK is delayed by this time span.
    DelayBy(Span),
    /// An ACK that is already delayed covers the segment.
    AlreadyDelayed,
}
