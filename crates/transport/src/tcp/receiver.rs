//! Receiving: reassembly, when to acknowledge (RFC 5681, 4.2) and what SACK reports (RFC 2018).
//!
//! The application reads at once, so the offered window is the configured one. A segment that is
//! out of order, fills a gap or repeats old bytes is acknowledged at once; others after
//! `ack_every` segments or the delayed-ACK timeout.

use super::config::TcpConfig;
use super::ecn;
use super::endpoint::Endpoint;
use super::{Notice, Sink};
use eastwest_types::{Packet, SackBlocks, Time, flag};

impl Endpoint {
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
        // RFC 7323, 4.3: echo the timestamp of the first segment not yet acknowledged, never an older
        // one than before
        let stamp = super::output::timestamp_us(packet.born);
        if start <= self.last_ack_sent && stamp.wrapping_sub(self.ts_recent_us) as i32 >= 0 {
            self.ts_recent_us = stamp;
        }
        let marks = self.ecn & ecn::IN_USE != 0 && packet.payload > 0;
        let at_once = marks && self.note_mark(now, packet, config, sink);
        if start > self.rcv_nxt {
            if end - self.rcv_nxt <= config.max_window {
                self.out_of_order.insert(start, end);
            }
            self.send_dup_ack(now, start, config, sink);
            return;
        }
        if end <= self.rcv_nxt {
            self.send_dup_ack(now, 0, config, sink);
            return;
        }
        let had_gap = !self.out_of_order.is_empty();
        self.rcv_nxt = end;
        if had_gap {
            while let Some(to) = self.out_of_order.take_from(self.rcv_nxt) {
                self.rcv_nxt = self.rcv_nxt.max(to);
            }
        }
        self.unacked_segments += 1;
        if had_gap || fin || at_once || u32::from(self.unacked_segments) >= config.ack_every {
            self.send_dup_ack(now, 0, config, sink);
        } else if self.ack_at == Time::NEVER {
            self.ack_at = self.deadline(now, config.delayed_ack_timeout, config);
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

    /// An ACK with SACK blocks where something is out of order; `latest` is the start of the segment
    /// that caused it, or 0.
    fn send_dup_ack(&mut self, now: Time, latest: u64, config: &TcpConfig, sink: &mut impl Sink) {
        if !config.sack || self.out_of_order.is_empty() {
            self.send_ack(now, config, sink);
            return;
        }
        let blocks = self.sack_blocks(latest, config);
        self.send_ack_with(now, Some(blocks), config, sink);
    }

    /// The block with the latest segment first, then those reported most recently, then the highest
    /// others; three fit beside timestamps, four without.
    fn sack_blocks(&mut self, latest: u64, config: &TcpConfig) -> SackBlocks {
        let room = if config.timestamps { 3 } else { 4 };
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
