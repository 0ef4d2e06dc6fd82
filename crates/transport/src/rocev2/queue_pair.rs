//! One end of a queue pair. The requester sends messages, and retransmits from the lost packet on
//! after a NAK or a timeout. The responder accepts packets in order and drops all others.
//!
//! Instead of a sequence number, packets carry the position of their first byte in the sender's
//! stream. A packet never spans two messages, so positions identify packets as well as sequence
//! numbers do.

use super::config::RoceV2Config;
use super::control::{Control, ControlSettings};
use super::counters::Counters;
use super::interface::{Connect, Flow, Notice, Sink, TimerTarget};
use super::requester::Requester;
use eastwest_types::{EndpointId, HostId, Packet, Rate, Time, ecn, rocev2};
use serde::{Deserialize, Serialize};

/// Identity of one end of a queue pair, and the header fields that are the same in all its packets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Address {
    id: EndpointId,
    local: HostId,
    remote: HostId,
    hash: u16,
    dscp: u8,
    /// Number of the traffic class under which the queue pair is measured.
    class: u8,
}

/// Receiving half of a queue pair. Positions count bytes from 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Responder {
    /// Position of the next expected byte of the peer's stream.
    pub(super) expected: u64,
    /// Whether a negative acknowledgement has been sent for the position `expected`.
    nak_sent: bool,
    /// The application is notified when all bytes before this position have arrived; `u64::MAX` if
    /// no notification is requested.
    pub(super) notify_at: u64,
}

/// One end of a queue pair.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueuePair {
    address: Address,
    /// Number of the NIC queue that serves this end of the queue pair.
    pub(super) nic: u32,
    /// Whether this end of the queue pair waits in its NIC queue.
    pub(super) queued: bool,
    pub(super) closing: bool,
    /// Whether the queue pair has failed after too many timeouts.
    failed: bool,
    /// Time of the earliest timer event of this end that is pending in the simulator.
    pub(super) armed_at: Time,
    /// Time at which TIME-WAIT ends; [`Time::NEVER`] before the end has finished.
    wait_ends: Time,
    counters: Counters,
    pub(super) requester: Requester,
    /// Send time of the last packet, and its bytes on the link including framing.
    sent: (Time, u64),
    pub(super) responder: Responder,
    control: Control,
}

impl QueuePair {
    pub(super) fn new(
        id: EndpointId,
        c: &Connect,
        nic: u32,
        control: &ControlSettings,
    ) -> QueuePair {
        let (local, remote, hash, line) = match id.0 & 1 {
            0 => (c.client, c.server, c.hashes.0, c.rates.0),
            _ => (c.server, c.client, c.hashes.1, c.rates.1),
        };
        QueuePair {
            address: Address { id, local, remote, hash, dscp: c.dscp, class: c.class },
            nic,
            queued: false,
            closing: false,
            failed: false,
            armed_at: Time::NEVER,
            wait_ends: Time::NEVER,
            counters: Counters::default(),
            requester: Requester::new(),
            sent: (Time::ZERO, 0),
            responder: Responder { expected: 0, nak_sent: false, notify_at: u64::MAX },
            control: control.start(line),
        }
    }

    pub(super) fn id(&self) -> EndpointId {
        self.address.id
    }

    /// Returns the flow of the packets that this end sends.
    pub(super) fn flow(&self) -> Flow {
        let Address { local, remote, hash, .. } = self.address;
        Flow { from: local, to: remote, hash }
    }

    /// Returns the host at this end of the queue pair.
    pub fn local(&self) -> HostId {
        self.address.local
    }

    /// Returns the host at the other end of the queue pair.
    pub fn remote(&self) -> HostId {
        self.address.remote
    }

    /// Returns the number of the traffic class under which the queue pair is measured.
    pub fn class(&self) -> u8 {
        self.address.class
    }

    /// Returns the payload bytes that the application has posted at this end of the queue pair.
    pub fn written(&self) -> u64 {
        self.requester.written
    }

    /// Returns the payload bytes that have arrived in order at this end of the queue pair.
    pub fn received(&self) -> u64 {
        self.responder.expected
    }

    /// Returns the payload bytes that this end has sent, without retransmissions.
    pub fn sent(&self) -> u64 {
        self.requester.highest
    }

    /// Returns the payload bytes sent by this end that the other end has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.requester.acknowledged
    }

    /// Sets the counters of this end to zero, because another part of a partitioned run counts.
    pub(super) fn forget_counters(&mut self) {
        self.counters = Counters::default();
    }

    /// Returns the counters of this end of the queue pair.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the sending rate to which the rate control limits this end; without a limit, the
    /// rate of its link.
    pub fn rate(&self) -> Rate {
        self.control.rate()
    }

    /// Whether this end is closing, and either all its data is acknowledged or the queue pair has
    /// failed.
    pub(super) fn is_done(&self) -> bool {
        self.closing && (self.failed || self.acknowledged() == self.written())
    }

    /// Whether this end has finished and is in TIME-WAIT.
    pub(super) fn waits(&self) -> bool {
        self.wait_ends != Time::NEVER
    }

    /// Returns the time at which TIME-WAIT ends; [`Time::NEVER`] before the end has finished.
    pub(super) fn wait_ends(&self) -> Time {
        self.wait_ends
    }

    /// Begins TIME-WAIT, which ends at the time `until`.
    pub(super) fn begin_wait(&mut self, until: Time) {
        self.wait_ends = until;
        self.requester.release_memory();
    }

    /// Releases the slot of this end, whose queue pair was aborted. The identifier becomes `name`, so
    /// that late packets and timer events of the queue pair are ignored.
    pub(super) fn vacate(&mut self, name: EndpointId) {
        self.address.id = name;
        self.requester.release_memory();
        self.counters = Counters::default();
        self.closing = false;
    }

    /// Whether this end has a packet to send, now or when its rate allows.
    fn has_to_send(&self) -> bool {
        !self.failed && self.requester.has_to_send()
    }

    /// Returns the time from which the rate of this end allows it to send the next packet.
    fn rate_allows_at(&self) -> Time {
        if self.control.is_free() || self.sent.1 == 0 {
            return Time::ZERO;
        }
        self.sent.0 + self.control.rate().time_for(self.sent.1)
    }

    /// Whether this end has a packet to send, and its rate permits sending at time `now`.
    pub(super) fn may_send(&self, now: Time) -> bool {
        self.has_to_send() && self.rate_allows_at() <= now
    }

    /// Arms the simulator's timer for the earliest deadline of this end, unless an earlier event is
    /// pending.
    pub(super) fn rearm(&mut self, sink: &mut impl Sink) {
        let mut due = self.requester.timer_at.min(self.control.timer_at());
        if !self.queued && self.has_to_send() {
            due = due.min(self.rate_allows_at());
        }
        if due < self.armed_at {
            self.armed_at = due;
            sink.arm(due, TimerTarget::QueuePair(self.address.id));
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

    /// Sends the next packet of this end, which must exist. Returns the IP bytes of the packet.
    pub(super) fn send_next(&mut self, now: Time, c: &RoceV2Config, sink: &mut impl Sink) -> u32 {
        let next = self.requester.take_next(now, c);
        let again = if next.is_retransmission { rocev2::AGAIN } else { 0 };
        let flags = rocev2::DATA | again | if next.requests_ack { rocev2::ASKS } else { 0 };
        let ip_len = (next.payload as u32 + RoceV2Config::HEADERS) as u16;
        let mut packet = self.packet(now, flags, ip_len);
        packet.seq = next.from;
        packet.payload = next.payload as u16;
        if c.control != ControlSettings::None {
            packet.tos |= ecn::ECT0;
        }
        self.counters.packets += 1;
        if next.is_retransmission {
            self.counters.retransmits += 1;
            self.counters.retransmitted_bytes += next.payload;
        }
        let on_link = u64::from(ip_len) + u64::from(c.framing);
        self.sent = (now, on_link);
        self.control.after_sending(on_link, &c.control);
        sink.remaining(self.written() - self.acknowledged());
        sink.send(self.address.local, packet);
        u32::from(ip_len)
    }

    /// Handles a packet that arrives at this end of the queue pair.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        packet: &Packet,
        c: &RoceV2Config,
        sink: &mut impl Sink,
    ) {
        if packet.flags & rocev2::DATA != 0 {
            self.on_data(now, packet, c, sink);
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

    /// Handles a packet with payload: accepts it if its position is the next expected (InfiniBand
    /// specification 9.7.4.1).
    fn on_data(&mut self, now: Time, packet: &Packet, c: &RoceV2Config, sink: &mut impl Sink) {
        if packet.tos & ecn::MASK == ecn::CE {
            self.counters.marked += 1;
            self.notify_of_mark(now, c, sink);
        }
        let responder = &mut self.responder;
        let position = Packet::widen(packet.seq, responder.expected);
        if packet.payload == 0 {
            return self.on_trimmed(now, position, packet.flags, sink);
        }
        if position > responder.expected {
            self.counters.out_of_sequence += 1;
            // Only one NAK is sent until the missing packet arrives.
            if !std::mem::replace(&mut responder.nak_sent, true) {
                self.counters.naks += 1;
                self.acknowledge(now, rocev2::NAK, sink);
            }
            return;
        }
        if position == responder.expected {
            responder.expected += u64::from(packet.payload);
            responder.nak_sent = false;
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

    /// Handles a data packet whose payload a queue has cut off, so that only the header arrives. If
    /// the payload has not arrived before, sends one NAK at once; headers do not overtake data, so
    /// that everything sent before this packet has arrived or is lost. A further header of the
    /// first missing packet causes another NAK, because the retransmission was cut as well. If the
    /// payload has arrived before, sends an ACK if the header requests one (bit A).
    #[cold]
    fn on_trimmed(&mut self, now: Time, position: u64, flags: u8, sink: &mut impl Sink) {
        self.counters.trimmed += 1;
        let responder = &mut self.responder;
        if position < responder.expected {
            if flags & rocev2::ASKS != 0 {
                self.counters.acks += 1;
                self.acknowledge(now, rocev2::ACK, sink);
            }
            return;
        }
        let again = position == responder.expected;
        if !std::mem::replace(&mut responder.nak_sent, true) || again {
            self.counters.naks += 1;
            self.acknowledge(now, rocev2::NAK, sink);
        }
    }

    fn acknowledge(&mut self, now: Time, flags: u8, sink: &mut impl Sink) {
        let mut packet = self.packet(now, flags, RoceV2Config::ACK);
        packet.ack = self.responder.expected;
        sink.send(self.address.local, packet);
    }

    /// Sends a congestion notification packet for a packet with a CE mark, if the rate control
    /// requires one.
    fn notify_of_mark(&mut self, now: Time, c: &RoceV2Config, sink: &mut impl Sink) {
        if self.control.notifies(now, &c.control) {
            let mut packet = self.packet(now, rocev2::NOTIFICATION, RoceV2Config::CNP);
            packet.tos = c.cnp_dscp << 2;
            self.counters.cnps += 1;
            sink.send(self.address.local, packet);
        }
    }

    /// Handles the expired timers of this end: retransmission and rate control. Returns whether the
    /// queue pair has just failed.
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
