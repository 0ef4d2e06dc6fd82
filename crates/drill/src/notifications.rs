//! Error queue of a socket with `MSG_ZEROCOPY`. When all bytes of a send are acknowledged, a
//! notification with a range of send numbers reports that the memory is free again (Linux,
//! `Documentation/networking/msg_zerocopy.rst`). Every notification reports that the data was
//! copied, as on the test device of packetdrill.

use std::collections::VecDeque;

/// Error queue of a socket: notifications of completed `MSG_ZEROCOPY` sends, which the application
/// has not read yet. It also stores the `MSG_ZEROCOPY` sends that are not yet acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Notifications {
    /// Whether `SO_ZEROCOPY` is set on the socket.
    pub on: bool,
    /// End of each unacknowledged send, as a position in the byte stream.
    ends: VecDeque<u64>,
    /// Number of the first send in `ends`; sends are numbered from 0.
    next: u32,
    /// Ranges (first, last) of the numbers of completed sends that the application has not read
    /// yet.
    queue: VecDeque<(u32, u32)>,
    /// Number of completed sends so far.
    count: u64,
}

impl Notifications {
    /// Records a `MSG_ZEROCOPY` send whose data ends at byte position `end` of the stream.
    pub fn sent(&mut self, end: u64) {
        self.ends.push_back(end);
    }

    /// Handles the acknowledgement of the first `acknowledged` bytes of the stream. Each
    /// `MSG_ZEROCOPY` send that this completes extends the notification in the error queue, or adds
    /// a notification if the queue is empty.
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

    /// Whether the error queue holds no notification for the application.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of `MSG_ZEROCOPY` sends that are completed, whether or not the
    /// application has read their notifications.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Removes and returns the oldest notification: the numbers of the first and the last send of a
    /// completed range. `None` if the queue is empty.
    pub fn take(&mut self) -> Option<(u32, u32)> {
        self.queue.pop_front()
    }
}
