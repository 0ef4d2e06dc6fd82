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

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::phases::Phase;
use super::undo::{Advice, Evidence};

impl Endpoint {
    /// A timeout: whether it can be judged so. `before` is the phase it struck in.
    pub(super) fn begin_frto(&mut self, before: Phase, config: &TcpConfig) {
        if config.recovery.frto {
            self.recovery.rare().frto = before == Phase::Open || self.timers.retries > 1;
        }
    }

    /// An ACK after a timeout.
    pub(super) fn judge_by_frto(
        &mut self,
        evidence: Evidence,
        ctx: &mut Context<'_, impl Sink>,
    ) -> Advice {
        if !self.recovery.rare().frto {
            return Advice::GoOn;
        }
        if evidence.original {
            self.recovery.rare().frto = false;
            self.undo_timeout(evidence.acked, ctx.sink);
        } else if self.stream.next > self.recovery.recover() {
            if evidence.duplicate {
                self.recovery.rare().frto = false;
                if !ctx.config.sack {
                    // RFC 5682, 2.1 step 3a: no SACKs tell that the two new segments have left
                    let three = 3 * u64::from(ctx.config.segment);
                    self.window.cwnd = self.window.cwnd.max(three);
                }
            }
        } else if evidence.acked > 0 && self.stream.una < self.recovery.recover() {
            let right_edge = self.right_edge(ctx.config);
            if self.stream.next < self.send_end() && self.stream.next < right_edge {
                return Advice::NothingAgain;
            }
            self.recovery.rare().frto = false;
        }
        Advice::GoOn
    }
}
