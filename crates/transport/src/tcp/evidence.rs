//! ACKs that bring evidence of losses: duplicates, SACKs, marks, and every ACK in a recovery or after a
//! timeout. What it means is said where each mechanism is; here is the order in which they are asked,
//! which follows Linux (`tcp_ack`): what has arrived; was it all needless; the probe; what is lost;
//! the window; sending.

use super::Sink;
use super::board::{Answered, Context, Delivery};
use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase};
use super::pace::Change;
use super::probe::Answer;
use super::prr::Report;
use super::rack::Findings;
use super::rules::{PrrRule, RackRule};
use super::undo::{Advice, Evidence};
use crate::congestion::rules::Counting;
use eastwest_types::{Packet, SackBlocks, Time, flag};

impl Endpoint {
    /// Such an ACK.
    #[inline(never)]
    pub(super) fn on_evidence(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        ack: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let before = self.before(config);
        let mut resend_first = false;
        let window_changed = self.peer_window != packet.window;
        self.peer_window = packet.window;
        let mut news = News::default();
        // reordering shows by what was SACKed before this ACK (Linux, `prior_fack`)
        let context = self.context(now, packet, config);
        let newly_sacked = match sack {
            Some(blocks) if config.sack => {
                self.take_sack(now, packet, blocks, ack, &mut news, config)
            }
            _ => 0,
        };
        let acked = ack - self.snd_una;
        let doubtful = self.phase != Phase::Open || !self.sacked.is_empty() || news.dsack.is_some();
        let mut answered = None;
        if acked > 0 {
            answered = self.take_advance(ack, context, &mut news, config);
            self.move_on(now, packet, ack, answered, config, sink);
            if !self.sacked.is_empty() {
                self.sacked.remove_below(ack);
            }
        }
        if self.is_controlled() {
            let delivered = self.delivered_since(&before, acked, config);
            self.inform(now, packet, sack, (acked, delivered), answered, config);
        }
        if packet.flags & flag::ECE != 0 {
            self.on_echo(before.flight, acked, config);
        }
        let duplicate = acked == 0
            && before.flight > 0
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
            if self.is_reno(config) {
                self.deflate(config);
            }
            let counted = self.counted(acked, before.arrived, config);
            resend_first = self.on_progress(now, (acked, counted), before.flight, config, sink);
            self.linger_if_finished(now, config);
        } else if duplicate && !self.is_held_in_recovery(config) {
            // RFC 5681, section 2; with SACK a duplicate is one that brings news (RFC 6675)
            self.dup_acks += 1;
            match self.is_reno(config) {
                true => self.inflate(config),
                false => self.limit_duplicates(0, config),
            }
        }
        if config.recovery.probes && self.probe_is_out() {
            let dsack = news.dsack.is_some_and(|d| d.1 == self.rare().probe_end);
            let other = packet.payload > 0 || window_changed || newly_sacked > 0;
            self.judge_probe(Answer { advanced: acked > 0, news: other, dsack }, config);
        }
        let due = (doubtful && advice == Advice::GoOn, newly_sacked > 0);
        let found = self.look_for_losses(now, due, config, sink);
        resend_first |= found.send_first;
        self.set_window(now, &before, acked, found.lost_more, config);
        if resend_first {
            self.send_lost(now, config, sink);
        }
        self.respond(now, advice, acked > 0 || newly_sacked > 0, config, sink);
    }

    /// What is known before an ACK is looked at.
    #[inline]
    fn before(&self, config: &TcpConfig) -> Before {
        let (pipe, lost) = match config.congestion.follows_path() {
            true => (self.pipe(config), self.deemed_lost()),
            false => (0, 0),
        };
        let flight = self.snd_max - self.snd_una;
        Before { flight, arrived: self.arrived(config), pipe, lost }
    }

    /// Bytes delivered since, with `acked` by which the ACK has moved on.
    #[inline]
    fn delivered_since(&self, before: &Before, acked: u64, config: &TcpConfig) -> u64 {
        (acked + self.arrived(config)).saturating_sub(before.arrived)
    }

    /// What an ACK that moves on to `ack` says of the segments below it.
    #[inline]
    fn take_advance(
        &mut self,
        ack: u64,
        context: Context,
        news: &mut News,
        config: &TcpConfig,
    ) -> Option<Answered> {
        if config.recovery.uses_rack() {
            return self.clear_board(ack, context, news, config);
        }
        if self.phase == Phase::Loss {
            news.delivery.original |= self.has_original(self.snd_una, ack);
        } else if config.recovery.adapt_reordering && !self.sacked.is_empty() {
            let highest = self.sacked.end();
            self.note_late_without_board((self.snd_una, ack), highest, ack, config);
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
                lost: self.deemed_lost().saturating_sub(before.lost).max(by_position),
                in_flight_before: before.pipe,
            };
            self.follow_model(now, change, config);
        }
        if self.is_controlled() {
            self.follow_window(config);
        }
    }

    /// Looks for losses; `due` says whether time of sending may tell of some, and whether new SACKs do.
    fn look_for_losses(
        &mut self,
        now: Time,
        due: (bool, bool),
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> Findings {
        let (by_time, by_sack) = due;
        let mut found = Findings::default();
        if config.recovery.uses_rack() {
            if by_time {
                found = self.rack_on_ack(now, config, sink);
            }
        } else if self.phase == Phase::Loss {
            if by_sack {
                self.update_lost(config);
            }
        } else if self.dup_acks > 0 || by_sack {
            let before = self.lost_to();
            found.send_first = self.detect_loss(config, sink);
            found.lost_more = self.lost_to() > before;
        }
        found
    }

    /// Sends what an ACK lets go; the tail loss probe waits anew where it brought `news`.
    fn respond(
        &mut self,
        now: Time,
        advice: Advice,
        news: bool,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let before = self.snd_max;
        match advice {
            Advice::GoOn => self.transmit(now, config, sink),
            Advice::NothingAgain => {
                self.transmit_new(now, config, sink);
                if self.phase == Phase::Loss && self.snd_max == before {
                    // no room for new data: F-RTO cannot judge
                    self.rare().frto = false;
                    self.transmit(now, config, sink);
                }
            }
        }
        if config.recovery.probes && self.snd_max == before && news {
            self.schedule_probe(now, config);
        }
    }

    /// What an ACK that moves on counts for when the window grows, `arrived` being known before it. In
    /// Linux (`tcp_cong_control`) what had arrived does not count again; RFC 3465 counts all of it.
    fn counted(&self, acked: u64, arrived: u64, config: &TcpConfig) -> u64 {
        if config.rules.counting != Counting::Segments {
            return acked;
        }
        match config.sack {
            true => (acked + self.arrived(config)).saturating_sub(arrived),
            false => acked.saturating_sub(arrived).max(acked.min(config.segment.into())),
        }
    }

    /// An ACK that a later one has overtaken: its SACK blocks may still be news (Linux, `tcp_ack` at
    /// `old_ack`). The window does not follow from it; what it shows to have arrived makes room.
    #[cold]
    pub(super) fn on_late_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        blocks: &SackBlocks,
        ack: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        let mut news = News::default();
        let newly_sacked = self.take_sack(now, packet, blocks, ack, &mut news, config);
        if newly_sacked == 0 && news.dsack.is_none() {
            return;
        }
        if self.is_controlled() {
            self.inform(now, packet, Some(blocks), (0, newly_sacked), None, config);
        }
        let mut advice = Advice::GoOn;
        if config.recovery.reconsiders() {
            let original = news.delivery.original;
            let evidence = Evidence { acked: 0, original, duplicate: newly_sacked > 0 };
            advice = self.reconsider(packet, evidence, config, sink);
        }
        let mut send_first = false;
        if config.recovery.uses_rack() {
            if advice == Advice::GoOn {
                send_first = self.rack_on_ack(now, config, sink).send_first;
            }
        } else if self.phase == Phase::Loss {
            self.update_lost(config);
        } else {
            send_first = self.detect_loss(config, sink);
        }
        if send_first {
            self.send_lost(now, config, sink);
        }
        match advice {
            Advice::GoOn => self.transmit(now, config, sink),
            Advice::NothingAgain => self.transmit_new(now, config, sink),
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
        if self.board.is_none() && self.phase != Phase::Loss && !twice {
            let (una, next) = (self.snd_una, self.snd_max);
            for &(start, end) in blocks.iter().filter(|b| b.1 > una && b.1 <= next) {
                let start = start.max(self.snd_una);
                if start < end {
                    if config.recovery.adapt_reordering {
                        let highest = self.sacked.end();
                        self.note_late_without_board((start, end), highest, ack, config);
                    }
                    bytes += self.sacked.insert(start, end);
                }
            }
            return bytes;
        }
        let context = self.context(now, packet, config);
        for (i, &(start, end)) in blocks.iter().enumerate() {
            let start = start.max(self.snd_una);
            if start >= end || end > self.snd_max || (twice && i == 0) {
                continue;
            }
            if let Some(board) = &mut self.board {
                let (mut gap, mut gap_end) = self.sacked.gap_from(start);
                while gap < end {
                    let stop = gap_end.min(end);
                    let (from, to) = board.sack(gap, stop, context, &mut news.delivery);
                    if from < to {
                        bytes += self.sacked.insert(from, to);
                    }
                    (gap, gap_end) = self.sacked.gap_from(stop);
                }
                continue;
            }
            if self.phase == Phase::Loss {
                news.delivery.original |= self.has_original(start, end);
            }
            bytes += self.sacked.insert(start, end);
        }
        self.note_reordering(news, self.snd_una, config);
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
        let context = self.context(now, packet, config);
        self.board.as_mut().and_then(|board| board.acknowledge_plain(ack, context))
    }

    /// Everything below `ack` leaves the scoreboard.
    fn clear_board(
        &mut self,
        ack: u64,
        context: Context,
        news: &mut News,
        config: &TcpConfig,
    ) -> Option<Answered> {
        let board = self.board.as_mut();
        let answered = board.and_then(|b| b.acknowledge(ack, context, &mut news.delivery));
        self.note_reordering(news, ack, config);
        answered
    }

    /// Whether `from..to`, just arrived, holds what was sent once and before the present timeout.
    fn has_original(&self, from: u64, to: u64) -> bool {
        let (low, high) = (from.max(self.resent_to()), to.min(self.recover));
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
    fn note_reordering(&mut self, news: &News, ack: u64, config: &TcpConfig) {
        if let Some(start) = news.delivery.overtaken
            && let Some(board) = &mut self.board
        {
            board.rack.note_reordering();
            self.note_late(start, ack, config);
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

/// What is known before an ACK is looked at, in bytes.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// Sent and not acknowledged.
    flight: u64,
    /// Of those, what has arrived.
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
