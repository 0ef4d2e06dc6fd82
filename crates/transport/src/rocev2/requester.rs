//! Sending half of a queue pair: messages, the positions up to which they are sent and
//! acknowledged, and the retransmission timer.

use super::config::RoceV2Config;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Largest number of outstanding bytes: a quarter of 2³², the number of positions that a packet can
/// distinguish.
const MOST_OUTSTANDING: u64 = 1 << 30;

/// Sending half of a queue pair. Stream positions count bytes from 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Requester {
    /// Stream positions at which the messages end that are not yet acknowledged.
    ends: VecDeque<u64>,
    /// Position after the last byte that the application has posted.
    pub(super) written: u64,
    /// First stream position that is not acknowledged.
    pub(super) acknowledged: u64,
    /// Stream position of the next byte to send; lower than `highest` during a retransmission.
    next: u64,
    /// Stream position after the highest byte sent so far.
    pub(super) highest: u64,
    /// Number of packets sent since the last packet that requested an acknowledgement.
    since_ack_request: u32,
    /// Number of timeouts since an acknowledgement last confirmed new bytes.
    retries: u32,
    /// Stream position after the last packet that requested an acknowledgement. The retransmission
    /// timer runs until this position is acknowledged.
    ack_requested_to: u64,
    /// Time at which the retransmission timer expires; [`Time::NEVER`] if it is not armed.
    pub(super) timer_at: Time,
}

/// The next packet that a queue pair sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextPacket {
    /// Stream position of the first payload byte.
    pub(super) from: u64,
    /// Payload bytes of the packet.
    pub(super) payload: u64,
    /// Whether the packet is a retransmission.
    pub(super) is_retransmission: bool,
    /// Whether the packet requests an acknowledgement.
    pub(super) requests_ack: bool,
}

impl Requester {
    /// Returns the state before the application has posted any data.
    pub(super) fn new() -> Requester {
        Requester {
            ends: VecDeque::new(),
            written: 0,
            acknowledged: 0,
            next: 0,
            highest: 0,
            since_ack_request: 0,
            retries: 0,
            ack_requested_to: 0,
            timer_at: Time::NEVER,
        }
    }

    /// Releases the memory of the list of message ends.
    pub(super) fn release_memory(&mut self) {
        self.ends = VecDeque::new();
    }

    /// Adds a message of `bytes` payload bytes to the stream.
    pub(super) fn write(&mut self, bytes: u64) {
        if bytes > 0 {
            self.written += bytes;
            self.ends.push_back(self.written);
        }
    }

    /// Drops the bytes that were never sent, except for one packet of at most `mtu` bytes. Returns
    /// the length of the remaining stream in bytes.
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

    /// Whether there is a packet to send, and the number of outstanding bytes is below its limit.
    pub(super) fn has_to_send(&self) -> bool {
        self.next < self.written && self.next - self.acknowledged < MOST_OUTSTANDING
    }

    /// Removes and returns the next packet to send, which must exist.
    pub(super) fn take_next(&mut self, now: Time, c: &RoceV2Config) -> NextPacket {
        // Mostly the oldest message that is not acknowledged.
        let end = match self.ends[0] > self.next {
            true => self.ends[0],
            false => self.ends[self.ends.partition_point(|end| *end <= self.next)],
        };
        let (from, payload) = (self.next, u64::from(c.mtu).min(end - self.next));
        let is_retransmission = from < self.highest;
        self.since_ack_request += 1;
        let requests_ack = from + payload == end || self.since_ack_request >= c.ack_every;
        self.next += payload;
        self.highest = self.highest.max(self.next);
        if requests_ack {
            self.since_ack_request = 0;
            self.ack_requested_to = self.next;
            self.timer_at = now + c.timeout;
        }
        NextPacket { from, payload, is_retransmission, requests_ack }
    }

    /// Handles an acknowledgement of all bytes before stream position `position`.
    pub(super) fn on_acknowledged(&mut self, now: Time, position: u64, timeout: Span) {
        if position <= self.acknowledged || position > self.highest {
            return;
        }
        self.acknowledged = position;
        while self.ends.front().is_some_and(|end| *end <= position) {
            self.ends.pop_front();
        }
        // Retransmissions below this position would be unnecessary.
        self.next = self.next.max(position);
        self.retries = 0;
        self.timer_at = if position < self.ack_requested_to { now + timeout } else { Time::NEVER };
    }

    /// Restarts transmission at the lost packet, at stream position `position`: everything from
    /// there is sent again (go-back-N).
    pub(super) fn on_lost(&mut self, position: u64) {
        if position < self.next {
            self.go_back(position.max(self.acknowledged));
        }
    }

    fn go_back(&mut self, position: u64) {
        self.next = position;
        self.ack_requested_to = position;
        self.since_ack_request = 0;
        self.timer_at = Time::NEVER;
    }

    /// Handles a timeout: everything not acknowledged is sent again. Returns whether the retries
    /// are exhausted.
    pub(super) fn on_timeout(&mut self, c: &RoceV2Config) -> bool {
        self.retries += 1;
        self.go_back(self.acknowledged);
        self.retries > c.retries
    }
}
