//! Output of an endpoint: which segments may be sent now, and how packets are built.

use super::config::TcpConfig;
use super::ecn;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::pacing::SendGate;
use super::rtt::timestamp_us;
use super::rules::{AckRule, PrrRule};
use super::scoreboard::Scoreboard;
use super::states::RecoveryPhase;
use super::tso_bursts::SendRoom;
use eastwest_types::{NO_SACK, Packet, SackBlocks, Span, Time, flag};

/// Bytes of IP and TCP headers without options.
const BARE_HEADER: u32 = 40;
/// Bytes of the options MSS and window scale with padding on SYN and SYN-ACK, without timestamps.
const SYN_OPTIONS: u32 = 8;
/// Bytes of the option SACK-permitted with padding; together with timestamps it replaces their
/// padding.
const SACK_PERMITTED: u32 = 4;

impl Endpoint {
    /// Sends segments until a window is full: first lost segments, then new data.
    pub(super) fn transmit(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let before = self.stream.next;
        self.fill_window(true, ctx);
        if ctx.config.recovery.probes && self.stream.next > before {
            self.schedule_tlp(ctx.now, ctx.config);
        }
    }

    /// Sends new data as far as the windows permit, and no retransmissions.
    #[inline(never)]
    pub(super) fn transmit_new(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let before = self.stream.next;
        self.fill_window(false, ctx);
        if ctx.config.recovery.probes && self.stream.next > before {
            self.schedule_tlp(ctx.now, ctx.config);
        }
    }

    /// Sends segments while congestion window, receive window and pacing permit. `may_retransmit`:
    /// whether lost segments are sent too.
    #[inline(always)]
    fn fill_window(&mut self, may_retransmit: bool, ctx: &mut Context<'_, impl Sink>) {
        let before = self.stream.next;
        if self.recovery.phase == RecoveryPhase::Open && self.recovery.dup_acks == 0 {
            if self.stream.next == self.send_end() {
                return;
            }
            if self.stream.una == self.stream.next {
                if self.has_control_state() {
                    self.on_restart_after_idle(ctx.now);
                }
                self.restart_after_idle(ctx.now, ctx.config);
            } else if self.recovery.sacked.is_empty() && self.fill_window_fast_path(ctx) {
                return;
            }
        }
        let segment = u64::from(ctx.config.segment);
        let mut pipe = self.pipe(ctx.config);
        let right_edge = self.right_edge(ctx.config);
        // Limited transmit (RFC 3042) sends one new segment for each of the first two duplicate
        // ACKs. With SACK, the bytes in flight have already shrunk by the SACKed bytes.
        let mut lost_too = may_retransmit;
        let mut allowance = self.window.cwnd;
        if self.recovery.phase == RecoveryPhase::Open {
            if ctx.config.sack && !ctx.config.limited_transmit {
                allowance = allowance.saturating_sub(self.recovery.sacked.total());
            } else if !ctx.config.sack && ctx.config.limited_transmit {
                allowance += u64::from(self.recovery.dup_acks.min(2)) * segment;
            }
        }
        while pipe + segment <= allowance || pipe == 0 {
            if self.has_control_state() {
                let room = SendRoom { window: allowance.saturating_sub(pipe), right_edge };
                match self.send_gate(ctx.now, may_retransmit, room, ctx.config) {
                    SendGate::Open => {}
                    SendGate::NewDataOnly => lost_too = false,
                    SendGate::Closed => break,
                }
            }
            let mut sent = if lost_too { self.retransmit_lost(ctx) } else { 0 };
            if sent == 0 {
                sent = self.send_new_segment(pipe == 0, right_edge, ctx);
            }
            if sent == 0 && lost_too {
                sent = self.retransmit_unconfirmed(ctx);
            }
            if sent == 0 {
                if pipe == 0 {
                    self.arm_persist_timer(ctx.now, ctx.config);
                }
                break;
            }
            pipe += sent;
        }
        if self.has_control_state() {
            let held = self.end_burst();
            self.note_cwnd_usage(before, held || pipe + segment > self.window.cwnd);
        }
    }

    /// Sends full segments of new data while data is in flight of which nothing is SACKed or lost.
    /// Returns whether no other segment may be sent now.
    #[inline(always)]
    fn fill_window_fast_path(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        let segment = u64::from(ctx.config.segment);
        let right_edge = self.right_edge(ctx.config);
        let window_end = self.stream.una + self.window.cwnd;
        let before = self.stream.next;
        loop {
            let (start, stop) = (self.stream.next, self.stream.next + segment);
            if stop >= self.stream.end {
                return false; // the last segment may be shorter, or have the FIN
            }
            if stop > window_end {
                break;
            }
            if self.has_control_state() {
                let room = SendRoom { window: window_end - start, right_edge };
                if self.new_data_gate(ctx.now, room, ctx.config) == SendGate::Closed {
                    break;
                }
            }
            if stop > right_edge {
                break;
            }
            self.stream.next = stop;
            self.send_segment(start, stop, false, ctx);
        }
        if self.has_control_state() {
            let held = self.end_burst();
            let filled = held || self.stream.next + segment > window_end;
            self.note_cwnd_usage(before, filled);
        }
        true
    }

    /// Retransmits the next lost bytes, at most a segment. Returns the number of bytes sent.
    #[inline]
    pub(super) fn retransmit_lost(&mut self, ctx: &mut Context<'_, impl Sink>) -> u64 {
        if self.recovery.phase == RecoveryPhase::Open {
            return 0;
        }
        let Some((start, stop)) = self.recovery.next_lost(&self.stream, ctx.config) else {
            return 0;
        };
        if !ctx.config.recovery.uses_rack() {
            self.recovery.set_retransmitted_to(stop);
        }
        self.send_data(start, stop, true, ctx);
        stop - start
    }

    /// Sends the next new bytes, at most a segment, up to the right edge of the receive window
    /// (`right_edge`). A part of a segment is sent at this edge only if `nothing_in_flight`.
    /// Returns the number of bytes sent.
    #[inline]
    pub(super) fn send_new_segment(
        &mut self,
        nothing_in_flight: bool,
        right_edge: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) -> u64 {
        let mut stop = (self.stream.next + u64::from(ctx.config.segment)).min(self.stream.end);
        if stop == self.stream.end {
            stop = self.send_end(); // the FIN goes with the last byte
        }
        if stop > right_edge {
            // A part of a segment is sent only if nothing is in flight (RFC 1122, 4.2.3.4).
            if !nothing_in_flight {
                return 0;
            }
            stop = right_edge;
        }
        if stop <= self.stream.next {
            return 0;
        }
        if ctx.config.nagle && stop - self.stream.next < u64::from(ctx.config.segment) {
            // Nagle's algorithm does not delay a FIN, nor data that is sent with the FIN.
            if stop <= self.stream.end && self.recovery.cold_mut().small_end > self.stream.una {
                return 0;
            }
            self.recovery.cold_mut().small_end = stop;
        }
        let start = self.stream.next;
        self.stream.next = stop;
        self.send_data(start, stop, false, ctx);
        stop - start
    }

    /// Retransmits bytes that are not known to be lost, if a recovery has nothing else to send (RFC
    /// 6675, `NextSeg` rules 3 and 4). Returns the number of bytes sent.
    #[inline]
    fn retransmit_unconfirmed(&mut self, ctx: &mut Context<'_, impl Sink>) -> u64 {
        // RACK does not retransmit unconfirmed data: it detects losses by time, and a tail loss
        // probe tests the end of the flight.
        if self.recovery.phase != RecoveryPhase::Recovery
            || !ctx.config.sack
            || ctx.config.recovery.uses_rack()
        {
            return 0;
        }
        let Some((start, stop)) =
            self.recovery.next_unconfirmed(&self.stream, u64::from(ctx.config.segment))
        else {
            return 0;
        };
        self.send_data(start, stop, true, ctx);
        stop - start
    }

    /// Reduces the congestion window to the initial window at most, after an idle time longer than
    /// one RTO (RFC 5681, 4.1).
    #[inline]
    fn restart_after_idle(&mut self, now: Time, config: &TcpConfig) {
        if self.stream.una == self.stream.next
            && config.idle_restart
            && !config.congestion.follows_path()
            && now.since(self.last_sent) > self.rto(config)
        {
            let initial = u64::from(config.initial_window) * u64::from(config.segment);
            if config.rules.idle_decay {
                self.decay_after_idle(now.since(self.last_sent), initial, config);
            } else {
                self.window.cwnd = self.window.cwnd.min(initial);
            }
        }
    }

    /// Halves the congestion window for each RTO of idle time, but not below the initial window,
    /// and raises the slow-start threshold to at least three quarters of the earlier window (RFC
    /// 2861, section 3; Linux, `tcp_cwnd_restart`).
    #[cold]
    fn decay_after_idle(&mut self, idle: Span, initial: u64, config: &TcpConfig) {
        let w = &mut self.window;
        w.ssthresh = w.ssthresh.max(w.cwnd / 4 * 3);
        let timeouts = idle.0 / self.timers.rtt.rto(0, config).0.max(1);
        w.cwnd = (w.cwnd >> timeouts.min(63)).max(w.cwnd.min(initial));
    }

    /// Sends a segment with the positions `start..stop`, which may end with the FIN.
    #[inline(never)]
    pub(super) fn send_data(
        &mut self,
        start: u64,
        stop: u64,
        is_retransmission: bool,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        self.send_segment(start, stop, is_retransmission, ctx);
    }

    /// Does what [`Endpoint::send_data`] does, as a part of its caller.
    #[inline(always)]
    fn send_segment<S: Sink>(
        &mut self,
        start: u64,
        stop: u64,
        is_retransmission: bool,
        ctx: &mut Context<'_, S>,
    ) {
        let fin = stop > self.stream.end;
        let payload = (stop - start - u64::from(fin)) as u16;
        let mut packet = self.packet(ctx.now, start, payload > 0, ctx.config);
        packet.payload = payload;
        packet.ip_len = payload + ctx.config.header() as u16;
        packet.flags = flag::ACK | if fin { flag::FIN } else { 0 } | self.ecn & ecn::SEND_ECE;
        if ctx.config.receiver.acks == AckRule::Linux && stop >= self.stream.end {
            packet.flags |= flag::PSH; // end of the written data, which the ACK policy uses
        }
        if is_retransmission {
            packet.notes |= Packet::RETRANSMISSION;
            self.record_retransmission(ctx.now);
        } else {
            if !ctx.config.timestamps {
                self.timers.time_segment(ctx.now, stop);
            }
            if payload > 0 {
                packet.tos |= self.ecn & ecn::NEGOTIATED;
                packet.flags |= self.ecn & ecn::SEND_CWR;
                self.ecn &= !ecn::SEND_CWR;
            }
        }
        if ctx.config.recovery.prr != PrrRule::Off && self.is_reducing_cwnd() {
            self.recovery.cold_mut().prr.sent(stop - start);
        }
        if ctx.config.recovery.uses_rack() {
            self.record_on_scoreboard(ctx.now, start, stop, is_retransmission);
        }
        if self.has_control_state() && ctx.config.records_sends() {
            self.record_sent(ctx.now, start, stop, is_retransmission, ctx.config);
        }
        self.last_sent = ctx.now;
        // Starts the timer (RFC 6298, 5.1). A retransmission of the first segment restarts it,
        // since it would otherwise expire before the ACK can arrive (Linux,
        // `tcp_xmit_retransmit_queue`; RFC 6675, section 6).
        if self.timers.rto_at == Time::NEVER || (is_retransmission && start == self.stream.una) {
            self.restart_timer(ctx.now, ctx.config);
        }
        if S::READS_REMAINING {
            ctx.sink.remaining(self.stream.remaining());
        }
        ctx.sink.send(self.address.local, packet, None);
        if self.has_control_state() && ctx.config.small_queues.on {
            let (address, dscp) = (&self.address, self.address.tos >> 2);
            let ends = (address.local, address.remote);
            let leaves = ctx.sink.leaves_at(ends, address.hash, dscp);
            self.record_nic_departure(ctx.now, leaves);
        }
    }

    /// Records a transmission on RACK's scoreboard, which is allocated at the first one.
    #[inline(always)]
    fn record_on_scoreboard(&mut self, now: Time, start: u64, stop: u64, is_retransmission: bool) {
        match &mut self.recovery.scoreboard {
            Some(scoreboard) if !is_retransmission => scoreboard.on_transmit(start, stop, now),
            _ => self.record_first_or_retransmission(now, start, stop, is_retransmission),
        }
    }

    #[inline(never)]
    fn record_first_or_retransmission(
        &mut self,
        now: Time,
        start: u64,
        stop: u64,
        is_retransmission: bool,
    ) {
        let rtt = &self.timers.rtt; // it has the RTT sample of the handshake
        let new = || Box::new(Scoreboard::new(now, rtt.srtt()));
        let scoreboard = self.recovery.scoreboard.get_or_insert_with(new);
        if is_retransmission {
            scoreboard.on_retransmit(start, now);
        } else {
            scoreboard.on_transmit(start, stop, now);
        }
    }

    /// Counts a retransmission, and stops the timing of a segment for an RTT sample.
    #[inline(never)]
    fn record_retransmission(&mut self, now: Time) {
        self.recovery.count_retransmission(timestamp_us(now));
        self.timers.timed_end = 0; // Karn's algorithm: no RTT samples from retransmitted segments
    }

    /// Returns a packet, to be sent now, with the sequence number `seq`. All its fields are set,
    /// except for length and flags. `data`: whether it will have payload.
    #[inline]
    fn packet(&mut self, now: Time, seq: u64, data: bool, config: &TcpConfig) -> Packet {
        let window = self.receiver.on_send(now, data, config);
        Packet { window, ..self.header(now, seq) }
    }

    /// Returns a packet with the sequence number `seq` and the fields that all packets of the
    /// endpoint have; window, length and flags are 0.
    #[inline]
    fn header(&self, now: Time, seq: u64) -> Packet {
        Packet {
            born: now,
            seq,
            ack: self.receiver.next,
            dst_endpoint: self.address.id.peer(),
            dst: self.address.remote,
            window: 0,
            ts_echo_us: self.receiver.ts_recent_us,
            sack: NO_SACK,
            hash: self.address.hash,
            ip_len: 0,
            payload: 0,
            flags: 0,
            tos: self.address.tos,
            notes: 0,
        }
    }

    /// Sends a SYN or SYN-ACK.
    pub(super) fn send_control(&mut self, seq: u64, flags: u8, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, seq, false, ctx.config);
        packet.flags = flags;
        let sack = if ctx.config.sack && !ctx.config.timestamps { SACK_PERMITTED } else { 0 };
        packet.ip_len = (ctx.config.header() + SYN_OPTIONS + sack) as u16;
        ctx.sink.send(self.address.local, packet, None);
    }

    /// Sends a window probe: an ACK with a sequence number below SND.UNA, which the peer has to
    /// acknowledge.
    pub(super) fn send_window_probe(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, self.stream.una - 1, false, ctx.config);
        packet.flags = flag::ACK | self.ecn & ecn::SEND_ECE;
        packet.ip_len = ctx.config.header() as u16;
        ctx.sink.send(self.address.local, packet, None);
    }

    /// Sends a reset; its sequence number is SND.NXT.
    pub(super) fn send_reset(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.header(ctx.now, self.stream.next);
        packet.window = self.receiver.window_to_offer(ctx.config);
        packet.flags = flag::RST | flag::ACK;
        packet.ip_len = ctx.config.header() as u16;
        ctx.sink.send(self.address.local, packet, None);
    }

    /// Sends a pure ACK without SACK blocks.
    pub(super) fn send_ack(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, self.stream.next, false, ctx.config);
        packet.flags = flag::ACK | self.ecn & ecn::SEND_ECE;
        packet.ip_len = ctx.config.header() as u16;
        ctx.sink.send(self.address.local, packet, None);
    }

    /// Sends a pure ACK with the SACK blocks `sack`, of which unused blocks are (0, 0).
    pub(super) fn send_ack_with(&mut self, sack: SackBlocks, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, self.stream.next, false, ctx.config);
        packet.flags = flag::ACK | self.ecn & ecn::SEND_ECE;
        // The option has two bytes of padding, kind and length, and eight bytes for each block (RFC
        // 2018).
        let blocks = sack.iter().filter(|b| b.1 > 0).count() as u32;
        let options = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        packet.ip_len = (ctx.config.header() + options) as u16;
        ctx.sink.send(self.address.local, packet, Some(sack));
    }
}

const _: () = assert!(BARE_HEADER + SYN_OPTIONS + 12 == 60);
