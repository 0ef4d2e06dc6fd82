//! Time in which a sender was busy, and in which the receive window limited it: `tcpi_busy_time`
//! and `tcpi_rwnd_limited` (Linux, `tcp_chrono_start`).

use eastwest_transport::tcp::info::Info;
use eastwest_types::{Span, Time};

/// Condition that limits a sender at present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Waits {
    /// Nothing to send: all written data is acknowledged.
    #[default]
    Idle,
    /// The sender waits for ACKs, or for its congestion window.
    Busy,
    /// The sender waits for the receive window of the other end.
    Window,
}

/// Time since the connection opened in which a sender was busy, and the part of it in which the
/// other end's receive window limited the sender (Linux, `tcpi_busy_time` and `tcpi_rwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    waits: Waits,
    since: Time,
    busy: Span,
    window: Span,
}

impl Limits {
    /// Adds the time since the previous call to the times of the sender's condition so far, and
    /// determines its condition from now on. The triple holds three numbers of bytes: bytes held
    /// back at the socket, the congestion window, and the payload of a full segment.
    pub fn note(&mut self, now: Time, info: &Info, (held, cwnd, segment): (u64, u64, u64)) {
        let next = info.unsent.min(segment);
        let waits = if info.outstanding + info.unsent + held == 0 {
            Waits::Idle
        } else if next > 0
            && info.outstanding + next > u64::from(info.peer_window)
            && info.outstanding + next <= cwnd
        {
            Waits::Window
        } else {
            Waits::Busy
        };
        (self.busy, self.window) = self.until(now);
        (self.waits, self.since) = (waits, now);
    }

    /// Returns the busy time until `now`, and the part of it in which the other end's receive
    /// window limited the sender.
    pub fn until(&self, now: Time) -> (Span, Span) {
        let passed = now.since(self.since);
        match self.waits {
            Waits::Idle => (self.busy, self.window),
            Waits::Busy => (Span(self.busy.0 + passed.0), self.window),
            Waits::Window => (Span(self.busy.0 + passed.0), Span(self.window.0 + passed.0)),
        }
    }
}
