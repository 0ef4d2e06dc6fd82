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

use super::Sink;
use super::board::Context;
use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase, Probe};
use super::prr::Report;
use super::rules::{PrrRule, RackRule};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Recoveries for which a wider window is kept (RFC 8985, 6.2 step 4).
const KEEP_RECOVERIES: u8 = 16;
/// How long the smallest round trip counts (Linux, `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);
/// What Linux adds to short timers, `TCP_TIMEOUT_MIN_US`.
pub(super) const LATER: Span = Span::from_ms(2);

/// What RACK knows of a connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Rack {
    /// When the latest-sent segment that is known to have arrived was sent, and its end.
    xmit: Time,
    end: u64,
    /// Round trip of the segment that arrived last.
    rtt: Span,
    min_rtt: Span,
    min_rtt_at: Time,
    /// No further step before this position is acknowledged.
    step_after: u64,
    /// Steps of the reordering window.
    steps: u8,
    keep: u8,
    /// Something has arrived since the last look at losses.
    advanced: bool,
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
    pub(super) fn advance(&mut self, resent: bool, end: u64, at: Time, c: Context) {
        let rtt = c.now.since(at);
        if resent {
            let echoes_older =
                |echo: u32| (echo.wrapping_sub(super::output::timestamp_us(at)) as i32) < 0;
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
    fn adapt(&mut self, una: u64, next: u64) {
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

    fn window(&self, in_recovery: bool, enough: bool, srtt: Span) -> Span {
        if !self.reordering_seen && (in_recovery || enough) {
            return Span::ZERO;
        }
        Span((self.min_rtt.0 / 4).saturating_mul(u64::from(self.steps))).min(srtt)
    }
}

/// What a look for losses has found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Findings {
    /// Something that was not known to be lost.
    pub(super) lost_more: bool,
    /// The first lost segment goes out at once.
    pub(super) send_first: bool,
}

impl Endpoint {
    /// Marks what is lost; arms the timer for what may still come. Returns whether a retransmission
    /// was lost.
    fn rack_detect(&mut self, now: Time, config: &TcpConfig) -> bool {
        let in_recovery = self.phase != Phase::Open;
        let srtt = self.rtt.srtt().unwrap_or(Span::ZERO);
        let degree = self.degree_of_reordering(config);
        let Some(board) = &mut self.board else { return false };
        let enough = board.sacked_segments() >= degree;
        let window = board.rack.window(in_recovery, enough, srtt);
        let patience = (board.rack.rtt + window).0 as i64;
        let (again, left) = board.judge(&self.sacked, |at| patience - now.since(at).0 as i64);
        if left > 0 {
            let later = if config.recovery.rack == RackRule::Linux { LATER } else { Span::ZERO };
            let at = self.deadline(now, Span(left as u64) + later, config);
            self.set_probe(Probe::Reorder, at);
        } else if self.probe == Probe::Reorder {
            self.probe = Probe::None;
        }
        if again {
            self.count().lost_retransmits += 1;
        }
        again
    }

    /// An ACK that leaves doubts: looks for losses and starts a recovery where there are.
    pub(super) fn rack_on_ack(
        &mut self,
        now: Time,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> Findings {
        let (una, next) = (self.snd_una, self.snd_max);
        let Some(board) = &mut self.board else { return Findings::default() };
        board.rack.adapt(una, next);
        let before = board.lost();
        let look = std::mem::take(&mut board.rack.advanced);
        let again = look && self.rack_detect(now, config);
        let lost = self.board.as_ref().map_or(0, |b| b.lost());
        let enter = match self.phase {
            Phase::Open => lost > 0,
            Phase::Loss => again,
            Phase::Recovery => false,
        };
        Findings {
            lost_more: lost > before || again,
            send_first: enter && self.begin_recovery(config, sink),
        }
    }

    /// The reordering timer has expired (RFC 8985, 6.3).
    pub(super) fn on_reorder_timer(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let pipe = self.pipe(config);
        self.rack_detect(now, config);
        if self.pipe(config) == pipe {
            return;
        }
        if self.phase != Phase::Recovery {
            let send_first = self.begin_recovery(config, sink);
            if config.recovery.prr != PrrRule::Off {
                let delivered = u64::from(config.segment);
                let report = Report { delivered, advanced: false, lost_more: true };
                self.reduce_in_step(report, config);
            }
            if send_first {
                self.send_lost(now, config, sink);
            }
        }
        self.transmit(now, config, sink);
    }

    /// The time that RACK leaves a segment after a timeout (RFC 8985, 6.3; `tcp_timeout_mark_lost`).
    pub(super) fn rack_on_timeout(&mut self, now: Time) {
        let Some(board) = &mut self.board else { return };
        let rtt = board.rack.rtt.0 as i64;
        board.judge_after_timeout(|at| rtt - now.since(at).0 as i64);
    }
}
