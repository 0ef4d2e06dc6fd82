//! Average queue length of random early detection (RED; Floyd and Jacobson 1993, section 4 and
//! equation 2.1). For each arriving packet, `avg ← avg + w·(q − avg)`, where `q` is the current
//! queue length. After an idle time in which `m` packets could have been sent, `avg ← avg·(1 −
//! w)^m`. With `w = 1` the average is the current queue length.

use super::decision::{LARGEST_BARE_PACKET, Level, least_packets};
use eastwest_types::{Limit, Span};
use serde::{Deserialize, Serialize};

/// Average queue length of RED at one port, with the settings of the averaging.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Average {
    /// Weight of the current queue length in the average, from 0 to 1.
    weight: f64,
    /// Lower threshold of RED: while the average is below this threshold, every packet that fits is
    /// admitted.
    min: Level,
    limit: Limit,
    /// Transmission time of a packet of mean size in picoseconds.
    packet_ps: f64,
    value: f64,
}

impl Average {
    /// Returns the average of an empty queue. `weight` is the weight of the current queue, `min`
    /// the lower threshold of RED, and `packet_ps` the transmission time of a packet of mean size
    /// in ps.
    pub fn new(weight: f64, min: Level, limit: Limit, packet_ps: u64) -> Average {
        Average { weight, min, limit, packet_ps: packet_ps.max(1) as f64, value: 0.0 }
    }

    /// Returns the average queue length, in the unit of the thresholds (packets or IP bytes) of
    /// RED.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whether the average depends on earlier queue lengths: the weight of the current queue is
    /// below 1.
    pub fn follows(&self) -> bool {
        self.weight < 1.0
    }

    /// Returns the length below which a queue needs no decision of RED: a packet that finds fewer
    /// packets of its port, queued or on the wire, is admitted and changes only the average. This
    /// is valid for the number of arrivals that [`Average::arrivals_below_min`] returns. The result
    /// is 0 if thresholds are in bytes.
    pub fn fast_path_limit(&self, mtu: u32) -> u32 {
        let Level::Packets(min) = self.min else { return 0 };
        let most = if self.follows() { 4.0 * min } else { min.ceil() };
        (most as u32).min(least_packets(self.limit, mtu))
    }

    /// Returns the number of queued packets below which RED admits every packet without a change
    /// that a later decision could depend on; 0 if the average depends on earlier queue lengths.
    pub fn admits_below(&self, mtu: u32) -> u32 {
        if self.follows() {
            return 0;
        }
        let packets = match self.min {
            Level::Packets(min) => min,
            Level::Bytes(min) => min / f64::from(mtu.max(LARGEST_BARE_PACKET)),
        };
        (packets as u32).min(least_packets(self.limit, mtu))
    }

    /// Returns the number of further arrivals for which the average certainly stays below the
    /// threshold `min`, at any times of arrival, if each arrival finds fewer than `most` packets
    /// queued. An arrival raises the average by less than `w · (most − 1)`.
    #[inline]
    pub fn arrivals_below_min(&self, most: u32) -> u32 {
        if !self.follows() {
            return u32::MAX;
        }
        let (room, each) = (self.min.value() - self.value, self.weight * f64::from(most));
        // The cast turns negative values into zero. Rounding errors do not matter, since the result
        // has a margin: `each` uses `most` although `most − 1` would be sufficient.
        (room / each) as u32
    }

    /// Updates the average when a packet arrives. `queue` is the queue length before this packet,
    /// in the unit of the thresholds (packets or IP bytes). `idle` is the time for which the port
    /// has been idle, `None` if the port is busy.
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

    /// Sets the average; used by tests.
    #[cfg(test)]
    pub(super) fn set(&mut self, value: f64) {
        self.value = value;
    }
}

/// Returns `base` to the power `exponent`, by repeated squaring, so that the result is
/// bit-identical on every machine.
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
