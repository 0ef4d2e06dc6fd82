//! State of a receiver: reassembly, SACK blocks (RFC 2018), and Linux's [ACK
//! policy](super::linux_acks) and [window autotuning](super::autotune).

use super::autotune::Autotune;
use super::config::TcpConfig;
use super::linux_acks::{Arrival, Compression, LinuxAcks};
use super::range_set::RangeSet;
use super::rtt::timestamp_us;
use super::rules::AckRule;
use super::timers::Timers;
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};
use serde::{Deserialize, Serialize};

/// Receiver state of Linux's ACK policy or window autotuning, allocated when the first data
/// arrives.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LinuxState {
    acks: LinuxAcks,
    window: Option<Autotune>,
    /// Right edge of the last offered window: the stream position after its last byte.
    right_edge: u64,
}

impl LinuxState {
    /// Returns the state before the first data.
    #[cold]
    fn boxed() -> Box<LinuxState> {
        Box::default()
    }
}

/// Receiving half of a connection: reassembly, acknowledgements and timestamps.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Receiver {
    /// First position of the other end's stream that has not arrived (RCV.NXT).
    pub(super) next: u64,
    /// Stream position up to which the last ACK sent has acknowledged.
    pub(super) acked: u64,
    /// Stream position of the other end's FIN; `u64::MAX` until the FIN has arrived.
    pub(super) fin_at: u64,
    /// The application is notified when all stream positions before this one have arrived;
    /// `u64::MAX` if no notification is requested.
    pub(super) notify_at: u64,
    /// Stream positions that have arrived out of order, above a gap.
    pub(super) out_of_order: RangeSet,
    /// State of Linux's ACK policy and window autotuning; `None` if neither is in use.
    pub(super) linux: Option<Box<LinuxState>>,
    /// Expiry time of the delayed-ACK timer; [`Time::NEVER`] if the timer is not armed.
    pub(super) ack_at: Time,
    /// Timestamp to echo, in µs (RFC 7323, TS.Recent).
    pub(super) ts_recent_us: u32,
    /// Number of segments received in order since the last ACK was sent.
    pub(super) unacked: u16,
}

impl Receiver {
    /// Returns the state of a receiver before anything has arrived.
    pub(super) fn new() -> Receiver {
        Receiver {
            next: 0,
            acked: 0,
            fin_at: u64::MAX,
            notify_at: u64::MAX,
            out_of_order: RangeSet::default(),
            linux: None,
            ack_at: Time::NEVER,
            ts_recent_us: 0,
            unacked: 0,
        }
    }

    /// Returns the payload bytes that have arrived in order.
    pub(super) fn received(&self) -> u64 {
        let fin = u64::from(self.next > self.fin_at);
        self.next.saturating_sub(1 + fin)
    }

    /// Returns the payload bytes that have arrived, including out-of-order bytes above a gap.
    pub(super) fn buffered(&self) -> u64 {
        let fin = u64::from(self.out_of_order.end() > self.fin_at);
        self.received() + self.out_of_order.total() - fin
    }

    /// Advances RCV.NXT to `end`, and across stored out-of-order ranges that follow without a gap.
    /// Returns whether any range was stored before.
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

    /// Whether a pure ACK is a window probe: its sequence number is one below the next expected.
    /// After a FIN there are no probes, although a late ACK may have that number.
    #[inline]
    pub(super) fn is_window_probe(&self, packet: &Packet) -> bool {
        Packet::widen(packet.seq, self.next) + 1 == self.next && self.next <= self.fin_at
    }

    /// Handles the expiry of the delayed-ACK timer.
    pub(super) fn on_ack_timer(&mut self, rto: Span, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && self.out_of_order.is_empty()
            && let Some(linux) = &mut self.linux
        {
            linux.acks.on_timer(rto);
        }
    }

    /// Whether a compressed ACK must be sent before the out-of-order segment `start..end` is
    /// stored. The ACK must be sent if the segment touches neither of the two ranges reported last,
    /// and does not begin a second range. Each range is then in the first two blocks of at least
    /// one ACK (Linux, `tcp_sack_new_ofo_skb`).
    #[inline(never)]
    pub(super) fn flushes_compressed_ack(&self, (start, end): (u64, u64)) -> bool {
        if !self.linux.as_ref().is_some_and(|i| i.acks.compresses_ack()) {
            return false;
        }
        let touched = |r: (u64, u64)| r.0 <= end && start <= r.1;
        let ranges = &self.out_of_order;
        let [first, second, _] = ranges.reported();
        let front = [first, second].into_iter().filter_map(|p| ranges.containing(p)).any(touched);
        let second_of_two = ranges.iter().len() < 2 && !ranges.iter().any(touched);
        !front && !second_of_two
    }

    /// Handles the transmission of any packet, whose ACK number acknowledges all data received in
    /// order. Returns the receive window to offer, in bytes. `data`: whether the packet has payload.
    #[inline]
    pub(super) fn on_send(&mut self, now: Time, data: bool, config: &TcpConfig) -> u32 {
        let window = match config.receiver.is_plain() {
            true => config.max_window.min(u64::from(u32::MAX)) as u32,
            false => self.on_send_linux(now, data, config),
        };
        self.acked = self.next;
        self.unacked = 0;
        self.ack_at = Time::NEVER;
        window
    }

    /// Handles the transmission of a packet with Linux's ACK policy or window autotuning. Returns
    /// the receive window to offer.
    #[inline(never)]
    fn on_send_linux(&mut self, now: Time, data: bool, config: &TcpConfig) -> u32 {
        let owed = self.unacked > 0 || self.ack_at != Time::NEVER;
        if config.receiver.acks == AckRule::Linux
            && let Some(linux) = &mut self.linux
        {
            linux.acks.on_sent(data, now, owed);
        }
        self.window_to_offer(config)
    }

    /// Releases the receiver's buffers when the connection ends.
    pub(super) fn drop_buffers(&mut self) {
        self.linux = None;
        self.out_of_order = RangeSet::default();
    }

    /// Updates the timestamp to echo (TS.Recent) to the timestamp of the first segment not yet
    /// acknowledged, but never to an older timestamp (RFC 7323, 4.3).
    #[inline]
    pub(super) fn update_ts_recent(&mut self, start: u64, packet: &Packet) {
        let stamp = timestamp_us(packet.born);
        if start <= self.acked && stamp.wrapping_sub(self.ts_recent_us) as i32 >= 0 {
            self.ts_recent_us = stamp;
        }
    }

    /// Returns the receive window to offer, in bytes. With autotuning, its right edge never moves
    /// back (RFC 9293, 3.8.6).
    #[inline]
    pub(super) fn window_to_offer(&self, config: &TcpConfig) -> u32 {
        let window = match (config.receiver.window_from, &self.linux) {
            (None, _) => config.max_window,
            (Some(first), None) => first,
            (Some(first), Some(linux)) => {
                let stored = self.out_of_order.total();
                let window = linux.window.as_ref().map_or(first, |w| w.window(stored));
                window.max(linux.right_edge.saturating_sub(self.next))
            }
        };
        window.min(u64::from(u32::MAX)) as u32
    }

    /// Returns the time for which an ACK is delayed; `srtt`: smoothed RTT, if one is known.
    #[inline(never)]
    pub(super) fn ack_delay(&self, srtt: Option<Span>, config: &TcpConfig) -> Span {
        if config.receiver.acks == AckRule::Linux
            && let Some(linux) = &self.linux
        {
            return linux.acks.delay(srtt);
        }
        config.delayed_ack_timeout
    }

    /// Handles data in order for Linux's ACK policy and window autotuning. Returns whether the data
    /// must be acknowledged at once.
    #[inline(never)]
    pub(super) fn on_data_linux(
        &mut self,
        now: Time,
        packet: &Packet,
        timers: &Timers,
        config: &TcpConfig,
    ) -> bool {
        let (next, segment) = (self.next, u64::from(config.segment));
        let unacked = next - self.acked;
        let (mut window, mut grows) = (config.max_window, false);
        let (stored, span) = self.stored();
        let linux = self.linux.get_or_insert_with(LinuxState::boxed);
        if let Some(first) = config.receiver.window_from {
            let tune = linux.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
            // Stores the right edge that the last ACK has offered; it never decreases.
            linux.right_edge = linux.right_edge.max(self.acked + tune.window(stored));
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
        // A host may have merged segments. Linux then counts the size of one segment (`gso_size`).
        let payload = packet.payload.min(config.segment as u16);
        let arrival = Arrival { now, payload, pushes, unacked, window, grows };
        linux.acks.on_data(&arrival, || timers.rto(config))
    }

    /// Returns the bytes stored out of order, and the distance from the data in order to the end of
    /// the stored bytes.
    fn stored(&self) -> (u64, u64) {
        let span = self.out_of_order.end().saturating_sub(self.next);
        (self.out_of_order.total(), span)
    }

    /// Updates window autotuning for out-of-order data up to position `end`. To be called before
    /// the data is stored.
    #[inline(never)]
    pub(super) fn on_out_of_order_linux(&mut self, now: Time, end: u64, config: &TcpConfig) {
        let Some(first) = config.receiver.window_from else { return };
        let (segment, next) = (u64::from(config.segment), self.next);
        let (stored, span) = self.stored();
        let span = span.max(end - next);
        let linux = self.linux.get_or_insert_default();
        let tune = linux.window.get_or_insert_with(|| Autotune::new(now, next, first, segment));
        linux.right_edge = linux.right_edge.max(self.acked + tune.window(stored));
        if tune.on_late_data(span, segment, config.max_window, config.sack) {
            linux.acks.on_growth();
        }
    }

    /// Notifies Linux's ACK policy of the first CE mark, or of data without ECT on an ECN
    /// connection.
    #[inline(never)]
    pub(super) fn on_ce_mark_linux(&mut self, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && let Some(linux) = &mut self.linux
        {
            linux.acks.on_mark();
        }
    }

    /// Notifies Linux's ACK policy of a duplicate segment.
    pub(super) fn on_duplicate_linux(&mut self, config: &TcpConfig) {
        if config.receiver.acks == AckRule::Linux
            && let Some(linux) = &mut self.linux
        {
            linux.acks.on_duplicate(config.max_window);
        }
    }

    /// Whether the ACK of an out-of-order segment that begins at `start` is delayed by SACK
    /// compression.
    #[inline(never)]
    pub(super) fn compresses_ack(&mut self, now: Time, start: u64, srtt: Option<Span>) -> bool {
        let wait = match self.linux.get_or_insert_default().acks.compress(srtt) {
            Compression::Send => return false,
            Compression::DelayBy(span) => now + span,
            Compression::AlreadyDelayed => Time::NEVER,
        };
        self.ack_at = self.ack_at.min(wait);
        self.report_first(start);
        true
    }

    /// Makes the out-of-order range that contains `position` the first to report by SACK.
    fn report_first(&mut self, position: u64) {
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

    /// Returns the SACK blocks to report, at most `room`. First is the range that contains `latest`
    /// (position of the latest segment), then the ranges reported most recently, then the highest
    /// other ranges. Unused blocks are (0, 0).
    pub(super) fn sack_blocks(&mut self, latest: u64, room: usize) -> SackBlocks {
        let mut blocks: SackBlocks = [(0, 0); 4];
        let mut used = 0;
        let [first, second, third] = self.out_of_order.reported();
        for (hint, position) in [latest, first, second, third].into_iter().enumerate() {
            // Position 0 stands for no range. A range with a position in a block is that block.
            let is_reported = |b: &(u64, u64)| b.0 <= position && position < b.1;
            if position != 0
                && used < room
                && !blocks[..used].iter().any(is_reported)
                && let Some(range) = self.out_of_order.containing_with_hint(hint, position)
            {
                blocks[used] = range;
                used += 1;
            }
        }
        if used < room.min(self.out_of_order.iter().len()) {
            for range in self.out_of_order.iter().rev().take(room) {
                if used < room && !blocks[..used].contains(&range) {
                    blocks[used] = range;
                    used += 1;
                }
            }
        }
        self.out_of_order.set_reported([blocks[0].0, blocks[1].0, blocks[2].0]);
        blocks
    }
}
