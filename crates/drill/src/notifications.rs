//! The error queue of a socket with `MSG_ZEROCOPY`: when all bytes of a send are acknowledged, a range of
//! send numbers tells that its memory is free again (Linux, `Documentation/networking/msg_zerocopy.rst`).
//! Every notification says that the data was copied, as on the test device of the public tool.

use std::collections::VecDeque;

/// Sends whose memory is in use, and what the application has not been told.
#[derive(Clone, Debug, Default)]
pub struct Notifications {
    /// Whether `SO_ZEROCOPY` is set.
    pub on: bool,
    /// Bytes of the connection up to the end of each send that is not acknowledged.
    ends: VecDeque<u64>,
    /// Number of the first of them.
    next: u32,
    /// Ranges of sends that are done: first and last.
    queue: VecDeque<(u32, u32)>,
    /// How often something was put there.
    count: u64,
}

impl Notifications {
    /// A send that ends when so many bytes are written.
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

    /// Whether there is something to tell.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How often something was put into the queue.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the oldest range.
    pub fn take(&mut self) -> Option<(u32, u32)> {
        self.queue.pop_front()
    }
}
