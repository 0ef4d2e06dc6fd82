//! RACK-TLP at a sender (RFC 8985, as in Linux): loss detection by [RACK](super::rack) after an
//! ACK, at the expiry of its timer and after a timeout; and the tail loss probe.
//!
//! Tail loss probe (TLP, section 7): if the end of a flight is lost, no ACK shows it. After about
//! two RTTs without an ACK a probe is sent, which is new data or the last segment; its ACK carries
//! SACK blocks, so that no retransmission timeout is needed.
//!
//! The probe timeout is PTO = 2·SRTT + 2 ms, or 2·SRTT + the minimum RTO if a single segment is
//! outstanding, whose ACK may be delayed. The RFC does not add the 2 ms, and has a separate maximum
//! ACK delay. No probe is sent in a recovery, while data is SACKed, or later than the RTO, and only
//! one probe is outstanding at a time. If the probe itself repaired a loss, an ACK above the probe
//! arrives without a DSACK; the window is then reduced as for any loss.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::prr::DeliveryReport;
use super::rack::TIMER_SLACK;
use super::rules::{PrrRule, RackRule};
use super::states::{RackTimer, RecoveryPhase};
use super::timers::probe_deadline;
use eastwest_types::{Span, Time};

/// Result of loss detection after an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DetectedLosses {
    /// Whether the ACK has revealed a new loss.
    pub(super) new_loss: bool,
    /// Whether the caller must retransmit the first lost segment at once.
    pub(super) retransmit_first: bool,
}

/// Properties of an ACK that arrives while a tail loss probe is outstanding.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeAck {
    pub(super) advanced: bool,
    /// Whether the ACK SACKed data, carried payload or changed the peer's window.
    pub(super) other_news: bool,
    /// Whether a DSACK in the ACK reported the probe as a duplicate.
    pub(super) dsack: bool,
}

impl Endpoint {
    /// Marks lost segments (RFC 8985, `RACK_detect_loss`) and arms the reordering timer. Returns
    /// whether a retransmission is newly marked as lost.
    fn rack_detect(&mut self, now: Time, config: &TcpConfig) -> bool {
        let in_recovery = self.recovery.phase != RecoveryPhase::Open;
        let srtt = self.timers.rtt.srtt().unwrap_or(Span::ZERO);
        let degree = self.recovery.reordering_degree(config);
        let Some(scoreboard) = &mut self.recovery.scoreboard else { return false };
        let enough = scoreboard.sacked_segments() >= degree;
        let window = scoreboard.rack.reordering_window(in_recovery, enough, srtt);
        let give_up_after = (scoreboard.rack.rtt + window).0 as i64;
        let (lost_again, left) = scoreboard
            .mark_lost_by_time(&self.recovery.sacked, |at| give_up_after - now.since(at).0 as i64);
        if left > 0 {
            let later =
                if config.recovery.rack == RackRule::Linux { TIMER_SLACK } else { Span::ZERO };
            let at = self.deadline(now, Span(left as u64) + later, config);
            self.arm_rack_timer(RackTimer::Reordering, at);
        } else if self.timers.rack_timer == RackTimer::Reordering {
            self.timers.rack_timer = RackTimer::Off;
        }
        if lost_again {
            self.recovery.count().lost_retransmits += 1;
        }
        lost_again
    }

    /// Detects losses by RACK after an ACK, and enters fast recovery if a segment is lost.
    pub(super) fn rack_on_ack(&mut self, ctx: &mut Context<'_, impl Sink>) -> DetectedLosses {
        let (una, next) = (self.stream.una, self.stream.next);
        let Some(scoreboard) = &mut self.recovery.scoreboard else {
            return DetectedLosses::default();
        };
        scoreboard.rack.adapt_window(una, next);
        let before = scoreboard.lost();
        let look = std::mem::take(&mut scoreboard.rack.has_new_delivery);
        let lost_again = look && self.rack_detect(ctx.now, ctx.config);
        let lost = self.recovery.scoreboard.as_ref().map_or(0, |b| b.lost());
        let allocate = match self.recovery.phase {
            RecoveryPhase::Open => lost > 0,
            RecoveryPhase::Loss => lost_again,
            RecoveryPhase::Recovery => false,
        };
        DetectedLosses {
            new_loss: lost > before || lost_again,
            retransmit_first: allocate && self.begin_recovery(ctx),
        }
    }

    /// Handles the expiry of the reordering timer (RFC 8985, 6.3).
    pub(super) fn on_reorder_timer(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let pipe = self.pipe(ctx.config);
        self.rack_detect(ctx.now, ctx.config);
        if self.pipe(ctx.config) == pipe {
            return;
        }
        if self.recovery.phase != RecoveryPhase::Recovery {
            let retransmit_first = self.begin_recovery(ctx);
            if ctx.config.recovery.prr != PrrRule::Off {
                let delivered = u64::from(ctx.config.segment);
                let report = DeliveryReport { delivered, advanced: false, new_loss: true };
                self.apply_prr(report, ctx.config);
            }
            if retransmit_first {
                self.retransmit_lost(ctx);
            }
        }
        self.transmit(ctx);
    }

    /// Marks segments as lost after a retransmission timeout: the first segment, and all sent more
    /// than an RTT ago (RFC 8985, 6.3; Linux, `tcp_timeout_mark_lost`).
    pub(super) fn rack_on_timeout(&mut self, now: Time) {
        let Some(scoreboard) = &mut self.recovery.scoreboard else { return };
        let rtt = scoreboard.rack.rtt.0 as i64;
        scoreboard.mark_lost_after_timeout(|at| rtt - now.since(at).0 as i64);
    }

    /// Arms the timer of the tail loss probe after an ACK of new data or the transmission of new
    /// data.
    #[inline(always)]
    pub(super) fn schedule_tlp(&mut self, now: Time, config: &TcpConfig) {
        let outstanding = self.stream.outstanding();
        if self.recovery.phase != RecoveryPhase::Open
            || !self.recovery.sacked.is_empty()
            || outstanding == 0
        {
            if self.timers.rack_timer == RackTimer::TailLossProbe {
                self.timers.rack_timer = RackTimer::Off;
            }
            return;
        }
        let timeout = match self.timers.rtt.srtt() {
            Some(srtt) if outstanding > u64::from(config.segment) => srtt * 2 + TIMER_SLACK,
            Some(srtt) => srtt * 2 + config.min_rto.max(config.granularity),
            None => config.initial_rto,
        };
        let before = self.recovery.scoreboard.as_ref().map_or(Time::NEVER, |b| b.rack_timer_at);
        let at = probe_deadline(before, now, timeout, self.address.local, config);
        let at = at.min(self.timers.rto_at);
        self.arm_rack_timer(RackTimer::TailLossProbe, at);
    }

    /// Arms the RACK-TLP timer to expire at time `at`. Its purpose `probe` is the reordering check
    /// or the tail loss probe.
    #[inline]
    pub(super) fn arm_rack_timer(&mut self, probe: RackTimer, at: Time) {
        if let Some(scoreboard) = &mut self.recovery.scoreboard {
            scoreboard.rack_timer_at = at;
            self.timers.rack_timer = probe;
        }
    }

    /// Sends a tail loss probe after the expiry of the timer (RFC 8985, 7.3).
    pub(super) fn send_tlp(&mut self, ctx: &mut Context<'_, impl Sink>) {
        if self.stream.una == self.stream.next || self.recovery.cold_mut().tlp_end != 0 {
            return;
        }
        let right_edge = self.right_edge(ctx.config);
        let fresh = self.send_new_segment(false, right_edge, ctx) > 0;
        if !fresh {
            let segment = u64::from(ctx.config.segment);
            let last =
                (self.stream.una.max(self.stream.next.saturating_sub(segment)), self.stream.next);
            let (start, stop) =
                self.recovery.scoreboard.as_ref().and_then(|b| b.last_segment()).unwrap_or(last);
            self.send_data(start, stop, true, ctx);
        }
        self.restart_timer(ctx.now, ctx.config);
        let end = self.stream.next;
        let cold = self.recovery.cold_mut();
        cold.counters.probes += 1;
        cold.tlp_end = end;
        cold.tlp_is_retransmission = !fresh;
    }

    /// Handles an ACK while a tail loss probe is outstanding (RFC 8985, 7.4).
    pub(super) fn on_tlp_ack(&mut self, answer: ProbeAck, config: &TcpConfig) {
        let una = self.stream.una;
        let cold = self.recovery.cold_mut();
        if una < cold.tlp_end {
            return;
        }
        if !cold.tlp_is_retransmission || answer.dsack || (!answer.advanced && !answer.other_news) {
            // Nothing was lost: new data in the probe has arrived, or the original segment and the
            // probe both have.
            cold.tlp_end = 0;
        } else if una > cold.tlp_end {
            cold.tlp_end = 0;
            cold.counters.probe_recoveries += 1;
            let threshold = self.ssthresh_after_loss(self.window.cwnd, config);
            self.window.ssthresh = threshold;
            self.window.cwnd = threshold;
            self.window.credit = 0;
        }
    }
}
