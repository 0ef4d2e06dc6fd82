//! The three-way handshake and the FIN (RFC 9293, 3.5 and 3.6).
//!
//! A SYN or SYN-ACK that is not answered within the timeout is sent again with exponential backoff.
//! If that was needed more than once the initial window is one segment (RFC 6928, section 2).

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::phases::{Linger, State};
use eastwest_types::{Packet, Time, flag};

impl Endpoint {
    pub(super) fn connect(&mut self, ctx: &mut Context<'_, impl Sink>) {
        self.state = State::SynSent;
        self.send_syn(ctx);
        self.rearm(ctx.sink);
    }

    /// Sends the SYN, or the SYN-ACK, for the first time or again.
    pub(super) fn send_syn(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let answer = self.state == State::SynReceived;
        let again = self.stream.next > 0;
        let flags = if answer { flag::SYN | flag::ACK } else { flag::SYN };
        let flags = flags | self.ecn_of_syn(again, answer, ctx.config);
        self.send_control(0, flags, ctx);
        // Karn: a SYN that was sent again gives no sample
        if again {
            self.recovery.count().retransmits += 1;
        }
        self.timers.timed_end = u64::from(!again);
        self.timers.timed_at = ctx.now;
        self.stream.next = 1;
        self.restart_timer(ctx.now, ctx.config);
    }

    /// A packet while the handshake is under way. Returns whether it may carry more.
    pub(super) fn on_handshake(
        &mut self,
        packet: &Packet,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        let syn = packet.flags & flag::SYN != 0;
        let ack = packet.flags & flag::ACK != 0;
        if packet.flags & flag::RST != 0 {
            self.on_reset(packet, ctx);
            return false;
        }
        match self.state {
            State::Listen if syn => {
                self.learn_peer(packet, ctx.config);
                self.state = State::SynReceived;
                self.send_syn(ctx);
            }
            // the SYN again: our SYN-ACK was lost
            State::SynReceived if syn => self.send_syn(ctx),
            State::SynSent if syn && ack && packet.ack == 1 => {
                self.learn_peer(packet, ctx.config);
                self.finish_handshake(ctx.now, packet, ctx.config);
                self.send_ack(ctx);
                self.transmit(ctx);
            }
            State::SynReceived if ack && packet.ack >= 1 => {
                self.finish_handshake(ctx.now, packet, ctx.config);
                return true;
            }
            _ => {}
        }
        false
    }

    fn learn_peer(&mut self, packet: &Packet, config: &TcpConfig) {
        self.agree_on_ecn(packet, config);
        self.receiver.next = 1;
        self.peer_window = packet.window;
        self.receiver.ts_recent_us = super::rtt::timestamp_us(packet.born);
    }

    fn finish_handshake(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        self.state = State::Established;
        self.stream.una = 1;
        self.peer_window = packet.window;
        self.timers.rto_at = Time::NEVER;
        if self.timers.retries > 1 {
            self.window.cwnd = u64::from(config.segment);
        }
        self.timers.retries = 0;
        self.timers.backoff = 0;
        if std::mem::take(&mut self.timers.timed_end) > 0 {
            self.timers.take_sample(now.since(self.timers.timed_at), &self.stream, config);
        } else {
            // sent more than once: the echo tells which of them is answered (RFC 7323)
            self.sample_echo(now, packet, config);
        }
    }

    /// The application closes; the FIN goes out with or after its last byte.
    pub(super) fn close(&mut self, ctx: &mut Context<'_, impl Sink>) {
        if self.closing {
            return;
        }
        self.closing = true;
        if self.is_established() {
            self.transmit(ctx);
            self.linger_if_finished(ctx.now, ctx.config);
        }
    }

    /// Once both FINs are through, stay for a while to answer a FIN that comes again (TIME-WAIT).
    pub(super) fn linger_if_finished(&mut self, now: Time, config: &TcpConfig) {
        if self.timers.linger == Linger::NotYet && self.is_finished() {
            self.timers.begin_linger(now + config.time_wait);
        }
    }
}
