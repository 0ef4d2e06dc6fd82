//! Error queue of a socket with `MSG_ZEROCOPY`: when all bytes of a send are acknowledged, a range
//! of send numbers reports that its memory is free again (Linux,
//! `Documentation/networking/msg_zerocopy.rst`). Every notification reports that the data was
//! copied, as on the test device of the public tool.

use std::collections::VecDeque;

/// Error queue of a socket: notifications that `MSG_ZEROCOPY` sends are complete, which the
/// application has not read. Also keeps the `MSG_ZEROCOPY` sends that are not yet acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Notifications {
    /// Whether `SO_ZEROCOPY` is set on the socket.
    pub on: bool,
    /// Position in the stream of the end of each unacknowledged send, in bytes.
    ends: VecDeque<u64>,
    /// Number of the first send in `ends`.
    next: u32,
    /// Ranges of finished sends (first, last) that the application has not read.
    queue: VecDeque<(u32, u32)>,
    /// Number of complete sends so far.
    count: u64,
}

impl Notifications {
    /// Records a `MSG_ZEROCOPY` send whose data ends at position `end` of the stream, in bytes.
    pub fn sent(&mut self, end: u64) {
        self.ends.push_back(end);
    }

    /// Handles the acknowledgement of the first `acknowledged` bytes of the stream: queues a
    /// notification for the `MSG_ZEROCOPY` sends that this completes.
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

    /// Whether the application has read all notifications.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of `MSG_ZEROCOPY` sends that are complete, whether or not the application
    /// has read their notification.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Removes and returns the oldest notification: the numbers of the first and the last send of a
    /// range that is complete. `None` if the queue is empty.
    pub fn take(&mut self) -> Option<(u32, u32)> {
        self.queue.pop_front()
    }
}
