//! State of loss recovery: which outstanding bytes are SACKed, lost, retransmitted and in flight.
//!
//! With SACK: RFC 6675. A hole is lost once more than `(DupThresh − 1)` segments' worth of bytes above it are
//! SACKed; bytes in flight are counted by `pipe`. Without SACK: NewReno (RFC 6582) in the same terms. Each
//! duplicate ACK stands for one segment that has left the network, and the first segment is the lost one; every
//! partial ACK restarts the timer ("slow but steady", as Linux does). After a timeout (RFC 5681, 3.1; RFC 6675,
//! 5.1) everything that is not SACKed is lost and retransmitted in slow start. Entering and leaving a recovery
//! is in [`fast_recovery`](super::fast_recovery).

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

/// Loss recovery of a sender: outstanding segments, SACK information and the state of recovery.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recovery {
    /// Positions above SND.UNA that are known to have arrived.
    pub(super) sacked: RangeSet,
    /// With RACK: the outstanding segments, from the first transmission on; otherwise `None`.
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// Fields that are rarely used, allocated at their first use.
    pub(super) cold: Option<Box<ColdState>>,
    /// Consecutive duplicate ACKs; without SACK it stands for segments that have arrived out of order.
    pub(super) dup_acks: u32,
    /// State of recovery: open, fast recovery, or after a timeout.
    pub(super) phase: RecoveryPhase,
}

impl Recovery {
    /// Returns the state with nothing outstanding.
    pub(super) fn new() -> Recovery {
        Recovery {
            sacked: RangeSet::default(),
            scoreboard: None,
            cold: None,
            dup_acks: 0,
            phase: RecoveryPhase::Open,
        }
    }

    /// Returns the rarely used fields; allocates them if need be.
    pub(super) fn cold_mut(&mut self) -> &mut ColdState {
        self.cold.get_or_insert_default()
    }

    /// Returns the counters of the sender, to count an event.
    pub(super) fn count(&mut self) -> &mut Counters {
        &mut self.cold_mut().counters
    }

    /// Returns the values of the sender's counters.
    pub(super) fn counters(&self) -> Counters {
        self.cold.as_ref().map_or_else(Counters::default, |r| r.counters)
    }

    /// Returns the recovery point: the position whose acknowledgement ends the recovery.
    #[inline]
    pub(super) fn recover(&self) -> u64 {
        self.cold.as_ref().map_or(0, |r| r.recover)
    }

    /// Returns the position below which everything that is not SACKed is lost; used without a
    /// scoreboard.
    pub(super) fn lost_to(&self) -> u64 {
        self.cold.as_ref().map_or(0, |r| r.lost_to)
    }

    /// Returns the position below which everything that is not SACKed has been retransmitted; used
    /// without a scoreboard.
    pub(super) fn retransmitted_to(&self) -> u64 {
        self.cold.as_ref().map_or(0, |r| r.retransmitted_to)
    }

    /// Sets the position below which everything that is not SACKed is lost.
    pub(super) fn set_lost_to(&mut self, to: u64) {
        self.cold_mut().lost_to = to;
    }

    /// Sets the position below which everything that is not SACKed has been retransmitted.
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

    /// Counts a retransmitted segment.
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

    /// Returns the bytes deemed lost, or 0 without a scoreboard.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.scoreboard.as_ref().map_or(0, |b| b.lost())
    }

    /// Returns the bytes of retransmissions in flight, or 0 without a scoreboard.
    pub(super) fn retransmitted_in_flight(&self) -> u64 {
        self.scoreboard.as_ref().map_or(0, |b| b.retransmitted_in_flight())
    }

    /// Returns the bytes in flight: outstanding, less SACKed, less lost, plus retransmitted (RFC 6675,
    /// `SetPipe`).
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
            // NewReno: duplicate ACKs stand for segments that have arrived
            u64::from(self.dup_acks) * u64::from(config.segment)
        }
    }

    /// Returns the next lost bytes to retransmit as (start, end), at most a segment; `None` if all
    /// are retransmitted.
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

    /// Returns bytes (start, end) to retransmit that are not known to be lost, if nothing else can
    /// be sent (RFC 6675, `NextSeg` rules 3 and 4): a hole below SACKed data, or once in a recovery
    /// the last outstanding segment. Otherwise `None`.
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

    /// Advances `lost_to` to the highest hole above which enough is SACKed (RFC 6675, `IsLost`).
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

    /// Whether the positions `from..to`, just delivered, contain data that was sent once, before
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

    /// Notes reordering: segments from `reordered` on have arrived after higher ones, as an ACK up to `ack`
    /// shows.
    #[inline]
    pub(super) fn on_reordering(&mut self, reordered: Option<u64>, ack: u64, config: &TcpConfig) {
        if let Some(start) = reordered
            && let Some(scoreboard) = &mut self.scoreboard
        {
            scoreboard.rack.note_reordering();
            self.raise_reordering_degree(start, ack, config);
        }
    }

    /// Releases the buffers when the connection ends.
    pub(super) fn drop_buffers(&mut self) {
        self.sacked = RangeSet::default();
        self.scoreboard = None;
    }
}
