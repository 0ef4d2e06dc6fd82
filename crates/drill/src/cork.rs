//! Small writes that an endpoint holds back, as in Linux: those with `MSG_MORE`, and all writes
//! while `TCP_CORK` is set. Full segments are sent at once. The rest is sent with the next write
//! that is not held back, with the next ACK (`MSG_MORE` only), when `TCP_CORK` is cleared or
//! `TCP_NODELAY` is set, and after one retransmission timeout if nothing is outstanding.

use eastwest_types::{Span, Time};

/// Written data that an endpoint does not send yet because of `MSG_MORE` or `TCP_CORK`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cork {
    /// Whether `TCP_CORK` is set, with which all incomplete segments are held back.
    pub on: bool,
    /// Number of written bytes that are held back.
    held: u64,
    due: Option<Time>,
}

impl Cork {
    /// Returns the number of written bytes that are held back (`MSG_MORE`, `TCP_CORK`).
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the time at which the bytes held back are sent even if no other event sends them
    /// before; `None` if no time is set.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Adds `bytes` to the bytes held back. If these and the `unsent` bytes of the connection fill
    /// whole segments of `segment` bytes, removes the bytes that fill them and returns their
    /// number; otherwise returns 0.
    pub fn add(&mut self, bytes: u64, unsent: u64, segment: u64) -> u64 {
        self.held += bytes;
        let full = (unsent + self.held) / segment * segment;
        let leaves = full.saturating_sub(unsent).min(self.held);
        self.held -= leaves;
        leaves
    }

    /// Sets the latest time of sending to `now` + `timeout`, if data is held back, no data is
    /// outstanding and no time is set yet.
    pub fn arm(&mut self, now: Time, outstanding: u64, timeout: Span) {
        if self.held > 0 && outstanding == 0 && self.due.is_none() {
            self.due = Some(now + timeout);
        }
    }

    /// Removes all data held back, and returns its number of bytes.
    pub fn release(&mut self) -> u64 {
        self.due = None;
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_segments_leave_and_the_rest_waits_for_a_timeout_at_most() {
        let mut cork = Cork::default();
        assert_eq!(cork.add(3_100, 0, 1_000), 3_000);
        assert_eq!((cork.add(50, 0, 1_000), cork.held()), (0, 150));
        assert_eq!(
            cork.add(400, 500, 1_000),
            500,
            "they fill the segment that waits for the window"
        );
        cork.arm(Time(5), 1, Span(7));
        assert_eq!(cork.due(), None, "an ACK will come");
        cork.arm(Time(5), 0, Span(7));
        cork.arm(Time(6), 0, Span(7));
        assert_eq!(cork.due(), Some(Time(12)));
        assert_eq!((cork.release(), cork.held(), cork.due()), (50, 0, None));
    }
}
