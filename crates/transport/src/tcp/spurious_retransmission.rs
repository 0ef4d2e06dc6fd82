//! Spurious retransmissions: this file detects timeouts and fast recoveries in which nothing was
//! lost, counts them, and undoes their window reductions.
//!
//! Detection by timestamps (Eifel, RFC 3522): the first ACK of new data echoes a time before the
//! first retransmission, so it acknowledges an original transmission. Detection by DSACK (RFC
//! 3708): DSACKs have reported every retransmitted segment, even after the end of the recovery. The
//! response is that of Linux (`tcp_undo_cwnd_reduction`; compare RFC 4015): window and threshold
//! are raised to their values before the reduction ([`undo`](super::undo)), and no data is deemed
//! lost any more.
//!
//! F-RTO detects spurious timeouts by the order of ACKs alone (RFC 5682, section 3, in the form
//! with SACK of Linux's `tcp_process_loss`). After a timeout only the first segment is
//! retransmitted. If the next ACK advances SND.UNA but does not acknowledge everything, new data is
//! sent instead of more retransmissions. A SACK or ACK of data that was sent once, before the
//! timeout, shows that not all was lost: the timeout was spurious and is undone. A duplicate ACK or
//! a SACK of the new data shows the opposite. F-RTO is not used after a timeout within a fast
//! recovery. Without new data to send, or without room in the receive window, recovery is
//! conventional (RFC 5682, step 2b, as in Linux; the RFC also permits the sender to wait).

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, RecoveryEvent, Sink};
use super::states::RecoveryPhase;
use super::undo::{RetransmitAdvice, UndoEvidence, UndoState};
use eastwest_types::Packet;

impl Endpoint {
    /// Checks whether a timeout was spurious, from the timestamp that the first ACK of new data
    /// after the timeout echoes.
    pub(super) fn detect_spurious_timeout(
        &mut self,
        packet: &Packet,
        acked: u64,
        sink: &mut impl Sink,
    ) {
        let timed_out_at = std::mem::take(&mut self.recovery.cold_mut().first_timeout_us);
        if timed_out_at != 0 && (packet.ts_echo_us.wrapping_sub(timed_out_at) as i32) < 0 {
            self.count_spurious_timeout(acked, true, sink);
        } else if timed_out_at != 0 {
            let cold = self.recovery.cold_mut();
            cold.timeout_run.recount_last(&mut cold.counters, packet.ts_echo_us);
        }
    }

    /// Counts a timeout once as spurious. `late`: whether a late ACK of the original transmission
    /// has shown that the timeout was spurious.
    fn count_spurious_timeout(&mut self, acked: u64, late: bool, sink: &mut impl Sink) {
        let cold = self.recovery.cold_mut();
        if !std::mem::replace(&mut cold.spurious_counted, true) {
            cold.counters.spurious_timeouts += 1;
            cold.timeout_run.recount_as_spurious(&mut cold.counters, late);
            self.notify_recovery(
                RecoveryEvent::Spurious,
                self.stream.una - acked,
                self.stream.una,
                sink,
            );
        }
    }

    /// Saves the congestion window and the threshold before a reduction that may have to be undone.
    pub(super) fn save_undo_state(&mut self, of_timeout: bool, config: &TcpConfig) {
        if !config.recovery.undo && !config.recovery.frto {
            return;
        }
        let segment = u64::from(config.segment);
        let out = self.recovery.retransmitted_in_flight().div_ceil(segment) as u32;
        let undo = UndoState::new(of_timeout, &self.stream, &self.window, out);
        self.recovery.cold_mut().undo = Some(undo);
    }

    fn acks_original(&self, packet: &Packet, config: &TcpConfig) -> bool {
        self.recovery.undo().is_some_and(|u| u.acks_original(packet.ts_echo_us, config))
    }

    fn may_undo(&self, packet: &Packet, config: &TcpConfig) -> bool {
        config.recovery.undo
            && (self.recovery.proven_by_dsack() || self.acks_original(packet, config))
    }

    /// Undoes the last window reduction. With `unmark`, no data is deemed lost any more. A proof by
    /// DSACK does not set `unmark`, since it says nothing about segments that were not
    /// retransmitted.
    pub(super) fn undo_reduction(&mut self, unmark: bool, acked: u64, sink: &mut impl Sink) {
        let Some(undo) = self.recovery.cold_mut().undo.take() else { return };
        if undo.restore(&mut self.window) {
            self.count_spurious_timeout(acked, false, sink);
        } else {
            self.recovery.count().spurious_recoveries += 1;
        }
        if unmark {
            self.recovery.set_lost_to(self.stream.una);
            if let Some(scoreboard) = &mut self.recovery.scoreboard {
                scoreboard.clear_lost_marks();
                scoreboard.rack.recheck();
            }
        }
    }

    /// Returns to the open phase of loss recovery after a window reduction was undone.
    fn return_to_open(&mut self, acked: u64, sink: &mut impl Sink) {
        self.recovery.phase = RecoveryPhase::Open;
        self.recovery.dup_acks = 0;
        self.recovery.set_lost_to(self.stream.una);
        // Retransmissions in flight no longer count, because they were unnecessary.
        self.recovery.set_retransmitted_to(self.stream.una);
        self.notify_recovery(
            RecoveryEvent::Recovered,
            self.stream.una - acked,
            self.stream.una,
            sink,
        );
    }

    /// Checks from an ACK whether the recovery or timeout in progress, or the last one, was
    /// spurious. If so, undoes its window reduction. Returns whether the sender may continue to
    /// retransmit.
    pub(super) fn detect_spurious_recovery(
        &mut self,
        packet: &Packet,
        evidence: UndoEvidence,
        ctx: &mut Context<'_, impl Sink>,
    ) -> RetransmitAdvice {
        let acked = evidence.acked;
        match self.recovery.phase {
            RecoveryPhase::Open => {
                if ctx.config.recovery.undo && self.recovery.proven_by_dsack() {
                    self.undo_reduction(false, acked, ctx.sink);
                }
            }
            RecoveryPhase::Recovery => {
                let over = self.stream.una >= self.recovery.recover();
                if over && acked > 0 && self.may_undo(packet, ctx.config)
                    || ctx.config.recovery.undo && self.recovery.proven_by_dsack()
                {
                    self.undo_reduction(false, acked, ctx.sink);
                    self.return_to_open(acked, ctx.sink);
                } else if acked > 0
                    && ctx.config.recovery.undo
                    && self.acks_original(packet, ctx.config)
                {
                    // A late original fills a hole. Retransmissions stop while earlier ones are in
                    // flight.
                    if self.recovery.retransmitted_in_flight() > 0 {
                        return RetransmitAdvice::NewDataOnly;
                    }
                    self.undo_reduction(true, acked, ctx.sink);
                    self.return_to_open(acked, ctx.sink);
                }
            }
            RecoveryPhase::Loss => {
                if acked > 0 && self.may_undo(packet, ctx.config) {
                    self.undo_reduction(true, acked, ctx.sink);
                    self.return_to_open(acked, ctx.sink);
                } else if ctx.config.recovery.frto {
                    return self.frto_on_ack(evidence, ctx);
                }
            }
        }
        RetransmitAdvice::Normal
    }

    /// Undoes a timeout that F-RTO has found spurious.
    pub(super) fn undo_timeout(&mut self, acked: u64, sink: &mut impl Sink) {
        self.undo_reduction(true, acked, sink);
        self.return_to_open(acked, sink);
    }

    /// Starts F-RTO after a timeout, unless the timeout came within a fast recovery.
    /// `phase_before`: phase of loss recovery before the timeout.
    pub(super) fn start_frto(&mut self, phase_before: RecoveryPhase, config: &TcpConfig) {
        if config.recovery.frto {
            self.recovery.cold_mut().frto =
                phase_before == RecoveryPhase::Open || self.timers.retries > 1;
        }
    }

    /// Handles an ACK after a timeout by F-RTO (RFC 5682, 3.1). Returns which segments the sender
    /// may send.
    pub(super) fn frto_on_ack(
        &mut self,
        evidence: UndoEvidence,
        ctx: &mut Context<'_, impl Sink>,
    ) -> RetransmitAdvice {
        if !self.recovery.cold_mut().frto {
            return RetransmitAdvice::Normal;
        }
        if evidence.original {
            self.recovery.cold_mut().frto = false;
            self.undo_timeout(evidence.acked, ctx.sink);
        } else if self.stream.next > self.recovery.recover() {
            if evidence.duplicate {
                self.recovery.cold_mut().frto = false;
                if !ctx.config.sack {
                    // RFC 5682, 2.1 step 3a: without SACK, no ACK shows that the two new segments
                    // have left the network.
                    let three = 3 * u64::from(ctx.config.segment);
                    self.window.cwnd = self.window.cwnd.max(three);
                }
            }
        } else if evidence.acked > 0 && self.stream.una < self.recovery.recover() {
            let right_edge = self.right_edge(ctx.config);
            if self.stream.next < self.send_end() && self.stream.next < right_edge {
                return RetransmitAdvice::NewDataOnly;
            }
            self.recovery.cold_mut().frto = false;
        }
        RetransmitAdvice::Normal
    }
}
