//! Timeouts and recoveries that turn out to have been needless: found, counted, and their cuts undone.
//!
//! Found by time: the first ACK that moves on echoes a time before the first retransmission, so it
//! answers an original (Eifel, RFC 3522, RFC 4015). Found by DSACK: every segment that was sent again
//! has been reported to have arrived twice (RFC 3708). [F-RTO](super::frto) finds needless timeouts
//! without either. The response is Linux's (`tcp_undo_cwnd_reduction`): the window and the threshold
//! are at least what they were, nothing is deemed lost any more, and the next ACK is treated as if
//! nothing had been. DSACKs that complete the proof after the recovery has ended undo it as well.

use super::config::TcpConfig;
use super::stream::Stream;
use crate::congestion::Window;
use serde::{Deserialize, Serialize};

/// What must be known to take a cut back.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Undo {
    /// First position outstanding when it began.
    marker: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Segments sent again whose arrival in vain has not been reported; none sent again is no proof.
    unproven: Option<u32>,
    /// When the first of them left, microseconds; 0 is not yet.
    first_again_us: u32,
    of_timeout: bool,
}

impl Undo {
    /// The window is about to be cut: what may have to be restored, with `out` segments sent again and under
    /// way.
    pub(super) fn new(of_timeout: bool, stream: &Stream, window: &Window, out: u32) -> Undo {
        Undo {
            marker: stream.una,
            cwnd: window.cwnd,
            // Linux, `tcp_current_ssthresh`: three quarters of the window at least
            ssthresh: window.ssthresh.max(window.cwnd / 4 * 3),
            unproven: (out > 0).then_some(out),
            first_again_us: 0,
            of_timeout,
        }
    }

    /// Notes that a segment is retransmitted.
    pub(super) fn note_again(&mut self, now_us: u32) {
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
        if self.first_again_us == 0 {
            self.first_again_us = now_us.max(1);
        }
    }

    /// A segment has arrived twice.
    pub(super) fn note_duplicate(&mut self, block: (u64, u64), config: &TcpConfig) {
        if block.1 > self.marker
            && let Some(n) = &mut self.unproven
        {
            let segments = (block.1 - block.0).div_ceil(u64::from(config.segment)) as u32;
            *n = n.saturating_sub(segments);
        }
    }

    /// Returns whether the echo of an ACK answers something sent before the first retransmission; times are
    /// compared in units of the timestamp clock.
    pub(super) fn answers_original(&self, echo_us: u32, config: &TcpConfig) -> bool {
        let clock_us = (config.recovery.timestamp_clock.0 / 1_000_000).max(1) as u32;
        let (echo, first) = (echo_us / clock_us, self.first_again_us / clock_us);
        config.timestamps && echo_us != 0 && self.first_again_us != 0 && echo < first
    }

    /// Returns whether DSACKs prove that nothing was lost.
    pub(super) fn is_proven(&self) -> bool {
        self.unproven == Some(0)
    }

    /// Restores the window; returns whether a timeout had cut it.
    pub(super) fn restore(&self, window: &mut Window) -> bool {
        window.cwnd = window.cwnd.max(self.cwnd);
        window.ssthresh = window.ssthresh.max(self.ssthresh);
        window.credit = 0;
        self.of_timeout
    }
}

/// What an ACK in a recovery or after a timeout means for what is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Advice {
    /// As without these doubts.
    GoOn,
    /// Nothing is sent again now and nothing more deemed lost.
    NothingAgain,
}

/// What an ACK brings that bears on whether something was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Bytes by which the cumulative ACK moved on.
    pub(super) acked: u64,
    /// Data that was sent once, before the recovery or timeout, has arrived.
    pub(super) original: bool,
    /// A duplicate ACK, or something newly SACKed.
    pub(super) duplicate: bool,
}
