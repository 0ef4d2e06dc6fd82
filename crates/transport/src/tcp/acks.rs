//! What an acknowledgement tells the sender (RFC 5681, RFC 6675 section 5, RFC 6582).

use super::board::Answered;
use super::config::TcpConfig;
use super::ecn;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::phases::{Phase, State};
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};

impl Endpoint {
    /// A packet of any kind has arrived.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        match self.state {
            State::Established => {}
            State::Failed => return,
            _ => {
                if !self.on_handshake(packet, ctx) {
                    return;
                }
            }
        }
        if packet.flags & (flag::SYN | flag::RST | flag::ACK) != flag::ACK {
            self.on_unusual_flags(packet, ctx);
            return;
        }
        if packet.payload > 0 || packet.flags & flag::FIN != 0 {
            self.on_payload(packet, ctx);
        } else if self.receiver.is_window_probe(packet) {
            self.send_ack(ctx);
        } else if ctx.config.receiver.window_from.is_some() {
            // pure ACKs are echoed too, or the other end could not time a round trip by data alone
            let seq = Packet::widen(packet.seq, self.receiver.next);
            self.receiver.note_timestamp(seq, packet);
        }
        self.on_ack(packet, sack, ctx);
    }

    #[inline]
    fn on_ack(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let ack = Packet::widen(packet.ack, self.stream.una);
        if ack > self.stream.next || ack < self.stream.una {
            if let Some(blocks) = sack
                && ctx.config.recovery.late_sacks
                && ack < self.stream.una
            {
                self.on_late_ack(packet, blocks, ack, ctx);
            }
            return;
        }
        let flight_before = self.stream.outstanding();
        if flight_before == 0
            && self.stream.next == self.send_end()
            && packet.window == self.peer_window
        {
            return; // this side only receives
        }
        if flight_before == 0 {
            self.on_probe_answer(ctx.now, packet, ctx.config);
        }
        let quiet = ack > self.stream.una
            && sack.is_none()
            && self.recovery.phase == Phase::Open
            && self.recovery.dup_acks == 0
            && self.recovery.sacked.is_empty()
            && packet.flags & flag::ECE == 0
            && self.ecn & ecn::HELD == 0
            && !ctx.config.congestion.follows_path()
            && !(ctx.config.recovery.probes && self.recovery.probe_is_out());
        if !quiet {
            self.on_evidence(packet, sack, ack, ctx);
            return;
        }
        self.peer_window = packet.window;
        let acked = ack - self.stream.una;
        let answered = match ctx.config.recovery.uses_rack() {
            true => self.clear_plain_board(ctx.now, packet, ack, ctx.config),
            false => None,
        };
        self.move_on(packet, ack, answered, ctx);
        if self.is_controlled() {
            self.inform(ctx.now, packet, None, (acked, acked), answered, ctx.config);
        }
        self.on_progress((acked, acked), flight_before, ctx);
        if self.is_controlled() {
            self.follow_window(ctx.config);
        }
        self.linger_if_finished(ctx.now, ctx.config);
        let before = self.stream.next;
        self.transmit(ctx);
        if ctx.config.recovery.probes && self.stream.next == before {
            self.schedule_probe(ctx.now, ctx.config);
        }
    }

    /// Everything below `ack` has arrived.
    #[inline(always)]
    pub(super) fn move_on(
        &mut self,
        packet: &Packet,
        ack: u64,
        answered: Option<Answered>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let acked = ack - self.stream.una;
        self.stream.una = ack;
        self.timers.retries = 0;
        self.sample_rtt(packet, (ack, acked), answered, ctx);
        self.timers.rto_at = match self.stream.una == self.stream.next {
            true => Time::NEVER,
            false => self.deadline(ctx.now, self.rto(ctx.config), ctx.config),
        };
    }

    /// New bytes are acknowledged: the window grows, or recovery moves on. Returns whether the first
    /// segment has to be sent again at once.
    #[inline(always)]
    pub(super) fn on_progress(
        &mut self,
        (acked, counted): (u64, u64),
        flight_before: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        if self.recovery.phase == Phase::Open {
            self.recovery.dup_acks = 0;
            if self.ecn & ecn::HELD != 0 && self.is_held(ctx.config) {
                return false;
            }
            if self.window.cwnd < ctx.config.max_window
                && self.was_limited(flight_before, ctx.config)
            {
                self.grow(ctx.now, counted, false, ctx.config);
            }
            return false;
        }
        self.on_recovery_progress(acked, ctx)
    }

    #[inline]
    fn sample_rtt(
        &mut self,
        packet: &Packet,
        (ack, acked): (u64, u64),
        answered: Option<Answered>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        if ctx.config.timestamps {
            if self.recovery.phase == Phase::Loss {
                self.judge_timeout(packet, acked, ctx.sink);
            }
            self.sample_echo(ctx.now, packet, ctx.config);
        } else if ctx.config.recovery.uses_rack() {
            if let Some(answered) = answered {
                self.timers.take_sample(
                    ctx.now.since(answered.first).max(Span::from_us(1)),
                    &self.stream,
                    ctx.config,
                );
            }
        } else if self.timers.timed_end > 0 && ack >= self.timers.timed_end {
            self.timers.timed_end = 0;
            self.timers.take_sample(ctx.now.since(self.timers.timed_at), &self.stream, ctx.config);
        }
    }

    /// A round-trip sample from the timestamp that a packet echoes.
    #[inline]
    pub(super) fn sample_echo(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        if config.timestamps && packet.ts_echo_us != 0 {
            let rtt_us = super::rtt::timestamp_us(now).wrapping_sub(packet.ts_echo_us);
            self.timers.take_sample(
                Span::from_us(u64::from(rtt_us)).max(Span::from_us(1)),
                &self.stream,
                config,
            );
        }
    }
}
