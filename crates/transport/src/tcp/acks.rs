//! What an acknowledgement tells the sender (RFC 5681, RFC 6675 section 5, RFC 6582).

use super::Sink;
use super::config::{CongestionKind, TcpConfig};
use super::ecn;
use super::endpoint::{Endpoint, Phase, State};
use super::prr::Report;
use super::rules::PrrRule;
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};

/// Duplicate ACKs, or segments SACKed above a hole, that mean a loss (RFC 5681, RFC 6675).
pub(super) const DUP_THRESH: u32 = 3;

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
        if packet.flags & flag::SYN != 0 {
            // a SYN-ACK that came again: our ACK was lost
            self.send_ack(now, config, sink);
            return;
        }
        if packet.payload > 0 || packet.flags & flag::FIN != 0 {
            self.on_payload(now, packet, config, sink);
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
            return;
        }
        let flight_before = self.snd_max - self.snd_una;
        if flight_before == 0
            && self.snd_max == self.send_end()
            && packet.window == self.peer_window
        {
            return; // this side only receives
        }
        let mut resend_first = false;
        let arrived_before = self.arrived(config);
        let window_changed = self.peer_window != packet.window;
        self.peer_window = packet.window;
        let newly_sacked = match sack {
            Some(blocks) if config.sack => self.take_sack(blocks),
            _ => 0,
        };
        let acked = ack - self.snd_una;
        if acked > 0 {
            self.snd_una = ack;
            self.retries = 0;
            self.sample_rtt(now, packet, ack, acked, config, sink);
            self.rto_at = match self.snd_una == self.snd_max {
                true => Time::NEVER,
                false => self.deadline(now, self.rto(config), config),
            };
            if !self.sacked.is_empty() {
                self.sacked.remove_below(ack);
            }
        }
        let ece = packet.flags & flag::ECE != 0;
        if config.congestion != CongestionKind::NewReno {
            let delivered = (acked + self.arrived(config)).saturating_sub(arrived_before);
            self.inform(delivered, ece, config);
        }
        if ece {
            self.on_echo(flight_before, config);
        }
        if acked > 0 {
            resend_first = self.on_progress(acked, flight_before, config, sink);
            self.linger_if_finished(now, config);
        } else if flight_before > 0
            && packet.payload == 0
            && packet.flags & flag::FIN == 0
            && (newly_sacked > 0 || (!config.sack && !window_changed))
        {
            // RFC 5681, section 2; with SACK a duplicate is one that brings news (RFC 6675)
            self.dup_acks += 1;
        }
        let lost_before = self.lost_to;
        if self.phase == Phase::Loss {
            if newly_sacked > 0 {
                self.update_lost(config);
            }
        } else if self.dup_acks > 0 || newly_sacked > 0 {
            resend_first |= self.detect_loss(config, sink);
        }
        if config.recovery.prr != PrrRule::Off && self.is_reducing() {
            let report = Report {
                delivered: (acked + self.arrived(config)).saturating_sub(arrived_before),
                advanced: acked > 0,
                lost_more: self.lost_to > lost_before,
            };
            self.reduce_in_step(report, config);
        }
        if resend_first {
            self.send_lost(now, config, sink);
        }
        self.transmit(now, config, sink);
    }

    /// New bytes are acknowledged: the window grows, or recovery moves on. Returns whether the first
    /// segment has to be sent again at once.
    #[inline]
    fn on_progress(
        &mut self,
        acked: u64,
        flight_before: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> bool {
        let segment = u64::from(config.segment);
        if self.phase == Phase::Open {
            self.dup_acks = 0;
            if self.ecn & ecn::HELD != 0 && self.is_held(config) {
                return false;
            }
            // only where the window was the limit (RFC 7661); slow start may run one round ahead
            let used = if self.window.in_slow_start() { 2 * flight_before } else { flight_before };
            if used + segment > self.window.cwnd && self.window.cwnd < config.max_window {
                self.grow(acked, false, config);
            }
            return false;
        }
        self.on_recovery_progress(acked, config, sink)
    }

    #[inline]
    fn sample_rtt(
        &mut self,
        now: Time,
        packet: &Packet,
        ack: u64,
        acked: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        if config.timestamps {
            if self.phase == Phase::Loss {
                self.judge_timeout(packet, acked, sink);
            }
            self.sample_echo(now, packet, config);
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

    /// Notes what SACK blocks report; returns how many bytes are news.
    fn take_sack(&mut self, blocks: &SackBlocks) -> u64 {
        let mut news = 0;
        for &(start, end) in blocks.iter().filter(|b| b.1 > self.snd_una && b.1 <= self.snd_max) {
            let start = start.max(self.snd_una);
            if start < end {
                news += self.sacked.insert(start, end);
            }
        }
        news
    }
}
