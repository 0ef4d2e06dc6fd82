//! The three-way handshake and the FIN (RFC 9293, 3.5 and 3.6).
//!
//! A SYN or SYN-ACK that is not answered within the timeout is sent again with exponential backoff.
//! If that was needed more than once the initial window is one segment (RFC 6928, section 2).

use super::Sink;
use super::config::TcpConfig;
use super::endpoint::{Endpoint, Linger, State};
use eastwest_types::{Packet, Time, flag};

impl Endpoint {
    pub(super) fn connect(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        self.state = State::SynSent;
        self.send_syn(now, config, sink);
        self.rearm(sink);
    }

    /// Sends the SYN, or the SYN-ACK, for the first time or again.
    pub(super) fn send_syn(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let answer = self.state == State::SynReceived;
        let again = self.snd_max > 0;
        let flags = if answer { flag::SYN | flag::ACK } else { flag::SYN };
        let flags = flags | self.ecn_of_syn(again, answer, config);
        self.send_control(now, 0, flags, config, sink);
        // Karn: a SYN that was sent again gives no sample
        if again {
            self.count().retransmits += 1;
        }
        self.timed_end = u64::from(!again);
        self.timed_at = now;
        self.snd_max = 1;
        self.rto_at = self.deadline(now, self.rto(config), config);
    }

    /// A packet while the handshake is under way. Returns whether it may carry more.
    pub(super) fn on_handshake(
        &mut self,
        now: Time,
        packet: &Packet,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> bool {
        let syn = packet.flags & flag::SYN != 0;
        let ack = packet.flags & flag::ACK != 0;
        if packet.flags & flag::RST != 0 {
            self.on_reset(now, packet, config, sink);
            return false;
        }
        match self.state {
            State::Listen if syn => {
                self.learn_peer(packet, config);
                self.state = State::SynReceived;
                self.send_syn(now, config, sink);
            }
            // the SYN again: our SYN-ACK was lost
            State::SynReceived if syn => self.send_syn(now, config, sink),
            State::SynSent if syn && ack && packet.ack == 1 => {
                self.learn_peer(packet, config);
                self.finish_handshake(now, packet, config);
                self.send_ack(now, config, sink);
                self.transmit(now, config, sink);
            }
            State::SynReceived if ack && packet.ack >= 1 => {
                self.finish_handshake(now, packet, config);
                return true;
            }
            _ => {}
        }
        false
    }

    fn learn_peer(&mut self, packet: &Packet, config: &TcpConfig) {
        self.agree_on_ecn(packet, config);
        self.rcv_nxt = 1;
        self.peer_window = packet.window;
        self.ts_recent_us = super::output::timestamp_us(packet.born);
    }

    fn finish_handshake(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        self.state = State::Established;
        self.snd_una = 1;
        self.peer_window = packet.window;
        self.rto_at = Time::NEVER;
        if self.retries > 1 {
            self.window.cwnd = u64::from(config.segment);
        }
        self.retries = 0;
        self.backoff = 0;
        if std::mem::take(&mut self.timed_end) > 0 {
            self.take_sample(now.since(self.timed_at), config);
        } else {
            // sent more than once: the echo tells which of them is answered (RFC 7323)
            self.sample_echo(now, packet, config);
        }
    }

    /// The application closes; the FIN goes out with or after its last byte.
    pub(super) fn close(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        if self.closing {
            return;
        }
        self.closing = true;
        if self.is_established() {
            self.transmit(now, config, sink);
            self.linger_if_finished(now, config);
        }
    }

    /// Once both FINs are through, stay for a while to answer a FIN that comes again (TIME-WAIT).
    pub(super) fn linger_if_finished(&mut self, now: Time, config: &TcpConfig) {
        if self.linger == Linger::NotYet && self.is_finished() {
            self.linger = Linger::Until;
            self.rto_at = now + config.time_wait;
        }
    }
}
