//! Reno as ns-2's FullTcp has it: `partial_acks = false` without SACK.
//!
//! RFC 2581, 3.2 ends fast recovery with any new ACK. What else may cut the window in the same window of
//! data depends on what has cut it last (`FullTcpAgent::dupack_action`, `timeout_action`,
//! `TcpAgent::ecn`):
//!
//! | last cut | three duplicate ACKs below `recover` | ECE below `recover` | timeout |
//! |---|---|---|---|
//! | none, timeout | begin no recovery | halves the window after a timeout | halves the threshold |
//! | duplicate ACKs | begin another recovery | nothing | halves the threshold |
//! | ECE | begin a recovery, threshold as it is | nothing | threshold as it is |
//!
//! Duplicate ACKs after the third inflate the window even where they begin no recovery (`extra_ack`), and
//! the next new ACK sets it to the threshold if it is larger (`pack_action`). That new ACK also opens the
//! window (`open_cwnd_on_pack_`). A timeout halves the inflated window, each time in a row.

use super::config::TcpConfig;
use super::ecn::HELD;
use super::endpoint::Endpoint;
use super::phases::{Cut, Phase};

impl Endpoint {
    #[inline]
    pub(super) fn is_reno(&self, config: &TcpConfig) -> bool {
        !config.sack && !config.recovery.partial_acks
    }

    /// A duplicate ACK has been counted. In recovery duplicates reduce the pipe instead.
    #[cold]
    pub(super) fn inflate(&mut self, config: &TcpConfig) {
        if self.recovery.phase != Phase::Recovery
            && self.recovery.dup_acks > config.recovery.reordering
        {
            self.window.cwnd += u64::from(config.segment);
        }
    }

    /// A new ACK outside of recovery: takes back what duplicates have added beyond the threshold.
    pub(super) fn deflate(&mut self, config: &TcpConfig) {
        if self.recovery.phase == Phase::Recovery {
            return;
        }
        if self.recovery.dup_acks >= config.recovery.reordering {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        self.recovery.dup_acks = 0;
    }

    /// Whether duplicate ACKs below `recover` may begin a recovery.
    pub(super) fn may_recover_again(&self, config: &TcpConfig) -> bool {
        self.is_reno(config) && matches!(self.recovery.last_cut(), Cut::Duplicates | Cut::Mark)
    }

    /// A recovery begins. Returns whether marks have cut the window in the same window of data; then it is
    /// halved again, the threshold stays, and the first duplicates do not inflate it.
    pub(super) fn recover_after_mark(&mut self, config: &TcpConfig) -> bool {
        let marked = self.ecn & HELD != 0;
        if marked {
            self.release_hold();
            self.window.cwnd = (self.window.cwnd / 2).max(u64::from(config.segment));
            self.recovery.dup_acks = 0;
        }
        self.recovery.rare().last_cut = Cut::Duplicates;
        marked
    }

    /// The retransmission timer has expired.
    pub(super) fn lower_threshold_of_reno(&mut self, flight: u64, config: &TcpConfig) {
        if self.recovery.last_cut() == Cut::Mark {
            self.release_hold();
            return;
        }
        if self.recovery.phase == Phase::Recovery {
            self.window.cwnd += u64::from(self.recovery.dup_acks) * u64::from(config.segment);
        }
        self.window.cwnd = self.window.cwnd.min(config.max_window);
        self.window.ssthresh = self.threshold_after_loss(flight, config);
        self.recovery.rare().last_cut = Cut::Timeout;
    }

    /// Whether an ACK with ECE that acknowledges `acked` bytes cuts the window.
    pub(super) fn heeds_echo(&self, acked: u64) -> bool {
        acked > 0
            && match self.recovery.phase {
                Phase::Open => {
                    self.recovery.last_cut() != Cut::Duplicates
                        || self.stream.una > self.recovery.recover()
                }
                Phase::Loss => self.recovery.last_cut() == Cut::Timeout,
                Phase::Recovery => false,
            }
    }
}
