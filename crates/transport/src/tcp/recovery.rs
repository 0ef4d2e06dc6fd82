//! State of loss recovery: which outstanding bytes are SACKed, lost, retransmitted and in flight.
//!
//! With SACK, recovery follows RFC 6675. A hole is lost once more than `(DupThresh − 1)` segments'
//! worth of bytes above it are SACKed; `pipe` counts the bytes in flight. Without SACK, recovery
//! follows NewReno (RFC 6582). Each duplicate ACK stands for one segment that has left the network,
//! and the first segment is the lost one; every partial ACK restarts the timer ("slow but steady",
//! as Linux does). After a timeout (RFC 5681, 3.1; RFC 6675, 5.1) all bytes that are not SACKed are
//! lost, and retransmitted in slow start. Code that enters and leaves a recovery is in
//! [`fast_recovery`](super::fast_recovery).

use super::cold_state::ColdState;
use super::config::TcpConfig;
use super::counters::Counters;
use super::rack::AckContext;
use super::range_set::RangeSet;
use super::scoreboard::Scoreboard;
use super::states::{CwndReduction, RecoveryPhase};
use super::stream::Stream;
use super::undo::UndoState;
use eastwest_types::{Packet, Time};
use serde::{Deserialize, Serialize};

/// Loss recovery of a sender: outstanding segments, SACK information and phase of the recovery.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recovery {
    /// Stream positions above SND.UNA that are known to have arrived.
    pub(super) sacked: RangeSet,
    /// With RACK: scoreboard of the outstanding segments, from the first transmission on; otherwise
    /// `None`.
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// Fields that are rarely used, allocated at their first use.
    pub(super) cold: Option<Box<ColdState>>,
    /// Number of consecutive duplicate ACKs: without SACK, an estimate of the number of segments
    /// that have arrived out of order.
    pub(super) dup_acks: u32,
    /// Phase of loss recovery: open, fast recovery, or loss (after a retransmission timeout).
    pub(super) phase: RecoveryPhase,
}

impl Recovery {
    /// Returns the state of a sender with nothing outstanding.
    pub(super) fn new() -> Recovery {
        Recovery {
            sacked: RangeSet::default(),
            scoreboard: None,
            cold: None,
            dup_acks: 0,
            phase: RecoveryPhase::Open,
        }
    }

    /// Returns the rarely used fields; allocates them at the first call.
    pub(super) fn cold_mut(&mut self) -> &mut ColdState {
        self.cold.get_or_insert_default()
    }

    /// Returns mutable counters of the sender, to count an event.
    pub(super) fn count(&mut self) -> &mut Counters {
        &mut self.cold_mut().counters
    }

    /// Returns the values of the sender's counters.
    pub(super) fn counters(&self) -> Counters {
        self.cold.as_ref().map_or_else(Counters::default, |r| r.counters)
    }

    /// Returns the recovery point: the stream position whose acknowledgement ends the recovery.
    #[inline]
    pub(super) fn recover(&self) -> u64 {
        self.cold.as_ref().map_or(0, |r| r.recover)
    }

    /// Returns the stream position below which all bytes that are not SACKed are lost; used without
    /// RACK's scoreboard.
    pub(super) fn lost_to(&self) -> u64 {
        self.cold.as_ref().map_or(0, |r| r.lost_to)
    }

    /// Returns the stream position below which all bytes that are not SACKed have been
    /// retransmitted; used without RACK's scoreboard.
    pub(super) fn retransmitted_to(&self) -> u64 {
        self.cold.as_ref().map_or(0, |r| r.retransmitted_to)
    }

    /// Sets the stream position below which all bytes that are not SACKed are lost.
    pub(super) fn set_lost_to(&mut self, to: u64) {
        self.cold_mut().lost_to = to;
    }

    /// Sets the stream position below which all bytes that are not SACKed have been retransmitted.
    pub(super) fn set_retransmitted_to(&mut self, to: u64) {
        self.cold_mut().retransmitted_to = to;
    }

    /// Returns the sender's state before the last window reduction; `None` if the reduction cannot
    /// be undone.
    pub(super) fn undo(&self) -> Option<&UndoState> {
        self.cold.as_ref().and_then(|r| r.undo.as_ref())
    }

    /// Whether DSACKs prove that the last window reduction was unnecessary.
    pub(super) fn proven_by_dsack(&self) -> bool {
        self.undo().is_some_and(UndoState::is_proven)
    }

    /// Returns the cause of the last window reduction.
    pub(super) fn last_reduction(&self) -> CwndReduction {
        self.cold.as_ref().map_or(CwndReduction::None, |r| r.last_reduction)
    }

    /// Counts a segment that is retransmitted at time `now_us` (µs).
    #[inline]
    pub(super) fn count_retransmission(&mut self, now_us: u32) {
        let cold = self.cold_mut();
        cold.counters.retransmits += 1;
        if let Some(undo) = &mut cold.undo {
            undo.count_retransmission(now_us);
        }
    }

    /// Whether a tail loss probe is outstanding.
    #[inline]
    pub(super) fn is_tlp_in_flight(&self) -> bool {
        self.cold.as_ref().is_some_and(|r| r.tlp_end != 0)
    }

    /// Returns the outstanding bytes deemed lost, or 0 without RACK's scoreboard.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.scoreboard.as_ref().map_or(0, |b| b.lost())
    }

    /// Returns the bytes of retransmissions in flight, or 0 without RACK's scoreboard.
    pub(super) fn retransmitted_in_flight(&self) -> u64 {
        self.scoreboard.as_ref().map_or(0, |b| b.retransmitted_in_flight())
    }

    /// Returns the bytes in flight (RFC 6675, `SetPipe`): outstanding bytes minus SACKed and lost
    /// bytes, plus retransmitted bytes.
    #[inline]
    pub(super) fn pipe(&self, stream: &Stream, config: &TcpConfig) -> u64 {
        if self.phase == RecoveryPhase::Open && self.sacked.is_empty() {
            return stream.outstanding();
        }
        self.pipe_after_losses(stream, config)
    }

    #[inline(never)]
    fn pipe_after_losses(&self, stream: &Stream, config: &TcpConfig) -> u64 {
        let outstanding = stream.outstanding();
        if let Some(scoreboard) = &self.scoreboard {
            return scoreboard.pipe(outstanding - self.sacked.total());
        }
        let not_sacked_below = |position: u64| {
            let position = position.clamp(stream.una, stream.next);
            (position - stream.una) - self.sacked.below(position)
        };
        let lost = not_sacked_below(self.lost_to());
        let resent = not_sacked_below(self.retransmitted_to());
        let arrived = if !config.sack && self.phase != RecoveryPhase::Recovery {
            0
        } else {
            self.sacked_out(config)
        };
        (outstanding - lost + resent).saturating_sub(arrived)
    }

    /// Returns the outstanding bytes that are known to have arrived (Linux, `sacked_out`).
    #[inline]
    pub(super) fn sacked_out(&self, config: &TcpConfig) -> u64 {
        if config.sack {
            self.sacked.total()
        } else {
            // In NewReno, a duplicate ACK stands for a segment that has arrived.
            u64::from(self.dup_acks) * u64::from(config.segment)
        }
    }

    /// Returns the next lost bytes to retransmit as (start, end), at most one segment; `None` if
    /// all lost bytes have been retransmitted.
    pub(super) fn next_lost(&mut self, stream: &Stream, config: &TcpConfig) -> Option<(u64, u64)> {
        if let Some(scoreboard) = &mut self.scoreboard {
            return scoreboard.next_lost();
        }
        let segment = u64::from(config.segment);
        if self.retransmitted_to() >= self.lost_to() {
            return None;
        }
        let (start, gap_end) = self.sacked.gap_from(self.retransmitted_to().max(stream.una));
        if start >= self.lost_to() {
            return None;
        }
        Some((start, gap_end.min(start + segment).min(self.lost_to())))
    }

    /// Returns bytes (start, end) to retransmit although they are not known to be lost, for a
    /// sender that can send nothing else (RFC 6675, `NextSeg` rules 3 and 4). The bytes are a hole
    /// below SACKed data or, once in a recovery, the last outstanding segment; otherwise `None`.
    pub(super) fn next_unconfirmed(&mut self, stream: &Stream, segment: u64) -> Option<(u64, u64)> {
        let (start, gap_end) = self.sacked.gap_from(self.retransmitted_to().max(stream.una));
        if start < self.sacked.end() {
            let stop = gap_end.min(start + segment);
            self.set_retransmitted_to(stop);
            return Some((start, stop));
        }
        if stream.una <= self.cold_mut().rescue_above {
            return None;
        }
        self.cold_mut().rescue_above = self.recover();
        let start = self.sacked.end().max(stream.una).max(stream.next.saturating_sub(segment));
        (start < stream.next).then_some((start, stream.next))
    }

    /// Advances `lost_to` to the start of the highest range above a hole that counts as lost,
    /// because enough data is SACKed from there on (RFC 6675, `IsLost`).
    pub(super) fn update_lost(&mut self, config: &TcpConfig) {
        let degree = self.reordering_degree(config);
        let enough = u64::from(degree - 1) * u64::from(config.segment);
        let mut above = 0;
        let found = self.sacked.iter().rev().enumerate().find(|&(i, (start, end))| {
            above += end - start;
            above > enough || i + 1 >= degree as usize
        });
        if let Some((_, (start, _))) = found {
            self.set_lost_to(self.lost_to().max(start));
        }
    }

    /// Whether the just delivered positions `from..to` contain data that was sent only once, before
    /// the last timeout.
    pub(super) fn delivers_original(&self, from: u64, to: u64) -> bool {
        let (low, high) = (from.max(self.retransmitted_to()), to.min(self.recover()));
        low < high && self.sacked.below(high) - self.sacked.below(low) < high - low
    }

    /// Returns the context of an ACK for RACK and for the detection of reordering.
    #[inline]
    pub(super) fn context(
        &self,
        now: Time,
        packet: &Packet,
        stream: &Stream,
        config: &TcpConfig,
    ) -> AckContext {
        let highest = self.sacked.end().max(stream.una);
        AckContext { highest, recover: self.recover(), ..AckContext::plain(now, packet, config) }
    }

    /// Records reordering: an ACK up to position `ack` shows that segments from `reordered` on
    /// arrived after higher ones. `None`: no reordering.
    #[inline]
    pub(super) fn on_reordering(&mut self, reordered: Option<u64>, ack: u64, config: &TcpConfig) {
        if let Some(start) = reordered
            && let Some(scoreboard) = &mut self.scoreboard
        {
            scoreboard.rack.note_reordering();
            self.raise_reordering_degree(start, ack, config);
        }
    }

    /// Releases the sender's buffers when the connection ends.
    pub(super) fn drop_buffers(&mut self) {
        self.sacked = RangeSet::default();
        self.scoreboard = None;
    }
}
