//! One direction of a connection: messages that wait, the one that is being sent, those under way.

use crate::transfer::{Train, Window};
use eastwest_types::{Span, Time};
use std::collections::VecDeque;

/// A message that is not sent yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub train: Train,
    /// Payload and application framing.
    pub bytes: u64,
}

/// A connection's direction.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub waiting: VecDeque<Pending>,
    /// Bytes of messages that have left and not arrived.
    pub under_way: VecDeque<u64>,
    /// Bytes that were written, and those that have arrived.
    pub written: u64,
    pub received: u64,
    /// Its flow, while it sends.
    pub flow: Option<u32>,
    /// A start is on the list of events.
    pub starting: bool,
    /// Rate of its flow, and since when.
    pub rate_bps: u64,
    pub since: Time,
    /// Bits of the first message that are left, and bits of all.
    pub left: f64,
    pub left_in_all: f64,
    /// Bytes of the first message that ports have counted.
    pub counted: u64,
    /// When the first message will have left, and the first event that looks after it.
    pub due: Time,
    pub look: Time,
    /// When the window doubles next; never while it does not.
    pub tick: Time,
    pub window: Window,
    /// The most that its window holds on ports, in bits.
    pub held: u64,
    /// When it last had something to send.
    pub active: Time,
    /// Queues that it met when it started.
    pub lag: Span,
    /// Nothing arrives before this.
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

    /// Whether nothing is left to send or to arrive.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Takes what was sent until now off.
    pub fn progress(&mut self, now: Time) {
        let sent = crate::delay::bits(self.rate_bps, now.since(self.since));
        let sent = sent.min(self.left);
        self.left -= sent;
        self.left_in_all -= sent;
        self.since = now;
    }

    /// Sets when the first message will have left at the present rate.
    pub fn plan(&mut self, now: Time) {
        let ps = (self.left / self.rate_bps as f64 * 1e12).ceil();
        self.due = now + Span((ps as u64).min(Span::MAX.0));
    }

    /// The first message that waits becomes the one that is sent.
    pub fn take_up(&mut self) {
        self.left = self.waiting.front().map_or(0.0, |m| m.train.wire as f64 * 8.0);
        self.counted = 0;
    }
}
