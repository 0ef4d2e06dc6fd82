//! ACKs that bring evidence of losses: duplicates, SACKs, marks, and every ACK in a recovery or after a
//! timeout. What it means is said where each mechanism is; here is the order in which they are asked,
//! which follows Linux (`tcp_ack`): what has arrived; was it all needless; the probe; what is lost;
//! the window; sending.

use super::board::{Answered, Delivery};
use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Sink};
use super::loss_by_time::Findings;
use super::pace::Change;
use super::phases::Phase;
use super::probe::Answer;
use super::prr::Report;
use super::rack::AckContext;
use super::rules::PrrRule;
use super::undo::{Advice, Evidence};
use crate::congestion::rules::Counting;
use eastwest_types::{Packet, SackBlocks, Time, flag};

impl Endpoint {
    /// Processes an ACK that carries evidence of losses: SACK blocks, DSACK, or a duplicate.
    #[inline(never)]
    pub(super) fn on_evidence(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ack: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let before = self.before(ctx.config);
        let mut resend_first = false;
        let window_changed = self.peer_window != packet.window;
        self.peer_window = packet.window;
        let mut news = News::default();
        // reordering shows by what was SACKed before this ACK (Linux, `prior_fack`)
        let context = self.recovery.context(ctx.now, packet, &self.stream, ctx.config);
        let newly_sacked = match sack {
            Some(blocks) if ctx.config.sack => {
                self.take_sack(ctx.now, packet, blocks, ack, &mut news, ctx.config)
            }
            _ => 0,
        };
        let acked = ack - self.stream.una;
        let doubtful = self.recovery.phase != Phase::Open
            || !self.recovery.sacked.is_empty()
            || news.dsack.is_some();
        let mut answered = None;
        if acked > 0 {
            answered = self.take_advance(ack, context, &mut news, ctx.config);
            self.move_on(packet, ack, answered, ctx);
            if !self.recovery.sacked.is_empty() {
                self.recovery.sacked.remove_below(ack);
            }
        }
        if self.is_controlled() {
            let delivered = self.delivered_since(&before, acked, ctx.config);
            self.inform(ctx.now, packet, sack, (acked, delivered), answered, ctx.config);
        }
        if packet.flags & flag::ECE != 0 {
            self.on_echo(before.flight, acked, ctx.config);
        }
        let duplicate = acked == 0
            && before.flight > 0
            && packet.payload == 0
            && packet.flags & flag::FIN == 0
            && (newly_sacked > 0 || (!ctx.config.sack && !window_changed));
        let mut advice = Advice::GoOn;
        if ctx.config.recovery.reconsiders()
            && (self.recovery.phase != Phase::Open || news.dsack.is_some())
        {
            let duplicate = duplicate || newly_sacked > 0;
            let evidence = Evidence { acked, original: news.delivery.original, duplicate };
            advice = self.reconsider(packet, evidence, ctx);
        }
        if acked > 0 {
            if self.is_reno(ctx.config) {
                self.deflate(ctx.config);
            }
            let counted = self.counted(acked, before.arrived, ctx.config);
            resend_first = self.on_progress((acked, counted), before.flight, ctx);
            self.linger_if_finished(ctx.now, ctx.config);
        } else if duplicate && !self.is_held_in_recovery(ctx.config) {
            // RFC 5681, section 2; with SACK a duplicate is one that brings news (RFC 6675)
            self.recovery.dup_acks += 1;
            match self.is_reno(ctx.config) {
                true => self.inflate(ctx.config),
                false => self.recovery.limit_duplicates(0, &self.stream, ctx.config),
            }
        }
        if ctx.config.recovery.probes && self.recovery.probe_is_out() {
            let dsack = news.dsack.is_some_and(|d| d.1 == self.recovery.rare().probe_end);
            let other = packet.payload > 0 || window_changed || newly_sacked > 0;
            self.judge_probe(Answer { advanced: acked > 0, news: other, dsack }, ctx.config);
        }
        let due = (doubtful && advice == Advice::GoOn, newly_sacked > 0);
        let found = self.look_for_losses(due, ctx);
        resend_first |= found.send_first;
        self.set_window(ctx.now, &before, acked, found.lost_more, ctx.config);
        if resend_first {
            self.send_lost(ctx);
        }
        self.respond(advice, acked > 0 || newly_sacked > 0, ctx);
    }

    /// What is known before an ACK is looked at.
    #[inline]
    fn before(&self, config: &TcpConfig) -> Before {
        let (pipe, lost) = match config.congestion.follows_path() {
            true => (self.pipe(config), self.recovery.deemed_lost()),
            false => (0, 0),
        };
        let flight = self.stream.outstanding();
        Before { flight, arrived: self.recovery.arrived(config), pipe, lost }
    }

    /// Bytes delivered since, with `acked` by which the ACK has moved on.
    #[inline]
    fn delivered_since(&self, before: &Before, acked: u64, config: &TcpConfig) -> u64 {
        (acked + self.recovery.arrived(config)).saturating_sub(before.arrived)
    }

    /// What an ACK that moves on to `ack` says of the segments below it.
    #[inline]
    fn take_advance(
        &mut self,
        ack: u64,
        context: AckContext,
        news: &mut News,
        config: &TcpConfig,
    ) -> Option<Answered> {
        if config.recovery.uses_rack() {
            return self.clear_board(ack, context, news, config);
        }
        if self.recovery.phase == Phase::Loss {
            news.delivery.original |= self.recovery.has_original(self.stream.una, ack);
        } else if config.recovery.adapt_reordering && !self.recovery.sacked.is_empty() {
            let highest = self.recovery.sacked.end();
            self.recovery.note_late_without_board((self.stream.una, ack), highest, ack, config);
        }
        None
    }

    /// The window where it does not simply grow: it shrinks in step with what is delivered (PRR), or
    /// follows a model of the path.
    #[inline]
    fn set_window(
        &mut self,
        now: Time,
        before: &Before,
        acked: u64,
        lost_more: bool,
        config: &TcpConfig,
    ) {
        if config.recovery.prr != PrrRule::Off && self.is_reducing() {
            let delivered = self.delivered_since(before, acked, config);
            self.reduce_in_step(Report { delivered, advanced: acked > 0, lost_more }, config);
        }
        if config.congestion.follows_path() {
            let by_position = if lost_more { u64::from(config.segment) } else { 0 };
            let change = Change {
                delivered: self.delivered_since(before, acked, config),
                lost: self.recovery.deemed_lost().saturating_sub(before.lost).max(by_position),
                in_flight_before: before.pipe,
            };
            self.follow_model(now, change, config);
        }
        if self.is_controlled() {
            self.follow_window(config);
        }
    }

    /// Looks for losses; `due` says whether time of sending may tell of some, and whether new SACKs do.
    fn look_for_losses(&mut self, due: (bool, bool), ctx: &mut Context<'_, impl Sink>) -> Findings {
        let (by_time, by_sack) = due;
        let mut found = Findings::default();
        if ctx.config.recovery.uses_rack() {
            if by_time {
                found = self.rack_on_ack(ctx);
            }
        } else if self.recovery.phase == Phase::Loss {
            if by_sack {
                self.recovery.update_lost(ctx.config);
            }
        } else if self.recovery.dup_acks > 0 || by_sack {
            let before = self.recovery.lost_to();
            found.send_first = self.detect_loss(ctx);
            found.lost_more = self.recovery.lost_to() > before;
        }
        found
    }

    /// Sends what an ACK lets go; the tail loss probe waits anew where it brought `news`.
    fn respond(&mut self, advice: Advice, news: bool, ctx: &mut Context<'_, impl Sink>) {
        let before = self.stream.next;
        match advice {
            Advice::GoOn => self.transmit(ctx),
            Advice::NothingAgain => {
                self.transmit_new(ctx);
                if self.recovery.phase == Phase::Loss && self.stream.next == before {
                    // no room for new data: F-RTO cannot judge
                    self.recovery.rare().frto = false;
                    self.transmit(ctx);
                }
            }
        }
        if ctx.config.recovery.probes && self.stream.next == before && news {
            self.schedule_probe(ctx.now, ctx.config);
        }
    }

    /// What an ACK that moves on counts for when the window grows, `arrived` being known before it. In
    /// Linux (`tcp_cong_control`) what had arrived does not count again; RFC 3465 counts all of it.
    fn counted(&self, acked: u64, arrived: u64, config: &TcpConfig) -> u64 {
        if config.rules.counting != Counting::Segments {
            return acked;
        }
        match config.sack {
            true => (acked + self.recovery.arrived(config)).saturating_sub(arrived),
            false => acked.saturating_sub(arrived).max(acked.min(config.segment.into())),
        }
    }

    /// An ACK that a later one has overtaken: its SACK blocks may still be news (Linux, `tcp_ack` at
    /// `old_ack`). The window does not follow from it; what it shows to have arrived makes room.
    #[cold]
    pub(super) fn on_late_ack(
        &mut self,
        packet: &Packet,
        blocks: &SackBlocks,
        ack: u64,
        ctx: &mut Context<'_, impl Sink>,
    ) {
        let mut news = News::default();
        let newly_sacked = self.take_sack(ctx.now, packet, blocks, ack, &mut news, ctx.config);
        if newly_sacked == 0 && news.dsack.is_none() {
            return;
        }
        if self.is_controlled() {
            self.inform(ctx.now, packet, Some(blocks), (0, newly_sacked), None, ctx.config);
        }
        let mut advice = Advice::GoOn;
        if ctx.config.recovery.reconsiders() {
            let original = news.delivery.original;
            let evidence = Evidence { acked: 0, original, duplicate: newly_sacked > 0 };
            advice = self.reconsider(packet, evidence, ctx);
        }
        let mut send_first = false;
        if ctx.config.recovery.uses_rack() {
            if advice == Advice::GoOn {
                send_first = self.rack_on_ack(ctx).send_first;
            }
        } else if self.recovery.phase == Phase::Loss {
            self.recovery.update_lost(ctx.config);
        } else {
            send_first = self.detect_loss(ctx);
        }
        if send_first {
            self.send_lost(ctx);
        }
        match advice {
            Advice::GoOn => self.transmit(ctx),
            Advice::NothingAgain => self.transmit_new(ctx),
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
        let twice = config.recovery.dsack && is_dsack(blocks, ack);
        if twice {
            news.dsack = Some(blocks[0]);
            self.on_dsack(blocks[0], config);
        }
        let mut bytes = 0;
        if self.recovery.board.is_none() && self.recovery.phase != Phase::Loss && !twice {
            let (una, next) = (self.stream.una, self.stream.next);
            for &(start, end) in blocks.iter().filter(|b| b.1 > una && b.1 <= next) {
                let start = start.max(self.stream.una);
                if start < end {
                    if config.recovery.adapt_reordering {
                        let highest = self.recovery.sacked.end();
                        self.recovery.note_late_without_board((start, end), highest, ack, config);
                    }
                    bytes += self.recovery.sacked.insert(start, end);
                }
            }
            return bytes;
        }
        let context = self.recovery.context(now, packet, &self.stream, config);
        for (i, &(start, end)) in blocks.iter().enumerate() {
            let start = start.max(self.stream.una);
            if start >= end || end > self.stream.next || (twice && i == 0) {
                continue;
            }
            if let Some(board) = &mut self.recovery.board {
                let (mut gap, mut gap_end) = self.recovery.sacked.gap_from(start);
                while gap < end {
                    let stop = gap_end.min(end);
                    let (from, to) = board.sack(gap, stop, context, &mut news.delivery);
                    if from < to {
                        bytes += self.recovery.sacked.insert(from, to);
                    }
                    (gap, gap_end) = self.recovery.sacked.gap_from(stop);
                }
                continue;
            }
            if self.recovery.phase == Phase::Loss {
                news.delivery.original |= self.recovery.has_original(start, end);
            }
            bytes += self.recovery.sacked.insert(start, end);
        }
        self.recovery.note_overtaken(news.delivery.overtaken, self.stream.una, config);
        bytes
    }

    /// Everything below `ack` leaves the scoreboard, where nothing is SACKed and no loss is known.
    #[inline(never)]
    pub(super) fn clear_plain_board(
        &mut self,
        now: Time,
        packet: &Packet,
        ack: u64,
        config: &TcpConfig,
    ) -> Option<Answered> {
        let context = AckContext::plain(now, packet, config);
        self.recovery.board.as_mut().and_then(|board| board.acknowledge_plain(ack, context))
    }

    /// Everything below `ack` leaves the scoreboard.
    fn clear_board(
        &mut self,
        ack: u64,
        context: AckContext,
        news: &mut News,
        config: &TcpConfig,
    ) -> Option<Answered> {
        let board = self.recovery.board.as_mut();
        let answered = board.and_then(|b| b.acknowledge(ack, context, &mut news.delivery));
        self.recovery.note_overtaken(news.delivery.overtaken, ack, config);
        answered
    }

    /// The receiver has got a segment twice.
    fn on_dsack(&mut self, block: (u64, u64), config: &TcpConfig) {
        self.recovery.count().dsacks += 1;
        if let Some(undo) = &mut self.recovery.rare().undo {
            undo.note_duplicate(block, config);
        }
        let of_probe = {
            let rare = self.recovery.rare();
            rare.probe_again && rare.probe_end == block.1
        };
        if !of_probe && let Some(board) = &mut self.recovery.board {
            board.rack.dsack_seen = true;
        }
    }
}

/// What is known before an ACK is looked at, in bytes.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// Sent and not acknowledged.
    flight: u64,
    /// Bytes of these that have arrived.
    arrived: u64,
    /// What is on the way; only asked for by models of the path.
    pipe: u64,
    /// What is deemed lost; likewise.
    lost: u64,
}

/// What an ACK brings beyond positions.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    delivery: Delivery,
    dsack: Option<(u64, u64)>,
}

/// Whether the first block reports a duplicate: it lies below the ACK, or within the second (RFC 2883,
/// section 4).
fn is_dsack(blocks: &SackBlocks, ack: u64) -> bool {
    let (first, second) = (blocks[0], blocks[1]);
    first.1 > 0 && (first.1 <= ack || (second.0 <= first.0 && first.1 <= second.1))
}
