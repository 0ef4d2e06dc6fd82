//! RACK, loss detection by send times: a segment is lost if a segment sent later has been
//! delivered, and the reordering window has passed since its own delivery was due (RFC 8985,
//! section 6; here as in Linux, `tcp_recovery.c`). This file has the state of RACK. Segments are
//! marked in [`scoreboard`](super::scoreboard), and [`rack_tlp`](super::rack_tlp) reacts to losses.
//!
//! The reordering window is 0 if no reordering has been seen, and either three segments are SACKed
//! or a recovery is in progress. Otherwise it is `reo_wnd_mult` times a quarter of the smallest
//! RTT, at most the smoothed RTT. A DSACK increments `reo_wnd_mult`, at most once a round trip, for
//! 16 recoveries. A timer checks again the segments whose reordering window has not passed yet.
//! Retransmissions are treated like other segments, so that a lost retransmission is found without
//! a timeout.
//!
//! [`RackRule`] lists the differences between Linux and the RFC. The smallest RTT is that of the
//! last five minutes (Linux, `tcp_min_rtt_wlen`): after that time the next sample replaces it,
//! whatever it is.

use super::config::TcpConfig;
use super::rtt::timestamp_us;
use super::rules::RackRule;
use eastwest_types::{Packet, Span, Time};
use serde::{Deserialize, Serialize};

/// Number of recoveries for which a wider reordering window is kept (RFC 8985, 6.2 step 4).
const REO_WND_PERSIST: u8 = 16;
/// Age at which the smallest RTT is replaced by the next sample (Linux, `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);
/// Time that Linux adds to the timers of tail loss probes and of reordering (`TCP_TIMEOUT_MIN_US`).
pub(super) const TIMER_SLACK: Span = Span::from_ms(2);

/// Context of an ACK for RACK and for the detection of reordering.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    pub(super) now: Time,
    /// Timestamp that the ACK echoes, in microseconds; `None` if RACK does not use it.
    pub(super) echo_us: Option<u32>,
    /// Highest stream position SACKed before this ACK.
    pub(super) highest: u64,
    /// Recovery point: position whose acknowledgement ends the recovery.
    pub(super) recover: u64,
}

impl AckContext {
    /// Returns the context of an ACK that arrives while nothing is SACKed and no loss is known. The
    /// stream positions, which are not needed then, are 0.
    #[inline]
    pub(super) fn plain(now: Time, packet: &Packet, config: &TcpConfig) -> AckContext {
        let reacts_to_ece = config.recovery.rack == RackRule::Rfc8985 && packet.ts_echo_us != 0;
        let echo_us = reacts_to_ece.then_some(packet.ts_echo_us);
        AckContext { now, echo_us, highest: 0, recover: 0 }
    }
}

/// State of RACK (loss detection by send times) for one connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Rack {
    /// Send time of the segment that was sent last among the delivered segments (RFC 8985,
    /// `RACK.xmit_ts`).
    latest_sent_at: Time,
    /// Stream position after the segment of `latest_sent_at` (RFC 8985, `RACK.end_seq`).
    end: u64,
    /// RTT of the segment delivered last (RFC 8985, `RACK.rtt`).
    pub(super) rtt: Span,
    min_rtt: Span,
    min_rtt_at: Time,
    /// Stream position that must be acknowledged before another DSACK widens the reordering window
    /// (RFC 8985, `RACK.dsack_round`).
    dsack_round: u64,
    /// Length of the reordering window in quarters of the smallest RTT (RFC 8985,
    /// `RACK.reo_wnd_mult`).
    reo_wnd_mult: u8,
    /// Number of further recoveries for which `reo_wnd_mult` is kept (RFC 8985,
    /// `RACK.reo_wnd_persist`).
    reo_wnd_persist: u8,
    /// Whether a segment has been delivered since the last check for losses.
    pub(super) has_new_delivery: bool,
    reordering_seen: bool,
    pub(super) dsack_seen: bool,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            latest_sent_at: Time::ZERO,
            end: 0,
            rtt: Span::ZERO,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            dsack_round: 0,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            has_new_delivery: false,
            reordering_seen: false,
            dsack_seen: false,
        }
    }
}

impl Rack {
    /// Returns the state of RACK at the begin of a connection; `rtt` is the RTT of its handshake.
    pub(super) fn new(now: Time, rtt: Option<Span>) -> Rack {
        let rack = Rack::default();
        Rack {
            rtt: rtt.unwrap_or(rack.rtt),
            min_rtt: rtt.unwrap_or(rack.min_rtt),
            min_rtt_at: now,
            ..rack
        }
    }

    /// Handles the delivery of the segment that ends at position `end` and was last sent at time
    /// `at` (RFC 8985, 6.2 steps 1 and 2).
    #[inline]
    pub(super) fn on_delivery(&mut self, retransmitted: bool, end: u64, at: Time, c: AckContext) {
        if !retransmitted {
            return self.on_first_delivery(end, at, c.now);
        }
        let rtt = c.now.since(at);
        let echoes_older = |echo: u32| (echo.wrapping_sub(timestamp_us(at)) as i32) < 0;
        if rtt < self.min_rtt || c.echo_us.is_some_and(echoes_older) {
            return; // the ACK is for an earlier transmission of the segment
        }
        self.deliver(end, at, rtt);
    }

    /// Handles the delivery, at `now`, of the segment that ends at position `end` and was sent only
    /// once, at time `at`.
    #[inline]
    pub(super) fn on_first_delivery(&mut self, end: u64, at: Time, now: Time) {
        let rtt = now.since(at);
        if rtt <= self.min_rtt || now.since(self.min_rtt_at) > MIN_RTT_WINDOW {
            (self.min_rtt, self.min_rtt_at) = (rtt, now);
        }
        self.deliver(end, at, rtt);
    }

    /// Records the newest delivered segment, which ends at position `end`, was sent last at time
    /// `at`, and had the round-trip time `rtt`.
    #[inline]
    fn deliver(&mut self, end: u64, at: Time, rtt: Span) {
        self.has_new_delivery = true;
        self.rtt = rtt;
        if (at, end) > (self.latest_sent_at, self.end) {
            (self.latest_sent_at, self.end) = (at, end);
        }
    }

    /// Returns the smallest RTT; [`Span::MAX`] before the first sample.
    pub(super) fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// Whether some delivered segment was sent later than the segment that was sent at time `at`
    /// and ends at position `end`.
    #[inline]
    pub(super) fn latest_was_sent_after(&self, at: Time, end: u64) -> bool {
        (self.latest_sent_at, self.end) > (at, end)
    }

    /// Records that segments of the connection have arrived out of order.
    pub(super) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Requests a check for losses with the next ACK, although nothing has been delivered.
    pub(super) fn recheck(&mut self) {
        self.has_new_delivery = true;
    }

    /// Handles the end of a recovery that was not undone: a wider reordering window is kept for one
    /// recovery less.
    pub(super) fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// Widens the reordering window after a DSACK, or resets it (RFC 8985, 6.2 step 4).
    pub(super) fn adapt_window(&mut self, una: u64, next: u64) {
        if una < self.dsack_round {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.dsack_seen = false;
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.dsack_round = next;
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Returns the reordering window: the time for which RACK waits for a segment before the
    /// segment counts as lost. `in_recovery`: whether a recovery is in progress; `enough`: whether
    /// the number of SACKed segments alone indicates a loss; `srtt`: smoothed RTT, the upper bound
    /// of the window.
    pub(super) fn reordering_window(&self, in_recovery: bool, enough: bool, srtt: Span) -> Span {
        if !self.reordering_seen && (in_recovery || enough) {
            return Span::ZERO;
        }
        Span((self.min_rtt.0 / 4).saturating_mul(u64::from(self.reo_wnd_mult))).min(srtt)
    }
}
