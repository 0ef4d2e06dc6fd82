//! Tail loss probe: where the end of a flight is lost no ACK comes that could tell. After about two
//! round trips without one, a segment is sent, new or the last again, whose ACK brings SACKs for the
//! losses before it, so that no timeout is needed (RFC 8985, section 7, as Linux does it).
//!
//! PTO = 2·SRTT + 2 ms, or + the minimum RTO where a single segment is outstanding, whose ACK may be
//! delayed; the RFC has no 2 ms and a maximum ACK delay of its own. Not in a recovery, not while
//! anything is SACKed, never later than the timeout, one probe at a time. A probe that itself repaired
//! the loss is found by an ACK above it without a DSACK, and the window is then cut as for any loss.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::phases::{Phase, Probe};
use super::rack::LATER;
use eastwest_types::Time;

/// What an ACK says about a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) advanced: bool,
    /// It reported something or changed the window.
    pub(super) news: bool,
    /// A DSACK reported the probe.
    pub(super) dsack: bool,
}

impl Endpoint {
    /// Sets the probe's timer after an ACK that moved on, or new data sent.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Time, config: &TcpConfig) {
        let outstanding = self.stream.outstanding();
        if self.recovery.phase != Phase::Open
            || !self.recovery.sacked.is_empty()
            || outstanding == 0
        {
            if self.timers.probe == Probe::Tail {
                self.timers.probe = Probe::None;
            }
            return;
        }
        let timeout = match self.timers.rtt.srtt() {
            Some(srtt) if outstanding > u64::from(config.segment) => srtt * 2 + LATER,
            Some(srtt) => srtt * 2 + config.min_rto.max(config.granularity),
            None => config.initial_rto,
        };
        let at = self.deadline(now, timeout, config).min(self.timers.rto_at);
        self.set_probe(Probe::Tail, at);
    }

    /// Sets the timer of the board.
    #[inline]
    pub(super) fn set_probe(&mut self, probe: Probe, at: Time) {
        if let Some(board) = &mut self.recovery.board {
            board.probe_at = at;
            self.timers.probe = probe;
        }
    }

    /// The probe's timer has expired (RFC 8985, 7.3).
    pub(super) fn send_probe(&mut self, ctx: &mut Context<'_, impl Sink>) {
        if self.stream.una == self.stream.next || self.recovery.rare().probe_end != 0 {
            return;
        }
        let right_edge = self.right_edge(ctx.config);
        let fresh = self.send_new(false, right_edge, ctx) > 0;
        if !fresh {
            let segment = u64::from(ctx.config.segment);
            let last =
                (self.stream.una.max(self.stream.next.saturating_sub(segment)), self.stream.next);
            let (start, stop) = self.recovery.board.as_ref().and_then(|b| b.last()).unwrap_or(last);
            self.send_data(start, stop, true, ctx);
        }
        self.restart_timer(ctx.now, ctx.config);
        let end = self.stream.next;
        let rare = self.recovery.rare();
        rare.counters.probes += 1;
        rare.probe_end = end;
        rare.probe_again = !fresh;
    }

    /// An ACK while a probe is out (RFC 8985, 7.4).
    pub(super) fn judge_probe(&mut self, answer: Answer, config: &TcpConfig) {
        let una = self.stream.una;
        let rare = self.recovery.rare();
        if una < rare.probe_end {
            return;
        }
        if !rare.probe_again || answer.dsack || (!answer.advanced && !answer.news) {
            // new data arrived; or both the original and the probe did: nothing was lost
            rare.probe_end = 0;
        } else if una > rare.probe_end {
            rare.probe_end = 0;
            rare.counters.probe_recoveries += 1;
            let threshold = self.threshold_after_loss(self.window.cwnd, config);
            self.window.ssthresh = threshold;
            self.window.cwnd = threshold;
            self.window.credit = 0;
        }
    }
}
