//! Receiving: reassembly, when to acknowledge (RFC 5681, 4.2) and what SACK reports (RFC 2018).
//!
//! The application reads at once: the offered window never closes, and no window update is sent by
//! itself. It is the configured one, or [grows](super::autotune). A segment that is out of order, fills
//! a gap or repeats old bytes is acknowledged at once; others after `ack_every` segments or the
//! delayed-ACK timeout, or as [Linux](super::ack_linux) does.

use super::config::TcpConfig;
use super::ecn;
use super::endpoint::Endpoint;
use super::rules::AckRule;
use super::{Notice, Sink};
use eastwest_types::{Packet, SackBlocks, Time, flag};

impl Endpoint {
    /// RFC 7323, 4.3: echo the timestamp of the first segment not yet acknowledged, never an older one
    /// than before.
    #[inline]
    pub(super) fn note_timestamp(&mut self, start: u64, packet: &Packet) {
        let stamp = super::output::timestamp_us(packet.born);
        if start <= self.last_ack_sent && stamp.wrapping_sub(self.ts_recent_us) as i32 >= 0 {
            self.ts_recent_us = stamp;
        }
    }

    /// Takes payload and FIN of a packet.
    pub(super) fn on_payload(
        &mut self,
        now: Time,
        packet: &Packet,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let start = Packet::widen(packet.seq, self.rcv_nxt);
        let fin = packet.flags & flag::FIN != 0;
        let end = start + u64::from(packet.payload) + u64::from(fin);
        if fin {
            self.fin_at = end - 1;
        }
        self.note_timestamp(start, packet);
        let marks = self.ecn & ecn::IN_USE != 0 && packet.payload > 0;
        let at_once = marks && self.note_mark(now, packet, config, sink);
        if start > self.rcv_nxt || end <= self.rcv_nxt {
            self.on_out_of_order(now, start, end, at_once, config, sink);
            return;
        }
        let repeats = config.recovery.dsack && start < self.rcv_nxt;
        let before = self.rcv_nxt;
        let had_gap = !self.out_of_order.is_empty();
        self.rcv_nxt = end;
        if had_gap {
            while let Some(to) = self.out_of_order.take_from(self.rcv_nxt) {
                self.rcv_nxt = self.rcv_nxt.max(to);
            }
        }
        self.unacked_segments += 1;
        let due = if config.receiver.is_plain() {
            u32::from(self.unacked_segments) >= config.ack_every
        } else {
            self.on_inbound(now, packet, config)
        };
        if due || had_gap || fin || at_once || repeats {
            if had_gap || repeats {
                self.send_dup_ack(now, 0, repeats.then_some((start, before)), config, sink);
            } else {
                self.send_ack(now, config, sink);
            }
        } else if self.ack_at == Time::NEVER {
            let delay = match config.receiver.acks {
                AckRule::Count => config.delayed_ack_timeout,
                AckRule::Linux => self.ack_delay(config),
            };
            self.ack_at = self.deadline(now, delay, config);
        }
        // the first comparison spares the common packet the second
        if self.rcv_nxt >= self.notify_at && self.received() + 1 >= self.notify_at {
            self.notify_at = u64::MAX;
            sink.notify(self.id, Notice::Delivered);
        }
        if self.rcv_nxt > self.fin_at {
            self.linger_if_finished(now, config);
        }
    }

    /// A segment that leaves a gap or repeats old bytes.
    #[inline(never)]
    fn on_out_of_order(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        at_once: bool,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        if end <= self.rcv_nxt {
            self.on_inbound_duplicate(config);
            self.send_dup_ack(now, 0, Some((start, end)), config, sink);
            return;
        }
        let fits = end - self.rcv_nxt <= config.max_window;
        let compress = fits && config.receiver.compress && config.sack;
        if compress {
            self.send_waiting_ack(now, (start, end), config, sink);
        }
        if fits && config.receiver.window_from.is_some() {
            self.on_inbound_late(now, end, config);
        }
        let twice = fits && self.out_of_order.insert(start, end) == 0;
        if at_once || twice || !compress || !self.holds_back(now, start) {
            self.send_dup_ack(now, start, twice.then_some((start, end)), config, sink);
        }
    }

    /// An ACK with SACK blocks where something is out of order; `latest` is the start of the segment
    /// that caused it, or 0; `twice` are positions that have arrived before.
    pub(super) fn send_dup_ack(
        &mut self,
        now: Time,
        latest: u64,
        twice: Option<(u64, u64)>,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let twice = twice.filter(|_| config.recovery.dsack);
        if !config.sack || (self.out_of_order.is_empty() && twice.is_none()) {
            self.send_ack(now, config, sink);
            return;
        }
        let room = if config.timestamps { 3 } else { 4 };
        let blocks = match twice {
            None => self.sack_blocks(latest, room),
            Some(twice) => {
                // what has arrived twice goes first, and the block that holds it may repeat it (RFC
                // 2883, section 4)
                let others = self.sack_blocks(latest, room - 1);
                [twice, others[0], others[1], others[2]]
            }
        };
        self.send_ack_with(now, Some(blocks), config, sink);
    }

    /// The block with the latest segment first, then those reported most recently, then the highest
    /// others; at most `room` of them.
    fn sack_blocks(&mut self, latest: u64, room: usize) -> SackBlocks {
        let mut blocks: SackBlocks = [(0, 0); 4];
        let mut used = 0;
        let mut add = |range: (u64, u64)| {
            if used < room && !blocks[..used].contains(&range) {
                blocks[used] = range;
                used += 1;
            }
        };
        for start in [latest].into_iter().chain(self.out_of_order.reported()) {
            if let Some(range) = self.out_of_order.containing(start) {
                add(range);
            }
        }
        for range in self.out_of_order.iter().rev().take(room) {
            add(range);
        }
        self.out_of_order.set_reported([blocks[0].0, blocks[1].0, blocks[2].0]);
        blocks
    }
}
