//! One direction of a connection: messages that wait, the message in transfer, and messages in
//! flight.

use crate::transfer::{Train, Window};
use eastwest_types::{Span, Time};
use std::collections::VecDeque;

/// A message of a stream whose last byte has not been sent yet: it waits, or its bytes are being
/// sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub train: Train,
    /// Bytes of the message: payload and application framing.
    pub bytes: u64,
}

/// One direction of a connection in flow mode: its messages and its flow.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub waiting: VecDeque<Pending>,
    /// Bytes of each message that has been sent and has not arrived.
    pub under_way: VecDeque<u64>,
    /// Payload bytes that the sender has written.
    pub written: u64,
    /// Payload bytes that have arrived at the receiver.
    pub received: u64,
    /// Number of the flow in the computation of rates; `None` while nothing is sent.
    pub flow: Option<u32>,
    /// Whether the start of sending is scheduled as an event.
    pub starting: bool,
    /// Current rate of the flow in bit/s.
    pub rate_bps: u64,
    /// Time from which `rate_bps` applies, and up to which `left` is computed.
    pub since: Time,
    /// Bits of the first waiting message that have not been sent until `since`.
    pub left: f64,
    /// Bits of all waiting messages that have not been sent until `since`.
    pub left_in_all: f64,
    /// Bytes of the first waiting message that the counters of the ports already include.
    pub counted: u64,
    /// Time at which the first waiting message will have been sent if the rate does not change.
    pub due: Time,
    /// Time of the event that checks whether the first waiting message has been sent;
    /// [`Time::NEVER`] if no such event is scheduled.
    pub look: Time,
    /// Time at which the window doubles next; [`Time::NEVER`] outside of slow start.
    pub tick: Time,
    pub window: Window,
    /// Bits by which this stream contributes to the sum of windows at each port of its path.
    pub held: u64,
    /// Time at which this direction last had data to send.
    pub active: Time,
    /// Queueing delay of the path, measured when sending last started.
    pub lag: Span,
    /// Time of the last arrival; no later message may arrive before it.
    pub last_arrival: Time,
}

impl Stream {
    pub fn new(window: Window) -> Stream {
        Stream {
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            written: 0,
            received: 0,
            flow: None,
            starting: false,
            rate_bps: 0,
            since: Time::ZERO,
            left: 0.0,
            left_in_all: 0.0,
            counted: 0,
            due: Time::NEVER,
            look: Time::NEVER,
            tick: Time::NEVER,
            window,
            held: 0,
            active: Time::ZERO,
            lag: Span::ZERO,
            last_arrival: Time::ZERO,
        }
    }

    /// Whether all messages have been sent and have arrived.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Returns the bits of the first waiting message that were sent between `since` and `now`.
    fn sent_since(&self, now: Time) -> f64 {
        crate::delay::bits(self.rate_bps, now.since(self.since)).min(self.left)
    }

    /// Returns the bytes of the first waiting message that were sent until `now` and that the
    /// counters of the ports do not include yet.
    pub fn uncounted(&self, now: Time) -> u64 {
        let left = self.left - self.sent_since(now);
        let whole = self.waiting.front().map_or(0, |m| m.train.wire);
        let sent = whole - ((left / 8.0).ceil() as u64).min(whole);
        sent.saturating_sub(self.counted)
    }

    /// Subtracts the bits sent between `since` and `now` from the bits that are left to send.
    pub fn progress(&mut self, now: Time) {
        let sent = self.sent_since(now);
        self.left -= sent;
        self.left_in_all -= sent;
        self.since = now;
    }

    /// Computes the time (`due`) at which the first waiting message will have been sent if the rate
    /// does not change.
    pub fn plan(&mut self, now: Time) {
        let ps = (self.left / self.rate_bps as f64 * 1e12).ceil();
        self.due = now + Span((ps as u64).min(Span::MAX.0));
    }

    /// Begins to send the first waiting message, if there is one.
    pub fn take_up(&mut self) {
        self.left = self.waiting.front().map_or(0.0, |m| m.train.wire as f64 * 8.0);
        self.counted = 0;
    }
}
