//! Input of payload and FIN: reassembly, the decision when to acknowledge (RFC 5681, 4.2), and the
//! SACK blocks to report (RFC 2018).
//!
//! The application reads all data at once: the offered window never closes, and no separate window
//! update is sent. The window is the configured one, or [grows](super::autotune). A segment that is
//! out of order, fills a gap or repeats old bytes is acknowledged at once. Other segments are
//! acknowledged after `ack_every` segments or the delayed-ACK timeout, or by the [ACK policy of
//! Linux](super::linux_acks). The state is in [`receiver`](super::receiver).

use super::ecn;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Sink};
use super::rules::AckRule;
use eastwest_types::{Packet, Time, flag};

impl Endpoint {
    /// Processes payload and FIN of a packet, and acknowledges them or starts the delayed-ACK
    /// timer.
    pub(super) fn on_payload(&mut self, packet: &Packet, ctx: &mut Context<'_, impl Sink>) {
        let start = Packet::widen(packet.seq, self.receiver.next);
        let fin = packet.flags & flag::FIN != 0;
        let end = start + u64::from(packet.payload) + u64::from(fin);
        if fin {
            self.receiver.fin_at = end - 1;
        }
        self.receiver.update_ts_recent(start, packet);
        let marks = self.ecn & ecn::NEGOTIATED != 0 && packet.payload > 0;
        let ack_now = marks && self.on_ecn_field(packet, ctx);
        if start > self.receiver.next || end <= self.receiver.next {
            self.on_out_of_order(start, end, ack_now, ctx);
            return;
        }
        let repeats = ctx.config.recovery.dsack && start < self.receiver.next;
        let before = self.receiver.next;
        let had_gap = self.receiver.advance(end);
        self.receiver.unacked += 1;
        let due = if ctx.config.receiver.is_plain() {
            u32::from(self.receiver.unacked) >= ctx.config.ack_every
        } else {
            self.receiver.on_data_linux(ctx.now, packet, &self.timers, ctx.config)
        };
        if due || had_gap || fin || ack_now || repeats {
            if had_gap || repeats {
                self.send_dup_ack(0, repeats.then_some((start, before)), ctx);
            } else {
                self.send_ack(ctx);
            }
        } else if self.receiver.ack_at == Time::NEVER {
            let delay = match ctx.config.receiver.acks {
                AckRule::Count => ctx.config.delayed_ack_timeout,
                AckRule::Linux => self.receiver.ack_delay(self.timers.rtt.srtt(), ctx.config),
            };
            self.receiver.ack_at = self.deadline(ctx.now, delay, ctx.config);
        }
        // The cheap first comparison is enough for most packets.
        if self.receiver.next >= self.receiver.notify_at
            && self.receiver.received() + 1 >= self.receiver.notify_at
        {
            self.receiver.notify_at = u64::MAX;
            ctx.sink.notify(self.address.id, Notice::Delivered);
        }
        if self.receiver.next > self.receiver.fin_at {
            self.enter_time_wait_if_finished(ctx);
        }
    }

    /// Processes a segment that arrives above a gap, or repeats old bytes.
    #[inline(never)]
    fn on_out_of_order(
        &mut self,
        start: u64,
        end: u64,
        ack_now: bool,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        if end <= self.receiver.next {
            self.receiver.on_duplicate_linux(ctx.config);
            self.send_dup_ack(0, Some((start, end)), ctx);
            return;
        }
        let fits = end - self.receiver.next <= ctx.config.max_window;
        let compress = fits && ctx.config.receiver.compress && ctx.config.sack;
        if compress && self.receiver.flushes_compressed_ack((start, end)) {
            self.send_dup_ack(0, None, ctx);
        }
        if fits && ctx.config.receiver.window_from.is_some() {
            self.receiver.on_out_of_order_linux(ctx.now, end, ctx.config);
        }
        let duplicate = fits && self.receiver.out_of_order.insert_with_hint(0, start, end) == 0;
        if ack_now
            || duplicate
            || !compress
            || !self.receiver.compresses_ack(ctx.now, start, self.timers.rtt.srtt())
        {
            self.send_dup_ack(start, duplicate.then_some((start, end)), ctx);
        }
    }

    /// Sends an ACK, with SACK blocks if data is stored out of order. `latest`: start of the
    /// segment that caused the ACK, or 0; `duplicate`: positions that have arrived twice, for a
    /// DSACK block.
    pub(super) fn send_dup_ack(
        &mut self,
        latest: u64,
        duplicate: Option<(u64, u64)>,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let duplicate = duplicate.filter(|_| ctx.config.recovery.dsack);
        if !ctx.config.sack || (self.receiver.out_of_order.is_empty() && duplicate.is_none()) {
            self.send_ack(ctx);
            return;
        }
        let room = if ctx.config.timestamps { 3 } else { 4 };
        let blocks = match duplicate {
            None => self.receiver.sack_blocks(latest, room),
            Some(duplicate) => {
                // The DSACK block is the first block. The range that contains it may follow (RFC
                // 2883, section 4).
                let others = self.receiver.sack_blocks(latest, room - 1);
                [duplicate, others[0], others[1], others[2]]
            }
        };
        self.send_ack_with(blocks, ctx);
    }
}
