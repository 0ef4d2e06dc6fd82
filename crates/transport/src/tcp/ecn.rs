//! Explicit congestion notification (RFC 3168, as RFC 8311 updates it; RFC 8257 for DCTCP).
//!
//! * A SYN with ECE and CWR requests ECN, a SYN-ACK with ECE accepts it (RFC 3168, 6.1.1). A
//!   retransmitted SYN does not request ECN (6.1.1.1), so that a path which drops ECN-setup SYNs
//!   stays usable.
//! * New data is sent with ECT(0). Retransmissions, pure ACKs and SYNs are not (6.1.4, 6.1.5),
//!   except with `all_packets` (RFC 8257, 3.5).
//! * The receiver sets ECE in every ACK after a CE mark until a packet with CWR arrives (6.1.3).
//!   The first mark and a CWR are acknowledged at once, since the sender's window may be small
//!   (Linux; with the [ACK policy](super::linux_acks) of Linux two segments). With DCTCP, ECE says
//!   whether the acknowledged packets were marked: when a packet changes this state, a delayed ACK
//!   is sent first, in the old state, and the packet itself is acknowledged at once (RFC 8257, 3.2;
//!   Linux, `dctcp_ece_ack_update`).
//! * The sender reduces its window at most once per window of data and sends CWR with the next new
//!   data (6.1.2). The window does not grow until everything outstanding at that time and something
//!   beyond it is acknowledged, so that the CWR has arrived (Linux, `TCP_CA_CWR`). With
//!   [proportional rate reduction](super::prr) the window is reduced step by step, as in Linux,
//!   otherwise at once.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::prr::Prr;
use super::rules::PrrRule;
use super::states::{CwndReduction, RecoveryPhase};
use crate::congestion::rules::EcnRule;
use eastwest_types::{Packet, ecn, flag};

/// Bit of [`Endpoint::ecn`]: ECN is negotiated. The bit has the position of ECT(0) in the IP
/// header, so that it can be copied to the header.
pub(super) const NEGOTIATED: u8 = ecn::ECT0;
/// Bit of [`Endpoint::ecn`] at a receiver: every ACK carries ECE. It is the bit of the TCP flag
/// ECE.
pub(super) const SEND_ECE: u8 = flag::ECE;
/// Bit of [`Endpoint::ecn`] at a sender: the next new data carries CWR. It is the bit of the TCP
/// flag CWR.
pub(super) const SEND_CWR: u8 = flag::CWR;
/// Bit of [`Endpoint::ecn`] at a sender: the window has been reduced, and does not grow until
/// `cwr_end` is acknowledged (Linux, `TCP_CA_CWR`).
pub(super) const IN_CWR: u8 = 1;
/// Bit of [`Endpoint::ecn`] at a receiver: data with ECT has arrived.
const ECT_SEEN: u8 = 4;

/// TCP flags of a SYN that requests ECN (ECN-setup SYN, RFC 3168).
const ECN_SETUP: u8 = flag::ECE | flag::CWR;

impl Endpoint {
    /// Returns the ECN flags of a SYN or SYN-ACK.
    pub(super) fn syn_ecn_flags(
        &self,
        is_retransmission: bool,
        is_syn_ack: bool,
        config: &TcpConfig,
    ) -> u8 {
        let rules = &config.rules.ecn;
        if is_syn_ack {
            if self.ecn & NEGOTIATED != 0 { flag::ECE } else { 0 }
        } else if rules.rule == EcnRule::On && !(is_retransmission && rules.fallback) {
            ECN_SETUP
        } else {
            0
        }
    }

    /// Decides from the peer's SYN or SYN-ACK whether the connection uses ECN.
    pub(super) fn negotiate_ecn(&mut self, packet: &Packet, config: &TcpConfig) {
        let rules = &config.rules.ecn;
        let agreed = if packet.flags & flag::ACK == 0 {
            rules.rule != EcnRule::Off && packet.flags & ECN_SETUP == ECN_SETUP
        } else {
            rules.rule == EcnRule::On && packet.flags & ECN_SETUP == flag::ECE
        };
        if agreed {
            self.ecn |= NEGOTIATED;
        }
        if !agreed || !rules.all_packets {
            self.address.tos &= !ecn::MASK;
        }
    }

    /// Processes the ECN field of a packet with payload, before the payload. Returns whether the
    /// packet must be acknowledged at once.
    pub(super) fn on_ecn_field(
        &mut self,
        packet: &Packet,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        let marked = packet.tos & ecn::MASK == ecn::CE;
        let capable = packet.tos & ecn::MASK != 0;
        let echoed = self.ecn & SEND_ECE != 0;
        if (marked && !echoed) || (!capable && self.ecn & ECT_SEEN != 0) {
            self.receiver.on_ce_mark_linux(ctx.config);
        }
        if capable {
            self.ecn |= ECT_SEEN;
        }
        if ctx.config.congestion.echoes_each_mark() {
            if marked == echoed {
                return false;
            }
            if self.receiver.unacked > 0 {
                self.send_ack(ctx);
            }
            self.ecn ^= SEND_ECE;
            return true;
        }
        let told = packet.flags & flag::CWR != 0;
        if told {
            self.ecn &= !SEND_ECE;
        }
        if marked {
            self.ecn |= SEND_ECE;
        }
        told || (marked && !echoed)
    }

    /// Handles an ACK with ECE that acknowledges `acked` bytes: reduces the window. `flight` bytes
    /// were outstanding before the ACK.
    #[cold]
    pub(super) fn on_ece(&mut self, flight: u64, acked: u64, config: &TcpConfig) {
        let reno = self.is_reno(config);
        let heeded = if reno {
            self.reacts_to_ece(acked)
        } else {
            self.recovery.phase == RecoveryPhase::Open
        };
        if self.ecn & (NEGOTIATED | IN_CWR) != NEGOTIATED || !heeded {
            return;
        }
        // RFC 3168 halves the window; here the unused part of the window does not count.
        let threshold = self.ssthresh_after_ecn(flight.min(self.window.cwnd), config);
        self.window.ssthresh = threshold;
        self.window.credit = 0;
        self.ecn |= IN_CWR | SEND_CWR;
        let (cwr_end, cwnd) = (self.stream.next, self.window.cwnd);
        let cold = self.recovery.cold_mut();
        cold.cwr_end = cwr_end;
        cold.counters.ecn_reductions += 1;
        cold.undo = None; // a reduction by ECE is never undone
        if reno {
            cold.last_reduction = CwndReduction::Mark;
            self.window.cwnd = (cwnd / 2).max(u64::from(config.segment));
        } else if config.recovery.prr == PrrRule::Off {
            self.window.cwnd = cwnd.min(threshold);
        } else {
            cold.prr = Prr::new(cwnd);
        }
    }

    /// Whether the congestion window must not grow yet after a reduction by ECE. This state ends
    /// when everything outstanding at the reduction, and some later data, is acknowledged.
    #[cold]
    pub(super) fn stays_in_cwr(&mut self, config: &TcpConfig) -> bool {
        let over = self.stream.una > self.recovery.cold_mut().cwr_end;
        if over {
            self.ecn &= !IN_CWR;
            if config.recovery.prr != PrrRule::Off {
                self.window.cwnd = self.window.ssthresh;
            }
        }
        !over
    }

    /// Ends the CWR state (no growth of the window after a reduction by ECE) when a loss has
    /// occurred. The sender signals the loss with CWR too (RFC 3168, 6.1.2). Returns whether ECE
    /// had already reduced the window for the same window of data.
    pub(super) fn leave_cwr(&mut self) -> bool {
        let held = self.ecn & IN_CWR != 0;
        if self.ecn & NEGOTIATED != 0 {
            self.ecn = (self.ecn & !IN_CWR) | SEND_CWR;
        }
        held
    }
}
