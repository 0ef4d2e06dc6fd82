//! Loss detection and recovery.
//!
//! With SACK: RFC 6675. A hole is lost once more than `(DupThresh − 1)` segments' worth of bytes
//! above it are SACKed; what is under way is counted by `pipe`. Without SACK: NewReno (RFC 6582) in
//! the same terms, where each duplicate ACK stands for one segment that has left the network, and
//! the first segment is the lost one. After a timeout (RFC 5681, 3.1; RFC 6675, 5.1) everything that
//! is not SACKed is lost and sent again in slow start.

use super::Sink;
use super::acks::DUP_THRESH;
use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase};
use eastwest_types::Time;

impl Endpoint {
    /// Bytes in the network: sent, less SACKed, less lost, plus sent again (RFC 6675, `SetPipe`).
    pub(super) fn pipe(&self, segment: u64) -> u64 {
        let outstanding = self.snd_max - self.snd_una;
        if self.phase == Phase::Open && self.sacked.is_empty() {
            return outstanding;
        }
        let not_sacked_below = |position: u64| {
            let position = position.clamp(self.snd_una, self.snd_max);
            (position - self.snd_una) - self.sacked.below(position)
        };
        let lost = not_sacked_below(self.lost_to);
        let resent = not_sacked_below(self.resent_to.min(self.lost_to));
        let arrived = if self.sacked.is_empty() && self.phase == Phase::Recovery {
            // NewReno: duplicate ACKs stand for segments that have arrived
            u64::from(self.dup_acks) * segment
        } else {
            self.sacked.total()
        };
        (outstanding - lost + resent).saturating_sub(arrived)
    }

    /// The next lost bytes to send again, at most a segment.
    pub(super) fn next_lost(&self, segment: u64) -> Option<(u64, u64)> {
        if self.phase == Phase::Open || self.resent_to >= self.lost_to {
            return None;
        }
        let (start, gap_end) = self.sacked.gap_from(self.resent_to.max(self.snd_una));
        if start >= self.lost_to {
            return None;
        }
        Some((start, gap_end.min(start + segment).min(self.lost_to)))
    }

    /// Moves `lost_to` up to the highest hole with enough SACKed above it.
    pub(super) fn update_lost(&mut self, config: &TcpConfig) {
        let enough = u64::from(DUP_THRESH - 1) * u64::from(config.segment);
        let mut above = 0;
        for (i, (start, end)) in self.sacked.iter().rev().enumerate() {
            above += end - start;
            if above > enough || i + 1 >= DUP_THRESH as usize {
                self.lost_to = self.lost_to.max(start);
                return;
            }
        }
    }

    /// Enters or continues fast recovery after news of out-of-order arrivals.
    pub(super) fn detect_loss(&mut self, config: &TcpConfig) {
        let segment = u64::from(config.segment);
        let before = self.lost_to;
        if config.sack {
            self.update_lost(config);
        }
        if self.phase == Phase::Recovery {
            return;
        }
        let lost =
            self.lost_to > self.snd_una && self.lost_to > before || self.dup_acks >= DUP_THRESH;
        // RFC 6582, 3.2: not again for what was outstanding at the last recovery or timeout
        if !lost || self.snd_una < self.recover {
            return;
        }
        self.phase = Phase::Recovery;
        self.counters.fast_recoveries += 1;
        self.recover = self.snd_max;
        self.resent_to = self.snd_una;
        self.lost_to = self.lost_to.max((self.snd_una + segment).min(self.snd_max));
        let flight = self.snd_max - self.snd_una;
        self.window.ssthresh = self.window.threshold_after_loss(config.congestion, flight, segment);
        self.window.cwnd = self.window.ssthresh;
        self.window.credit = 0;
    }

    /// An ACK moved on during recovery or after a timeout.
    pub(super) fn on_recovery_progress(&mut self, acked: u64, config: &TcpConfig) {
        let segment = u64::from(config.segment);
        let over = self.snd_una >= self.recover;
        if self.phase == Phase::Loss {
            self.window.on_ack(config.congestion, acked, segment, true);
        } else if !config.sack && !over {
            // RFC 6582, 3.2 step 5: a partial ACK, the next hole is lost too
            let segments = acked.div_ceil(segment) as u32;
            self.dup_acks = self.dup_acks.saturating_sub(segments.saturating_sub(1));
            self.resent_to = self.snd_una;
            self.lost_to = (self.snd_una + segment).min(self.snd_max);
        }
        if over {
            self.phase = Phase::Open;
            self.dup_acks = 0;
            self.lost_to = self.snd_una;
            self.resent_to = self.snd_una;
        }
    }

    /// The retransmission timer has expired: start over from the first byte not acknowledged.
    pub(super) fn enter_loss(
        &mut self,
        now: Time,
        first_in_a_row: bool,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let segment = u64::from(config.segment);
        if self.snd_una == self.snd_max {
            return;
        }
        // RFC 5681, equation (4); not again for a segment that timed out before, nor where fast
        // recovery has already answered this loss (as Linux does)
        if first_in_a_row && self.phase != Phase::Recovery {
            let flight = self.snd_max - self.snd_una;
            self.window.ssthresh =
                self.window.threshold_after_loss(config.congestion, flight, segment);
        }
        self.window.cwnd = segment;
        self.window.credit = 0;
        self.phase = Phase::Loss;
        self.recover = self.snd_max;
        self.lost_to = self.snd_max;
        self.resent_to = self.snd_una;
        self.dup_acks = 0;
        self.timed_end = 0;
        if config.timestamps {
            self.timed_out_at_us = super::output::timestamp_us(now).max(1);
        }
        self.transmit(now, config, sink);
    }
}
