//! The sending half of a queue pair: messages, what is sent of them and acknowledged, and the timer.

use super::config::RoceV2Config;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most bytes that may be outstanding: far fewer than positions on the wire tell apart.
const MOST_OUTSTANDING: u64 = 1 << 30;

/// Sending half of a queue pair. Positions count bytes from 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Requester {
    /// Ends of messages that are not acknowledged.
    ends: VecDeque<u64>,
    /// End of all that is written.
    pub(super) written: u64,
    /// All before this is acknowledged.
    pub(super) acknowledged: u64,
    /// Position of the next byte to send.
    next: u64,
    /// Highest position sent so far.
    highest: u64,
    /// Packets since one asked for an acknowledgement.
    unasked: u32,
    /// Timeouts in a row.
    retries: u32,
    /// End of the last packet that asked for an acknowledgement; the timer runs until it is acknowledged.
    asked: u64,
    /// When the retransmission timer expires.
    pub(super) timer_at: Time,
}

/// A packet that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Position of its first byte.
    pub(super) from: u64,
    /// Bytes of payload.
    pub(super) payload: u64,
    /// It was sent before.
    pub(super) again: bool,
    /// It asks for an acknowledgement.
    pub(super) asks: bool,
}

impl Requester {
    /// Nothing is written.
    pub(super) fn new() -> Requester {
        Requester {
            ends: VecDeque::new(),
            written: 0,
            acknowledged: 0,
            next: 0,
            highest: 0,
            unasked: 0,
            retries: 0,
            asked: 0,
            timer_at: Time::NEVER,
        }
    }

    /// Leaves no messages behind.
    pub(super) fn forget(&mut self) {
        self.ends = VecDeque::new();
    }

    /// Adds a message.
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

    /// Returns whether there is something to send.
    pub(super) fn has_to_send(&self) -> bool {
        self.next < self.written && self.next - self.acknowledged < MOST_OUTSTANDING
    }

    /// Takes the next packet, which there must be.
    pub(super) fn take_next(&mut self, now: Time, c: &RoceV2Config) -> Piece {
        let message = self.ends.partition_point(|end| *end <= self.next);
        let end = self.ends[message];
        let (from, payload) = (self.next, u64::from(c.mtu).min(end - self.next));
        let again = from < self.highest;
        self.unasked += 1;
        let asks = from + payload == end || self.unasked >= c.ack_every;
        self.next += payload;
        self.highest = self.highest.max(self.next);
        if asks {
            self.unasked = 0;
            self.asked = self.next;
            self.timer_at = now + c.timeout;
        }
        Piece { from, payload, again, asks }
    }

    /// Everything before `position` has arrived.
    pub(super) fn on_acknowledged(&mut self, now: Time, position: u64, timeout: Span) {
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

    /// The packet at `position` was lost: sends again from there.
    pub(super) fn on_lost(&mut self, position: u64) {
        if position < self.next {
            self.go_back(position.max(self.acknowledged));
        }
    }

    fn go_back(&mut self, position: u64) {
        self.next = position;
        self.asked = position;
        self.unasked = 0;
        self.timer_at = Time::NEVER;
    }

    /// Handles a timeout: goes back to the acknowledged position. Returns whether the retries are exhausted.
    pub(super) fn on_timeout(&mut self, c: &RoceV2Config) -> bool {
        self.retries += 1;
        self.go_back(self.acknowledged);
        self.retries > c.retries
    }
}
