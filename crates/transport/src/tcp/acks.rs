//! What an acknowledgement tells the sender (RFC 5681, RFC 6675 section 5, RFC 6582).

use super::Sink;
use super::board::{Context, Delivery};
use super::config::TcpConfig;
use super::ecn;
use super::endpoint::{Endpoint, Phase, State};
use super::probe::Answer;
use super::prr::Report;
use super::rules::{PrrRule, RackRule};
use super::undo::{Advice, Evidence};
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
        let mut news = News::default();
        let newly_sacked = match sack {
            Some(blocks) if config.sack => {
                self.take_sack(now, packet, blocks, ack, &mut news, config)
            }
            _ => 0,
        };
        let acked = ack - self.snd_una;
        let doubtful = self.phase != Phase::Open || !self.sacked.is_empty() || news.dsack.is_some();
        if acked > 0 {
            if config.recovery.uses_rack() {
                self.clear_board(now, packet, ack, &mut news, config);
            } else if self.phase == Phase::Loss {
                news.delivery.original |= self.has_original(self.snd_una, ack);
            }
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
        if !config.is_plain() {
            let delivered = (acked + self.arrived(config)).saturating_sub(arrived_before);
            self.inform(now, packet, acked, delivered, config);
        }
        if packet.flags & flag::ECE != 0 {
            self.on_echo(flight_before, config);
        }
        let duplicate = acked == 0
            && flight_before > 0
            && packet.payload == 0
            && packet.flags & flag::FIN == 0
            && (newly_sacked > 0 || (!config.sack && !window_changed));
        let mut advice = Advice::GoOn;
        if config.recovery.reconsiders() && (self.phase != Phase::Open || news.dsack.is_some()) {
            let duplicate = duplicate || newly_sacked > 0;
            let evidence = Evidence { acked, original: news.delivery.original, duplicate };
            advice = self.reconsider(packet, evidence, config, sink);
        }
        if acked > 0 {
            resend_first = self.on_progress(now, acked, flight_before, config, sink);
            self.linger_if_finished(now, config);
        } else if duplicate {
            // RFC 5681, section 2; with SACK a duplicate is one that brings news (RFC 6675)
            self.dup_acks += 1;
        }
        if config.recovery.probes && self.rare.as_ref().is_some_and(|r| r.probe_end != 0) {
            let dsack = news.dsack.is_some_and(|d| d.1 == self.rare().probe_end);
            let other = packet.payload > 0 || window_changed || newly_sacked > 0;
            self.judge_probe(Answer { advanced: acked > 0, news: other, dsack }, config);
        }
        let mut lost_more = false;
        if config.recovery.uses_rack() {
            if doubtful && advice == Advice::GoOn {
                let found = self.rack_on_ack(now, config, sink);
                lost_more = found.lost_more;
                resend_first |= found.send_first;
            }
        } else if self.phase == Phase::Loss {
            if newly_sacked > 0 {
                self.update_lost(config);
            }
        } else if self.dup_acks > 0 || newly_sacked > 0 {
            let lost_before = self.lost_to;
            resend_first |= self.detect_loss(config, sink);
            lost_more = self.lost_to > lost_before;
        }
        if config.recovery.prr != PrrRule::Off && self.is_reducing() {
            let report = Report {
                delivered: (acked + self.arrived(config)).saturating_sub(arrived_before),
                advanced: acked > 0,
                lost_more,
            };
            self.reduce_in_step(report, config);
        }
        if resend_first {
            self.send_lost(now, config, sink);
        }
        let before = self.snd_max;
        self.transmit_as(advice, now, config, sink);
        if advice == Advice::NothingAgain && self.phase == Phase::Loss && self.snd_max == before {
            self.rare().frto = false;
            self.transmit(now, config, sink);
        }
        if config.recovery.probes && self.snd_max == before && (acked > 0 || newly_sacked > 0) {
            self.schedule_probe(now, config);
        }
    }

    /// New bytes are acknowledged: the window grows, or recovery moves on. Returns whether the first
    /// segment has to be sent again at once.
    #[inline]
    fn on_progress(
        &mut self,
        now: Time,
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
                self.grow(now, acked, false, config);
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
    fn take_sack(
        &mut self,
        now: Time,
        packet: &Packet,
        blocks: &SackBlocks,
        ack: u64,
        news: &mut News,
        config: &TcpConfig,
    ) -> u64 {
        let mut blocks = &blocks[..];
        if config.recovery.dsack && is_dsack(blocks, ack) {
            news.dsack = Some(blocks[0]);
            self.on_dsack(blocks[0], config);
            blocks = &blocks[1..];
        }
        let context = self.context(now, packet, config);
        let mut bytes = 0;
        for &(start, end) in blocks.iter().filter(|b| b.1 > self.snd_una && b.1 <= self.snd_max) {
            let start = start.max(self.snd_una);
            if start >= end {
                continue;
            }
            if let Some(board) = &mut self.board {
                let (mut gap, mut gap_end) = self.sacked.gap_from(start);
                while gap < end {
                    board.sack(gap, gap_end.min(end), context, &mut news.delivery);
                    (gap, gap_end) = self.sacked.gap_from(gap_end.min(end));
                }
            } else if self.phase == Phase::Loss {
                news.delivery.original |= self.has_original(start, end);
            }
            bytes += self.sacked.insert(start, end);
        }
        self.note_reordering(news);
        bytes
    }

    /// Everything below `ack` leaves the scoreboard.
    #[inline]
    fn clear_board(
        &mut self,
        now: Time,
        packet: &Packet,
        ack: u64,
        news: &mut News,
        config: &TcpConfig,
    ) {
        let context = self.context(now, packet, config);
        if let Some(board) = &mut self.board {
            board.acknowledge(ack, context, &mut news.delivery);
        }
        self.note_reordering(news);
    }

    /// Whether `from..to`, just arrived, holds what was sent once and before the present timeout.
    fn has_original(&self, from: u64, to: u64) -> bool {
        let (low, high) = (from.max(self.resent_to), to.min(self.recover));
        low < high && self.sacked.below(high) - self.sacked.below(low) < high - low
    }

    #[inline]
    fn context(&self, now: Time, packet: &Packet, config: &TcpConfig) -> Context {
        let heeds_echo = config.recovery.rack == RackRule::Rfc8985 && packet.ts_echo_us != 0;
        Context {
            now,
            echo_us: heeds_echo.then_some(packet.ts_echo_us),
            highest: self.sacked.end().max(self.snd_una),
            recover: self.recover,
        }
    }

    #[inline]
    fn note_reordering(&mut self, news: &News) {
        if news.delivery.overtaken
            && let Some(board) = &mut self.board
        {
            board.rack.note_reordering();
        }
    }

    /// The receiver has got a segment twice.
    fn on_dsack(&mut self, block: (u64, u64), config: &TcpConfig) {
        self.count().dsacks += 1;
        self.note_duplicate(block, config);
        let of_probe = {
            let rare = self.rare();
            rare.probe_again && rare.probe_end == block.1
        };
        if !of_probe && let Some(board) = &mut self.board {
            board.rack.dsack_seen = true;
        }
    }
}

/// What an ACK brings beyond positions.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    delivery: Delivery,
    dsack: Option<(u64, u64)>,
}

/// Whether the first block reports a duplicate: it lies below the ACK, or within the second (RFC 2883,
/// section 4).
fn is_dsack(blocks: &[(u64, u64)], ack: u64) -> bool {
    let (first, second) = (blocks[0], blocks[1]);
    first.1 > 0 && (first.1 <= ack || (second.0 <= first.0 && first.1 <= second.1))
}
