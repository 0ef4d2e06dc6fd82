//! Congestion window of a sender, with its slow-start threshold.

use serde::{Deserialize, Serialize};

/// Congestion window of one sender, with its slow-start threshold, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` until slow start ends for the first time.
    pub ssthresh: u64,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    pub credit: u64,
}

impl Window {
    /// Returns the window of a new connection: `initial` bytes, without threshold (RFC 5681, 3.1).
    pub fn new(initial: u64) -> Window {
        Window { cwnd: initial, ssthresh: u64::MAX, credit: 0 }
    }

    /// Whether the window is below the slow start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}
