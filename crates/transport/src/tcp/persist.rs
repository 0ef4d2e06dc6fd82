//! Persist timer: probes of a closed window (RFC 9293, 3.8.6.1; RFC 1122, 4.2.2.17). If data waits,
//! nothing is in flight and the peer's window is closed, the peer's window update may have been
//! lost. A probe makes the peer send its window again.
//!
//! The timer follows Linux (`tcp_probe_timer`, `tcp_send_probe0`). The first probe is sent after
//! the retransmission timeout, at least the minimum. The interval doubles with each probe, up to
//! the maximum. A probe is an ACK with a sequence number one below SND.UNA, which the peer
//! acknowledges at once. While probes are answered the connection stays open; after `max_retries`
//! consecutive probes without an answer it fails. The field of the retransmission timer serves as
//! persist timer, since nothing is in flight.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Sink};
use super::states::{State, TimeWait};
use eastwest_types::{Packet, Span, Time};

impl Endpoint {
    /// Whether the peer's window alone prevents sending: data waits and nothing is in flight.
    pub(super) fn is_blocked_by_window(&self) -> bool {
        self.is_established()
            && self.timers.time_wait == TimeWait::NotYet
            && self.stream.una == self.stream.next
            && self.stream.next < self.send_end()
    }

    /// Arms the persist timer if the peer's window is closed and the timer is not armed.
    #[cold]
    pub(super) fn arm_persist_timer(&mut self, now: Time, config: &TcpConfig) {
        if self.timers.rto_at == Time::NEVER && self.is_blocked_by_window() {
            self.timers.rto_at = self.deadline(now, self.persist_interval(config), config);
        }
    }

    /// Returns the time until the next window probe, which doubles with each probe.
    fn persist_interval(&self, config: &TcpConfig) -> Span {
        let base = self.timers.rtt.rto(0, config).max(config.min_rto);
        let doubled = base.0.saturating_mul(1 << self.timers.backoff.min(40));
        Span(doubled).min(config.max_rto.max(base))
    }

    /// Handles the expiry of the persist timer: sends a window probe or fails the connection.
    /// Returns `false` if the timer was not the persist timer but the retransmission timer.
    pub(super) fn on_persist_timer(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        if !self.is_blocked_by_window() {
            return false;
        }
        if u32::from(self.timers.retries) >= ctx.config.max_retries {
            self.state = State::Failed;
            self.receiver.ack_at = Time::NEVER;
            ctx.sink.notify(self.address.id, Notice::Failed);
            return true;
        }
        self.timers.retries += 1;
        self.timers.backoff = self.timers.backoff.saturating_add(1);
        self.send_window_probe(ctx);
        self.timers.rto_at = self.deadline(ctx.now, self.persist_interval(ctx.config), ctx.config);
        true
    }

    /// Handles an ACK that arrives while nothing is in flight, and may answer a window probe
    /// (Linux, `tcp_ack_probe`).
    #[cold]
    pub(super) fn on_window_probe_ack(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        if !self.is_blocked_by_window() {
            return;
        }
        self.timers.retries = 0;
        if packet.window > 0 {
            self.timers.backoff = 0;
            self.timers.rto_at = Time::NEVER;
        } else {
            self.timers.rto_at = self.deadline(now, self.persist_interval(config), config);
        }
    }
}
