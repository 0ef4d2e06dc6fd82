//! The degree of reordering: how many segments out of order mean a loss. It starts with `reordering`
//! (RFC 5681: 3) and, where it adapts, grows to the most by which a segment that was sent once has been
//! seen to come late, 300 at most (Linux, `tcp_check_sack_reordering`, `tcp_max_reordering`). A timeout
//! while as many were out of order as at first mean a loss takes it back (`tcp_enter_loss`).
//!
//! RACK asks it only until reordering has been seen; from then on it judges by time alone. Without
//! RACK it is the number of duplicates, or of segments SACKed above a hole, that retransmission waits
//! for. Left out: Linux's guess without SACK, where duplicates exceed what is outstanding.

use super::config::TcpConfig;
use super::phases::Phase;
use super::recovery::Recovery;
use super::stream::Stream;

/// The largest degree (Linux, `tcp_max_reordering`).
const MOST: u32 = 300;

impl Recovery {
    /// Duplicate ACKs, or segments SACKed above a hole, that mean a loss.
    #[inline]
    pub(super) fn degree_of_reordering(&self, config: &TcpConfig) -> u32 {
        let first = config.recovery.reordering;
        self.rare.as_ref().map_or(first, |r| first.max(r.reordering))
    }

    /// A segment from `start` on, sent once, has come after what an ACK up to `ack` acknowledges or
    /// SACKs.
    #[cold]
    pub(super) fn note_late(&mut self, start: u64, ack: u64, config: &TcpConfig) {
        if !config.recovery.adapt_reordering {
            return;
        }
        let highest = self.sacked.end().max(ack);
        let segments = highest.saturating_sub(start).div_ceil(u64::from(config.segment));
        if segments > u64::from(self.degree_of_reordering(config)) {
            self.rare().reordering = segments.min(u64::from(MOST)) as u32;
        }
    }

    /// Without a board: whether something not SACKed and sent once lies in `from..to`, just arrived,
    /// below what had been SACKed up to `highest`.
    pub(super) fn note_late_without_board(
        &mut self,
        (from, to): (u64, u64),
        highest: u64,
        ack: u64,
        config: &TcpConfig,
    ) {
        let (start, _) = self.sacked.gap_from(from.max(self.resent_to()));
        if start < to && start < highest {
            self.note_late(start, ack, config);
        }
    }

    /// Without SACK, after duplicates, or an ACK for so many `segments`: each duplicate stands for a
    /// segment above the hole, and there are no more of them than are outstanding.
    pub(super) fn limit_duplicates(&mut self, segments: u64, stream: &Stream, config: &TcpConfig) {
        if config.sack || !config.recovery.adapt_reordering {
            return;
        }
        if self.phase == Phase::Loss && stream.next <= self.recover() {
            return; // answers to what was sent again needlessly
        }
        let segment = u64::from(config.segment);
        let out = stream.outstanding().div_ceil(segment);
        let lost = self.lost_to().saturating_sub(stream.una).div_ceil(segment);
        let above = out - lost.max(1).min(out);
        if u64::from(self.dup_acks) > above {
            self.dup_acks = above as u32;
            self.rare().reordering = (out + segments).min(u64::from(MOST)) as u32;
        }
    }

    /// A timeout strikes outside of a recovery: the degree may have been too high.
    pub(super) fn doubt_degree(&mut self, config: &TcpConfig) {
        if !config.sack {
            return;
        }
        let first = config.recovery.reordering;
        let segment = u64::from(config.segment);
        if self.arrived(config) >= u64::from(first) * segment
            && let Some(rare) = &mut self.rare
        {
            rare.reordering = rare.reordering.min(first);
        }
    }
}
