//! Congestion control: how the window grows and how far it falls.

mod new_reno;

use crate::tcp::config::CongestionKind;

/// The congestion window of one sender, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    pub credit: u64,
}

impl Window {
    /// The window a connection starts with: no threshold yet (RFC 5681, 3.1).
    pub fn new(initial: u64) -> Window {
        Window { cwnd: initial, ssthresh: u64::MAX, credit: 0 }
    }

    /// Whether the window doubles every round trip.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `acked` bytes were acknowledged while the window was the limit. `after_timeout` is true until
    /// all that was outstanding at a timeout is acknowledged.
    #[inline]
    pub fn on_ack(&mut self, kind: CongestionKind, acked: u64, segment: u64, after_timeout: bool) {
        match kind {
            CongestionKind::NewReno => new_reno::on_ack(self, acked, segment, after_timeout),
        }
    }

    /// The threshold after a loss with `flight` bytes outstanding.
    pub fn threshold_after_loss(&self, kind: CongestionKind, flight: u64, segment: u64) -> u64 {
        match kind {
            CongestionKind::NewReno => new_reno::threshold_after_loss(flight, segment),
        }
    }
}
