//! Where a receiver meets the rules of Linux for [acknowledging](super::ack_linux) and for its
//! [window](super::autotune).

use super::Sink;
use super::ack_linux::{Arrival, Compression, LinuxAcks};
use super::autotune::Autotune;
use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::rules::AckRule;
use eastwest_types::{Packet, Span, Time, flag};

/// What such a receiver keeps in mind, from the first data on.
#[derive(Clone, Copy, Debug, Default)]
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
                let window = inbound.window.map_or(first, |w| w.window());
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
        let mut window = config.max_window;
        if let Some(first) = config.receiver.window_from {
            let inbound = self.inbound.get_or_insert_default();
            let tune =
                inbound.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
            // what was offered with the last ACK
            inbound.right_edge = inbound.right_edge.max(self.last_ack_sent + tune.window());
            let full = u64::from(packet.payload) >= segment;
            let echoed = (config.timestamps && full && packet.ts_echo_us != 0).then(|| {
                let us = super::output::timestamp_us(now).wrapping_sub(packet.ts_echo_us);
                Span::from_us(u64::from(us).max(1))
            });
            tune.on_data(now, next, echoed, segment, config.max_window);
            window = tune.window();
        }
        if config.receiver.acks == AckRule::Count {
            return u32::from(self.unacked_segments) >= config.ack_every;
        }
        let pushes = packet.flags & flag::PSH != 0;
        let arrival = Arrival { now, payload: packet.payload, pushes, unacked, window, rto };
        self.inbound.get_or_insert_default().acks.on_data(&arrival)
    }

    /// A duplicate has arrived: Linux acknowledges quickly for a while.
    pub(super) fn on_inbound_duplicate(&mut self, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && let Some(inbound) = &mut self.inbound
        {
            inbound.acks.on_duplicate(config.max_window);
        }
    }

    /// Whether the ACK of a segment out of order waits.
    #[inline(never)]
    pub(super) fn holds_back(&mut self, now: Time, config: &TcpConfig) -> bool {
        if !config.receiver.compress || !config.sack {
            return false;
        }
        let srtt = self.rtt.srtt();
        match self.inbound.get_or_insert_default().acks.compress(srtt) {
            Compression::Send => false,
            Compression::Wait(span) => {
                self.ack_at = self.ack_at.min(now + span);
                true
            }
            Compression::Waits => true,
        }
    }
}
