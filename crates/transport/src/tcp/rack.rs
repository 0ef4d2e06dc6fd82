//! RACK: a segment is lost when one sent later has arrived and time enough has passed for the two to
//! have changed places (RFC 8985, section 6), in the form Linux gives it (`tcp_recovery.c`).
//!
//! The reordering window is 0 while no reordering has been seen, from the third SACKed segment on and
//! throughout a recovery; otherwise a quarter of the smallest round trip for each step, at most the
//! smoothed one. A DSACK adds a step, at most once a round trip, kept for 16 recoveries. Where segments
//! wait for the window to pass, a timer judges them. A
//! retransmission is judged like any segment, so a lost one is found without a timeout.
//!
//! [`RackRule`] has where Linux and the RFC differ. The smallest round trip is that of the last five
//! minutes (Linux, `tcp_min_rtt_wlen`): one that has stood so long gives way to the next, whatever it is.

use super::config::TcpConfig;
use super::rtt::timestamp_us;
use super::rules::RackRule;
use eastwest_types::{Packet, Span, Time};
use serde::{Deserialize, Serialize};

/// Recoveries for which a wider window is kept (RFC 8985, 6.2 step 4).
const KEEP_RECOVERIES: u8 = 16;
/// How long the smallest round trip counts (Linux, `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);
/// What Linux adds to short timers, `TCP_TIMEOUT_MIN_US`.
pub(super) const LATER: Span = Span::from_ms(2);

/// What an ACK is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    pub(super) now: Time,
    /// The time it echoes, microseconds, where that is to be heeded.
    pub(super) echo_us: Option<u32>,
    /// The highest position SACKed before this ACK.
    pub(super) highest: u64,
    /// Where the present recovery ends.
    pub(super) recover: u64,
}

impl AckContext {
    /// Returns that of an ACK while nothing is SACKed and no loss is known: positions do not matter then.
    #[inline]
    pub(super) fn plain(now: Time, packet: &Packet, config: &TcpConfig) -> AckContext {
        let heeds_echo = config.recovery.rack == RackRule::Rfc8985 && packet.ts_echo_us != 0;
        let echo_us = heeds_echo.then_some(packet.ts_echo_us);
        AckContext { now, echo_us, highest: 0, recover: 0 }
    }
}

/// What RACK knows of a connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Rack {
    /// When the latest-sent segment that is known to have arrived was sent, and its end.
    xmit: Time,
    end: u64,
    /// Round trip of the segment that arrived last.
    pub(super) rtt: Span,
    min_rtt: Span,
    min_rtt_at: Time,
    /// No further step before this position is acknowledged.
    step_after: u64,
    /// Steps of the reordering window.
    steps: u8,
    keep: u8,
    /// Something has arrived since the last look at losses.
    pub(super) advanced: bool,
    reordering_seen: bool,
    pub(super) dsack_seen: bool,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            xmit: Time::ZERO,
            end: 0,
            rtt: Span::ZERO,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            step_after: 0,
            steps: 1,
            keep: 0,
            advanced: false,
            reordering_seen: false,
            dsack_seen: false,
        }
    }
}

impl Rack {
    /// At the start of a connection; `rtt` is the round trip of its handshake.
    pub(super) fn new(now: Time, rtt: Option<Span>) -> Rack {
        let rack = Rack::default();
        Rack {
            rtt: rtt.unwrap_or(rack.rtt),
            min_rtt: rtt.unwrap_or(rack.min_rtt),
            min_rtt_at: now,
            ..rack
        }
    }

    /// A segment has arrived (RFC 8985, 6.2 steps 1 and 2).
    #[inline]
    pub(super) fn advance(&mut self, resent: bool, end: u64, at: Time, c: AckContext) {
        let rtt = c.now.since(at);
        if resent {
            let echoes_older = |echo: u32| (echo.wrapping_sub(timestamp_us(at)) as i32) < 0;
            if rtt < self.min_rtt || c.echo_us.is_some_and(echoes_older) {
                return; // the answer to an earlier copy
            }
        } else if rtt <= self.min_rtt || c.now.since(self.min_rtt_at) > MIN_RTT_WINDOW {
            (self.min_rtt, self.min_rtt_at) = (rtt, c.now);
        }
        self.advanced = true;
        self.rtt = rtt;
        if (at, end) > (self.xmit, self.end) {
            (self.xmit, self.end) = (at, end);
        }
    }

    /// The smallest round trip; [`Span::MAX`] before the first.
    pub(super) fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// Whether the latest arrival was sent after a segment sent at `at` that ends at `end`.
    #[inline]
    pub(super) fn is_after(&self, at: Time, end: u64) -> bool {
        (self.xmit, self.end) > (at, end)
    }

    /// Segments have changed places on the way.
    pub(super) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// The next look at losses is to be taken though nothing has arrived.
    pub(super) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A recovery has ended that was not needless.
    pub(super) fn recovery_ended(&mut self) {
        self.keep = self.keep.saturating_sub(1);
    }

    /// DSACKs widen the window (RFC 8985, 6.2 step 4).
    pub(super) fn adapt(&mut self, una: u64, next: u64) {
        if una < self.step_after {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.dsack_seen = false;
            self.steps = self.steps.saturating_add(1);
            self.step_after = next;
            self.keep = KEEP_RECOVERIES;
        } else if self.keep == 0 {
            self.steps = 1;
        }
    }

    /// The reordering window.
    pub(super) fn window(&self, in_recovery: bool, enough: bool, srtt: Span) -> Span {
        if !self.reordering_seen && (in_recovery || enough) {
            return Span::ZERO;
        }
        Span((self.min_rtt.0 / 4).saturating_mul(u64::from(self.steps))).min(srtt)
    }
}
