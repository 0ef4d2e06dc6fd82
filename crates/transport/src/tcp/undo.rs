//! State for undoing a window reduction: the window before the reduction, and the evidence that
//! nothing was lost. Detection and response are in
//! [`spurious_retransmission`](super::spurious_retransmission).

use super::config::TcpConfig;
use super::stream::Stream;
use crate::congestion::Window;
use serde::{Deserialize, Serialize};

/// State before a window reduction, and evidence that the reduction was unnecessary.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct UndoState {
    /// First stream position that was outstanding at the reduction.
    marker: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Number of retransmitted segments that no DSACK has reported yet; 0 proves that the reduction
    /// was unnecessary. `None` if no segment was retransmitted, which proves nothing.
    unreported: Option<u32>,
    /// Time in µs of the first retransmission after the reduction; 0 if there is none yet.
    first_retransmission_us: u32,
    after_timeout: bool,
}

impl UndoState {
    /// Returns the state before a window reduction. `after_timeout`: whether the reduction is due
    /// to a timeout; `retransmitted_in_flight`: number of retransmitted segments that are in flight
    /// already.
    pub(super) fn new(
        after_timeout: bool,
        stream: &Stream,
        window: &Window,
        retransmitted_in_flight: u32,
    ) -> UndoState {
        UndoState {
            marker: stream.una,
            cwnd: window.cwnd,
            // The threshold is at least three quarters of the window (Linux,
            // `tcp_current_ssthresh`).
            ssthresh: window.ssthresh.max(window.cwnd / 4 * 3),
            unreported: (retransmitted_in_flight > 0).then_some(retransmitted_in_flight),
            first_retransmission_us: 0,
            after_timeout,
        }
    }

    /// Counts a segment that is retransmitted at time `now_us` (µs).
    pub(super) fn count_retransmission(&mut self, now_us: u32) {
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
        if self.first_retransmission_us == 0 {
            self.first_retransmission_us = now_us.max(1);
        }
    }

    /// Handles a DSACK block: it reports that a retransmitted segment has arrived twice.
    pub(super) fn on_duplicate_reported(&mut self, block: (u64, u64), config: &TcpConfig) {
        if block.1 > self.marker
            && let Some(n) = &mut self.unreported
        {
            let segments = (block.1 - block.0).div_ceil(u64::from(config.segment)) as u32;
            *n = n.saturating_sub(segments);
        }
    }

    /// Whether an ACK that echoes the timestamp `echo_us` (µs) echoes a time before the first
    /// retransmission, so that it acknowledges an original transmission. Times are compared in
    /// units of the timestamp clock.
    pub(super) fn acks_original(&self, echo_us: u32, config: &TcpConfig) -> bool {
        let clock_us = (config.recovery.timestamp_clock.0 / 1_000_000).max(1) as u32;
        let first_us = self.first_retransmission_us;
        // Timestamps in µs wrap after 71.6 minutes (RFC 7323, 5.2).
        let is_before = (echo_us.wrapping_sub(first_us) as i32) < 0;
        let is_other_tick = echo_us / clock_us != first_us / clock_us;
        config.timestamps && echo_us != 0 && first_us != 0 && is_before && is_other_tick
    }

    /// Whether DSACKs have reported all retransmitted segments, which proves that nothing was lost.
    pub(super) fn is_proven(&self) -> bool {
        self.unreported == Some(0)
    }

    /// Raises the congestion window and the threshold to their values before the reduction. Returns
    /// whether the reduction was due to a timeout.
    pub(super) fn restore(&self, window: &mut Window) -> bool {
        window.cwnd = window.cwnd.max(self.cwnd);
        window.ssthresh = window.ssthresh.max(self.ssthresh);
        window.credit = 0;
        self.after_timeout
    }
}

/// Decision whether a sender continues to retransmit after an ACK in a recovery or after a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RetransmitAdvice {
    /// Retransmissions and loss detection continue.
    Normal,
    /// Only new data is sent, and no more segments are marked as lost.
    NewDataOnly,
}

/// Evidence in an ACK about whether data was lost before a recovery or timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndoEvidence {
    /// Bytes by which the ACK advances SND.UNA.
    pub(super) acked: u64,
    /// Whether data that was sent once, before the recovery or timeout, has arrived.
    pub(super) original: bool,
    /// Whether the ACK is a duplicate, or SACKs new data.
    pub(super) duplicate: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::test_config;
    use eastwest_types::Span;

    /// Whether an ACK that echoes `echo_us` acknowledges an original transmission, if the
    /// retransmission was at `retransmitted_us`.
    fn is_original(echo_us: u32, retransmitted_us: u32) -> bool {
        let mut config = TcpConfig { timestamps: true, ..test_config() };
        config.recovery.timestamp_clock = Span::from_ms(1);
        let mut state = UndoState {
            marker: 0,
            cwnd: 10,
            ssthresh: 10,
            unreported: None,
            first_retransmission_us: 0,
            after_timeout: false,
        };
        state.count_retransmission(retransmitted_us);
        state.acks_original(echo_us, &config)
    }

    #[test]
    fn echoes_are_compared_in_ticks_and_across_the_wrap_of_timestamps() {
        assert!(is_original(4_000, 9_000));
        assert!(!is_original(9_000, 4_000));
        assert!(!is_original(4_100, 4_900), "the same tick of 1 ms");
        assert!(is_original(u32::MAX - 5_000, 3_000), "the clock has wrapped between them");
        assert!(!is_original(3_000, u32::MAX - 5_000));
    }
}
