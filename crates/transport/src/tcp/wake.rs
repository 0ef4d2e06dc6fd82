//! Wake-ups: when the next is due, and what is due then.

use super::cause::Cause;
use super::config::TcpConfig;
use super::counters::LostWindow;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Repair, Sink};
use super::phases::{Linger, Phase, Probe, State};
use super::rtt::timestamp_us;
use super::rules::GiveUp;
use super::timers;
use eastwest_types::Time;

impl Endpoint {
    fn probe_at(&self) -> Time {
        self.recovery.board.as_ref().map_or(Time::NEVER, |b| b.probe_at)
    }

    /// Asks for a wake-up at the next deadline if none is pending before it.
    #[inline]
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let mut next = self.timers.rto_at.min(self.receiver.ack_at);
        if self.timers.probe != Probe::None {
            next = next.min(self.probe_at());
        }
        if self.is_controlled() {
            next = next.min(self.pace_at());
        }
        if next < self.timers.armed_at {
            self.timers.armed_at = next;
            sink.arm(next, self.address.id);
        }
    }

    /// Carries out the deadlines that have come.
    pub(super) fn on_timers(&mut self, peer: &Endpoint, ctx: &mut Context<'_, impl Sink>) {
        if self.receiver.ack_at <= ctx.now {
            self.receiver.on_ack_timer(self.timers.rto(ctx.config), ctx.config);
            self.send_dup_ack(0, None, ctx);
        }
        if self.timers.probe != Probe::None && self.probe_at() <= ctx.now {
            match std::mem::replace(&mut self.timers.probe, Probe::None) {
                Probe::Tail => self.send_probe(ctx),
                Probe::Reorder => self.on_reorder_timer(ctx),
                Probe::None => {}
            }
        }
        if self.is_controlled() && self.pace_at() <= ctx.now {
            self.stop_waiting();
            self.transmit(ctx);
        }
        if self.timers.rto_at <= ctx.now {
            match self.timers.linger {
                Linger::NotYet => self.on_timeout(peer, ctx),
                Linger::Until | Linger::Over => {
                    self.timers.linger = Linger::Over;
                    self.timers.rto_at = Time::NEVER;
                }
            }
        }
    }

    fn on_timeout(&mut self, peer: &Endpoint, ctx: &mut Context<'_, impl Sink>) {
        self.timers.rto_at = Time::NEVER;
        if self.stream.una == self.stream.next && self.on_persist_timer(ctx) {
            return;
        }
        self.recovery.count().timeouts += 1;
        let cause = self.cause_of_timeout(peer, ctx.config);
        let window = self.lost_window(peer, cause);
        let first = self.timers.retries == 0;
        let rare = self.recovery.rare();
        rare.row.count(&mut rare.counters, cause, (first, window), timestamp_us(ctx.now));
        self.tell(Repair::Timeout(cause), self.stream.una, self.stream.next, ctx.sink);
        if self.gives_up(ctx.now, ctx.config) {
            self.give_up();
            ctx.sink.notify(self.address.id, Notice::Failed);
            return;
        }
        self.timers.retries += 1;
        let linear = if self.state == State::SynSent { ctx.config.timers.linear_syns } else { 0 };
        if u32::from(self.timers.retries) > linear {
            self.timers.backoff = self.timers.backoff.saturating_add(1);
        }
        match self.state {
            State::SynSent | State::SynReceived => self.send_syn(ctx),
            State::Established => self.enter_loss(ctx),
            State::Listen | State::Failed => {}
        }
    }

    /// Whether a timeout is the last.
    fn gives_up(&mut self, now: Time, config: &TcpConfig) -> bool {
        if !self.is_established() {
            // Linux, `tcp_write_timeout`: those that do not double come on top
            let linear = if self.state == State::SynSent { config.timers.linear_syns } else { 0 };
            let most = config.timers.syn_retries.unwrap_or(config.max_retries);
            return u32::from(self.timers.retries) >= most + linear;
        }
        match config.timers.give_up {
            GiveUp::Count => u32::from(self.timers.retries) >= config.max_retries,
            GiveUp::Time => {
                if self.timers.retries == 0 {
                    self.recovery.rare().first_retry = now;
                }
                self.timers.retries > 0
                    && now.since(self.recovery.rare().first_retry) >= timers::patience(config)
            }
        }
    }

    /// The cause of a timeout that is about to be handled; `peer` is the other end.
    pub(super) fn cause_of_timeout(&self, peer: &Endpoint, config: &TcpConfig) -> Cause {
        match self.state {
            State::SynSent if peer.state == State::Listen => return Cause::Syn,
            State::SynSent | State::SynReceived => return Cause::SynAck,
            State::Established | State::Listen | State::Failed => {}
        }
        let hole = self.stream.una;
        if peer.receiver.next > hole {
            return if peer.receiver.acked > hole { Cause::Ack } else { Cause::Spurious };
        }
        if hole >= self.stream.end {
            return Cause::Fin;
        }
        let resent = match &self.recovery.board {
            Some(board) => board.first_was_resent(),
            None => self.recovery.phase != Phase::Open && hole < self.recovery.resent_to(),
        };
        if resent || self.timers.retries > 0 {
            return Cause::LostRetransmission;
        }
        let segment = u64::from(config.segment);
        let enough = u64::from(self.recovery.degree_of_reordering(config));
        let arrived = peer.receiver.out_of_order.total().div_ceil(segment);
        if arrived >= enough {
            return Cause::Recovery;
        }
        self.cause_of_first_loss(arrived, enough * segment, segment)
    }

    /// Cause of the timeout of a hole that was sent once, with `arrived` segments above it: fewer than the
    /// `enough` bytes of segments with which the loss would have been found.
    fn cause_of_first_loss(&self, arrived: u64, enough: u64, segment: u64) -> Cause {
        let outstanding = self.stream.outstanding();
        let begins = self.stream.una == self.stream.written_from;
        if begins && self.stream.end - self.stream.written_from <= segment {
            return Cause::Request;
        }
        let ends = self.stream.next >= self.stream.end;
        let near_the_end = ends && outstanding <= enough;
        let fills_window = outstanding + segment > self.window.cwnd;
        if arrived > 0 {
            return if near_the_end { Cause::Tail } else { Cause::FewDuplicates };
        }
        if begins || !ends || (fills_window && !near_the_end) {
            return Cause::FullWindow;
        }
        Cause::Tail
    }

    /// Whether a timeout that is about to be handled, the first since an ACK moved on, finds a whole
    /// window lost: nothing of the data that is outstanding has arrived, or some has and every ACK
    /// of it was lost, for any of them would have moved on.
    pub(super) fn lost_window(&self, peer: &Endpoint, cause: Cause) -> Option<LostWindow> {
        if self.timers.retries > 0 || self.state != State::Established {
            return None;
        }
        let data = self.stream.una < self.stream.end;
        let none_arrived =
            peer.receiver.next <= self.stream.una && peer.receiver.out_of_order.total() == 0;
        match cause {
            Cause::Ack => Some(LostWindow::Acks),
            _ if data && none_arrived => Some(LostWindow::Data),
            _ => None,
        }
    }
}
