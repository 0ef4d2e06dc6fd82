//! When Linux acknowledges (`tcp_event_data_recv`, `__tcp_ack_snd_check`, `tcp_send_delayed_ack`,
//! `tcp_cleanup_rbuf`).
//!
//! At once: the first 16 segments of a connection (fewer where the window is small: half of it in
//! segments) and as many after a pause of more than a timeout (*quick* mode); a segment that lets the
//! offered window grow; two after a mark that is the first, or where data was sent again that had been
//! ECN-capable; more than one full segment unacknowledged; a segment that is small or the last of a write, unless the
//! connection answers its peer's data (*ping-pong* mode) and only the first of its kind, for the
//! application reads at once. Otherwise after the ATO: 40 ms, with a pause between segments near it
//! more, up to the smoothed round trip or half a second (200 ms in ping-pong mode or after a small
//! segment). A timer that strikes doubles the ATO or ends ping-pong mode.
//!
//! ACKs of segments out of order beyond the third in a row wait for a twentieth of the round trip, at
//! most 1 ms and 44 of them, where `compress` says so (SACK compression, Linux 4.18). What begins or
//! touches a third range sends the ACK that waits at once.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// `TCP_ATO_MIN`, `TCP_DELACK_MIN`.
const ATO_MIN: Span = Span::from_ms(40);
/// `TCP_DELACK_MAX`.
const DELAY_MAX: Span = Span::from_ms(200);
const HALF_SECOND: Span = Span::from_ms(500);
/// `TCP_MAX_QUICKACKS`.
const MAX_QUICK: u32 = 16;
const QUICK_AFTER_MARK: u8 = 2;
/// A segment of less is not taken for the peer's full size (`TCP_MSS_DEFAULT`).
const LEAST_FULL: u16 = 536;
/// `tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns`, and duplicates sent before.
const COMPRESS_MOST: u8 = 44;
const COMPRESS_DELAY: Span = Span::from_ms(1);
const COMPRESS_AFTER: u8 = 3;

/// A receiver's state of acknowledging.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LinuxAcks {
    /// Timeout of a delayed ACK; zero before the first data.
    ato: Span,
    last_received: Time,
    /// Largest recent payload.
    full: u16,
    last_small: u16,
    /// ACKs to be sent at once.
    quick: u8,
    pingpong: bool,
    /// Small segments, or ends of writes, not acknowledged yet: none, one, more.
    pushed: u8,
    /// Duplicate ACKs since data last arrived in order, and those held back since one was sent.
    duplicates: u8,
    held_back: u8,
}

/// A segment that arrives in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Time,
    pub(super) payload: u16,
    /// It ends what the application has written.
    pub(super) pushes: bool,
    /// Bytes not acknowledged, with it.
    pub(super) unacked: u64,
    pub(super) window: u64,
    /// It lets the offered window grow.
    pub(super) grows: bool,
    pub(super) rto: Span,
}

impl LinuxAcks {
    fn go_quick(&mut self, window: u64) {
        let segments = window / (2 * u64::from(self.full.max(1)));
        let quick = if segments == 0 { 2 } else { segments.min(u64::from(MAX_QUICK)) };
        self.quick = self.quick.max(quick as u8);
    }

    /// Learns the peer's segment size, and notes small segments (`tcp_measure_rcv_mss`).
    fn measure(&mut self, a: &Arrival) {
        if self.full == 0 {
            self.full = LEAST_FULL;
        }
        if a.payload >= self.full {
            self.full = a.payload;
            if a.pushes {
                self.pushed = self.pushed.max(1);
            }
            return;
        }
        if a.payload >= LEAST_FULL {
            let same = std::mem::replace(&mut self.last_small, a.payload) == a.payload;
            if same {
                self.full = a.payload;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    /// Data has arrived in order. Returns whether it is acknowledged at once.
    pub(super) fn on_data(&mut self, a: &Arrival) -> bool {
        self.measure(a);
        if self.ato == Span::ZERO {
            self.go_quick(a.window);
            self.ato = ATO_MIN;
        } else {
            let gap = a.now.since(self.last_received);
            if gap.0 <= ATO_MIN.0 / 2 {
                self.ato = Span(self.ato.0 / 2 + ATO_MIN.0 / 2);
            } else if gap < self.ato {
                self.ato = Span(self.ato.0 / 2 + gap.0).min(a.rto);
            } else if gap > a.rto {
                self.go_quick(a.window);
            }
        }
        if a.grows {
            self.on_growth();
        }
        self.last_received = a.now;
        self.duplicates = 0;
        let read = self.pushed > 1 || (self.pushed > 0 && !self.pingpong);
        a.unacked > u64::from(self.full) || (self.quick > 0 && !self.pingpong) || read
    }

    /// The offered window has grown: one segment is acknowledged at once (`tcp_grow_window`).
    pub(super) fn on_growth(&mut self) {
        self.quick |= 1;
    }

    /// The first mark since the sender was told of one, or a segment without ECT among others, which was
    /// sent again: two are acknowledged at once, for the sender's window may be small
    /// (`__tcp_ecn_check_ce`).
    pub(super) fn on_mark(&mut self) {
        if self.ato == Span::ZERO {
            return; // the first data is acknowledged quickly in any case
        }
        self.quick = self.quick.max(QUICK_AFTER_MARK);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// Something has arrived twice: quick mode (`tcp_enter_quickack_mode`).
    pub(super) fn on_duplicate(&mut self, window: u64) {
        self.go_quick(window);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// How long the ACK waits.
    pub(super) fn delay(&self, srtt: Option<Span>) -> Span {
        let mut ato = self.ato;
        if ato > ATO_MIN {
            let slow = self.pingpong || self.pushed > 0;
            let mut most = if slow { DELAY_MAX } else { HALF_SECOND };
            if let Some(srtt) = srtt {
                most = most.min(srtt.max(ATO_MIN));
            }
            ato = ato.min(most);
        }
        ato.min(DELAY_MAX)
    }

    /// The timer of a delayed ACK has struck.
    pub(super) fn on_timer(&mut self, rto: Span) {
        if self.pingpong {
            self.pingpong = false;
            self.ato = ATO_MIN;
        } else {
            self.ato = Span(self.ato.0 * 2).min(rto);
        }
    }

    /// A packet leaves; all carry an ACK.
    pub(super) fn on_sent(&mut self, data: bool, now: Time, owed: bool) {
        if data && now.since(self.last_received) < self.ato {
            self.pingpong = true;
        }
        self.pushed = 0;
        self.held_back = 0;
        if self.quick > 0 && owed {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
    }

    /// Whether ACKs of segments out of order wait.
    pub(super) fn holds_back(&self) -> bool {
        self.held_back > 0
    }

    /// A segment out of order has arrived: how long its ACK waits, if it is not sent at once; nothing
    /// where one waits already.
    pub(super) fn compress(&mut self, rtt: Option<Span>) -> Compression {
        if self.quick > 0 && !self.pingpong {
            self.quick -= 1;
            return Compression::Send;
        }
        if self.duplicates < COMPRESS_AFTER {
            self.duplicates += 1;
            return Compression::Send;
        }
        if self.held_back >= COMPRESS_MOST {
            return Compression::Send;
        }
        self.held_back += 1;
        if self.held_back > 1 {
            return Compression::Waits;
        }
        Compression::Wait(rtt.map_or(COMPRESS_DELAY, |r| Span(r.0 / 20).min(COMPRESS_DELAY)))
    }
}

/// What becomes of the ACK of a segment out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    /// It is sent.
    Send,
    /// It waits so long.
    Wait(Span),
    /// One that waits will do.
    Waits,
}
