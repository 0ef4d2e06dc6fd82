//! Loss detection and recovery.
//!
//! With SACK: RFC 6675. A hole is lost once more than `(DupThresh − 1)` segments' worth of bytes
//! above it are SACKed; what is under way is counted by `pipe`. Without SACK: NewReno (RFC 6582) in
//! the same terms, where each duplicate ACK stands for one segment that has left the network, and
//! the first segment is the lost one; every partial ACK restarts the timer ("slow but steady", as
//! Linux does). After a timeout (RFC 5681, 3.1; RFC 6675, 5.1) everything that is not SACKed is lost
//! and sent again in slow start.

use super::board::Board;
use super::config::TcpConfig;
use super::counters::Counters;
use super::phases::{Cut, Phase};
use super::rack::AckContext;
use super::ranges::Ranges;
use super::rare::Rare;
use super::stream::Stream;
use super::undo::Undo;
use eastwest_types::{Packet, Time};
use serde::{Deserialize, Serialize};

/// Loss recovery of a sender: outstanding segments, SACK information and the state of recovery.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recovery {
    /// Positions above the acknowledged ones that are known to have arrived.
    pub(super) sacked: Ranges,
    /// With RACK: the outstanding segments, once something has been sent.
    pub(super) board: Option<Box<Board>>,
    /// State that is used only after losses.
    pub(super) rare: Option<Box<Rare>>,
    /// Duplicate ACKs in a row (without SACK: segments that have arrived out of order).
    pub(super) dup_acks: u32,
    /// State of recovery: open, fast recovery, or after a timeout.
    pub(super) phase: Phase,
}

impl Recovery {
    /// Nothing is outstanding.
    pub(super) fn new() -> Recovery {
        Recovery {
            sacked: Ranges::default(),
            board: None,
            rare: None,
            dup_acks: 0,
            phase: Phase::Open,
        }
    }

    /// Returns the rarely used state; makes it where it is not there yet.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns the counters, to count something.
    pub(super) fn count(&mut self) -> &mut Counters {
        &mut self.rare().counters
    }

    /// Returns what has been counted.
    pub(super) fn counters(&self) -> Counters {
        self.rare.as_ref().map_or_else(Counters::default, |r| r.counters)
    }

    /// Returns the position at which the phase returns to open.
    #[inline]
    pub(super) fn recover(&self) -> u64 {
        self.rare.as_ref().map_or(0, |r| r.recover)
    }

    /// Below this, what is not SACKed is lost.
    pub(super) fn lost_to(&self) -> u64 {
        self.rare.as_ref().map_or(0, |r| r.lost_to)
    }

    /// Below this, what is not SACKed has been sent again.
    pub(super) fn resent_to(&self) -> u64 {
        self.rare.as_ref().map_or(0, |r| r.resent_to)
    }

    /// Sets [`Recovery::lost_to`].
    pub(super) fn set_lost_to(&mut self, to: u64) {
        self.rare().lost_to = to;
    }

    /// Sets [`Recovery::resent_to`].
    pub(super) fn set_resent_to(&mut self, to: u64) {
        self.rare().resent_to = to;
    }

    /// Returns the last cut of the window, while it can be taken back.
    pub(super) fn undo(&self) -> Option<&Undo> {
        self.rare.as_ref().and_then(|r| r.undo.as_ref())
    }

    /// Returns whether DSACKs prove that the last cut was needless.
    pub(super) fn proven_by_dsack(&self) -> bool {
        self.undo().is_some_and(Undo::is_proven)
    }

    /// Returns what has cut the window last.
    pub(super) fn last_cut(&self) -> Cut {
        self.rare.as_ref().map_or(Cut::None, |r| r.last_cut)
    }

    /// Notes that a segment is retransmitted.
    #[inline]
    pub(super) fn note_again(&mut self, now_us: u32) {
        let rare = self.rare();
        rare.counters.retransmits += 1;
        if let Some(undo) = &mut rare.undo {
            undo.note_again(now_us);
        }
    }

    /// Returns whether a probe waits for its answer.
    #[inline]
    pub(super) fn probe_is_out(&self) -> bool {
        self.rare.as_ref().is_some_and(|r| r.probe_end != 0)
    }

    /// Returns the bytes deemed lost now, where they are known one by one.
    pub(super) fn deemed_lost(&self) -> u64 {
        self.board.as_ref().map_or(0, |b| b.lost())
    }

    /// Returns the bytes sent again that are under way, where they are known one by one.
    pub(super) fn resent_under_way(&self) -> u64 {
        self.board.as_ref().map_or(0, |b| b.resent())
    }

    /// Bytes in the network: sent, less SACKed, less lost, plus sent again (RFC 6675, `SetPipe`).
    #[inline]
    pub(super) fn pipe(&self, stream: &Stream, config: &TcpConfig) -> u64 {
        if self.phase == Phase::Open && self.sacked.is_empty() {
            return stream.outstanding();
        }
        self.pipe_after_losses(stream, config)
    }

    #[inline(never)]
    fn pipe_after_losses(&self, stream: &Stream, config: &TcpConfig) -> u64 {
        let outstanding = stream.outstanding();
        if let Some(board) = &self.board {
            return board.pipe_of(outstanding - self.sacked.total());
        }
        let not_sacked_below = |position: u64| {
            let position = position.clamp(stream.una, stream.next);
            (position - stream.una) - self.sacked.below(position)
        };
        let lost = not_sacked_below(self.lost_to());
        let resent = not_sacked_below(self.resent_to());
        let arrived =
            if !config.sack && self.phase != Phase::Recovery { 0 } else { self.arrived(config) };
        (outstanding - lost + resent).saturating_sub(arrived)
    }

    /// Bytes known to have arrived above the acknowledged ones.
    #[inline]
    pub(super) fn arrived(&self, config: &TcpConfig) -> u64 {
        if config.sack {
            self.sacked.total()
        } else {
            // NewReno: duplicate ACKs stand for segments that have arrived
            u64::from(self.dup_acks) * u64::from(config.segment)
        }
    }

    /// The next lost bytes to send again, at most a segment.
    pub(super) fn next_lost(&mut self, stream: &Stream, config: &TcpConfig) -> Option<(u64, u64)> {
        if let Some(board) = &mut self.board {
            return board.next_lost();
        }
        let segment = u64::from(config.segment);
        if self.resent_to() >= self.lost_to() {
            return None;
        }
        let (start, gap_end) = self.sacked.gap_from(self.resent_to().max(stream.una));
        if start >= self.lost_to() {
            return None;
        }
        Some((start, gap_end.min(start + segment).min(self.lost_to())))
    }

    /// Bytes that may be sent again without being known to be lost, where nothing better can be sent
    /// (RFC 6675, `NextSeg` rules 3 and 4): holes below what is SACKed, then once in a recovery the
    /// end of what is outstanding.
    pub(super) fn next_doubtful(&mut self, stream: &Stream, segment: u64) -> Option<(u64, u64)> {
        let (start, gap_end) = self.sacked.gap_from(self.resent_to().max(stream.una));
        if start < self.sacked.end() {
            let stop = gap_end.min(start + segment);
            self.set_resent_to(stop);
            return Some((start, stop));
        }
        if stream.una <= self.rare().rescue_above {
            return None;
        }
        self.rare().rescue_above = self.recover();
        let start = self.sacked.end().max(stream.una).max(stream.next.saturating_sub(segment));
        (start < stream.next).then_some((start, stream.next))
    }

    /// Moves `lost_to` up to the highest hole with enough SACKed above it.
    pub(super) fn update_lost(&mut self, config: &TcpConfig) {
        let degree = self.degree_of_reordering(config);
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

    /// Whether `from..to`, just arrived, holds what was sent once and before the present timeout.
    pub(super) fn has_original(&self, from: u64, to: u64) -> bool {
        let (low, high) = (from.max(self.resent_to()), to.min(self.recover()));
        low < high && self.sacked.below(high) - self.sacked.below(low) < high - low
    }

    /// Returns what an ACK that comes now is compared with.
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

    /// An ACK up to `ack` has shown that segments from `start` on were overtaken.
    #[inline]
    pub(super) fn note_overtaken(&mut self, overtaken: Option<u64>, ack: u64, config: &TcpConfig) {
        if let Some(start) = overtaken
            && let Some(board) = &mut self.board
        {
            board.rack.note_reordering();
            self.note_late(start, ack, config);
        }
    }

    /// Gives memory back that a gone connection needs no more.
    pub(super) fn drop_buffers(&mut self) {
        self.sacked = Ranges::default();
        self.board = None;
    }
}
