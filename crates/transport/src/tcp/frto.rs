//! F-RTO: finds needless timeouts from the order of ACKs alone (RFC 5682, section 3, in the form with
//! SACK that Linux has in `tcp_process_loss`).
//!
//! After a timeout only the first segment is sent again. Where the next ACK moves on but does not yet
//! acknowledge all, new data goes out instead of more retransmissions. Data that was sent once and
//! before the timeout arriving, by ACK or SACK, shows that not all was lost: the timeout was needless
//! and is undone. A duplicate or a SACK of the new data shows that it was not.
//!
//! Not after a timeout in the midst of a fast recovery. Without new data to send, or room for it in the
//! receive window, recovery goes the ordinary way (RFC 5682, step 2b, as Linux does; the RFC would
//! also allow to wait).

use super::Sink;
use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase};
use super::undo::{Advice, Evidence};

impl Endpoint {
    /// A timeout: whether it can be judged so. `before` is the phase it struck in.
    pub(super) fn begin_frto(&mut self, before: Phase, config: &TcpConfig) {
        if config.recovery.frto {
            self.rare().frto = before == Phase::Open || self.retries > 1;
        }
    }

    /// An ACK after a timeout.
    pub(super) fn judge_by_frto(
        &mut self,
        evidence: Evidence,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> Advice {
        if !self.rare().frto {
            return Advice::GoOn;
        }
        if evidence.original {
            self.rare().frto = false;
            self.undo_timeout(evidence.acked, sink);
        } else if self.snd_max > self.recover {
            if evidence.duplicate {
                self.rare().frto = false;
                if !config.sack {
                    // RFC 5682, 2.1 step 3a: no SACKs tell that the two new segments have left
                    let three = 3 * u64::from(config.segment);
                    self.window.cwnd = self.window.cwnd.max(three);
                }
            }
        } else if evidence.acked > 0 && self.snd_una < self.recover {
            let right_edge = self.snd_una + u64::from(self.peer_window).min(config.max_window);
            if self.snd_max < self.send_end() && self.snd_max < right_edge {
                return Advice::NothingAgain;
            }
            self.rare().frto = false;
        }
        Advice::GoOn
    }
}
