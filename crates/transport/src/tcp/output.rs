//! Sending: what may go out now, and the packets themselves.

use super::Sink;
use super::board::Board;
use super::config::TcpConfig;
use super::ecn;
use super::endpoint::{Endpoint, Phase};
use super::offload::Room;
use super::pace::Gate;
use super::rules::{AckRule, PrrRule};
use eastwest_types::{NO_SACK, Packet, SackBlocks, Span, Time, flag};

/// A timestamp in the unit that TCP headers carry here (RFC 7323, 5.4 leaves it free).
#[inline]
pub(super) fn timestamp_us(t: Time) -> u32 {
    (t.0 / 1_000_000) as u32
}

/// IP and TCP headers without options.
const BARE_HEADER: u32 = 40;
/// MSS and window scale with padding on SYN and SYN-ACK; timestamps come on top.
const SYN_OPTIONS: u32 = 8;
/// SACK-permitted with padding; beside timestamps it takes the place of their padding.
const SACK_PERMITTED: u32 = 4;

impl Endpoint {
    /// Sends what the windows allow: first what is known to be lost, then new data.
    pub(super) fn transmit(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let before = self.snd_max;
        self.fill_window(true, now, config, sink);
        if config.recovery.probes && self.snd_max > before {
            self.schedule_probe(now, config);
        }
    }

    /// The same, but nothing is sent again.
    #[inline(never)]
    pub(super) fn transmit_new(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let before = self.snd_max;
        self.fill_window(false, now, config, sink);
        if config.recovery.probes && self.snd_max > before {
            self.schedule_probe(now, config);
        }
    }

    #[inline(always)]
    fn fill_window(&mut self, again: bool, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let end = self.send_end();
        if self.phase == Phase::Open && self.dup_acks == 0 {
            if self.snd_max == end {
                return;
            }
            if self.snd_una == self.snd_max && self.is_controlled() {
                self.resume(now);
            }
            self.restart_after_idle(now, config);
        }
        let segment = u64::from(config.segment);
        let mut pipe = self.pipe(config);
        let right_edge = self.snd_una + u64::from(self.peer_window).min(config.max_window);
        // limited transmit (RFC 3042): one new segment for each of the first two duplicate ACKs;
        // with SACK the pipe has already shrunk by what was SACKed
        let before = self.snd_max;
        let mut lost_too = again;
        let mut allowance = self.window.cwnd;
        if self.phase == Phase::Open {
            if config.sack && !config.limited_transmit {
                allowance = allowance.saturating_sub(self.sacked.total());
            } else if !config.sack && config.limited_transmit {
                allowance += u64::from(self.dup_acks.min(2)) * segment;
            }
        }
        while pipe + segment <= allowance || pipe == 0 {
            if self.is_controlled() {
                let room = Room { window: allowance.saturating_sub(pipe), right_edge };
                match self.gate(now, again, room, config) {
                    Gate::Open => {}
                    Gate::NewOnly => lost_too = false,
                    Gate::Shut => break,
                }
            }
            let mut sent = if lost_too { self.send_lost(now, config, sink) } else { 0 };
            if sent == 0 {
                sent = self.send_new(now, pipe == 0, right_edge, config, sink);
            }
            if sent == 0 && lost_too {
                sent = self.send_doubtful(now, config, sink);
            }
            if sent == 0 {
                if pipe == 0 {
                    self.mind_closed_window(now, config);
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
    pub(super) fn send_lost(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) -> u64 {
        if self.phase == Phase::Open {
            return 0;
        }
        let Some((start, stop)) = self.next_lost(config) else { return 0 };
        if !config.recovery.uses_rack() {
            self.set_resent_to(stop);
        }
        self.send_data(now, start, stop, true, config, sink);
        stop - start
    }

    /// Sends the next new bytes, at most a segment; returns how many.
    #[inline]
    pub(super) fn send_new(
        &mut self,
        now: Time,
        nothing_under_way: bool,
        right_edge: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> u64 {
        let mut stop = (self.snd_max + u64::from(config.segment)).min(self.write_end);
        if stop == self.write_end {
            stop = self.send_end(); // the FIN goes with the last byte
        }
        if stop > right_edge {
            // a part of a segment only where nothing is under way (RFC 1122, 4.2.3.4)
            if !nothing_under_way {
                return 0;
            }
            stop = right_edge;
        }
        if stop <= self.snd_max {
            return 0;
        }
        if config.nagle && stop - self.snd_max < u64::from(config.segment) {
            // a FIN does not wait, nor what goes with it
            if stop <= self.write_end && self.rare().small_end > self.snd_una {
                return 0;
            }
            self.rare().small_end = stop;
        }
        let start = self.snd_max;
        self.snd_max = stop;
        self.send_data(now, start, stop, false, config, sink);
        stop - start
    }

    /// In a recovery with nothing else to send, sends bytes again that may be lost.
    #[inline]
    fn send_doubtful(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) -> u64 {
        // RACK judges holes by time, and what no ACK tells of is the probe's affair
        if self.phase != Phase::Recovery || !config.sack || config.recovery.uses_rack() {
            return 0;
        }
        let Some((start, stop)) = self.next_doubtful(u64::from(config.segment)) else { return 0 };
        self.send_data(now, start, stop, true, config, sink);
        stop - start
    }

    /// RFC 5681, 4.1: after an idle time of one timeout the window is the initial one at most.
    #[inline]
    fn restart_after_idle(&mut self, now: Time, config: &TcpConfig) {
        if self.snd_una == self.snd_max
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
        let timeouts = idle.0 / self.rtt.rto(0, config).0.max(1);
        w.cwnd = (w.cwnd >> timeouts.min(63)).max(w.cwnd.min(initial));
    }

    /// Sends the positions `start..stop`, which may end with the FIN; `again` after a loss.
    pub(super) fn send_data(
        &mut self,
        now: Time,
        start: u64,
        stop: u64,
        again: bool,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let fin = stop > self.write_end;
        let payload = (stop - start - u64::from(fin)) as u16;
        let mut packet = self.packet(now, start, config);
        packet.payload = payload;
        packet.ip_len = payload + config.header() as u16;
        packet.flags = flag::ACK | if fin { flag::FIN } else { 0 } | self.ecn & ecn::ECHO;
        if config.receiver.acks == AckRule::Linux && stop >= self.write_end {
            packet.flags |= flag::PSH; // all that is written; the receiver heeds it
        }
        if again {
            packet.notes |= Packet::RETRANSMISSION;
            self.note_resent(now);
        } else {
            if !config.timestamps && self.timed_end == 0 {
                (self.timed_end, self.timed_at) = (stop, now);
            }
            if payload > 0 {
                packet.tos |= self.ecn & ecn::IN_USE;
                packet.flags |= self.ecn & ecn::TELL;
                self.ecn &= !ecn::TELL;
            }
        }
        if config.recovery.prr != PrrRule::Off && self.is_reducing() {
            self.rare().prr.sent(stop - start);
        }
        if config.recovery.uses_rack() {
            self.note_on_board(now, start, stop, again);
        }
        if self.is_controlled() {
            self.note_sent(now, start, stop, again, config);
        }
        self.note_ack_sent(now, payload > 0, config);
        self.last_sent = now;
        // RFC 6298, 5.1; and again when the first segment is resent, or the timer would strike before
        // its answer can be here (Linux, `tcp_xmit_retransmit_queue`; RFC 6675, section 6)
        if self.rto_at == Time::NEVER || (again && start == self.snd_una) {
            self.rto_at = self.deadline(now, self.rto(config), config);
        }
        sink.send(self.local, packet, None);
        if self.is_controlled() && config.small_queues.on {
            self.note_in_card(now, sink.leaves_at(self.local, self.tos >> 2));
        }
    }

    /// The scoreboard of RACK takes notice of what leaves.
    #[inline(never)]
    fn note_on_board(&mut self, now: Time, start: u64, stop: u64, again: bool) {
        // the handshake has brought a first round trip
        let first = self.rtt.srtt();
        let board = self.board.get_or_insert_with(|| Box::new(Board::new(now, first)));
        if again {
            board.resend(start, now);
        } else {
            board.push(start, stop, now);
        }
    }

    /// Something is sent again.
    #[inline(never)]
    fn note_resent(&mut self, now: Time) {
        self.count().retransmits += 1;
        self.note_again(timestamp_us(now));
        self.timed_end = 0; // Karn: no samples from segments sent twice
    }

    /// A packet with everything filled in but length and flags.
    #[inline]
    fn packet(&self, now: Time, seq: u64, config: &TcpConfig) -> Packet {
        Packet {
            born: now,
            seq,
            ack: self.rcv_nxt,
            dst_endpoint: self.id.peer(),
            dst: self.remote,
            window: match config.receiver.window_from {
                None => config.max_window.min(u64::from(u32::MAX)) as u32,
                Some(first) => self.offered_window(first),
            },
            ts_echo_us: self.ts_recent_us,
            sack: NO_SACK,
            hash: self.hash,
            ip_len: 0,
            payload: 0,
            flags: 0,
            tos: self.tos,
            notes: 0,
        }
    }

    /// A SYN or SYN-ACK.
    pub(super) fn send_control(
        &mut self,
        now: Time,
        seq: u64,
        flags: u8,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let mut packet = self.packet(now, seq, config);
        packet.flags = flags;
        let sack = if config.sack && !config.timestamps { SACK_PERMITTED } else { 0 };
        packet.ip_len = (config.header() + SYN_OPTIONS + sack) as u16;
        self.note_ack_sent(now, false, config);
        sink.send(self.local, packet, None);
    }

    /// An ACK of a position that was acknowledged long ago, which the other end has to answer.
    pub(super) fn send_window_probe(
        &mut self,
        now: Time,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let mut packet = self.packet(now, self.snd_una - 1, config);
        packet.flags = flag::ACK | self.ecn & ecn::ECHO;
        packet.ip_len = config.header() as u16;
        self.note_ack_sent(now, false, config);
        sink.send(self.local, packet, None);
    }

    /// A reset that takes no position of the stream: its sequence number is the next to be sent.
    pub(super) fn send_reset(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let mut packet = self.packet(now, self.snd_max, config);
        packet.flags = flag::RST | flag::ACK;
        packet.ip_len = config.header() as u16;
        sink.send(self.local, packet, None);
    }

    /// A pure ACK.
    pub(super) fn send_ack(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        self.send_ack_with(now, None, config, sink);
    }

    pub(super) fn send_ack_with(
        &mut self,
        now: Time,
        sack: Option<SackBlocks>,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let mut packet = self.packet(now, self.snd_max, config);
        packet.flags = flag::ACK | self.ecn & ecn::ECHO;
        // two bytes of padding, kind and length, eight bytes a block (RFC 2018)
        let blocks = sack.map_or(0, |s| s.iter().filter(|b| b.1 > 0).count() as u32);
        let options = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        packet.ip_len = (config.header() + options) as u16;
        self.note_ack_sent(now, false, config);
        sink.send(self.local, packet, sack);
    }

    /// Every packet carries the acknowledgement.
    #[inline]
    fn note_ack_sent(&mut self, now: Time, data: bool, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux {
            self.note_linux_ack(now, data);
        }
        self.last_ack_sent = self.rcv_nxt;
        self.unacked_segments = 0;
        self.ack_at = Time::NEVER;
    }
}

const _: () = assert!(BARE_HEADER + SYN_OPTIONS + 12 == 60);
