//! What an acknowledgement tells the sender (RFC 5681, RFC 6675 section 5, RFC 6582).

use super::Sink;
use super::board::Answered;
use super::config::TcpConfig;
use super::ecn;
use super::endpoint::{Endpoint, Phase, State};
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};

impl Endpoint {
    /// A packet of any kind has arrived.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        match self.state {
            State::Established => {}
            State::Failed => return,
            _ => {
                if !self.on_handshake(now, packet, config, sink) {
                    return;
                }
            }
        }
        if packet.flags & (flag::SYN | flag::RST | flag::ACK) != flag::ACK {
            self.on_unusual_flags(now, packet, config, sink);
            return;
        }
        if packet.payload > 0 || packet.flags & flag::FIN != 0 {
            self.on_payload(now, packet, config, sink);
        } else if self.is_window_probe(packet) {
            self.send_ack(now, config, sink);
        } else if config.receiver.window_from.is_some() {
            // pure ACKs are echoed too, or the other end could not time a round trip by data alone
            let seq = Packet::widen(packet.seq, self.rcv_nxt);
            self.note_timestamp(seq, packet);
        }
        self.on_ack(now, packet, sack, config, sink);
    }

    #[inline]
    fn on_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let ack = Packet::widen(packet.ack, self.snd_una);
        if ack > self.snd_max || ack < self.snd_una {
            if let Some(blocks) = sack
                && config.recovery.late_sacks
                && ack < self.snd_una
            {
                self.on_late_ack(now, packet, blocks, ack, config, sink);
            }
            return;
        }
        let flight_before = self.snd_max - self.snd_una;
        if flight_before == 0
            && self.snd_max == self.send_end()
            && packet.window == self.peer_window
        {
            return; // this side only receives
        }
        if flight_before == 0 {
            self.on_probe_answer(now, packet, config);
        }
        let quiet = ack > self.snd_una
            && sack.is_none()
            && self.phase == Phase::Open
            && self.dup_acks == 0
            && self.sacked.is_empty()
            && packet.flags & flag::ECE == 0
            && self.ecn & ecn::HELD == 0
            && !config.congestion.follows_path()
            && !(config.recovery.probes && self.probe_is_out());
        if !quiet {
            self.on_evidence(now, packet, sack, ack, config, sink);
            return;
        }
        self.peer_window = packet.window;
        let acked = ack - self.snd_una;
        let answered = match config.recovery.uses_rack() {
            true => self.clear_plain_board(now, packet, ack, config),
            false => None,
        };
        self.move_on(now, packet, ack, answered, config, sink);
        if self.is_controlled() {
            self.inform(now, packet, None, (acked, acked), answered, config);
        }
        self.on_progress(now, (acked, acked), flight_before, config, sink);
        if self.is_controlled() {
            self.follow_window(config);
        }
        self.linger_if_finished(now, config);
        let before = self.snd_max;
        self.transmit(now, config, sink);
        if config.recovery.probes && self.snd_max == before {
            self.schedule_probe(now, config);
        }
    }

    /// Everything below `ack` has arrived.
    #[inline(always)]
    pub(super) fn move_on(
        &mut self,
        now: Time,
        packet: &Packet,
        ack: u64,
        answered: Option<Answered>,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let acked = ack - self.snd_una;
        self.snd_una = ack;
        self.retries = 0;
        self.sample_rtt(now, packet, (ack, acked), answered, config, sink);
        self.rto_at = match self.snd_una == self.snd_max {
            true => Time::NEVER,
            false => self.deadline(now, self.rto(config), config),
        };
    }

    /// New bytes are acknowledged: the window grows, or recovery moves on. Returns whether the first
    /// segment has to be sent again at once.
    #[inline(always)]
    pub(super) fn on_progress(
        &mut self,
        now: Time,
        (acked, counted): (u64, u64),
        flight_before: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> bool {
        if self.phase == Phase::Open {
            self.dup_acks = 0;
            if self.ecn & ecn::HELD != 0 && self.is_held(config) {
                return false;
            }
            if self.window.cwnd < config.max_window && self.was_limited(flight_before, config) {
                self.grow(now, counted, false, config);
            }
            return false;
        }
        self.on_recovery_progress(now, acked, config, sink)
    }

    #[inline]
    fn sample_rtt(
        &mut self,
        now: Time,
        packet: &Packet,
        (ack, acked): (u64, u64),
        answered: Option<Answered>,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        if config.timestamps {
            if self.phase == Phase::Loss {
                self.judge_timeout(packet, acked, sink);
            }
            self.sample_echo(now, packet, config);
        } else if config.recovery.uses_rack() {
            if let Some(answered) = answered {
                self.take_sample(now.since(answered.first).max(Span::from_us(1)), config);
            }
        } else if self.timed_end > 0 && ack >= self.timed_end {
            self.timed_end = 0;
            self.take_sample(now.since(self.timed_at), config);
        }
    }

    /// A round-trip sample from the timestamp that a packet echoes.
    #[inline]
    pub(super) fn sample_echo(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        if config.timestamps && packet.ts_echo_us != 0 {
            let rtt_us = super::output::timestamp_us(now).wrapping_sub(packet.ts_echo_us);
            self.take_sample(Span::from_us(u64::from(rtt_us)).max(Span::from_us(1)), config);
        }
    }
}
