//! Sending: what may go out now, and the packets themselves.

use super::board::Board;
use super::bursts::Room;
use super::config::TcpConfig;
use super::ecn;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::pace::Gate;
use super::phases::Phase;
use super::rtt::timestamp_us;
use super::rules::{AckRule, PrrRule};
use eastwest_types::{NO_SACK, Packet, SackBlocks, Span, Time, flag};

/// IP and TCP headers without options.
const BARE_HEADER: u32 = 40;
/// MSS and window scale with padding on SYN and SYN-ACK; timestamps come on top.
const SYN_OPTIONS: u32 = 8;
/// SACK-permitted with padding; beside timestamps it takes the place of their padding.
const SACK_PERMITTED: u32 = 4;

impl Endpoint {
    /// Sends what the windows allow: first what is known to be lost, then new data.
    pub(super) fn transmit(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let before = self.stream.next;
        self.fill_window(true, ctx);
        if ctx.config.recovery.probes && self.stream.next > before {
            self.schedule_probe(ctx.now, ctx.config);
        }
    }

    /// Sends new data as far as the windows allow; nothing is sent again.
    #[inline(never)]
    pub(super) fn transmit_new(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let before = self.stream.next;
        self.fill_window(false, ctx);
        if ctx.config.recovery.probes && self.stream.next > before {
            self.schedule_probe(ctx.now, ctx.config);
        }
    }

    #[inline(always)]
    fn fill_window(&mut self, again: bool, ctx: &mut Context<'_, impl Sink>) {
        let end = self.send_end();
        if self.recovery.phase == Phase::Open && self.recovery.dup_acks == 0 {
            if self.stream.next == end {
                return;
            }
            if self.stream.una == self.stream.next && self.is_controlled() {
                self.resume(ctx.now);
            }
            self.restart_after_idle(ctx.now, ctx.config);
        }
        let segment = u64::from(ctx.config.segment);
        let mut pipe = self.pipe(ctx.config);
        let right_edge = self.right_edge(ctx.config);
        // limited transmit (RFC 3042): one new segment for each of the first two duplicate ACKs;
        // with SACK the pipe has already shrunk by what was SACKed
        let before = self.stream.next;
        let mut lost_too = again;
        let mut allowance = self.window.cwnd;
        if self.recovery.phase == Phase::Open {
            if ctx.config.sack && !ctx.config.limited_transmit {
                allowance = allowance.saturating_sub(self.recovery.sacked.total());
            } else if !ctx.config.sack && ctx.config.limited_transmit {
                allowance += u64::from(self.recovery.dup_acks.min(2)) * segment;
            }
        }
        while pipe + segment <= allowance || pipe == 0 {
            if self.is_controlled() {
                let room = Room { window: allowance.saturating_sub(pipe), right_edge };
                match self.gate(ctx.now, again, room, ctx.config) {
                    Gate::Open => {}
                    Gate::NewOnly => lost_too = false,
                    Gate::Shut => break,
                }
            }
            let mut sent = if lost_too { self.send_lost(ctx) } else { 0 };
            if sent == 0 {
                sent = self.send_new(pipe == 0, right_edge, ctx);
            }
            if sent == 0 && lost_too {
                sent = self.send_doubtful(ctx);
            }
            if sent == 0 {
                if pipe == 0 {
                    self.mind_closed_window(ctx.now, ctx.config);
                }
                break;
            }
            pipe += sent;
        }
        if self.is_controlled() {
            let held = self.end_burst();
            self.note_usage(before, held || pipe + segment > self.window.cwnd);
        }
    }

    /// Sends the next lost bytes again, at most a segment; returns how many.
    #[inline]
    pub(super) fn send_lost(&mut self, ctx: &mut Context<'_, impl Sink>) -> u64 {
        if self.recovery.phase == Phase::Open {
            return 0;
        }
        let Some((start, stop)) = self.recovery.next_lost(&self.stream, ctx.config) else {
            return 0;
        };
        if !ctx.config.recovery.uses_rack() {
            self.recovery.set_resent_to(stop);
        }
        self.send_data(start, stop, true, ctx);
        stop - start
    }

    /// Sends the next new bytes, at most a segment; returns how many.
    #[inline]
    pub(super) fn send_new(
        &mut self,
        nothing_under_way: bool,
        right_edge: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) -> u64 {
        let mut stop = (self.stream.next + u64::from(ctx.config.segment)).min(self.stream.end);
        if stop == self.stream.end {
            stop = self.send_end(); // the FIN goes with the last byte
        }
        if stop > right_edge {
            // a part of a segment only where nothing is under way (RFC 1122, 4.2.3.4)
            if !nothing_under_way {
                return 0;
            }
            stop = right_edge;
        }
        if stop <= self.stream.next {
            return 0;
        }
        if ctx.config.nagle && stop - self.stream.next < u64::from(ctx.config.segment) {
            // a FIN does not wait, nor what goes with it
            if stop <= self.stream.end && self.recovery.rare().small_end > self.stream.una {
                return 0;
            }
            self.recovery.rare().small_end = stop;
        }
        let start = self.stream.next;
        self.stream.next = stop;
        self.send_data(start, stop, false, ctx);
        stop - start
    }

    /// In a recovery with nothing else to send, sends bytes again that may be lost.
    #[inline]
    fn send_doubtful(&mut self, ctx: &mut Context<'_, impl Sink>) -> u64 {
        // RACK judges holes by time, and what no ACK tells of is the probe's affair
        if self.recovery.phase != Phase::Recovery
            || !ctx.config.sack
            || ctx.config.recovery.uses_rack()
        {
            return 0;
        }
        let Some((start, stop)) =
            self.recovery.next_doubtful(&self.stream, u64::from(ctx.config.segment))
        else {
            return 0;
        };
        self.send_data(start, stop, true, ctx);
        stop - start
    }

    /// RFC 5681, 4.1: after an idle time of one timeout the window is the initial one at most.
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

    /// RFC 2861, section 3 (Linux, `tcp_cwnd_restart`): the window is halved for each timeout that
    /// nothing was sent, and the threshold remembers three quarters of it.
    #[cold]
    fn decay_after_idle(&mut self, idle: Span, initial: u64, config: &TcpConfig) {
        let w = &mut self.window;
        w.ssthresh = w.ssthresh.max(w.cwnd / 4 * 3);
        let timeouts = idle.0 / self.timers.rtt.rto(0, config).0.max(1);
        w.cwnd = (w.cwnd >> timeouts.min(63)).max(w.cwnd.min(initial));
    }

    /// Sends the positions `start..stop`, which may end with the FIN; `again` after a loss.
    pub(super) fn send_data(
        &mut self,
        start: u64,
        stop: u64,
        again: bool,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let fin = stop > self.stream.end;
        let payload = (stop - start - u64::from(fin)) as u16;
        let mut packet = self.packet(ctx.now, start, ctx.config);
        packet.payload = payload;
        packet.ip_len = payload + ctx.config.header() as u16;
        packet.flags = flag::ACK | if fin { flag::FIN } else { 0 } | self.ecn & ecn::ECHO;
        if ctx.config.receiver.acks == AckRule::Linux && stop >= self.stream.end {
            packet.flags |= flag::PSH; // all that is written; the receiver heeds it
        }
        if again {
            packet.notes |= Packet::RETRANSMISSION;
            self.note_resent(ctx.now);
        } else {
            if !ctx.config.timestamps {
                self.timers.time_segment(ctx.now, stop);
            }
            if payload > 0 {
                packet.tos |= self.ecn & ecn::IN_USE;
                packet.flags |= self.ecn & ecn::TELL;
                self.ecn &= !ecn::TELL;
            }
        }
        if ctx.config.recovery.prr != PrrRule::Off && self.is_reducing() {
            self.recovery.rare().prr.sent(stop - start);
        }
        if ctx.config.recovery.uses_rack() {
            self.note_on_board(ctx.now, start, stop, again);
        }
        if self.is_controlled() {
            self.note_sent(ctx.now, start, stop, again, ctx.config);
        }
        self.receiver.note_sent(ctx.now, payload > 0, ctx.config);
        self.last_sent = ctx.now;
        // RFC 6298, 5.1; and again when the first segment is resent, or the timer would strike before
        // its answer can be here (Linux, `tcp_xmit_retransmit_queue`; RFC 6675, section 6)
        if self.timers.rto_at == Time::NEVER || (again && start == self.stream.una) {
            self.restart_timer(ctx.now, ctx.config);
        }
        ctx.sink.send(self.address.local, packet, None);
        if self.is_controlled() && ctx.config.small_queues.on {
            self.note_in_card(
                ctx.now,
                ctx.sink.leaves_at(self.address.local, self.address.tos >> 2),
            );
        }
    }

    /// The scoreboard of RACK takes notice of what leaves.
    #[inline(never)]
    fn note_on_board(&mut self, now: Time, start: u64, stop: u64, again: bool) {
        // the handshake has brought a first round trip
        let first = self.timers.rtt.srtt();
        let board = self.recovery.board.get_or_insert_with(|| Box::new(Board::new(now, first)));
        if again {
            board.resend(start, now);
        } else {
            board.push(start, stop, now);
        }
    }

    /// Something is sent again.
    #[inline(never)]
    fn note_resent(&mut self, now: Time) {
        self.recovery.note_again(timestamp_us(now));
        self.timers.timed_end = 0; // Karn: no samples from segments sent twice
    }

    /// A packet with everything filled in but length and flags.
    #[inline]
    fn packet(&self, now: Time, seq: u64, config: &TcpConfig) -> Packet {
        Packet {
            born: now,
            seq,
            ack: self.receiver.next,
            dst_endpoint: self.address.id.peer(),
            dst: self.address.remote,
            window: match config.receiver.window_from {
                None => config.max_window.min(u64::from(u32::MAX)) as u32,
                Some(first) => self.receiver.offered_window(first),
            },
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

    /// A SYN or SYN-ACK.
    pub(super) fn send_control(&mut self, seq: u64, flags: u8, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, seq, ctx.config);
        packet.flags = flags;
        let sack = if ctx.config.sack && !ctx.config.timestamps { SACK_PERMITTED } else { 0 };
        packet.ip_len = (ctx.config.header() + SYN_OPTIONS + sack) as u16;
        self.receiver.note_sent(ctx.now, false, ctx.config);
        ctx.sink.send(self.address.local, packet, None);
    }

    /// An ACK of a position that was acknowledged long ago, which the other end has to answer.
    pub(super) fn send_window_probe(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, self.stream.una - 1, ctx.config);
        packet.flags = flag::ACK | self.ecn & ecn::ECHO;
        packet.ip_len = ctx.config.header() as u16;
        self.receiver.note_sent(ctx.now, false, ctx.config);
        ctx.sink.send(self.address.local, packet, None);
    }

    /// A reset that takes no position of the stream: its sequence number is the next to be sent.
    pub(super) fn send_reset(&mut self, ctx: &mut Context<'_, impl Sink>) {
        let mut packet = self.packet(ctx.now, self.stream.next, ctx.config);
        packet.flags = flag::RST | flag::ACK;
        packet.ip_len = ctx.config.header() as u16;
        ctx.sink.send(self.address.local, packet, None);
    }

    /// A pure ACK.
    pub(super) fn send_ack(&mut self, ctx: &mut Context<'_, impl Sink>) {
        self.send_ack_with(None, ctx);
    }

    pub(super) fn send_ack_with(
        &mut self,
        sack: Option<SackBlocks>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let mut packet = self.packet(ctx.now, self.stream.next, ctx.config);
        packet.flags = flag::ACK | self.ecn & ecn::ECHO;
        // two bytes of padding, kind and length, eight bytes a block (RFC 2018)
        let blocks = sack.map_or(0, |s| s.iter().filter(|b| b.1 > 0).count() as u32);
        let options = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        packet.ip_len = (ctx.config.header() + options) as u16;
        self.receiver.note_sent(ctx.now, false, ctx.config);
        ctx.sink.send(self.address.local, packet, sack);
    }
}

const _: () = assert!(BARE_HEADER + SYN_OPTIONS + 12 == 60);
