//! What follows from losses: fast recovery, its end, and timeouts. [`Recovery`](super::recovery::Recovery) has
//! what is known of the segments.

use super::config::TcpConfig;
use super::ecn::HELD;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Repair, Sink};
use super::phases::{Phase, Probe};
use super::prr::{Prr, Report};
use super::rtt::timestamp_us;
use super::rules::PrrRule;
use eastwest_types::Time;

impl Endpoint {
    /// Tells those who look on.
    #[cold]
    pub(super) fn tell(&self, step: Repair, from: u64, to: u64, sink: &mut impl Sink) {
        sink.notify(self.address.id, Notice::Repair { step, from, to });
    }

    /// Enters or continues fast recovery where segments have arrived out of order. Returns whether it
    /// has entered: then the first lost segment that has not been sent again goes out at once,
    /// whatever the window says (RFC 5681, 3.2 step 3; RFC 6675, 5 step 4.3).
    pub(super) fn detect_loss(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        if ctx.config.sack {
            self.recovery.update_lost(ctx.config);
        }
        if self.recovery.phase == Phase::Recovery {
            return false;
        }
        let lost = self.recovery.lost_to() > self.stream.una
            || self.recovery.dup_acks >= self.recovery.degree_of_reordering(ctx.config);
        // RFC 6582, 3.2 step 2: without SACK, duplicate ACKs just above the last recovery or timeout
        // may answer what was sent again needlessly
        let guarded = !ctx.config.sack && self.stream.una <= self.recovery.recover();
        if !lost || (guarded && !self.may_recover_again(ctx.config)) {
            return false;
        }
        self.begin_recovery(ctx)
    }

    /// Fast recovery begins; returns whether the first lost segment goes out at once.
    pub(super) fn begin_recovery(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        let segment = u64::from(ctx.config.segment);
        let flight = self.flight_without_limited_transmit(segment);
        self.recovery.phase = Phase::Recovery;
        if self.timers.probe == Probe::Tail {
            self.timers.probe = Probe::None;
        }
        self.recovery.rare().probe_end = 0;
        self.recovery.rare().frto = false;
        self.note_for_undo(false, ctx.config);
        self.recovery.count().fast_recoveries += 1;
        self.tell(Repair::Recovery, self.stream.una, self.stream.next, ctx.sink);
        self.recovery.rare().recover = self.stream.next;
        self.recovery.set_resent_to(self.recovery.resent_to().max(self.stream.una));
        self.recovery.set_lost_to(
            self.recovery.lost_to().max((self.stream.una + segment).min(self.stream.next)),
        );
        self.recovery.rare().rescue_above = self.stream.una + segment;
        if self.is_reno(ctx.config) && self.recover_after_mark(ctx.config) {
            self.window.credit = 0;
            return true;
        }
        self.window.ssthresh = self.threshold_after_loss(flight, ctx.config);
        match ctx.config.recovery.prr {
            PrrRule::Off => self.window.cwnd = self.window.ssthresh,
            PrrRule::Rfc6937 => self.recovery.rare().prr = Prr::new(flight),
            PrrRule::Linux => self.recovery.rare().prr = Prr::new(self.window.cwnd),
        }
        self.window.credit = 0;
        ctx.config.recovery.prr != PrrRule::Linux
    }

    /// Bytes outstanding for the threshold. What limited transmit has sent beyond the window does
    /// not count (RFC 5681, 3.2 step 2).
    fn flight_without_limited_transmit(&self, segment: u64) -> u64 {
        let flight = self.stream.outstanding();
        if self.recovery.phase == Phase::Open && flight > self.window.cwnd {
            return self.window.cwnd / segment * segment;
        }
        flight
    }

    /// Whether a recovery without SACK waits for something above all that was outstanding when it began
    /// to be acknowledged: until then duplicates may answer what was sent again needlessly, and do not
    /// count (RFC 6582, 4.1; Linux, `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn is_held_in_recovery(&self, config: &TcpConfig) -> bool {
        self.recovery.phase == Phase::Recovery
            && !config.sack
            && config.recovery.prr == PrrRule::Linux
            && self.stream.una == self.recovery.recover()
    }

    /// An ACK moved on during recovery or after a timeout. Returns whether the first segment has to
    /// be sent again at once.
    pub(super) fn on_recovery_progress(
        &mut self,
        acked: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        let segment = u64::from(ctx.config.segment);
        let over = self.stream.una >= self.recovery.recover();
        let mut partial = false;
        if ctx.config.timers.ack_ends_backoff && self.timers.backoff > 0 {
            self.timers.backoff = 0;
            if self.timers.rto_at != Time::NEVER {
                self.restart_timer(ctx.now, ctx.config);
            }
        }
        if self.is_held_in_recovery(ctx.config) {
            self.recovery.dup_acks = 0;
            self.recovery.set_lost_to(self.stream.una);
            self.recovery.set_resent_to(self.stream.una);
            return false;
        }
        if self.recovery.phase == Phase::Recovery && self.is_reno(ctx.config) {
            // RFC 2581, 3.2 step 6: any new ACK
            self.leave_recovery(acked, ctx);
            self.grow(ctx.now, acked, false, ctx.config);
            return false;
        }
        if self.recovery.phase == Phase::Loss {
            let held = self.is_reno(ctx.config) && self.ecn & HELD != 0 && self.is_held(ctx.config);
            if !held {
                self.grow(ctx.now, acked, true, ctx.config);
            }
        } else if !ctx.config.sack && !over {
            // RFC 6582, 3.2 step 3: a partial ACK, the next hole is lost too
            partial = true;
            let segments = acked.div_ceil(segment) as u32;
            self.recovery.dup_acks =
                self.recovery.dup_acks.saturating_sub(segments.saturating_sub(1));
            self.recovery.limit_duplicates(u64::from(segments), &self.stream, ctx.config);
            self.recovery.set_resent_to(self.stream.una);
            self.recovery.set_lost_to((self.stream.una + segment).min(self.stream.next));
        }
        if over {
            self.leave_recovery(acked, ctx);
        }
        partial
    }

    /// Recovery, or what a timeout began, is over: `acked` bytes have just been acknowledged.
    fn leave_recovery(&mut self, acked: u64, ctx: &mut Context<'_, impl Sink>) {
        if self.recovery.phase == Phase::Recovery && ctx.config.recovery.prr != PrrRule::Off {
            self.window.cwnd = self.window.ssthresh;
        }
        if let Some(board) = &mut self.recovery.board {
            board.rack.recovery_ended();
        }
        self.recovery.phase = Phase::Open;
        self.tell(Repair::Recovered, self.stream.una - acked, self.stream.una, ctx.sink);
        self.recovery.dup_acks = 0;
        self.recovery.set_lost_to(self.stream.una);
        self.recovery.set_resent_to(self.recovery.resent_to().max(self.stream.una));
    }

    /// The retransmission timer has expired: start over from the first byte not acknowledged.
    pub(super) fn enter_loss(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let segment = u64::from(ctx.config.segment);
        if self.stream.una == self.stream.next {
            return;
        }
        // RFC 5681, equation (4); not again for a segment that timed out before. What was sent in
        // fast recovery must not raise the threshold.
        let before = self.recovery.phase;
        let recovering = before == Phase::Recovery && self.stream.una < self.recovery.recover();
        let flight = self.flight_without_limited_transmit(segment);
        if self.is_reno(ctx.config) {
            self.lower_threshold_of_reno(flight, ctx.config);
        } else if self.timers.retries == 1 && !(recovering && ctx.config.recovery.one_cut) {
            self.note_for_undo(true, ctx.config);
            let threshold = self.threshold_after_loss(flight, ctx.config);
            self.window.ssthresh = match self.recovery.phase {
                Phase::Recovery => threshold.min(self.window.ssthresh),
                Phase::Open | Phase::Loss => threshold,
            };
        }
        if self.timers.retries == 1 {
            self.recovery.rare().timeout_counted = false;
            if ctx.config.timestamps {
                self.recovery.rare().timed_out_at_us = timestamp_us(ctx.now).max(1);
            }
        }
        if before == Phase::Open && ctx.config.recovery.adapt_reordering {
            self.recovery.doubt_degree(ctx.config);
        }
        self.begin_frto(before, ctx.config);
        self.rack_on_timeout(ctx.now);
        self.window.credit = 0;
        self.forget_path(ctx.config);
        self.recovery.phase = Phase::Loss;
        // with RACK what was sent last may still arrive: one segment beside it (RFC 8985, 6.3)
        let spared = self.recovery.board.as_ref().map_or(0, |_| self.pipe(ctx.config));
        self.window.cwnd = spared + segment;
        self.timers.probe = Probe::None;
        self.recovery.rare().probe_end = 0;
        self.recovery.rare().recover = self.stream.next;
        self.recovery.set_lost_to(self.stream.next);
        self.recovery.set_resent_to(self.stream.una);
        self.recovery.dup_acks = 0;
        self.timers.timed_end = 0;
        self.transmit(ctx);
        if self.timers.rto_at == Time::NEVER {
            // pacing holds the first segment back: the timer runs all the same (RFC 6298, 5.6)
            self.restart_timer(ctx.now, ctx.config);
        }
    }

    /// Whether the window falls to the threshold step by step: in fast recovery, and after marks.
    #[inline]
    pub(super) fn is_reducing(&self) -> bool {
        self.recovery.phase == Phase::Recovery
            || (self.ecn & HELD != 0 && self.recovery.phase == Phase::Open)
    }

    /// The window for what an ACK meanwhile reports.
    pub(super) fn reduce_in_step(&mut self, report: Report, config: &TcpConfig) {
        if !self.is_reducing() || report.delivered == 0 {
            return;
        }
        let (pipe, ssthresh) = (self.pipe(config), self.window.ssthresh);
        let segment = u64::from(config.segment);
        let prr = &mut self.recovery.rare().prr;
        let count = prr.send_count(config.recovery.prr, report, pipe, ssthresh, segment);
        self.window.cwnd = (pipe + count).max(segment);
    }
}
