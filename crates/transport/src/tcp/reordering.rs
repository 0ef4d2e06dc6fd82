//! Degree of reordering (DupThresh): the number of duplicate ACKs, or of segments SACKed above a
//! hole, that indicates a loss.
//!
//! The degree starts at the setting `reordering` (RFC 5681: 3). With `adapt_reordering` it rises to
//! the largest distance by which an original transmission has arrived late, at most 300 (Linux,
//! `tcp_check_sack_reordering`, `tcp_max_reordering`). A timeout while at least `reordering`
//! segments are out of order resets the degree (`tcp_enter_loss`).
//!
//! RACK uses the degree only until reordering has been seen. Afterwards it uses only times.

use super::config::TcpConfig;
use super::recovery::Recovery;
use super::states::RecoveryPhase;
use super::stream::Stream;

/// Largest degree of reordering in segments (Linux, `tcp_max_reordering`).
const MOST: u32 = 300;

impl Recovery {
    /// Returns the number of duplicate ACKs, or of segments SACKed above a hole, that indicates a
    /// loss.
    #[inline]
    pub(super) fn reordering_degree(&self, config: &TcpConfig) -> u32 {
        let first = config.recovery.reordering;
        self.cold.as_ref().map_or(first, |r| first.max(r.reordering))
    }

    /// Raises the degree of reordering, since an original transmission at position `start` has
    /// arrived after higher data, which an ACK up to position `ack` acknowledges or SACKs.
    #[cold]
    pub(super) fn raise_reordering_degree(&mut self, start: u64, ack: u64, config: &TcpConfig) {
        if !config.recovery.adapt_reordering {
            return;
        }
        let highest = self.sacked.end().max(ack);
        let segments = highest.saturating_sub(start).div_ceil(u64::from(config.segment));
        if segments > u64::from(self.reordering_degree(config)) {
            self.cold_mut().reordering = segments.min(u64::from(MOST)) as u32;
        }
    }

    /// Without a scoreboard: raises the degree of reordering if the just delivered positions
    /// `from..to` contain an original transmission below `highest`, the highest position SACKed
    /// before.
    pub(super) fn detect_late_original(
        &mut self,
        (from, to): (u64, u64),
        highest: u64,
        ack: u64,
        config: &TcpConfig,
    ) {
        let (start, _) = self.sacked.gap_from(from.max(self.retransmitted_to()));
        if start < to && start < highest {
            self.raise_reordering_degree(start, ack, config);
        }
    }

    /// Without SACK: limits the count of duplicate ACKs to the number of segments outstanding above
    /// the hole. Raises the degree of reordering if the count exceeds this number (Linux,
    /// `tcp_limit_reno_sacked`). `segments`: number of segments that the ACK has acknowledged.
    pub(super) fn limit_reno_sacked(&mut self, segments: u64, stream: &Stream, config: &TcpConfig) {
        if config.sack || !config.recovery.adapt_reordering {
            return;
        }
        if self.phase == RecoveryPhase::Loss && stream.next <= self.recover() {
            return; // unnecessary retransmissions have caused the duplicate ACKs
        }
        let segment = u64::from(config.segment);
        let out = stream.outstanding().div_ceil(segment);
        let lost = self.lost_to().saturating_sub(stream.una).div_ceil(segment);
        let above = out - lost.max(1).min(out);
        if u64::from(self.dup_acks) > above {
            self.dup_acks = above as u32;
            self.cold_mut().reordering = (out + segments).min(u64::from(MOST)) as u32;
        }
    }

    /// Resets the degree of reordering at a timeout outside of a recovery if at least `reordering`
    /// segments are SACKed: a too high degree may have caused the timeout.
    pub(super) fn lower_reordering_degree(&mut self, config: &TcpConfig) {
        if !config.sack {
            return;
        }
        let first = config.recovery.reordering;
        let segment = u64::from(config.segment);
        if self.sacked_out(config) >= u64::from(first) * segment
            && let Some(cold) = &mut self.cold
        {
            cold.reordering = cold.reordering.min(first);
        }
    }
}
