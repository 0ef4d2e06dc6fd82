//! Average queue length of RED: `avg ← avg + w·(q − avg)` with every packet that arrives, and `avg ← avg·(1 −
//! w)^m` after an idle time in which `m` packets could have been sent (Floyd and Jacobson 1993, section 4 and
//! equation 2.1). With `w = 1` the average is the current queue.

use super::decision::{Level, least_packets};
use eastwest_types::{Limit, Span};
use serde::{Deserialize, Serialize};

/// Average queue length of RED at one port: settings and value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Average {
    /// Weight of the present queue.
    weight: f64,
    /// Below this average the discipline admits every packet that fits.
    min: Level,
    limit: Limit,
    /// Transmission time of a mean packet in picoseconds.
    packet_ps: f64,
    value: f64,
}

impl Average {
    /// Returns the average of an empty queue. `packet_ps` is the transmission time of a mean packet
    /// in ps.
    pub fn new(weight: f64, min: Level, limit: Limit, packet_ps: u64) -> Average {
        Average { weight, min, limit, packet_ps: packet_ps.max(1) as f64, value: 0.0 }
    }

    /// Returns the average queue length in the unit of the thresholds: packets or IP bytes.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whether the average depends on earlier queues too, not only on the present one.
    pub fn follows(&self) -> bool {
        self.weight < 1.0
    }

    /// Returns the number of packets below which RED need not decide: a packet that finds fewer at
    /// its port, queued or on the wire, is admitted and changes only the average, for as many
    /// arrivals as [`Average::arrivals_below_min`] returns. 0 where levels count bytes.
    pub fn fast_path_limit(&self, mtu: u32) -> u32 {
        let Level::Packets(min) = self.min else { return 0 };
        let most = if self.follows() { 4.0 * min } else { min.ceil() };
        (most as u32).min(least_packets(self.limit, mtu))
    }

    /// Returns the number of arrivals that leave the average below `min`, whenever they come, if
    /// each finds fewer than `most` packets queued. An arrival raises the average by less than `w ·
    /// (most − 1)`.
    #[inline]
    pub fn arrivals_below_min(&self, most: u32) -> u32 {
        if !self.follows() {
            return u32::MAX;
        }
        let (room, each) = (self.min.value() - self.value, self.weight * f64::from(most));
        // The cast saturates negative values to zero; the rounding error is far below the margin of one packet
        // in `most − 1`.
        (room / each) as u32
    }

    /// Updates the average queue when a packet arrives. `queue` is the queue that it finds, in the
    /// unit of the thresholds; `idle` is how long the port has been idle, `None` while it is busy.
    #[inline]
    pub fn follow(&mut self, queue: f64, idle: Option<Span>) {
        let w = self.weight;
        if w >= 1.0 {
            self.value = queue;
            return;
        }
        match idle {
            None => self.value += w * (queue - self.value),
            Some(idle) if self.value > 0.0 => {
                self.value *= power(1.0 - w, (idle.0 as f64 / self.packet_ps) as u64);
            }
            Some(_) => {}
        }
    }

    /// Sets the value, for tests.
    #[cfg(test)]
    pub(super) fn set(&mut self, value: f64) {
        self.value = value;
    }
}

/// Returns `base` to an integer power, by squaring: bit-identical on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
