//! One end of a queue pair: the requester, which sends its messages and goes back when told or when nothing
//! is heard, and the responder, which takes packets in their order and drops all others.
//!
//! Packets bear the position of their first byte in the stream of their sender in place of a sequence number:
//! a packet never spans two messages, so positions count packets as well as numbers do.

use super::config::RoceV2Config;
use super::control::{Control, ControlSettings};
use super::counters::Counters;
use super::interface::{Alarm, Connect, Notice, Sink};
use super::requester::Requester;
use eastwest_types::{EndpointId, HostId, Packet, Rate, Time, ecn, rocev2};
use serde::{Deserialize, Serialize};

/// Identity of an end, and the fields that are the same in all its packets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Address {
    id: EndpointId,
    local: HostId,
    remote: HostId,
    hash: u16,
    dscp: u8,
    /// Traffic class, for measuring.
    class: u8,
}

/// Receiving half of a queue pair. Positions count bytes from 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Responder {
    /// Position of the next expected byte.
    expected: u64,
    /// A negative acknowledgement was sent for it.
    told: bool,
    /// When to tell the application: one above what it waits for.
    pub(super) notify_at: u64,
}

/// One end of a queue pair.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueuePair {
    address: Address,
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
    pub(super) requester: Requester,
    /// When the last packet was sent, and its bytes on the link.
    sent: (Time, u64),
    pub(super) responder: Responder,
    control: Control,
}

impl QueuePair {
    pub(super) fn new(
        id: EndpointId,
        c: &Connect,
        card: u32,
        control: &ControlSettings,
    ) -> QueuePair {
        let (local, remote, hash, line) = match id.0 & 1 {
            0 => (c.client, c.server, c.hashes.0, c.rates.0),
            _ => (c.server, c.client, c.hashes.1, c.rates.1),
        };
        QueuePair {
            address: Address { id, local, remote, hash, dscp: c.dscp, class: c.class },
            card,
            queued: false,
            closing: false,
            failed: false,
            armed_at: Time::NEVER,
            counters: Counters::default(),
            requester: Requester::new(),
            sent: (Time::ZERO, 0),
            responder: Responder { expected: 0, told: false, notify_at: u64::MAX },
            control: control.start(line),
        }
    }

    pub(super) fn id(&self) -> EndpointId {
        self.address.id
    }

    /// The host at this end.
    pub fn local(&self) -> HostId {
        self.address.local
    }

    /// The host at the other end.
    pub fn remote(&self) -> HostId {
        self.address.remote
    }

    /// Traffic class, for measuring.
    pub fn class(&self) -> u8 {
        self.address.class
    }

    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.requester.written
    }

    /// Bytes that have arrived in order.
    pub fn received(&self) -> u64 {
        self.responder.expected
    }

    /// Bytes that are acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.requester.acknowledged
    }

    /// What was counted here.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The rate that it is limited to, or that of its link.
    pub fn rate(&self) -> Rate {
        self.control.rate()
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        self.closing && (self.failed || self.acknowledged() == self.written())
    }

    /// Leaves nothing behind; its slot has this name now.
    pub(super) fn vacate(&mut self, name: EndpointId) {
        self.address.id = name;
        self.requester.forget();
        self.counters = Counters::default();
        self.closing = false;
    }

    /// Whether there is something to send, now or when its rate allows.
    fn has_to_send(&self) -> bool {
        !self.failed && self.requester.has_to_send()
    }

    /// When its rate allows the next packet.
    fn allowed_at(&self) -> Time {
        if self.control.is_free() || self.sent.1 == 0 {
            return Time::ZERO;
        }
        self.sent.0 + self.control.rate().time_for(self.sent.1)
    }

    /// Whether it may send now.
    pub(super) fn may_send(&self, now: Time) -> bool {
        self.has_to_send() && self.allowed_at() <= now
    }

    /// Asks to be woken when something is due.
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let mut due = self.requester.timer_at.min(self.control.timer_at());
        if !self.queued && self.has_to_send() {
            due = due.min(self.allowed_at());
        }
        if due < self.armed_at {
            self.armed_at = due;
            sink.arm(due, Alarm::QueuePair(self.address.id));
        }
    }

    fn packet(&self, now: Time, flags: u8, ip_len: u16) -> Packet {
        let a = &self.address;
        let mut packet = Packet::blank(a.remote);
        packet.born = now;
        packet.dst_endpoint = a.id.peer();
        packet.window = a.local.0;
        packet.hash = a.hash;
        packet.ip_len = ip_len;
        packet.tos = a.dscp << 2;
        packet.flags = flags;
        packet.notes = Packet::DATAGRAM;
        packet
    }

    /// Sends its next packet, which it must have; returns the IP bytes of it.
    pub(super) fn send_next(&mut self, now: Time, c: &RoceV2Config, sink: &mut impl Sink) -> u32 {
        let piece = self.requester.take_next(now, c);
        let again = if piece.again { rocev2::AGAIN } else { 0 };
        let flags = rocev2::DATA | again | if piece.asks { rocev2::ASKS } else { 0 };
        let ip_len = (piece.payload as u32 + RoceV2Config::HEADERS) as u16;
        let mut packet = self.packet(now, flags, ip_len);
        packet.seq = piece.from;
        packet.payload = piece.payload as u16;
        if c.control != ControlSettings::None {
            packet.tos |= ecn::ECT0;
        }
        self.counters.packets += 1;
        if piece.again {
            self.counters.retransmits += 1;
            self.counters.retransmitted_bytes += piece.payload;
        }
        let on_link = u64::from(ip_len) + u64::from(c.framing);
        self.sent = (now, on_link);
        self.control.after_sending(on_link, &c.control);
        sink.send(self.address.local, packet);
        u32::from(ip_len)
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
            self.counters.cuts += u64::from(self.control.after_notification(now, &c.control));
        } else {
            let position = Packet::widen(packet.ack, self.requester.acknowledged);
            self.requester.on_acknowledged(now, position, c.timeout);
            if packet.flags & rocev2::NAK != 0 {
                self.requester.on_lost(position);
            }
        }
    }

    /// A packet with payload has come: takes it if it is the next one (InfiniBand specification 9.7.4.1).
    fn take(&mut self, now: Time, packet: &Packet, c: &RoceV2Config, sink: &mut impl Sink) {
        if packet.tos & ecn::MASK == ecn::CE {
            self.counters.marked += 1;
            self.notify_of_mark(now, c, sink);
        }
        let responder = &mut self.responder;
        let position = Packet::widen(packet.seq, responder.expected);
        if position > responder.expected {
            self.counters.out_of_sequence += 1;
            // once, until the packet comes that is missing
            if !std::mem::replace(&mut responder.told, true) {
                self.counters.naks += 1;
                self.acknowledge(now, rocev2::NAK, sink);
            }
            return;
        }
        if position == responder.expected {
            responder.expected += u64::from(packet.payload);
            responder.told = false;
        } else {
            self.counters.duplicates += 1;
        }
        if packet.flags & rocev2::ASKS != 0 {
            self.counters.acks += 1;
            self.acknowledge(now, rocev2::ACK, sink);
        }
        if self.responder.expected >= self.responder.notify_at {
            self.responder.notify_at = u64::MAX;
            sink.notify(self.address.id, Notice::Delivered);
        }
    }

    fn acknowledge(&mut self, now: Time, flags: u8, sink: &mut impl Sink) {
        let mut packet = self.packet(now, flags, RoceV2Config::ACK);
        packet.ack = self.responder.expected;
        sink.send(self.address.local, packet);
    }

    /// Tells the sender of a mark, unless its control sees no need.
    fn notify_of_mark(&mut self, now: Time, c: &RoceV2Config, sink: &mut impl Sink) {
        if self.control.notifies(now, &c.control) {
            let mut packet = self.packet(now, rocev2::NOTIFICATION, RoceV2Config::CNP);
            packet.tos = c.cnp_dscp << 2;
            self.counters.cnps += 1;
            sink.send(self.address.local, packet);
        }
    }

    /// Does what is due by now. Tells whether it has just failed.
    pub(super) fn on_timers(&mut self, now: Time, c: &RoceV2Config) -> bool {
        if self.control.timer_at() <= now {
            self.control.after_timer(now, &c.control);
        }
        if self.requester.timer_at > now {
            return false;
        }
        self.counters.timeouts += 1;
        self.failed = self.requester.on_timeout(c);
        self.failed
    }
}
