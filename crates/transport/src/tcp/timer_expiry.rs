//! Timer expiry: RTO, delayed ACK, tail loss probe, RACK reordering timer, pacing, TIME-WAIT.
//!
//! `rearm` requests the next expiry, `on_timer_expiry` calls the handlers of the timers that are
//! due, and `on_rto_expiry` counts a retransmission timeout and then retransmits or fails the
//! connection. The lengths of the timers are in [`timers`] and [`rtt`](super::rtt), the recovery
//! after a timeout in [`fast_recovery`](super::fast_recovery).

use super::config::TcpConfig;
use super::counters::LostWindow;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, RecoveryEvent, Sink};
use super::rtt::timestamp_us;
use super::rules::GiveUp;
use super::states::{RackTimer, RecoveryPhase, State, TimeWait};
use super::timeout_cause::TimeoutCause;
use super::timers;
use eastwest_types::Time;

impl Endpoint {
    fn rack_timer_at(&self) -> Time {
        self.recovery.scoreboard.as_ref().map_or(Time::NEVER, |b| b.rack_timer_at)
    }

    /// Returns the earliest deadline of this endpoint.
    #[inline]
    fn next_deadline(&self) -> Time {
        let mut next = self.timers.rto_at.min(self.receiver.ack_at);
        if self.timers.rack_timer != RackTimer::Off {
            next = next.min(self.rack_timer_at());
        }
        if self.has_control_state() {
            next = next.min(self.paced_send_at());
        }
        next
    }

    /// Whether the endpoint needs an event earlier than the pending one.
    pub(super) fn must_rearm(&self) -> bool {
        self.next_deadline() < self.timers.armed_at
    }

    /// Arms the simulator's timer for the earliest deadline of this endpoint, unless an earlier
    /// event is pending.
    #[inline]
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let next = self.next_deadline();
        if next < self.timers.armed_at {
            self.timers.armed_at = next;
            sink.arm(next, self.address.id);
        }
    }

    /// Handles all timers that have expired: delayed ACK, RACK-TLP, pacing, RTO or TIME-WAIT.
    pub(super) fn on_timer_expiry(&mut self, peer: &Endpoint, ctx: &mut Context<'_, impl Sink>) {
        if self.receiver.ack_at <= ctx.now {
            self.receiver.on_ack_timer(self.timers.rto(ctx.config), ctx.config);
            self.send_dup_ack(0, None, ctx);
        }
        if self.timers.rack_timer != RackTimer::Off && self.rack_timer_at() <= ctx.now {
            match std::mem::replace(&mut self.timers.rack_timer, RackTimer::Off) {
                RackTimer::TailLossProbe => self.send_tlp(ctx),
                RackTimer::Reordering => self.on_reorder_timer(ctx),
                RackTimer::Off => {}
            }
        }
        if self.has_control_state() && self.paced_send_at() <= ctx.now {
            self.clear_send_wait();
            self.transmit(ctx);
        }
        if self.timers.rto_at <= ctx.now {
            match self.timers.time_wait {
                TimeWait::NotYet => self.on_rto_expiry(peer, ctx),
                TimeWait::Running | TimeWait::Over => {
                    self.timers.time_wait = TimeWait::Over;
                    self.timers.rto_at = Time::NEVER;
                }
            }
        }
    }

    /// Handles the expiry of the retransmission timer (RFC 6298, 5.4 to 5.6), or of the persist
    /// timer, which uses the same field. `peer`: the other end, whose state decides the cause.
    fn on_rto_expiry(&mut self, peer: &Endpoint, ctx: &mut Context<'_, impl Sink>) {
        self.timers.rto_at = Time::NEVER;
        if self.stream.una == self.stream.next && self.on_persist_timer(ctx) {
            return;
        }
        self.recovery.count().timeouts += 1;
        let cause = self.timeout_cause(peer, ctx.config);
        let window = self.lost_window(peer, cause);
        let first = self.timers.retries == 0;
        let cold = self.recovery.cold_mut();
        cold.timeout_run.count(&mut cold.counters, cause, (first, window), timestamp_us(ctx.now));
        self.notify_recovery(
            RecoveryEvent::Timeout(cause),
            self.stream.una,
            self.stream.next,
            ctx.sink,
        );
        if self.is_last_timeout(ctx.now, ctx.config) {
            self.fail();
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

    /// Whether the connection fails at this timeout.
    fn is_last_timeout(&mut self, now: Time, config: &TcpConfig) -> bool {
        if !self.is_established() {
            // The limit does not count timeouts without backoff (Linux, `tcp_write_timeout`).
            let linear = if self.state == State::SynSent { config.timers.linear_syns } else { 0 };
            let most = config.timers.syn_retries.unwrap_or(config.max_retries);
            return u32::from(self.timers.retries) >= most + linear;
        }
        match config.timers.give_up {
            GiveUp::Count => u32::from(self.timers.retries) >= config.max_retries,
            GiveUp::Time => {
                if self.timers.retries == 0 {
                    self.recovery.cold_mut().first_retry = now;
                }
                self.timers.retries > 0
                    && now.since(self.recovery.cold_mut().first_retry)
                        >= timers::give_up_after(config)
            }
        }
    }

    /// Returns the cause of a timeout that is about to be handled; `peer` is the other end of the
    /// connection.
    pub(super) fn timeout_cause(&self, peer: &Endpoint, config: &TcpConfig) -> TimeoutCause {
        match self.state {
            State::SynSent if peer.state == State::Listen => return TimeoutCause::Syn,
            State::SynSent | State::SynReceived => return TimeoutCause::SynAck,
            State::Established | State::Listen | State::Failed => {}
        }
        let hole = self.stream.una;
        if peer.receiver.next > hole {
            return if peer.receiver.acked > hole {
                TimeoutCause::Ack
            } else {
                TimeoutCause::Spurious
            };
        }
        if hole >= self.stream.end {
            return TimeoutCause::Fin;
        }
        let resent = match &self.recovery.scoreboard {
            Some(scoreboard) => scoreboard.is_first_retransmitted(),
            None => {
                self.recovery.phase != RecoveryPhase::Open
                    && hole < self.recovery.retransmitted_to()
            }
        };
        if resent || self.timers.retries > 0 {
            return TimeoutCause::LostRetransmission;
        }
        let segment = u64::from(config.segment);
        let enough = u64::from(self.recovery.reordering_degree(config));
        let arrived = peer.receiver.out_of_order.total().div_ceil(segment);
        if arrived >= enough {
            return TimeoutCause::Recovery;
        }
        self.cause_of_first_loss(arrived, enough * segment, segment)
    }

    /// Returns the cause of a timeout whose first unacknowledged segment was sent only once.
    /// `arrived`: number of later segments that have arrived; `enough`: bytes that would trigger a
    /// fast retransmit.
    fn cause_of_first_loss(&self, arrived: u64, enough: u64, segment: u64) -> TimeoutCause {
        let outstanding = self.stream.outstanding();
        let begins = self.stream.una == self.stream.written_from;
        if begins && self.stream.end - self.stream.written_from <= segment {
            return TimeoutCause::Request;
        }
        let ends = self.stream.next >= self.stream.end;
        let near_the_end = ends && outstanding <= enough;
        let fills_window = outstanding + segment > self.window.cwnd;
        if arrived > 0 {
            return if near_the_end { TimeoutCause::Tail } else { TimeoutCause::FewDuplicates };
        }
        if begins || !ends || (fills_window && !near_the_end) {
            return TimeoutCause::FullWindow;
        }
        TimeoutCause::Tail
    }

    /// Returns which packets were lost, if a timeout that is about to be handled finds a whole
    /// window lost: all outstanding data, or all ACKs of data that has arrived. Otherwise, and for
    /// all but the first of consecutive timeouts, returns `None`.
    pub(super) fn lost_window(&self, peer: &Endpoint, cause: TimeoutCause) -> Option<LostWindow> {
        if self.timers.retries > 0 || self.state != State::Established {
            return None;
        }
        let data = self.stream.una < self.stream.end;
        let none_arrived =
            peer.receiver.next <= self.stream.una && peer.receiver.out_of_order.total() == 0;
        match cause {
            TimeoutCause::Ack => Some(LostWindow::Acks),
            _ if data && none_arrived => Some(LostWindow::Data),
            _ => None,
        }
    }
}
