//! Explicit congestion notification (RFC 3168, as RFC 8311 updates it; RFC 8257 for DCTCP).
//!
//! * A SYN with ECE and CWR asks for it, a SYN-ACK with ECE agrees (RFC 3168, 6.1.1). A SYN that has to
//!   be sent again asks no more (6.1.1.1), so that a path which loses such SYNs stays usable.
//! * New data is sent with ECT(0). What is sent again, pure ACKs and SYNs are not (6.1.4, 6.1.5), but
//!   with `all_packets` they are (RFC 8257, 3.5).
//! * The receiver answers a mark with ECE on every ACK until a packet with CWR comes (6.1.3). The first
//!   mark and a CWR are acknowledged at once: the sender's window may be small (Linux; with its own way
//!   of [acknowledging](super::ack_linux) more than the first). With DCTCP ECE
//!   says whether the packets acknowledged were marked: where that changes, what an ACK was being
//!   delayed for is acknowledged first, in the old state, and the packet itself at once (RFC 8257, 3.2;
//!   Linux, `dctcp_ece_ack_update`).
//! * The sender cuts its window once per window of data and sends CWR with the next new data (6.1.2). It
//!   does not grow until what was outstanding is acknowledged and something beyond it, so that the CWR
//!   has arrived (Linux, `TCP_CA_CWR`). With [proportional rate reduction](super::prr) the window
//!   falls step by step meanwhile, as in Linux, otherwise at once.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::phases::{Cut, Phase};
use super::prr::Prr;
use super::rules::PrrRule;
use crate::congestion::rules::EcnRule;
use eastwest_types::{Packet, ecn, flag};

/// Bits of [`Endpoint::ecn`]. Three stand where packets have them, so that they are copied as they are.
/// Marks are understood at both ends: ECT(0) of the IP header.
pub(super) const IN_USE: u8 = ecn::ECT0;
/// As a receiver: ECE goes with every ACK.
pub(super) const ECHO: u8 = flag::ECE;
/// As a sender: CWR goes with the next new data.
pub(super) const TELL: u8 = flag::CWR;
/// As a sender: the window has been cut and is held until `held_to` is acknowledged.
pub(super) const HELD: u8 = 1;
/// As a receiver: ECN-capable data has come.
const SEEN: u8 = 4;

const ASKS: u8 = flag::ECE | flag::CWR;

impl Endpoint {
    /// Flags of the SYN, or of the SYN-ACK.
    pub(super) fn ecn_of_syn(&self, again: bool, answer: bool, config: &TcpConfig) -> u8 {
        let rules = &config.rules.ecn;
        if answer {
            if self.ecn & IN_USE != 0 { flag::ECE } else { 0 }
        } else if rules.rule == EcnRule::On && !(again && rules.fallback) {
            ASKS
        } else {
            0
        }
    }

    /// Whether both ends understand marks, from the other's SYN or SYN-ACK.
    pub(super) fn agree_on_ecn(&mut self, packet: &Packet, config: &TcpConfig) {
        let rules = &config.rules.ecn;
        let agreed = if packet.flags & flag::ACK == 0 {
            rules.rule != EcnRule::Off && packet.flags & ASKS == ASKS
        } else {
            rules.rule == EcnRule::On && packet.flags & ASKS == flag::ECE
        };
        if agreed {
            self.ecn |= IN_USE;
        }
        if !agreed || !rules.all_packets {
            self.address.tos &= !ecn::MASK;
        }
    }

    /// A packet with payload has arrived and is not yet taken in: notes its mark. Returns whether it
    /// must be acknowledged at once.
    pub(super) fn note_mark(&mut self, packet: &Packet, ctx: &mut Context<'_, impl Sink>) -> bool {
        let marked = packet.tos & ecn::MASK == ecn::CE;
        let capable = packet.tos & ecn::MASK != 0;
        let echoed = self.ecn & ECHO != 0;
        if (marked && !echoed) || (!capable && self.ecn & SEEN != 0) {
            self.receiver.on_inbound_mark(ctx.config);
        }
        if capable {
            self.ecn |= SEEN;
        }
        if ctx.config.congestion.echoes_each_mark() {
            if marked == echoed {
                return false;
            }
            if self.receiver.unacked > 0 {
                self.send_ack(ctx);
            }
            self.ecn ^= ECHO;
            return true;
        }
        let told = packet.flags & flag::CWR != 0;
        if told {
            self.ecn &= !ECHO;
        }
        if marked {
            self.ecn |= ECHO;
        }
        told || (marked && !echoed)
    }

    /// An ACK with ECE has arrived that acknowledges `acked` bytes; `flight` was outstanding before it.
    #[cold]
    pub(super) fn on_echo(&mut self, flight: u64, acked: u64, config: &TcpConfig) {
        let reno = self.is_reno(config);
        let heeded = if reno { self.heeds_echo(acked) } else { self.recovery.phase == Phase::Open };
        if self.ecn & (IN_USE | HELD) != IN_USE || !heeded {
            return;
        }
        // RFC 3168 halves the window; one that is not used has grown for nothing
        let threshold = self.threshold_after_mark(flight.min(self.window.cwnd), config);
        self.window.ssthresh = threshold;
        self.window.credit = 0;
        self.ecn |= HELD | TELL;
        let (held_to, cwnd) = (self.stream.next, self.window.cwnd);
        let rare = self.recovery.rare();
        rare.held_to = held_to;
        rare.counters.ecn_reductions += 1;
        rare.undo = None; // a mark is no mistake
        if reno {
            rare.last_cut = Cut::Mark;
            self.window.cwnd = (cwnd / 2).max(u64::from(config.segment));
        } else if config.recovery.prr == PrrRule::Off {
            self.window.cwnd = cwnd.min(threshold);
        } else {
            rare.prr = Prr::new(cwnd);
        }
    }

    /// Whether the window is held after a cut; ends that once all is acknowledged that was outstanding
    /// then, and something since.
    #[cold]
    pub(super) fn is_held(&mut self, config: &TcpConfig) -> bool {
        let over = self.stream.una > self.recovery.rare().held_to;
        if over {
            self.ecn &= !HELD;
            if config.recovery.prr != PrrRule::Off {
                self.window.cwnd = self.window.ssthresh;
            }
        }
        !over
    }

    /// A loss ends the hold, and is answered to the receiver with CWR too (RFC 3168, 6.1.2). Returns
    /// whether the window had been cut for the same window of data.
    pub(super) fn release_hold(&mut self) -> bool {
        let held = self.ecn & HELD != 0;
        if self.ecn & IN_USE != 0 {
            self.ecn = (self.ecn & !HELD) | TELL;
        }
        held
    }
}
