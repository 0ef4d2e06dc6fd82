//! Begin, progress and end of fast recovery, and of the loss phase after a retransmission timeout.
//!
//! Other files decide which segments are lost: [`recovery`](super::recovery), or with RACK
//! [`scoreboard`](super::scoreboard).

use super::config::TcpConfig;
use super::ecn::IN_CWR;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, RecoveryEvent, Sink};
use super::prr::{DeliveryReport, Prr};
use super::rtt::timestamp_us;
use super::rules::PrrRule;
use super::states::{RackTimer, RecoveryPhase};
use eastwest_types::Time;

impl Endpoint {
    /// Reports a step of loss recovery, for the event log.
    #[cold]
    pub(super) fn notify_recovery(
        &self,
        step: RecoveryEvent,
        from: u64,
        to: u64,
        sink: &mut impl Sink,
    ) {
        sink.notify(self.address.id, Notice::LossRecovery { event: step, from, to });
    }

    /// Detects losses by duplicate ACKs or SACK, and enters fast recovery. Returns whether it has
    /// entered fast recovery and the caller must retransmit the first lost segment at once, even if
    /// the window is full (RFC 5681, 3.2 step 3; RFC 6675, section 5, step 4.3).
    pub(super) fn detect_loss(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        if ctx.config.sack {
            self.recovery.update_lost(ctx.config);
        }
        if self.recovery.phase == RecoveryPhase::Recovery {
            return false;
        }
        let lost = self.recovery.lost_to() > self.stream.una
            || self.recovery.dup_acks >= self.recovery.reordering_degree(ctx.config);
        // RFC 6582, 3.2 step 2: without SACK, duplicate ACKs just above the last recovery or
        // timeout may be caused by unnecessary retransmissions
        let guarded = !ctx.config.sack && self.stream.una <= self.recovery.recover();
        if !lost || (guarded && !self.may_reenter_recovery(ctx.config)) {
            return false;
        }
        self.begin_recovery(ctx)
    }

    /// Enters fast recovery. Returns whether the caller must retransmit the first lost segment at
    /// once.
    pub(super) fn begin_recovery(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        let segment = u64::from(ctx.config.segment);
        let flight = self.flight_without_limited_transmit(segment);
        self.recovery.phase = RecoveryPhase::Recovery;
        if self.timers.rack_timer == RackTimer::TailLossProbe {
            self.timers.rack_timer = RackTimer::Off;
        }
        self.recovery.cold_mut().tlp_end = 0;
        self.recovery.cold_mut().frto = false;
        self.save_undo_state(false, ctx.config);
        self.recovery.count().fast_recoveries += 1;
        self.notify_recovery(RecoveryEvent::Recovery, self.stream.una, self.stream.next, ctx.sink);
        self.recovery.cold_mut().recover = self.stream.next;
        self.recovery.set_retransmitted_to(self.recovery.retransmitted_to().max(self.stream.una));
        self.recovery.set_lost_to(
            self.recovery.lost_to().max((self.stream.una + segment).min(self.stream.next)),
        );
        self.recovery.cold_mut().rescue_above = self.stream.una + segment;
        if self.is_reno(ctx.config) && self.enter_recovery_after_ece(ctx.config) {
            self.window.credit = 0;
            return true;
        }
        self.window.ssthresh = self.ssthresh_after_loss(flight, ctx.config);
        match ctx.config.recovery.prr {
            PrrRule::Off => self.window.cwnd = self.window.ssthresh,
            PrrRule::Rfc6937 => self.recovery.cold_mut().prr = Prr::new(flight),
            PrrRule::Linux => self.recovery.cold_mut().prr = Prr::new(self.window.cwnd),
        }
        self.window.credit = 0;
        ctx.config.recovery.prr != PrrRule::Linux
    }

    /// Returns the FlightSize for the slow-start threshold: bytes outstanding, without the bytes
    /// that limited transmit has sent beyond the window (RFC 5681, 3.2 step 2).
    fn flight_without_limited_transmit(&self, segment: u64) -> u64 {
        let flight = self.stream.outstanding();
        if self.recovery.phase == RecoveryPhase::Open && flight > self.window.cwnd {
            return self.window.cwnd / segment * segment;
        }
        flight
    }

    /// Whether a recovery without SACK continues although all data outstanding at its begin is
    /// acknowledged. Until newer data is acknowledged, duplicate ACKs do not count, since
    /// unnecessary retransmissions may cause them (RFC 6582, 4.1; Linux,
    /// `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn is_non_sack_preventing_reopen(&self, config: &TcpConfig) -> bool {
        self.recovery.phase == RecoveryPhase::Recovery
            && !config.sack
            && config.recovery.prr == PrrRule::Linux
            && self.stream.una == self.recovery.recover()
    }

    /// Handles an ACK of `acked` new bytes in fast recovery or after a timeout. Returns whether the
    /// caller must retransmit the first segment at once.
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
        if self.is_non_sack_preventing_reopen(ctx.config) {
            self.recovery.dup_acks = 0;
            self.recovery.set_lost_to(self.stream.una);
            self.recovery.set_retransmitted_to(self.stream.una);
            return false;
        }
        if self.recovery.phase == RecoveryPhase::Recovery && self.is_reno(ctx.config) {
            // RFC 2581, 3.2 step 6: any ACK of new data ends fast recovery.
            self.leave_recovery(acked, ctx);
            self.grow_cwnd(ctx.now, acked, false, ctx.config);
            return false;
        }
        if self.recovery.phase == RecoveryPhase::Loss {
            let held =
                self.is_reno(ctx.config) && self.ecn & IN_CWR != 0 && self.stays_in_cwr(ctx.config);
            if !held {
                self.grow_cwnd(ctx.now, acked, true, ctx.config);
            }
        } else if !ctx.config.sack && !over {
            // RFC 6582, 3.2 step 3: a partial ACK shows that the next hole is lost too.
            partial = true;
            let segments = acked.div_ceil(segment) as u32;
            self.recovery.dup_acks =
                self.recovery.dup_acks.saturating_sub(segments.saturating_sub(1));
            self.recovery.limit_reno_sacked(u64::from(segments), &self.stream, ctx.config);
            self.recovery.set_retransmitted_to(self.stream.una);
            self.recovery.set_lost_to((self.stream.una + segment).min(self.stream.next));
        }
        if over {
            self.leave_recovery(acked, ctx);
        }
        partial
    }

    /// Ends fast recovery, or the loss phase after a timeout; `acked` bytes have just been
    /// acknowledged.
    fn leave_recovery(&mut self, acked: u64, ctx: &mut Context<'_, impl Sink>) {
        if self.recovery.phase == RecoveryPhase::Recovery && ctx.config.recovery.prr != PrrRule::Off
        {
            self.window.cwnd = self.window.ssthresh;
        }
        if let Some(scoreboard) = &mut self.recovery.scoreboard {
            scoreboard.rack.on_recovery_end();
        }
        self.recovery.phase = RecoveryPhase::Open;
        self.notify_recovery(
            RecoveryEvent::Recovered,
            self.stream.una - acked,
            self.stream.una,
            ctx.sink,
        );
        self.recovery.dup_acks = 0;
        self.recovery.set_lost_to(self.stream.una);
        self.recovery.set_retransmitted_to(self.recovery.retransmitted_to().max(self.stream.una));
    }

    /// Enters the loss phase after a retransmission timeout: retransmits from the first byte not
    /// acknowledged.
    pub(super) fn enter_loss(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let segment = u64::from(ctx.config.segment);
        if self.stream.una == self.stream.next {
            return;
        }
        // RFC 5681, equation (4): reduces the threshold, but not again for a segment that has timed
        // out before. Data sent in fast recovery must not raise the threshold.
        let before = self.recovery.phase;
        let recovering =
            before == RecoveryPhase::Recovery && self.stream.una < self.recovery.recover();
        let flight = self.flight_without_limited_transmit(segment);
        if self.is_reno(ctx.config) {
            self.reduce_ssthresh_of_reno(flight, ctx.config);
        } else if self.timers.retries == 1 && !(recovering && ctx.config.recovery.one_cut) {
            self.save_undo_state(true, ctx.config);
            let threshold = self.ssthresh_after_loss(flight, ctx.config);
            self.window.ssthresh = match self.recovery.phase {
                RecoveryPhase::Recovery => threshold.min(self.window.ssthresh),
                RecoveryPhase::Open | RecoveryPhase::Loss => threshold,
            };
        }
        if self.timers.retries == 1 {
            self.recovery.cold_mut().spurious_counted = false;
            if ctx.config.timestamps {
                self.recovery.cold_mut().first_timeout_us = timestamp_us(ctx.now).max(1);
            }
        }
        if before == RecoveryPhase::Open && ctx.config.recovery.adapt_reordering {
            self.recovery.lower_reordering_degree(ctx.config);
        }
        self.start_frto(before, ctx.config);
        self.rack_on_timeout(ctx.now);
        self.window.credit = 0;
        self.reset_control_after_timeout(ctx.config);
        self.recovery.phase = RecoveryPhase::Loss;
        // With RACK, the segments sent last may still arrive. The window allows one segment in
        // addition to them (RFC 8985, 6.3).
        let spared = self.recovery.scoreboard.as_ref().map_or(0, |_| self.pipe(ctx.config));
        self.window.cwnd = spared + segment;
        self.timers.rack_timer = RackTimer::Off;
        self.recovery.cold_mut().tlp_end = 0;
        self.recovery.cold_mut().recover = self.stream.next;
        self.recovery.set_lost_to(self.stream.next);
        self.recovery.set_retransmitted_to(self.stream.una);
        self.recovery.dup_acks = 0;
        self.timers.timed_end = 0;
        self.transmit(ctx);
        if self.timers.rto_at == Time::NEVER {
            // Pacing may delay the first segment, but the timer runs from now in any case (RFC
            // 6298, 5.6).
            self.restart_timer(ctx.now, ctx.config);
        }
    }

    /// Whether the congestion window is being reduced step by step: in fast recovery, and after
    /// ECE.
    #[inline]
    pub(super) fn is_reducing_cwnd(&self) -> bool {
        self.recovery.phase == RecoveryPhase::Recovery
            || (self.ecn & IN_CWR != 0 && self.recovery.phase == RecoveryPhase::Open)
    }

    /// Sets the window by proportional rate reduction after an ACK.
    pub(super) fn apply_prr(&mut self, report: DeliveryReport, config: &TcpConfig) {
        if !self.is_reducing_cwnd() || report.delivered == 0 {
            return;
        }
        let (pipe, ssthresh) = (self.pipe(config), self.window.ssthresh);
        let segment = u64::from(config.segment);
        let prr = &mut self.recovery.cold_mut().prr;
        let count = prr.send_count(config.recovery.prr, report, pipe, ssthresh, segment);
        self.window.cwnd = (pipe + count).max(segment);
    }
}
