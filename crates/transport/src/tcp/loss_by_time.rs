//! Losses that [RACK](super::rack) finds: with an ACK, when its timer strikes, and after a timeout.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::phases::{Phase, Probe};
use super::prr::Report;
use super::rack::LATER;
use super::rules::{PrrRule, RackRule};
use eastwest_types::{Span, Time};

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
        let in_recovery = self.recovery.phase != Phase::Open;
        let srtt = self.timers.rtt.srtt().unwrap_or(Span::ZERO);
        let degree = self.recovery.degree_of_reordering(config);
        let Some(board) = &mut self.recovery.board else { return false };
        let enough = board.sacked_segments() >= degree;
        let window = board.rack.window(in_recovery, enough, srtt);
        let patience = (board.rack.rtt + window).0 as i64;
        let (again, left) =
            board.judge(&self.recovery.sacked, |at| patience - now.since(at).0 as i64);
        if left > 0 {
            let later = if config.recovery.rack == RackRule::Linux { LATER } else { Span::ZERO };
            let at = self.deadline(now, Span(left as u64) + later, config);
            self.set_probe(Probe::Reorder, at);
        } else if self.timers.probe == Probe::Reorder {
            self.timers.probe = Probe::None;
        }
        if again {
            self.recovery.count().lost_retransmits += 1;
        }
        again
    }

    /// An ACK that leaves doubts: looks for losses and starts a recovery where there are.
    pub(super) fn rack_on_ack(&mut self, ctx: &mut Context<'_, impl Sink>) -> Findings {
        let (una, next) = (self.stream.una, self.stream.next);
        let Some(board) = &mut self.recovery.board else { return Findings::default() };
        board.rack.adapt(una, next);
        let before = board.lost();
        let look = std::mem::take(&mut board.rack.advanced);
        let again = look && self.rack_detect(ctx.now, ctx.config);
        let lost = self.recovery.board.as_ref().map_or(0, |b| b.lost());
        let enter = match self.recovery.phase {
            Phase::Open => lost > 0,
            Phase::Loss => again,
            Phase::Recovery => false,
        };
        Findings {
            lost_more: lost > before || again,
            send_first: enter && self.begin_recovery(ctx),
        }
    }

    /// The reordering timer has expired (RFC 8985, 6.3).
    pub(super) fn on_reorder_timer(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let pipe = self.pipe(ctx.config);
        self.rack_detect(ctx.now, ctx.config);
        if self.pipe(ctx.config) == pipe {
            return;
        }
        if self.recovery.phase != Phase::Recovery {
            let send_first = self.begin_recovery(ctx);
            if ctx.config.recovery.prr != PrrRule::Off {
                let delivered = u64::from(ctx.config.segment);
                let report = Report { delivered, advanced: false, lost_more: true };
                self.reduce_in_step(report, ctx.config);
            }
            if send_first {
                self.send_lost(ctx);
            }
        }
        self.transmit(ctx);
    }

    /// The time that RACK leaves a segment after a timeout (RFC 8985, 6.3; `tcp_timeout_mark_lost`).
    pub(super) fn rack_on_timeout(&mut self, now: Time) {
        let Some(board) = &mut self.recovery.board else { return };
        let rtt = board.rack.rtt.0 as i64;
        board.judge_after_timeout(|at| rtt - now.since(at).0 as i64);
    }
}
