//! Reno as in ns-2's FullTcp: `partial_acks = false` without SACK.
//!
//! Any ACK of new data ends fast recovery (RFC 2581, 3.2). Whether the window is reduced again in
//! the same window of data depends on the cause of the last reduction
//! (`FullTcpAgent::dupack_action`, `timeout_action`, `TcpAgent::ecn`):
//!
//! | last reduction | three duplicate ACKs below `recover` | ECE below `recover` | timeout |
//! |---|---|---|---|
//! | none, timeout | begin no recovery | halves the window after a timeout | halves the threshold |
//! | duplicate ACKs | begin another recovery | nothing | halves the threshold |
//! | ECE | begin a recovery, threshold as it is | nothing | threshold as it is |
//!
//! Duplicate ACKs after the third inflate the window even if they begin no recovery (`extra_ack`).
//! The next ACK of new data reduces the inflated window to the threshold (`pack_action`), and then
//! also opens the window (`open_cwnd_on_pack_`). A timeout halves the inflated window, and each
//! further timeout halves it again.

use super::config::TcpConfig;
use super::ecn::IN_CWR;
use super::endpoint::Endpoint;
use super::states::{CwndReduction, RecoveryPhase};

impl Endpoint {
    /// Whether loss recovery follows ns-2's Reno: neither SACK nor partial ACKs are used.
    #[inline]
    pub(super) fn is_reno(&self, config: &TcpConfig) -> bool {
        !config.sack && !config.recovery.partial_acks
    }

    /// Inflates the congestion window by a segment after a duplicate ACK outside of a recovery. In
    /// a recovery, duplicate ACKs reduce the count of bytes in flight instead.
    #[cold]
    pub(super) fn inflate(&mut self, config: &TcpConfig) {
        if self.recovery.phase != RecoveryPhase::Recovery
            && self.recovery.dup_acks > config.recovery.reordering
        {
            self.window.cwnd += u64::from(config.segment);
        }
    }

    /// Reduces an inflated congestion window to the threshold after an ACK of new data outside of a
    /// recovery.
    pub(super) fn deflate(&mut self, config: &TcpConfig) {
        if self.recovery.phase == RecoveryPhase::Recovery {
            return;
        }
        if self.recovery.dup_acks >= config.recovery.reordering {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        self.recovery.dup_acks = 0;
    }

    /// Whether duplicate ACKs below the recovery point `recover` may begin another recovery.
    pub(super) fn may_reenter_recovery(&self, config: &TcpConfig) -> bool {
        self.is_reno(config)
            && matches!(
                self.recovery.last_reduction(),
                CwndReduction::Duplicates | CwndReduction::Mark
            )
    }

    /// Enters fast recovery of ns-2's Reno. Returns whether ECE has already reduced the window for
    /// the same window of data. In that case the window is halved again, the threshold stays, and
    /// the first duplicate ACKs do not inflate the window.
    pub(super) fn enter_recovery_after_ece(&mut self, config: &TcpConfig) -> bool {
        let marked = self.ecn & IN_CWR != 0;
        if marked {
            self.leave_cwr();
            self.window.cwnd = (self.window.cwnd / 2).max(u64::from(config.segment));
            self.recovery.dup_acks = 0;
        }
        self.recovery.cold_mut().last_reduction = CwndReduction::Duplicates;
        marked
    }

    /// Reduces the slow-start threshold after a retransmission timeout with `flight` bytes
    /// outstanding, as ns-2's Reno does.
    pub(super) fn reduce_ssthresh_of_reno(&mut self, flight: u64, config: &TcpConfig) {
        if self.recovery.last_reduction() == CwndReduction::Mark {
            self.leave_cwr();
            return;
        }
        if self.recovery.phase == RecoveryPhase::Recovery {
            self.window.cwnd += u64::from(self.recovery.dup_acks) * u64::from(config.segment);
        }
        self.window.cwnd = self.window.cwnd.min(config.max_window);
        self.window.ssthresh = self.ssthresh_after_loss(flight, config);
        self.recovery.cold_mut().last_reduction = CwndReduction::Timeout;
    }

    /// Whether an ACK with ECE that acknowledges `acked` bytes reduces the window in ns-2's Reno.
    pub(super) fn reacts_to_ece(&self, acked: u64) -> bool {
        acked > 0
            && match self.recovery.phase {
                RecoveryPhase::Open => {
                    self.recovery.last_reduction() != CwndReduction::Duplicates
                        || self.stream.una > self.recovery.recover()
                }
                RecoveryPhase::Loss => self.recovery.last_reduction() == CwndReduction::Timeout,
                RecoveryPhase::Recovery => false,
            }
    }
}
