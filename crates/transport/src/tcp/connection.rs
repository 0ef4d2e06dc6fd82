//! Connection management: three-way handshake, FIN, reset (RFC 9293, 3.5, 3.6 and 3.10.7.4).
//!
//! A SYN or SYN-ACK that is not acknowledged within the timeout is retransmitted with exponential
//! backoff. After more than one retransmission the initial window is one segment (RFC 6928, section
//! 2). Resets whose sequence number is not exactly the next expected get a challenge ACK (RFC
//! 5961). Hosts of a scenario never send resets, or segments with unusual flags; scripts of
//! packetdrill do.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Sink};
use super::states::{State, TimeWait};
use eastwest_types::{Packet, Time, flag};

impl Endpoint {
    /// Opens the connection as client: sends the SYN.
    pub(super) fn connect(&mut self, ctx: &mut Context<'_, impl Sink>) {
        self.state = State::SynSent;
        self.send_syn(ctx);
        self.rearm(ctx.sink);
    }

    /// Sends the SYN or SYN-ACK of this end, or retransmits it.
    pub(super) fn send_syn(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let is_syn_ack = self.state == State::SynReceived;
        let is_retransmission = self.stream.next > 0;
        let flags = if is_syn_ack { flag::SYN | flag::ACK } else { flag::SYN };
        let flags = flags | self.syn_ecn_flags(is_retransmission, is_syn_ack, ctx.config);
        self.send_control(0, flags, ctx);
        // Karn's algorithm: a retransmitted SYN gives no RTT sample.
        if is_retransmission {
            self.recovery.count().retransmits += 1;
        }
        self.timers.timed_end = u64::from(!is_retransmission);
        self.timers.timed_at = ctx.now;
        self.stream.next = 1;
        self.restart_timer(ctx.now, ctx.config);
    }

    /// Handles a packet during the handshake. Returns whether its ACK and payload must still be
    /// processed.
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
            // The peer has retransmitted its SYN, because the SYN-ACK was lost.
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
        self.negotiate_ecn(packet, config);
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
            self.timers.add_rtt_sample(now.since(self.timers.timed_at), &self.stream, config);
        } else {
            // The SYN was sent more than once: the echoed timestamp shows which transmission is
            // acknowledged (RFC 7323).
            self.sample_timestamp_rtt(now, packet, config);
        }
    }

    /// Closes the sending side of this end: a FIN follows the last byte that the application has
    /// written.
    pub(super) fn close(&mut self, ctx: &mut Context<'_, impl Sink>) {
        if self.closing {
            return;
        }
        self.closing = true;
        if self.is_established() {
            self.transmit(ctx);
            self.enter_time_wait_if_finished(ctx);
        }
    }

    /// Enters TIME-WAIT once the FIN of this end is acknowledged and the FIN of the peer has
    /// arrived. In TIME-WAIT a retransmitted FIN is acknowledged.
    pub(super) fn enter_time_wait_if_finished(&mut self, ctx: &mut Context<'_, impl Sink>) {
        if self.timers.time_wait == TimeWait::NotYet && self.is_finished() {
            let until = ctx.now + ctx.config.time_wait;
            self.timers.start_time_wait(until);
            ctx.sink.waits(self.address.id, until);
        }
    }

    /// Handles a segment of an established connection that has the flag SYN or RST, or lacks ACK.
    #[cold]
    #[inline(never)]
    pub(super) fn on_unusual_flags(&mut self, packet: &Packet, ctx: &mut Context<'_, impl Sink>) {
        if packet.flags & flag::RST != 0 {
            self.on_reset(packet, ctx);
        } else if packet.flags & flag::SYN != 0 {
            // The ACK of a SYN-ACK was lost, and the peer repeats the SYN-ACK. A SYN gets a
            // challenge ACK.
            self.send_ack(ctx);
        }
        // A segment without ACK is dropped.
    }

    /// Handles a reset. The reset ends the connection if it acknowledges the SYN of this end, or if
    /// its sequence number is the next expected; a reset elsewhere in the window gets a challenge
    /// ACK (RFC 5961, 3.2). In TIME-WAIT a reset is dropped (RFC 1337).
    #[cold]
    pub(super) fn on_reset(&mut self, packet: &Packet, ctx: &mut Context<'_, impl Sink>) {
        let seq = Packet::widen(packet.seq, self.receiver.next);
        let ends = match self.state {
            State::Listen | State::Failed => return,
            State::SynSent => packet.flags & flag::ACK != 0 && packet.ack == 1,
            State::SynReceived => seq == self.receiver.next,
            State::Established if self.timers.time_wait != TimeWait::NotYet => return,
            State::Established => seq == self.receiver.next,
        };
        if ends {
            self.fail_at_once();
            ctx.sink.notify(self.address.id, Notice::Failed);
        } else if self.is_established()
            && seq > self.receiver.next
            && seq - self.receiver.next < ctx.config.max_window
        {
            self.send_ack(ctx);
        }
    }

    /// Aborts the connection for the application (RFC 9293, 3.10.5): drops unsent data, and sends a
    /// reset if the peer has answered the SYN.
    pub(super) fn reset(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let known = matches!(self.state, State::SynReceived | State::Established);
        if known && self.timers.time_wait == TimeWait::NotYet {
            self.send_reset(ctx);
        }
        self.fail_at_once();
    }

    /// Fails the connection and cancels segments that wait for pacing.
    fn fail_at_once(&mut self) {
        self.fail();
        if self.has_control_state() {
            self.clear_send_wait();
        }
    }
}
