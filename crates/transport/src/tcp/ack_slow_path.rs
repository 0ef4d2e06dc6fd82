//! ACK slow path: duplicate ACKs, ACKs with SACK blocks or ECE, all ACKs during a recovery, a
//! reduction by ECE or a tail loss probe, and with BBR all ACKs.
//!
//! The order of the steps follows Linux (`tcp_ack`): update of the scoreboard, ECE, spurious
//! retransmissions, progress of the recovery, tail loss probe, loss detection, congestion window,
//! transmission. Each mechanism is described in its own file. The fast path is in
//! [`input`](super::input).

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::pacing::AckChange;
use super::prr::DeliveryReport;
use super::rack::AckContext;
use super::rack_tlp::DetectedLosses;
use super::rack_tlp::ProbeAck;
use super::rules::PrrRule;
use super::scoreboard::{Delivery, SendTimes};
use super::states::RecoveryPhase;
use super::undo::{RetransmitAdvice, UndoEvidence};
use crate::congestion::rules::Counting;
use eastwest_types::{Packet, SackBlocks, Time, flag};

impl Endpoint {
    /// Processes an ACK that the fast path does not process, such as a duplicate ACK, an ACK with
    /// SACK blocks or ECE, or an ACK in a recovery.
    #[inline(never)]
    pub(super) fn on_ack_slow_path(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ack: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let before = self.state_before_ack(ctx.config);
        let mut retransmit_first = false;
        let window_changed = self.peer_window != packet.window;
        self.peer_window = packet.window;
        let mut report = AckReport::default();
        // The test for reordering uses what was SACKed before this ACK (Linux, `prior_fack`).
        let context = self.recovery.context(ctx.now, packet, &self.stream, ctx.config);
        let newly_sacked = match sack {
            Some(blocks) if ctx.config.sack => {
                self.process_sack(ctx.now, packet, blocks, ack, &mut report, ctx.config)
            }
            _ => 0,
        };
        let acked = ack - self.stream.una;
        let may_hide_losses = self.recovery.phase != RecoveryPhase::Open
            || !self.recovery.sacked.is_empty()
            || report.dsack.is_some();
        let mut send_times = None;
        if acked > 0 {
            send_times = self.account_acked(ack, context, &mut report, ctx.config);
            self.advance_una(packet, ack, send_times, ctx);
            if !self.recovery.sacked.is_empty() {
                self.recovery.sacked.remove_below(ack);
            }
        }
        if self.has_control_state() {
            let delivered = self.delivered_since(&before, acked, ctx.config);
            self.report_ack(ctx.now, packet, sack, (acked, delivered), send_times, ctx.config);
        }
        if packet.flags & flag::ECE != 0 {
            self.on_ece(before.flight, acked, ctx.config);
        }
        let duplicate = acked == 0
            && before.flight > 0
            && packet.payload == 0
            && packet.flags & flag::FIN == 0
            && (newly_sacked > 0 || (!ctx.config.sack && !window_changed));
        let mut advice = RetransmitAdvice::Normal;
        if ctx.config.recovery.detects_spurious()
            && (self.recovery.phase != RecoveryPhase::Open || report.dsack.is_some())
        {
            let duplicate = duplicate || newly_sacked > 0;
            let evidence = UndoEvidence { acked, original: report.delivery.original, duplicate };
            advice = self.detect_spurious_recovery(packet, evidence, ctx);
        }
        if acked > 0 {
            if self.is_reno(ctx.config) {
                self.deflate(ctx.config);
            }
            let counted = self.acked_for_growth(acked, before.sacked_out, ctx.config);
            retransmit_first = self.on_new_ack((acked, counted), before.flight, ctx);
            self.enter_time_wait_if_finished(ctx);
        } else if duplicate && !self.is_non_sack_preventing_reopen(ctx.config) {
            // Counts a duplicate ACK (RFC 5681, section 2). With SACK, only an ACK that SACKs new
            // data is a duplicate (RFC 6675).
            self.recovery.dup_acks += 1;
            match self.is_reno(ctx.config) {
                true => self.inflate(ctx.config),
                false => self.recovery.limit_reno_sacked(0, &self.stream, ctx.config),
            }
        }
        if ctx.config.recovery.probes && self.recovery.is_tlp_in_flight() {
            let dsack = report.dsack.is_some_and(|d| d.1 == self.recovery.cold_mut().tlp_end);
            let other = packet.payload > 0 || window_changed || newly_sacked > 0;
            self.on_tlp_ack(ProbeAck { advanced: acked > 0, other_news: other, dsack }, ctx.config);
        }
        let due = (may_hide_losses && advice == RetransmitAdvice::Normal, newly_sacked > 0);
        let found = self.detect_losses(due, ctx);
        retransmit_first |= found.retransmit_first;
        self.update_cwnd(ctx.now, &before, acked, found.new_loss, ctx.config);
        if retransmit_first {
            self.retransmit_lost(ctx);
        }
        self.transmit_after_ack(advice, acked > 0 || newly_sacked > 0, ctx);
    }

    /// Whether an ACK, whose number is `ack`, is a duplicate without ECE at a sender with data
    /// outstanding (`flight` bytes), outside of the loss phase, whose recovery is plain.
    #[inline]
    pub(super) fn is_plain_duplicate(
        &self,
        packet: &Packet,
        ack: u64,
        flight: u64,
        config: &TcpConfig,
    ) -> bool {
        ack == self.stream.una
            && flight > 0
            && packet.payload == 0
            && packet.flags & (flag::ECE | flag::FIN) == 0
            && self.recovery.phase != RecoveryPhase::Loss
            && !self.has_control_state()
            && config.sack
            && config.recovery.is_plain()
    }

    /// Processes a [plain duplicate ACK](Endpoint::is_plain_duplicate) with the SACK blocks
    /// `blocks`, in the same way as [`Endpoint::on_ack_slow_path`] in fewer instructions.
    #[inline(never)]
    pub(super) fn on_plain_duplicate(
        &mut self,
        packet: &Packet,
        blocks: &SackBlocks,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        self.peer_window = packet.window;
        let (una, next) = (self.stream.una, self.stream.next);
        let mut newly_sacked = 0;
        // Most blocks repeat a block of the previous ACK, or the first block has grown.
        for (hint, &(start, end)) in blocks.iter().enumerate() {
            let start = start.max(una);
            if start < end && end <= next {
                newly_sacked += self.recovery.sacked.insert_with_hint(hint, start, end);
            }
        }
        if newly_sacked > 0 {
            self.recovery.dup_acks += 1;
        }
        if self.recovery.dup_acks > 0 && self.detect_loss(ctx) {
            self.retransmit_lost(ctx);
        }
        self.transmit(ctx);
    }

    /// Returns the sender's state before an ACK is processed: bytes outstanding, SACKed, in flight
    /// and lost.
    #[inline]
    fn state_before_ack(&self, config: &TcpConfig) -> BeforeAck {
        let (pipe, lost) = match config.congestion.follows_path() {
            true => (self.pipe(config), self.recovery.lost_bytes()),
            false => (0, 0),
        };
        let flight = self.stream.outstanding();
        BeforeAck { flight, sacked_out: self.recovery.sacked_out(config), pipe, lost }
    }

    /// Returns the bytes delivered by an ACK that advances SND.UNA by `acked` bytes; `before`:
    /// state of the sender before the ACK.
    #[inline]
    fn delivered_since(&self, before: &BeforeAck, acked: u64, config: &TcpConfig) -> u64 {
        (acked + self.recovery.sacked_out(config)).saturating_sub(before.sacked_out)
    }

    /// Removes the segments below stream position `ack` from the scoreboard, and adds to `report`
    /// whether original transmissions have arrived. Returns the send times of the newly delivered
    /// segments; `None` without RACK, or if one of them was retransmitted.
    #[inline]
    fn account_acked(
        &mut self,
        ack: u64,
        context: AckContext,
        report: &mut AckReport,
        config: &TcpConfig,
    ) -> Option<SendTimes> {
        if config.recovery.uses_rack() {
            return self.acknowledge_segments(ack, context, report, config);
        }
        if self.recovery.phase == RecoveryPhase::Loss {
            report.delivery.original |= self.recovery.delivers_original(self.stream.una, ack);
        } else if config.recovery.adapt_reordering && !self.recovery.sacked.is_empty() {
            let highest = self.recovery.sacked.end();
            self.recovery.detect_late_original((self.stream.una, ack), highest, ack, config);
        }
        None
    }

    /// Updates the congestion window and the pacing rate after an ACK. During a reduction the
    /// window follows proportional rate reduction (RFC 6937), with BBR the model of the path.
    #[inline]
    fn update_cwnd(
        &mut self,
        now: Time,
        before: &BeforeAck,
        acked: u64,
        new_loss: bool,
        config: &TcpConfig,
    ) {
        if config.recovery.prr != PrrRule::Off && self.is_reducing_cwnd() {
            let delivered = self.delivered_since(before, acked, config);
            self.apply_prr(DeliveryReport { delivered, advanced: acked > 0, new_loss }, config);
        }
        if config.congestion.follows_path() {
            let by_position = if new_loss { u64::from(config.segment) } else { 0 };
            let change = AckChange {
                delivered: self.delivered_since(before, acked, config),
                lost: self.recovery.lost_bytes().saturating_sub(before.lost).max(by_position),
                in_flight_before: before.pipe,
            };
            self.apply_path_model(now, change, config);
        }
        if self.has_control_state() {
            self.update_pacing_rate(config);
        }
    }

    /// Detects losses after an ACK. The two flags of `due` say whether RACK must run, and whether
    /// the ACK has SACKed new data.
    fn detect_losses(
        &mut self,
        due: (bool, bool),
        ctx: &mut Context<'_, impl Sink>,
    ) -> DetectedLosses {
        let (by_time, by_sack) = due;
        let mut found = DetectedLosses::default();
        if ctx.config.recovery.uses_rack() {
            if by_time {
                found = self.rack_on_ack(ctx);
            }
        } else if self.recovery.phase == RecoveryPhase::Loss {
            if by_sack {
                self.recovery.update_lost(ctx.config);
            }
        } else if self.recovery.dup_acks > 0 || by_sack {
            let before = self.recovery.lost_to();
            found.retransmit_first = self.detect_loss(ctx);
            found.new_loss = self.recovery.lost_to() > before;
        }
        found
    }

    /// Transmits the segments that an ACK allows; restarts the timer of the tail loss probe if the
    /// ACK has delivered data.
    fn transmit_after_ack(
        &mut self,
        advice: RetransmitAdvice,
        delivered: bool,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let before = self.stream.next;
        match advice {
            RetransmitAdvice::Normal => self.transmit(ctx),
            RetransmitAdvice::NewDataOnly => {
                self.transmit_new(ctx);
                if self.recovery.phase == RecoveryPhase::Loss && self.stream.next == before {
                    // The window had no room for new data, so F-RTO cannot tell whether the timeout
                    // was spurious.
                    self.recovery.cold_mut().frto = false;
                    self.transmit(ctx);
                }
            }
        }
        if ctx.config.recovery.probes && self.stream.next == before && delivered {
            self.schedule_tlp(ctx.now, ctx.config);
        }
    }

    /// Returns by how many bytes an ACK counts for the growth of the congestion window. `acked`:
    /// bytes by which the ACK advances SND.UNA; `arrived`: bytes SACKed before the ACK. Linux
    /// (`tcp_cong_control`) counts each byte once, when it is SACKed or acknowledged; RFC 3465
    /// counts all acknowledged bytes.
    fn acked_for_growth(&self, acked: u64, arrived: u64, config: &TcpConfig) -> u64 {
        if config.rules.counting != Counting::Segments {
            return acked;
        }
        match config.sack {
            true => (acked + self.recovery.sacked_out(config)).saturating_sub(arrived),
            false => acked.saturating_sub(arrived).max(acked.min(config.segment.into())),
        }
    }

    /// Processes the SACK blocks of an old ACK: its number is below SND.UNA, since a later ACK
    /// arrived first (Linux, `tcp_ack` at `old_ack`). The congestion window does not grow, but
    /// newly SACKed bytes are no longer in flight.
    #[cold]
    pub(super) fn on_old_ack(
        &mut self,
        packet: &Packet,
        blocks: &SackBlocks,
        ack: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let mut report = AckReport::default();
        let newly_sacked = self.process_sack(ctx.now, packet, blocks, ack, &mut report, ctx.config);
        if newly_sacked == 0 && report.dsack.is_none() {
            return;
        }
        if self.has_control_state() {
            self.report_ack(ctx.now, packet, Some(blocks), (0, newly_sacked), None, ctx.config);
        }
        let mut advice = RetransmitAdvice::Normal;
        if ctx.config.recovery.detects_spurious() {
            let original = report.delivery.original;
            let evidence = UndoEvidence { acked: 0, original, duplicate: newly_sacked > 0 };
            advice = self.detect_spurious_recovery(packet, evidence, ctx);
        }
        let mut retransmit_first = false;
        if ctx.config.recovery.uses_rack() {
            if advice == RetransmitAdvice::Normal {
                retransmit_first = self.rack_on_ack(ctx).retransmit_first;
            }
        } else if self.recovery.phase == RecoveryPhase::Loss {
            self.recovery.update_lost(ctx.config);
        } else {
            retransmit_first = self.detect_loss(ctx);
        }
        if retransmit_first {
            self.retransmit_lost(ctx);
        }
        match advice {
            RetransmitAdvice::Normal => self.transmit(ctx),
            RetransmitAdvice::NewDataOnly => self.transmit_new(ctx),
        }
    }

    /// Adds the SACK blocks of an ACK to the scoreboard; `ack`: stream position that the ACK
    /// acknowledges. Adds the delivered segments and a DSACK to `report`. Returns how many bytes
    /// are newly SACKed.
    fn process_sack(
        &mut self,
        now: Time,
        packet: &Packet,
        blocks: &SackBlocks,
        ack: u64,
        report: &mut AckReport,
        config: &TcpConfig,
    ) -> u64 {
        let is_dsack_block = config.recovery.dsack && is_dsack(blocks, ack);
        if is_dsack_block {
            report.dsack = Some(blocks[0]);
            self.on_dsack(blocks[0], config);
        }
        let mut bytes = 0;
        if self.recovery.scoreboard.is_none()
            && self.recovery.phase != RecoveryPhase::Loss
            && !is_dsack_block
        {
            let (una, next) = (self.stream.una, self.stream.next);
            for &(start, end) in blocks.iter().filter(|b| b.1 > una && b.1 <= next) {
                let start = start.max(self.stream.una);
                if start < end {
                    if config.recovery.adapt_reordering {
                        let highest = self.recovery.sacked.end();
                        self.recovery.detect_late_original((start, end), highest, ack, config);
                    }
                    bytes += self.recovery.sacked.insert(start, end);
                }
            }
            return bytes;
        }
        let context = self.recovery.context(now, packet, &self.stream, config);
        for (i, &(start, end)) in blocks.iter().enumerate() {
            let start = start.max(self.stream.una);
            if start >= end || end > self.stream.next || (is_dsack_block && i == 0) {
                continue;
            }
            if let Some(scoreboard) = &mut self.recovery.scoreboard {
                let (mut gap, mut gap_end) = self.recovery.sacked.gap_from(start);
                while gap < end {
                    let stop = gap_end.min(end);
                    let (from, to) = scoreboard.sack(gap, stop, context, &mut report.delivery);
                    if from < to {
                        bytes += self.recovery.sacked.insert(from, to);
                    }
                    (gap, gap_end) = self.recovery.sacked.gap_from(stop);
                }
                continue;
            }
            if self.recovery.phase == RecoveryPhase::Loss {
                report.delivery.original |= self.recovery.delivers_original(start, end);
            }
            bytes += self.recovery.sacked.insert(start, end);
        }
        self.recovery.on_reordering(report.delivery.reordered, self.stream.una, config);
        bytes
    }

    /// Removes the segments below `ack` from the scoreboard. To be called only while nothing is
    /// SACKed and no loss is known. Returns the send times of the removed segments, or `None` if
    /// one of them was retransmitted.
    #[inline(always)]
    pub(super) fn acknowledge_segments_fast_path(
        &mut self,
        now: Time,
        packet: &Packet,
        ack: u64,
        config: &TcpConfig,
    ) -> Option<SendTimes> {
        let scoreboard = self.recovery.scoreboard.as_mut()?;
        scoreboard.acknowledge_fast_path(ack, now, || AckContext::plain(now, packet, config))
    }

    /// Removes the segments below `ack` from the scoreboard, and records reordering. Returns the
    /// send times of the newly delivered segments, or `None` if one of them was retransmitted.
    fn acknowledge_segments(
        &mut self,
        ack: u64,
        context: AckContext,
        report: &mut AckReport,
        config: &TcpConfig,
    ) -> Option<SendTimes> {
        let scoreboard = self.recovery.scoreboard.as_mut();
        let send_times = scoreboard.and_then(|b| b.acknowledge(ack, context, &mut report.delivery));
        self.recovery.on_reordering(report.delivery.reordered, ack, config);
        send_times
    }

    /// Handles a DSACK block, by which the receiver reports a segment that arrived twice (RFC
    /// 2883).
    fn on_dsack(&mut self, block: (u64, u64), config: &TcpConfig) {
        self.recovery.count().dsacks += 1;
        if let Some(undo) = &mut self.recovery.cold_mut().undo {
            undo.on_duplicate_reported(block, config);
        }
        let of_probe = {
            let cold = self.recovery.cold_mut();
            cold.tlp_is_retransmission && cold.tlp_end == block.1
        };
        if !of_probe && let Some(scoreboard) = &mut self.recovery.scoreboard {
            scoreboard.rack.dsack_seen = true;
        }
    }
}

/// State of a sender before an ACK is processed, in bytes.
#[derive(Clone, Copy, Debug)]
struct BeforeAck {
    /// Bytes sent and not acknowledged before the ACK.
    flight: u64,
    /// Outstanding bytes that are known to have arrived.
    sacked_out: u64,
    /// Bytes in flight (RFC 6675, `pipe`); 0 unless the congestion control models the path (BBR).
    pipe: u64,
    /// Outstanding bytes deemed lost; 0 unless the congestion control models the path (BBR).
    lost: u64,
}

/// Result of an ACK with SACK blocks: the newly delivered segments, and the duplicate segment
/// (DSACK) that the ACK reports, if any.
#[derive(Clone, Copy, Debug, Default)]
struct AckReport {
    delivery: Delivery,
    dsack: Option<(u64, u64)>,
}

/// Whether the first SACK block is a DSACK, which reports duplicate data: it lies below the number
/// `ack` of the ACK or within the second block (RFC 2883, section 4).
fn is_dsack(blocks: &SackBlocks, ack: u64) -> bool {
    let (first, second) = (blocks[0], blocks[1]);
    first.1 > 0 && (first.1 <= ack || (second.0 <= first.0 && first.1 <= second.1))
}
