//! Probing a closed window (RFC 9293, 3.8.6.1; RFC 1122, 4.2.2.17): where data waits, nothing is under
//! way and the other end's window takes none of it, the window update that ends this may be lost, so it
//! is asked for.
//!
//! As in Linux (`tcp_probe_timer`, `tcp_send_probe0`): the first probe leaves after the timeout of
//! retransmission, at least the minimum, and each doubles the next, up to the maximum. A probe is an ACK
//! one position below what is acknowledged, which the other end answers at once. Answers keep the
//! connection alive for ever; `max_retries` probes in a row without one end it. The timer is that of
//! retransmission, which has nothing to do meanwhile.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Notice, Sink};
use super::phases::{Linger, State};
use eastwest_types::{Packet, Span, Time};

impl Endpoint {
    /// Whether data waits for nothing but the other end's window.
    pub(super) fn waits_for_window(&self) -> bool {
        self.is_established()
            && self.timers.linger == Linger::NotYet
            && self.stream.una == self.stream.next
            && self.stream.next < self.send_end()
    }

    /// Nothing is under way and nothing could be sent: asks for a window in time.
    #[cold]
    pub(super) fn mind_closed_window(&mut self, now: Time, config: &TcpConfig) {
        if self.timers.rto_at == Time::NEVER && self.waits_for_window() {
            self.timers.rto_at = self.deadline(now, self.probe_interval(config), config);
        }
    }

    /// When the next probe is due after this one.
    fn probe_interval(&self, config: &TcpConfig) -> Span {
        let base = self.timers.rtt.rto(0, config).max(config.min_rto);
        let doubled = base.0.saturating_mul(1 << self.timers.backoff.min(40));
        Span(doubled).min(config.max_rto.max(base))
    }

    /// The timer strikes while [`Endpoint::waits_for_window`]; returns whether it does.
    pub(super) fn on_persist_timer(&mut self, ctx: &mut Context<'_, impl Sink>) -> bool {
        if !self.waits_for_window() {
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
        self.timers.rto_at = self.deadline(ctx.now, self.probe_interval(ctx.config), ctx.config);
        true
    }

    /// An ACK while nothing is under way: a probe may be answered (Linux, `tcp_ack_probe`).
    #[cold]
    pub(super) fn on_probe_answer(&mut self, now: Time, packet: &Packet, config: &TcpConfig) {
        if !self.waits_for_window() {
            return;
        }
        self.timers.retries = 0;
        if packet.window > 0 {
            self.timers.backoff = 0;
            self.timers.rto_at = Time::NEVER;
        } else {
            self.timers.rto_at = self.deadline(now, self.probe_interval(config), config);
        }
    }
}
