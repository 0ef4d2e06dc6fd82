//! Packet input: dispatch of an arriving packet, the ACK fast path, and round-trip samples.
//!
//! ACKs with SACK blocks or ECE, duplicate ACKs and all ACKs in a recovery take the [slow
//! path](super::ack_slow_path). Payload and FIN are processed in [`receiving`](super::receiving).

use super::config::TcpConfig;
use super::ecn;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::scoreboard::SendTimes;
use super::states::{RecoveryPhase, State};
use super::timers::rto_deadline;
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};

impl Endpoint {
    /// Processes a packet that arrives at this endpoint. Returns true if the endpoint certainly only
    /// receives: it has nothing to send, and everything that it has sent was acknowledged before, so
    /// that the packet has changed no timer except that of a delayed ACK.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        match self.state {
            State::Established => {}
            State::Failed => return false,
            _ => {
                if !self.on_handshake(packet, ctx) {
                    return false;
                }
            }
        }
        if packet.flags & (flag::SYN | flag::RST | flag::ACK) != flag::ACK {
            self.on_unusual_flags(packet, ctx);
            return false;
        }
        if packet.payload > 0 || packet.flags & flag::FIN != 0 {
            self.on_payload(packet, ctx);
        } else if self.receiver.is_window_probe(packet) {
            self.send_ack(ctx);
        } else if ctx.config.receiver.window_from.is_some() {
            // Timestamps of pure ACKs are echoed too. Otherwise the other end, if it only receives
            // data, could not measure the round trip.
            let seq = Packet::widen(packet.seq, self.receiver.next);
            self.receiver.update_ts_recent(seq, packet);
        }
        self.on_ack(packet, sack, ctx) && !self.closing && !self.has_control_state()
    }

    /// Processes the acknowledgement in a packet. An ACK of new data without SACK blocks and ECE
    /// takes the fast path, unless BBR is in use or a recovery, a reduction by ECE or a tail loss
    /// probe is in progress. Returns true for a packet without effect on an end that has sent
    /// everything.
    #[inline]
    fn on_ack(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        let ack = Packet::widen(packet.ack, self.stream.una);
        if ack > self.stream.next || ack < self.stream.una {
            if let Some(blocks) = sack
                && ctx.config.recovery.late_sacks
                && ack < self.stream.una
            {
                self.on_old_ack(packet, blocks, ack, ctx);
            }
            return false;
        }
        let flight_before = self.stream.outstanding();
        if flight_before == 0
            && self.stream.next == self.send_end()
            && packet.window == self.peer_window
        {
            return true; // this end only receives data
        }
        if flight_before == 0 {
            self.on_window_probe_ack(ctx.now, packet, ctx.config);
        }
        let is_fast_path = ack > self.stream.una
            && sack.is_none()
            && self.recovery.phase == RecoveryPhase::Open
            && self.recovery.dup_acks == 0
            && self.recovery.sacked.is_empty()
            && packet.flags & flag::ECE == 0
            && self.ecn & ecn::IN_CWR == 0;
        if !is_fast_path {
            match sack {
                Some(blocks) if self.is_plain_duplicate(packet, ack, flight_before, ctx.config) => {
                    self.on_plain_duplicate(packet, blocks, ctx);
                }
                _ => self.on_ack_slow_path(packet, sack, ack, ctx),
            }
            return false;
        }
        if self.has_control_state() || ctx.config.recovery.uses_scoreboard() {
            self.on_ack_with_state(packet, ack, flight_before, ctx);
            return false;
        }
        self.peer_window = packet.window;
        let acked = ack - self.stream.una;
        self.advance_una(packet, ack, None, ctx);
        self.on_new_ack((acked, acked), flight_before, ctx);
        self.enter_time_wait_if_finished(ctx);
        self.transmit(ctx);
        false
    }

    /// ACK fast path of a sender with RACK, tail loss probes, or state of its congestion control
    /// beside the window: processes an ACK of new data up to position `ack`. `flight_before`: bytes
    /// outstanding before the ACK.
    // The function is separate from `on_ack`, which is a part of the event loop: a plain sender
    // does without its registers and branches.
    #[inline(never)]
    fn on_ack_with_state(
        &mut self,
        packet: &Packet,
        ack: u64,
        flight_before: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        if ctx.config.congestion.follows_path()
            || (ctx.config.recovery.probes && self.recovery.is_tlp_in_flight())
        {
            return self.on_ack_slow_path(packet, None, ack, ctx);
        }
        self.peer_window = packet.window;
        let acked = ack - self.stream.una;
        let send_times = match ctx.config.recovery.uses_rack() {
            true => self.acknowledge_segments_fast_path(ctx.now, packet, ack, ctx.config),
            false => None,
        };
        self.advance_una(packet, ack, send_times, ctx);
        if self.has_control_state() {
            self.report_ack(ctx.now, packet, None, (acked, acked), send_times, ctx.config);
        }
        self.on_new_ack((acked, acked), flight_before, ctx);
        if self.has_control_state() {
            self.update_pacing_rate(ctx.config);
        }
        self.enter_time_wait_if_finished(ctx);
        let before = self.stream.next;
        self.transmit(ctx);
        if ctx.config.recovery.probes && self.stream.next == before {
            self.schedule_tlp(ctx.now, ctx.config);
        }
    }

    /// Advances SND.UNA to `ack`, adds an RTT sample, and restarts or stops the retransmission
    /// timer.
    #[inline(always)]
    pub(super) fn advance_una(
        &mut self,
        packet: &Packet,
        ack: u64,
        send_times: Option<SendTimes>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let acked = ack - self.stream.una;
        self.stream.una = ack;
        self.timers.retries = 0;
        self.sample_rtt(packet, (ack, acked), send_times, ctx);
        self.timers.rto_at = match self.stream.una == self.stream.next {
            true => Time::NEVER,
            false => {
                let rto = self.timers.rtt.rto(self.timers.backoff, ctx.config);
                let (before, host) = (self.timers.rto_at, self.address.local);
                rto_deadline(before, ctx.now, rto, host, ctx.config)
            }
        };
    }

    /// Handles an ACK of new data: grows the window, or continues the recovery. `acked`: bytes by
    /// which the ACK advances SND.UNA; `counted`: bytes that count for the growth of the window.
    /// Returns whether the caller must retransmit the first segment at once.
    #[inline(always)]
    pub(super) fn on_new_ack(
        &mut self,
        (acked, counted): (u64, u64),
        flight_before: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) -> bool {
        if self.recovery.phase == RecoveryPhase::Open {
            self.recovery.dup_acks = 0;
            if self.ecn & ecn::IN_CWR != 0 && self.stays_in_cwr(ctx.config) {
                return false;
            }
            if self.window.cwnd < ctx.config.max_window
                && self.is_cwnd_limited(flight_before, ctx.config)
            {
                self.grow_cwnd(ctx.now, counted, false, ctx.config);
            }
            return false;
        }
        self.on_recovery_progress(acked, ctx)
    }

    /// Adds an RTT sample from an ACK of new data. The send time comes from the echoed timestamp,
    /// else from RACK's scoreboard, else from the one segment that is timed.
    #[inline(always)]
    fn sample_rtt(
        &mut self,
        packet: &Packet,
        (ack, acked): (u64, u64),
        send_times: Option<SendTimes>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        if ctx.config.timestamps {
            if self.recovery.phase == RecoveryPhase::Loss {
                self.detect_spurious_timeout(packet, acked, ctx.sink);
            }
            self.sample_timestamp_rtt(ctx.now, packet, ctx.config);
        } else if ctx.config.recovery.uses_rack() {
            if let Some(send_times) = send_times {
                self.timers.add_rtt_sample(
                    ctx.now.since(send_times.first).max(Span::from_us(1)),
                    &self.stream,
                    ctx.config,
                );
            }
        } else if self.timers.timed_end > 0 && ack >= self.timers.timed_end {
            self.timers.timed_end = 0;
            self.timers.add_rtt_sample(
                ctx.now.since(self.timers.timed_at),
                &self.stream,
                ctx.config,
            );
        }
    }

    /// Adds a round-trip sample from the timestamp that a packet echoes.
    #[inline(always)]
    pub(super) fn sample_timestamp_rtt(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        if config.timestamps && packet.ts_echo_us != 0 {
            let rtt_us = super::rtt::timestamp_us(now).wrapping_sub(packet.ts_echo_us);
            self.timers.add_rtt_sample(
                Span::from_us(u64::from(rtt_us)).max(Span::from_us(1)),
                &self.stream,
                config,
            );
        }
    }
}
