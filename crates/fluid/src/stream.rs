//! One direction of a connection: messages that wait, the one in transfer, and those in flight.

use crate::transfer::{Train, Window};
use eastwest_types::{Span, Time};
use std::collections::VecDeque;

/// A message of which the sender has not sent the last byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub train: Train,
    /// Payload and application framing in bytes.
    pub bytes: u64,
}

/// One direction of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub waiting: VecDeque<Pending>,
    /// Bytes of each message in flight.
    pub under_way: VecDeque<u64>,
    /// Bytes written by the sender.
    pub written: u64,
    /// Bytes that have arrived.
    pub received: u64,
    /// Number of the flow in the rate allocation; `None` while nothing is sent.
    pub flow: Option<u32>,
    /// A start event is scheduled.
    pub starting: bool,
    /// Present rate of the flow in bit/s.
    pub rate_bps: u64,
    /// Time from which `rate_bps` holds and up to which `left` is computed.
    pub since: Time,
    /// Bits of the first message that are not sent yet.
    pub left: f64,
    /// Bits of all messages that are not sent yet.
    pub left_in_all: f64,
    /// Bytes of the first message that ports have counted.
    pub counted: u64,
    /// Time at which the first message will have been sent at the present rate.
    pub due: Time,
    /// Time of the event that checks whether the first message has been sent, or never.
    pub look: Time,
    /// Time of the next doubling of the window; never outside slow start.
    pub tick: Time,
    pub window: Window,
    /// Window of this direction that its ports count, in bits.
    pub held: u64,
    /// Time at which this direction last had data to send.
    pub active: Time,
    /// Queueing delay of the path when sending started.
    pub lag: Span,
    /// Time of the last arrival: no arrival may be earlier.
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

    /// Subtracts the data sent until `now`.
    pub fn progress(&mut self, now: Time) {
        let sent = crate::delay::bits(self.rate_bps, now.since(self.since));
        let sent = sent.min(self.left);
        self.left -= sent;
        self.left_in_all -= sent;
        self.since = now;
    }

    /// Sets the time at which the first message will have been sent at the present rate.
    pub fn plan(&mut self, now: Time) {
        let ps = (self.left / self.rate_bps as f64 * 1e12).ceil();
        self.due = now + Span((ps as u64).min(Span::MAX.0));
    }

    /// Begins to send the first waiting message.
    pub fn take_up(&mut self) {
        self.left = self.waiting.front().map_or(0.0, |m| m.train.wire as f64 * 8.0);
        self.counted = 0;
    }
}
