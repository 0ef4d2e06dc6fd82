//! Resets, and segments whose flags an established connection refuses (RFC 9293, 3.5.2 and 3.10.7.4;
//! RFC 5961 for resets that are not exactly the next expected).
//!
//! Hosts of a scenario never send such segments: dialogue tests do.

use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Sink};
use super::phases::{Linger, State};
use eastwest_types::{Packet, flag};

impl Endpoint {
    /// A segment has reached an established connection, and of SYN, RST and ACK it has not ACK alone.
    #[cold]
    #[inline(never)]
    pub(super) fn on_unusual_flags(&mut self, packet: &Packet, ctx: &mut Context<'_, impl Sink>) {
        if packet.flags & flag::RST != 0 {
            self.on_reset(packet, ctx);
        } else if packet.flags & flag::SYN != 0 {
            // the SYN-ACK again, because our ACK was lost; or a SYN, which gets a challenge ACK
            self.send_ack(ctx);
        }
        // a segment without ACK is dropped
    }

    /// A reset has arrived. It ends the connection if it answers our SYN, or if its sequence number is
    /// the next expected; elsewhere in the window it gets a challenge ACK (RFC 5961, 3.2). In TIME-WAIT
    /// it is dropped (RFC 1337).
    #[cold]
    pub(super) fn on_reset(&mut self, packet: &Packet, ctx: &mut Context<'_, impl Sink>) {
        let seq = Packet::widen(packet.seq, self.receiver.next);
        let ends = match self.state {
            State::Listen | State::Failed => return,
            State::SynSent => packet.flags & flag::ACK != 0 && packet.ack == 1,
            State::SynReceived => seq == self.receiver.next,
            State::Established if self.timers.linger != Linger::NotYet => return,
            State::Established => seq == self.receiver.next,
        };
        if ends {
            self.end_at_once();
            ctx.sink.notify(self.address.id, Notice::Failed);
        } else if self.is_established()
            && seq > self.receiver.next
            && seq - self.receiver.next < ctx.config.max_window
        {
            self.send_ack(ctx);
        }
    }

    /// The application ends the connection at once: what is not sent never is, and where the other end
    /// has answered it is told by a reset (RFC 9293, 3.10.5).
    pub(super) fn reset(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let known = matches!(self.state, State::SynReceived | State::Established);
        if known && self.timers.linger == Linger::NotYet {
            self.send_reset(ctx);
        }
        self.end_at_once();
    }

    /// Nothing is sent any more, paced segments included.
    fn end_at_once(&mut self) {
        self.give_up();
        if self.is_controlled() {
            self.stop_waiting();
        }
    }
}
