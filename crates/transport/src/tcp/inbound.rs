//! Where a receiver meets the rules of Linux for [acknowledging](super::ack_linux) and for its
//! [window](super::autotune).

use super::Sink;
use super::ack_linux::{Arrival, Compression, LinuxAcks};
use super::autotune::Autotune;
use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::rules::AckRule;
use eastwest_types::{Packet, Span, Time, flag};
use serde::{Deserialize, Serialize};

/// What such a receiver keeps in mind, from the first data on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Inbound {
    acks: LinuxAcks,
    window: Option<Autotune>,
    /// Right edge of the window offered last.
    right_edge: u64,
}

impl Endpoint {
    /// The window to offer where it grows, `first` being its initial size. Its right edge does not move
    /// back (RFC 9293, 3.8.6).
    #[inline(never)]
    pub(super) fn offered_window(&self, first: u64) -> u32 {
        let window = match &self.inbound {
            Some(inbound) => {
                let stored = self.out_of_order.total();
                let window = inbound.window.map_or(first, |w| w.window(stored));
                window.max(inbound.right_edge.saturating_sub(self.rcv_nxt))
            }
            None => first,
        };
        window.min(u64::from(u32::MAX)) as u32
    }

    /// A packet leaves, with data or not.
    #[inline(never)]
    pub(super) fn note_linux_ack(&mut self, now: Time, data: bool) {
        let owed = self.unacked_segments > 0 || self.ack_at != Time::NEVER;
        if let Some(inbound) = &mut self.inbound {
            inbound.acks.on_sent(data, now, owed);
        }
    }

    /// The timer of a delayed ACK has struck.
    pub(super) fn on_ack_timer(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let rto = self.rto(config);
        if config.receiver.acks == AckRule::Linux
            && self.out_of_order.is_empty()
            && let Some(inbound) = &mut self.inbound
        {
            inbound.acks.on_timer(rto);
        }
        self.send_dup_ack(now, 0, None, config, sink);
    }

    /// How long an ACK is delayed.
    #[inline(never)]
    pub(super) fn ack_delay(&self, config: &TcpConfig) -> Span {
        if config.receiver.acks == AckRule::Linux
            && let Some(inbound) = &self.inbound
        {
            return inbound.acks.delay(self.rtt.srtt());
        }
        config.delayed_ack_timeout
    }

    /// Data has arrived in order where acknowledging or the window follow Linux. Returns whether it is
    /// acknowledged at once.
    #[inline(never)]
    pub(super) fn on_inbound(&mut self, now: Time, packet: &Packet, config: &TcpConfig) -> bool {
        let (next, rto, segment) = (self.rcv_nxt, self.rto(config), u64::from(config.segment));
        let unacked = next - self.last_ack_sent;
        let (mut window, mut grows) = (config.max_window, false);
        if let Some(first) = config.receiver.window_from {
            let (stored, span) = self.stored();
            let inbound = self.inbound.get_or_insert_default();
            let tune =
                inbound.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
            // what was offered with the last ACK
            inbound.right_edge = inbound.right_edge.max(self.last_ack_sent + tune.window(stored));
            let full = u64::from(packet.payload) >= segment;
            let echoed = (config.timestamps && full && packet.ts_echo_us != 0).then(|| {
                let us = super::output::timestamp_us(now).wrapping_sub(packet.ts_echo_us);
                Span::from_us(u64::from(us).max(1))
            });
            grows = tune.on_data(now, (next, span), echoed, segment, config.max_window);
            window = tune.window(stored);
        }
        if config.receiver.acks == AckRule::Count {
            return u32::from(self.unacked_segments) >= config.ack_every;
        }
        let pushes = packet.flags & flag::PSH != 0;
        let arrival = Arrival { now, payload: packet.payload, pushes, unacked, window, grows, rto };
        self.inbound.get_or_insert_default().acks.on_data(&arrival)
    }

    /// Bytes stored out of order, and how far they reach beyond what is in order.
    fn stored(&self) -> (u64, u64) {
        let span = self.out_of_order.end().saturating_sub(self.rcv_nxt);
        (self.out_of_order.total(), span)
    }

    /// Data up to `end` has arrived out of order and is about to be stored.
    #[inline(never)]
    pub(super) fn on_inbound_late(&mut self, now: Time, end: u64, config: &TcpConfig) {
        let Some(first) = config.receiver.window_from else { return };
        let (segment, next) = (u64::from(config.segment), self.rcv_nxt);
        let (stored, span) = self.stored();
        let span = span.max(end - next);
        let inbound = self.inbound.get_or_insert_default();
        let tune = inbound.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
        inbound.right_edge = inbound.right_edge.max(self.last_ack_sent + tune.window(stored));
        if tune.on_late_data(span, segment, config.max_window, config.sack) {
            inbound.acks.on_growth();
        }
    }

    /// Data came with a mark that is the first, or without ECT among others.
    #[inline(never)]
    pub(super) fn on_inbound_mark(&mut self, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && let Some(inbound) = &mut self.inbound
        {
            inbound.acks.on_mark();
        }
    }

    /// A duplicate has arrived: Linux acknowledges quickly for a while.
    pub(super) fn on_inbound_duplicate(&mut self, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && let Some(inbound) = &mut self.inbound
        {
            inbound.acks.on_duplicate(config.max_window);
        }
    }

    /// A segment out of order that touches none of the two ranges reported last is about to be stored:
    /// an ACK that waits goes first, so that each range is in the first two blocks of one ACK at least
    /// (Linux, `tcp_sack_new_ofo_skb`).
    #[inline(never)]
    pub(super) fn send_waiting_ack(
        &mut self,
        now: Time,
        (start, end): (u64, u64),
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) {
        if !self.inbound.as_ref().is_some_and(|i| i.acks.holds_back()) {
            return;
        }
        let touched = |r: (u64, u64)| r.0 <= end && start <= r.1;
        let ranges = &self.out_of_order;
        let [first, second, _] = ranges.reported();
        let front = [first, second].into_iter().filter_map(|p| ranges.containing(p)).any(touched);
        let second_of_two = ranges.iter().len() < 2 && !ranges.iter().any(touched);
        if !front && !second_of_two {
            self.send_dup_ack(now, 0, None, config, sink);
        }
    }

    /// Whether the ACK of a segment out of order that begins at `start` waits.
    #[inline(never)]
    pub(super) fn holds_back(&mut self, now: Time, start: u64) -> bool {
        let srtt = self.rtt.srtt();
        let wait = match self.inbound.get_or_insert_default().acks.compress(srtt) {
            Compression::Send => return false,
            Compression::Wait(span) => now + span,
            Compression::Waits => Time::NEVER,
        };
        self.ack_at = self.ack_at.min(wait);
        self.touch(start);
        true
    }

    /// The range that holds `position` is the first to be reported.
    fn touch(&mut self, position: u64) {
        let range = self.out_of_order.containing(position);
        let [a, b, c] = self.out_of_order.reported();
        let again = |p: u64| self.out_of_order.containing(p) == range;
        let order = match (again(a), again(b)) {
            (true, _) => [position, b, c],
            (false, true) => [position, a, c],
            (false, false) => [position, a, b],
        };
        self.out_of_order.set_reported(order);
    }
}
