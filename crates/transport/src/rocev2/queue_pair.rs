//! One end of a queue pair: the requester, which sends its messages and goes back when told or when nothing
//! is heard, and the responder, which takes packets in their order and drops all others.
//!
//! Packets bear the position of their first byte in the stream of their sender in place of a sequence number:
//! a packet never spans two messages, so positions count packets as well as numbers do.

use super::config::RoceV2Config;
use super::counters::Counters;
use super::{Connect, Notice, Sink};
use crate::congestion::dcqcn::{NotificationPoint, ReactionPoint};
use eastwest_types::{EndpointId, HostId, Packet, Span, Time, ecn, rocev2};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most bytes that may be outstanding: far fewer than positions on the wire tell apart.
const MOST_OUTSTANDING: u64 = 1 << 30;

/// One end of a queue pair.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueuePair {
    pub(super) id: EndpointId,
    local: HostId,
    remote: HostId,
    hash: u16,
    dscp: u8,
    /// Traffic class, for measuring.
    pub class: u8,
    /// The card that its packets go through.
    pub(super) card: u32,
    /// Whether it waits for its turn there.
    pub(super) queued: bool,
    pub(super) closing: bool,
    /// Given up after too many timeouts.
    failed: bool,
    /// When it is next woken.
    pub(super) armed_at: Time,
    counters: Counters,

    /// Ends of messages that are not acknowledged.
    ends: VecDeque<u64>,
    written: u64,
    acknowledged: u64,
    /// What is sent next, and the end of all that was ever sent.
    next: u64,
    highest: u64,
    /// Packets since one asked for an acknowledgement.
    unasked: u32,
    /// The end of the last packet that did: it is awaited while not acknowledged.
    asked: u64,
    timer_at: Time,
    retries: u32,
    /// When the last packet was sent, and its bytes on the link.
    sent: (Time, u64),
    rate: ReactionPoint,

    /// What is expected next.
    expected: u64,
    /// A negative acknowledgement was sent for it.
    told: bool,
    /// When to tell the application: one above what it waits for.
    pub(super) notify_at: u64,
    notifier: NotificationPoint,
}

impl QueuePair {
    pub(super) fn new(id: EndpointId, c: &Connect, card: u32) -> QueuePair {
        let client = id.0 & 1 == 0;
        let (local, remote) = if client { (c.client, c.server) } else { (c.server, c.client) };
        QueuePair {
            id,
            local,
            remote,
            hash: if client { c.hashes.0 } else { c.hashes.1 },
            dscp: c.dscp,
            class: c.class,
            card,
            queued: false,
            closing: false,
            failed: false,
            armed_at: Time::NEVER,
            counters: Counters::default(),
            ends: VecDeque::new(),
            written: 0,
            acknowledged: 0,
            next: 0,
            highest: 0,
            unasked: 0,
            asked: 0,
            timer_at: Time::NEVER,
            retries: 0,
            sent: (Time::ZERO, 0),
            rate: ReactionPoint::new(if client { c.rates.0 } else { c.rates.1 }),
            expected: 0,
            told: false,
            notify_at: u64::MAX,
            notifier: NotificationPoint::default(),
        }
    }

    /// The host at this end.
    pub fn local(&self) -> HostId {
        self.local
    }

    /// The host at the other end.
    pub fn remote(&self) -> HostId {
        self.remote
    }

    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that have arrived in order.
    pub fn received(&self) -> u64 {
        self.expected
    }

    /// Bytes that are acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// What was counted here.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The rate that it is limited to, or that of its link.
    pub fn rate(&self) -> eastwest_types::Rate {
        self.rate.rate()
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        self.closing && (self.failed || self.acknowledged == self.written)
    }

    /// Leaves nothing behind.
    pub(super) fn forget(&mut self) {
        self.ends = VecDeque::new();
        self.counters = Counters::default();
        self.closing = false;
    }

    pub(super) fn write(&mut self, bytes: u64) {
        if bytes > 0 {
            self.written += bytes;
            self.ends.push_back(self.written);
        }
    }

    /// Drops the bytes that were not sent, except one packet. Returns the bytes of the remaining stream.
    pub(super) fn truncate(&mut self, mtu: u32) -> u64 {
        let end = (self.highest + u64::from(mtu)).min(self.written);
        while self.ends.back().is_some_and(|last| *last > end) {
            self.ends.pop_back();
        }
        if self.written > end {
            self.ends.push_back(end);
            self.written = end;
        }
        self.written
    }

    /// Whether there is something to send, now or when its rate allows.
    pub(super) fn has_to_send(&self) -> bool {
        !self.failed && self.next < self.written && self.next - self.acknowledged < MOST_OUTSTANDING
    }

    /// When its rate allows the next packet.
    fn allowed_at(&self) -> Time {
        if self.rate.is_free() || self.sent.1 == 0 {
            return Time::ZERO;
        }
        self.sent.0 + self.rate.rate().time_for(self.sent.1)
    }

    /// Whether it may send now.
    pub(super) fn may_send(&self, now: Time) -> bool {
        self.has_to_send() && self.allowed_at() <= now
    }

    /// Asks to be woken when something is due.
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let mut due = self.timer_at.min(self.rate.timer_at);
        if !self.queued && self.has_to_send() {
            due = due.min(self.allowed_at());
        }
        if due < self.armed_at {
            self.armed_at = due;
            sink.arm(due, super::Alarm::QueuePair(self.id));
        }
    }

    fn packet(&self, now: Time, flags: u8, ip_len: u16) -> Packet {
        let mut packet = Packet::blank(self.remote);
        packet.born = now;
        packet.dst_endpoint = self.id.peer();
        packet.window = self.local.0;
        packet.hash = self.hash;
        packet.ip_len = ip_len;
        packet.tos = self.dscp << 2;
        packet.flags = flags;
        packet.notes = Packet::DATAGRAM;
        packet
    }

    /// Sends its next packet, which it must have; returns the IP bytes of it.
    pub(super) fn send_next(&mut self, now: Time, c: &RoceV2Config, sink: &mut impl Sink) -> u32 {
        let message = self.ends.partition_point(|end| *end <= self.next);
        let end = self.ends[message];
        let payload = u64::from(c.mtu).min(end - self.next);
        let again = self.next < self.highest;
        self.unasked += 1;
        let asks = self.next + payload == end || self.unasked >= c.ack_every;
        let mut flags = rocev2::DATA;
        flags |= if again { rocev2::AGAIN } else { 0 } | if asks { rocev2::ASKS } else { 0 };
        let mut packet = self.packet(now, flags, (payload as u32 + RoceV2Config::HEADERS) as u16);
        packet.seq = self.next;
        packet.payload = payload as u16;
        if c.dcqcn.is_some() {
            packet.tos |= ecn::ECT0;
        }
        self.next += payload;
        self.highest = self.highest.max(self.next);
        if asks {
            self.unasked = 0;
            self.asked = self.next;
            self.timer_at = now + c.timeout;
        }
        self.counters.packets += 1;
        if again {
            self.counters.retransmits += 1;
            self.counters.retransmitted_bytes += payload;
        }
        let on_link = u64::from(packet.ip_len) + u64::from(c.framing);
        self.sent = (now, on_link);
        if let Some(dcqcn) = &c.dcqcn {
            self.rate.sends(on_link, dcqcn);
        }
        sink.send(self.local, packet);
        u32::from(packet.ip_len)
    }

    /// A packet has come.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        packet: &Packet,
        c: &RoceV2Config,
        sink: &mut impl Sink,
    ) {
        if packet.flags & rocev2::DATA != 0 {
            self.take(now, packet, c, sink);
        } else if packet.flags & rocev2::NOTIFICATION != 0 {
            if let Some(dcqcn) = &c.dcqcn {
                self.counters.cuts += 1;
                self.rate.cut(now, dcqcn);
            }
        } else {
            let position = Packet::widen(packet.ack, self.acknowledged);
            self.on_acknowledged(now, position, c.timeout);
            if packet.flags & rocev2::NAK != 0 && position < self.next {
                self.go_back(position.max(self.acknowledged));
            }
        }
    }

    /// Everything before `position` has arrived.
    fn on_acknowledged(&mut self, now: Time, position: u64, timeout: Span) {
        if position <= self.acknowledged || position > self.highest {
            return;
        }
        self.acknowledged = position;
        while self.ends.front().is_some_and(|end| *end <= position) {
            self.ends.pop_front();
        }
        // what was sent again meanwhile had arrived after all
        self.next = self.next.max(position);
        self.retries = 0;
        self.timer_at = if position < self.asked { now + timeout } else { Time::NEVER };
    }

    /// Sends again from `position` on.
    fn go_back(&mut self, position: u64) {
        self.next = position;
        self.asked = position;
        self.unasked = 0;
        self.timer_at = Time::NEVER;
    }

    /// A packet with payload has come: takes it if it is the next one (InfiniBand specification 9.7.4.1).
    fn take(&mut self, now: Time, packet: &Packet, c: &RoceV2Config, sink: &mut impl Sink) {
        if packet.tos & ecn::MASK == ecn::CE {
            self.counters.marked += 1;
            self.notify_of_mark(now, c, sink);
        }
        let position = Packet::widen(packet.seq, self.expected);
        if position > self.expected {
            self.counters.out_of_sequence += 1;
            // once, until the packet comes that is missing
            if !std::mem::replace(&mut self.told, true) {
                self.counters.naks += 1;
                self.acknowledge(now, rocev2::NAK, sink);
            }
            return;
        }
        if position == self.expected {
            self.expected += u64::from(packet.payload);
            self.told = false;
        } else {
            self.counters.duplicates += 1;
        }
        if packet.flags & rocev2::ASKS != 0 {
            self.counters.acks += 1;
            self.acknowledge(now, rocev2::ACK, sink);
        }
        if self.expected >= self.notify_at {
            self.notify_at = u64::MAX;
            sink.notify(self.id, Notice::Delivered);
        }
    }

    fn acknowledge(&mut self, now: Time, flags: u8, sink: &mut impl Sink) {
        let mut packet = self.packet(now, flags, RoceV2Config::ACK);
        packet.ack = self.expected;
        sink.send(self.local, packet);
    }

    /// Tells the sender of a mark, unless it was told a moment ago.
    fn notify_of_mark(&mut self, now: Time, c: &RoceV2Config, sink: &mut impl Sink) {
        if c.dcqcn.as_ref().is_some_and(|dcqcn| self.notifier.tells(now, dcqcn)) {
            let mut packet = self.packet(now, rocev2::NOTIFICATION, RoceV2Config::CNP);
            packet.tos = c.cnp_dscp << 2;
            self.counters.cnps += 1;
            sink.send(self.local, packet);
        }
    }

    /// Does what is due by now. Tells whether it has just failed.
    pub(super) fn on_timers(&mut self, now: Time, c: &RoceV2Config) -> bool {
        if let Some(dcqcn) = c.dcqcn.as_ref().filter(|_| self.rate.timer_at <= now) {
            self.rate.times(now, dcqcn);
        }
        if self.timer_at > now {
            return false;
        }
        self.counters.timeouts += 1;
        self.retries += 1;
        self.go_back(self.acknowledged);
        self.failed = self.retries > c.retries;
        self.failed
    }
}
