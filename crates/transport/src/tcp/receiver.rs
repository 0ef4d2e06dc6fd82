//! What a receiver has got and what it offers: reassembly, what SACK reports (RFC 2018), and the rules of Linux
//! for [acknowledging](super::ack_linux) and for the [window](super::autotune).

use super::ack_linux::{Arrival, Compression, LinuxAcks};
use super::autotune::Autotune;
use super::config::TcpConfig;
use super::ranges::Ranges;
use super::rtt::timestamp_us;
use super::rules::AckRule;
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};
use serde::{Deserialize, Serialize};

/// What such a receiver keeps in mind, from the first data on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Inbound {
    acks: LinuxAcks,
    window: Option<Autotune>,
    /// Right edge of the window offered last.
    right_edge: u64,
}

/// Receiving half of a connection: reassembly, acknowledgements and timestamps.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Receiver {
    /// First position that has not arrived.
    pub(super) next: u64,
    /// The position that was acknowledged last.
    pub(super) acked: u64,
    /// Position of the other end's FIN.
    pub(super) fin_at: u64,
    /// Position that interests the application.
    pub(super) notify_at: u64,
    /// Segments that have arrived out of order.
    pub(super) out_of_order: Ranges,
    /// What a receiver that acknowledges or offers its window as Linux does keeps in mind.
    pub(super) inbound: Option<Box<Inbound>>,
    /// When a delayed ACK is due.
    pub(super) ack_at: Time,
    /// Timestamp to echo, microseconds.
    pub(super) ts_recent_us: u32,
    /// Segments since the last ACK.
    pub(super) unacked: u16,
}

impl Receiver {
    /// Nothing has arrived.
    pub(super) fn new() -> Receiver {
        Receiver {
            next: 0,
            acked: 0,
            fin_at: u64::MAX,
            notify_at: u64::MAX,
            out_of_order: Ranges::default(),
            inbound: None,
            ack_at: Time::NEVER,
            ts_recent_us: 0,
            unacked: 0,
        }
    }

    /// Returns the stream bytes that have arrived in order.
    pub(super) fn received(&self) -> u64 {
        let fin = u64::from(self.next > self.fin_at);
        self.next.saturating_sub(1 + fin)
    }

    /// Returns the stream bytes that have arrived and are kept, those behind a gap among them.
    pub(super) fn kept(&self) -> u64 {
        let fin = u64::from(self.out_of_order.end() > self.fin_at);
        self.received() + self.out_of_order.total() - fin
    }

    /// Takes everything up to `end`, and what lies behind it without a gap. Returns whether there was a gap.
    #[inline]
    pub(super) fn advance(&mut self, end: u64) -> bool {
        let had_gap = !self.out_of_order.is_empty();
        self.next = end;
        if had_gap {
            while let Some(to) = self.out_of_order.take_from(self.next) {
                self.next = self.next.max(to);
            }
        }
        had_gap
    }

    /// Returns whether a packet probes a closed window: bare, and just below what is expected. After a FIN
    /// there are none, but ACKs that it has overtaken.
    #[inline]
    pub(super) fn is_window_probe(&self, packet: &Packet) -> bool {
        Packet::widen(packet.seq, self.next) + 1 == self.next && self.next <= self.fin_at
    }

    /// The timer of a delayed ACK has struck.
    pub(super) fn on_ack_timer(&mut self, rto: Span, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && self.out_of_order.is_empty()
            && let Some(inbound) = &mut self.inbound
        {
            inbound.acks.on_timer(rto);
        }
    }

    /// A segment out of order is about to be stored. Returns whether an ACK that waits goes first: where
    /// the segment touches none of the two ranges reported last, so that each range is in the first two
    /// blocks of one ACK at least (Linux, `tcp_sack_new_ofo_skb`).
    #[inline(never)]
    pub(super) fn releases_ack(&self, (start, end): (u64, u64)) -> bool {
        if !self.inbound.as_ref().is_some_and(|i| i.acks.holds_back()) {
            return false;
        }
        let touched = |r: (u64, u64)| r.0 <= end && start <= r.1;
        let ranges = &self.out_of_order;
        let [first, second, _] = ranges.reported();
        let front = [first, second].into_iter().filter_map(|p| ranges.containing(p)).any(touched);
        let second_of_two = ranges.iter().len() < 2 && !ranges.iter().any(touched);
        !front && !second_of_two
    }

    /// The acknowledgement leaves with a packet, with data or not.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Time, data: bool, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux {
            self.note_linux_ack(now, data);
        }
        self.acked = self.next;
        self.unacked = 0;
        self.ack_at = Time::NEVER;
    }

    /// Gives memory back that a gone connection needs no more.
    pub(super) fn drop_buffers(&mut self) {
        self.inbound = None;
        self.out_of_order = Ranges::default();
    }

    /// RFC 7323, 4.3: echo the timestamp of the first segment not yet acknowledged, never an older one
    /// than before.
    #[inline]
    pub(super) fn note_timestamp(&mut self, start: u64, packet: &Packet) {
        let stamp = timestamp_us(packet.born);
        if start <= self.acked && stamp.wrapping_sub(self.ts_recent_us) as i32 >= 0 {
            self.ts_recent_us = stamp;
        }
    }

    /// The window to offer where it grows, `first` being its initial size. Its right edge does not move
    /// back (RFC 9293, 3.8.6).
    #[inline(never)]
    pub(super) fn offered_window(&self, first: u64) -> u32 {
        let window = match &self.inbound {
            Some(inbound) => {
                let stored = self.out_of_order.total();
                let window = inbound.window.map_or(first, |w| w.window(stored));
                window.max(inbound.right_edge.saturating_sub(self.next))
            }
            None => first,
        };
        window.min(u64::from(u32::MAX)) as u32
    }

    /// A packet leaves, with data or not.
    #[inline(never)]
    fn note_linux_ack(&mut self, now: Time, data: bool) {
        let owed = self.unacked > 0 || self.ack_at != Time::NEVER;
        if let Some(inbound) = &mut self.inbound {
            inbound.acks.on_sent(data, now, owed);
        }
    }

    /// How long an ACK is delayed.
    #[inline(never)]
    pub(super) fn ack_delay(&self, srtt: Option<Span>, config: &TcpConfig) -> Span {
        if config.receiver.acks == AckRule::Linux
            && let Some(inbound) = &self.inbound
        {
            return inbound.acks.delay(srtt);
        }
        config.delayed_ack_timeout
    }

    /// Data has arrived in order where acknowledging or the window follow Linux. Returns whether it is
    /// acknowledged at once.
    #[inline(never)]
    pub(super) fn on_inbound(
        &mut self,
        now: Time,
        packet: &Packet,
        rto: Span,
        config: &TcpConfig,
    ) -> bool {
        let (next, segment) = (self.next, u64::from(config.segment));
        let unacked = next - self.acked;
        let (mut window, mut grows) = (config.max_window, false);
        if let Some(first) = config.receiver.window_from {
            let (stored, span) = self.stored();
            let inbound = self.inbound.get_or_insert_default();
            let tune =
                inbound.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
            // what was offered with the last ACK
            inbound.right_edge = inbound.right_edge.max(self.acked + tune.window(stored));
            let full = u64::from(packet.payload) >= segment;
            let echoed = (config.timestamps && full && packet.ts_echo_us != 0).then(|| {
                let us = timestamp_us(now).wrapping_sub(packet.ts_echo_us);
                Span::from_us(u64::from(us).max(1))
            });
            grows = tune.on_data(now, (next, span), echoed, segment, config.max_window);
            window = tune.window(stored);
        }
        if config.receiver.acks == AckRule::Count {
            return u32::from(self.unacked) >= config.ack_every;
        }
        let pushes = packet.flags & flag::PSH != 0;
        let arrival = Arrival { now, payload: packet.payload, pushes, unacked, window, grows, rto };
        self.inbound.get_or_insert_default().acks.on_data(&arrival)
    }

    /// Bytes stored out of order, and how far they reach beyond what is in order.
    fn stored(&self) -> (u64, u64) {
        let span = self.out_of_order.end().saturating_sub(self.next);
        (self.out_of_order.total(), span)
    }

    /// Data up to `end` has arrived out of order and is about to be stored.
    #[inline(never)]
    pub(super) fn on_inbound_late(&mut self, now: Time, end: u64, config: &TcpConfig) {
        let Some(first) = config.receiver.window_from else { return };
        let (segment, next) = (u64::from(config.segment), self.next);
        let (stored, span) = self.stored();
        let span = span.max(end - next);
        let inbound = self.inbound.get_or_insert_default();
        let tune = inbound.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
        inbound.right_edge = inbound.right_edge.max(self.acked + tune.window(stored));
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

    /// Whether the ACK of a segment out of order that begins at `start` waits.
    #[inline(never)]
    pub(super) fn holds_back(&mut self, now: Time, start: u64, srtt: Option<Span>) -> bool {
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

    /// The block with the latest segment first, then those reported most recently, then the highest
    /// others; at most `room` of them.
    pub(super) fn sack_blocks(&mut self, latest: u64, room: usize) -> SackBlocks {
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
