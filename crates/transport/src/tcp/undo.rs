//! Timeouts and recoveries that turn out to have been needless: found, counted, and their cuts undone.
//!
//! Found by time: the first ACK that moves on echoes a time before the first retransmission, so it
//! answers an original (Eifel, RFC 3522, RFC 4015). Found by DSACK: every segment that was sent again
//! has been reported to have arrived twice (RFC 3708). [F-RTO](super::frto) finds needless timeouts
//! without either. The response is Linux's (`tcp_undo_cwnd_reduction`): the window and the threshold
//! are at least what they were, nothing is deemed lost any more, and the next ACK is treated as if
//! nothing had been. DSACKs that complete the proof after the recovery has ended undo it as well.

use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase};
use super::{Repair, Sink};
use eastwest_types::Packet;
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

/// What an ACK in a recovery or after a timeout means for what is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Advice {
    /// As without these doubts.
    GoOn,
    /// Nothing is sent again now and nothing more deemed lost.
    NothingAgain,
}

impl Endpoint {
    /// The first ACK after a timeout that moves on tells whether the timeout was spurious.
    pub(super) fn judge_timeout(&mut self, packet: &Packet, acked: u64, sink: &mut impl Sink) {
        let struck = std::mem::take(&mut self.rare().timed_out_at_us);
        if struck != 0 && (packet.ts_echo_us.wrapping_sub(struck) as i32) < 0 {
            self.count_spurious_timeout(acked, true, sink);
        } else if struck != 0 {
            self.judge_last_of_row(packet);
        }
    }

    /// Counts a timeout once as needless; `late`: an ACK of the original tells so.
    fn count_spurious_timeout(&mut self, acked: u64, late: bool, sink: &mut impl Sink) {
        let rare = self.rare();
        if !std::mem::replace(&mut rare.timeout_counted, true) {
            rare.counters.spurious_timeouts += 1;
            self.recount_row_as_spurious(late);
            self.tell(Repair::Spurious, self.snd_una - acked, self.snd_una, sink);
        }
    }

    /// The window is about to be cut: notes what may have to be restored.
    pub(super) fn note_for_undo(&mut self, of_timeout: bool, config: &TcpConfig) {
        if !config.recovery.undo && !config.recovery.frto {
            return;
        }
        let segment = u64::from(config.segment);
        let out = self.board.as_ref().map_or(0, |b| b.resent().div_ceil(segment)) as u32;
        let undo = Undo {
            marker: self.snd_una,
            cwnd: self.window.cwnd,
            // Linux, `tcp_current_ssthresh`: three quarters of the window at least
            ssthresh: self.window.ssthresh.max(self.window.cwnd / 4 * 3),
            unproven: (out > 0).then_some(out),
            first_again_us: 0,
            of_timeout,
        };
        self.rare().undo = Some(undo);
    }

    /// A segment leaves again.
    #[inline]
    pub(super) fn note_again(&mut self, now_us: u32) {
        if let Some(undo) = self.rare.as_mut().and_then(|r| r.undo.as_mut()) {
            undo.unproven = Some(undo.unproven.unwrap_or(0) + 1);
            if undo.first_again_us == 0 {
                undo.first_again_us = now_us.max(1);
            }
        }
    }

    /// A segment has arrived twice.
    pub(super) fn note_duplicate(&mut self, block: (u64, u64), config: &TcpConfig) {
        if let Some(undo) = &mut self.rare().undo
            && block.1 > undo.marker
            && let Some(n) = &mut undo.unproven
        {
            let segments = (block.1 - block.0).div_ceil(u64::from(config.segment)) as u32;
            *n = n.saturating_sub(segments);
        }
    }

    /// Whether the echo of this ACK answers something sent before the first retransmission; times are
    /// compared in units of the timestamp clock.
    fn answers_original(&self, packet: &Packet, config: &TcpConfig) -> bool {
        let Some(undo) = self.rare.as_ref().and_then(|r| r.undo) else { return false };
        let clock_us = (config.recovery.timestamp_clock.0 / 1_000_000).max(1) as u32;
        let (echo, first) = (packet.ts_echo_us / clock_us, undo.first_again_us / clock_us);
        config.timestamps && packet.ts_echo_us != 0 && undo.first_again_us != 0 && echo < first
    }

    fn proven_by_dsack(&self) -> bool {
        self.rare.as_ref().and_then(|r| r.undo).is_some_and(|u| u.unproven == Some(0))
    }

    fn may_undo(&self, packet: &Packet, config: &TcpConfig) -> bool {
        config.recovery.undo && (self.proven_by_dsack() || self.answers_original(packet, config))
    }

    /// Takes the last cut back. What is deemed lost is so no more unless the proof came by DSACK, for
    /// what was sent again then, not for what else may be missing.
    pub(super) fn take_back(&mut self, unmark: bool, acked: u64, sink: &mut impl Sink) {
        let Some(undo) = self.rare().undo.take() else { return };
        self.window.cwnd = self.window.cwnd.max(undo.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(undo.ssthresh);
        self.window.credit = 0;
        if undo.of_timeout {
            self.count_spurious_timeout(acked, false, sink);
        } else {
            self.count().spurious_recoveries += 1;
        }
        if unmark {
            self.set_lost_to(self.snd_una);
            if let Some(board) = &mut self.board {
                board.unmark_lost();
                board.rack.look_again();
            }
        }
    }

    /// Leaves the recovery: all is acknowledged that it was about, or it was needless.
    fn reopen(&mut self, acked: u64, sink: &mut impl Sink) {
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.set_lost_to(self.snd_una);
        // copies under way no longer count: they were not needed
        self.set_resent_to(self.snd_una);
        self.tell(Repair::Recovered, self.snd_una - acked, self.snd_una, sink);
    }

    /// An ACK in a recovery or after a timeout, or with a DSACK: was it all needless?
    pub(super) fn reconsider(
        &mut self,
        packet: &Packet,
        evidence: Evidence,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> Advice {
        let acked = evidence.acked;
        match self.phase {
            Phase::Open => {
                if config.recovery.undo && self.proven_by_dsack() {
                    self.take_back(false, acked, sink);
                }
            }
            Phase::Recovery => {
                let over = self.snd_una >= self.recover;
                if over && acked > 0 && self.may_undo(packet, config)
                    || config.recovery.undo && self.proven_by_dsack()
                {
                    self.take_back(false, acked, sink);
                    self.reopen(acked, sink);
                } else if acked > 0 && config.recovery.undo && self.answers_original(packet, config)
                {
                    // a hole filled by what was only late: while copies are under way send none more
                    if self.board.as_ref().is_some_and(|b| b.resent() > 0) {
                        return Advice::NothingAgain;
                    }
                    self.take_back(true, acked, sink);
                    self.reopen(acked, sink);
                }
            }
            Phase::Loss => {
                if acked > 0 && self.may_undo(packet, config) {
                    self.take_back(true, acked, sink);
                    self.reopen(acked, sink);
                } else if config.recovery.frto {
                    return self.judge_by_frto(evidence, config, sink);
                }
            }
        }
        Advice::GoOn
    }

    /// A timeout that F-RTO has found needless.
    pub(super) fn undo_timeout(&mut self, acked: u64, sink: &mut impl Sink) {
        self.take_back(true, acked, sink);
        self.reopen(acked, sink);
    }
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
