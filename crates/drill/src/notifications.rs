//! Error queue of a socket with `MSG_ZEROCOPY`: when all bytes of a send are acknowledged, a range
//! of send numbers reports that its memory is free again (Linux,
//! `Documentation/networking/msg_zerocopy.rst`). Every notification reports that the data was
//! copied, as on the test device of the public tool.

use std::collections::VecDeque;

/// Sends whose memory is in use, and notifications not yet read.
#[derive(Clone, Debug, Default)]
pub struct Notifications {
    /// Whether `SO_ZEROCOPY` is set.
    pub on: bool,
    /// Position in the stream of the end of each unacknowledged send, in bytes.
    ends: VecDeque<u64>,
    /// Number of the first send in `ends`.
    next: u32,
    /// Ranges of finished sends (first, last) that the application has not read.
    queue: VecDeque<(u32, u32)>,
    /// Number of additions to the queue so far.
    count: u64,
}

impl Notifications {
    /// Notes a send that ends at position `end` of the stream.
    pub fn sent(&mut self, end: u64) {
        self.ends.push_back(end);
    }

    /// Notes that the first `acknowledged` bytes of the stream are acknowledged.
    pub fn note(&mut self, acknowledged: u64) {
        while self.ends.front().is_some_and(|end| *end <= acknowledged) {
            self.ends.pop_front();
            match self.queue.back_mut() {
                Some((_, last)) => *last = self.next,
                None => self.queue.push_back((self.next, self.next)),
            }
            self.next = self.next.wrapping_add(1);
            self.count += 1;
        }
    }

    /// Whether the error queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of additions to the queue so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Removes and returns the oldest range.
    pub fn take(&mut self) -> Option<(u32, u32)> {
        self.queue.pop_front()
    }
}
