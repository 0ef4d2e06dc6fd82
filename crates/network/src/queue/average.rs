//! The average length of a queue that RED follows: `avg ← avg + w·(q − avg)` with every packet that
//! comes, and `avg ← avg·(1 − w)^m` after an idle time that would have let `m` packets pass (Floyd and Jacobson
//! 1993, section 4 and equation 2.1). `w = 1` takes the queue of the moment.

use super::decision::{Level, least_packets};
use eastwest_types::{Limit, Span};
use serde::{Deserialize, Serialize};

/// Settings and value of one port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Average {
    /// Weight of the queue of the moment.
    weight: f64,
    /// Below this the discipline lets every packet in that fits.
    min: Level,
    limit: Limit,
    /// Picoseconds a mean packet takes.
    packet_ps: f64,
    value: f64,
}

impl Average {
    /// Returns the average of an empty queue. `packet_ps` is the time to send a mean packet.
    pub fn new(weight: f64, min: Level, limit: Limit, packet_ps: u64) -> Average {
        Average { weight, min, limit, packet_ps: packet_ps.max(1) as f64, value: 0.0 }
    }

    /// The average in the unit of the thresholds.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whether the average is more than the queue of the moment.
    pub fn follows(&self) -> bool {
        self.weight < 1.0
    }

    /// A packet that finds fewer packets than this at its port, waiting or on the wire, is let in and
    /// changes nothing but the average while that is low, see [`Average::arrivals_below_min`]. Zero where levels
    /// count bytes.
    pub fn fast_path_limit(&self, mtu: u32) -> u32 {
        let Level::Packets(min) = self.min else { return 0 };
        let most = if self.follows() { 4.0 * min } else { min.ceil() };
        (most as u32).min(least_packets(self.limit, mtu))
    }

    /// Returns a number of packets that, if each finds fewer than `most` waiting, leave the average below `min`
    /// whenever they come. An arrival raises it by less than `w · (most − 1)`.
    #[inline]
    pub fn arrivals_below_min(&self, most: u32) -> u32 {
        if !self.follows() {
            return u32::MAX;
        }
        let (room, each) = (self.min.value() - self.value, self.weight * f64::from(most));
        // the cast gives zero below zero; rounding is far less than what `most` is above `most − 1`
        (room / each) as u32
    }

    /// The average after a packet that finds `queue` waiting, at a port that has been idle for a time
    /// or is not.
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

    /// Sets the value, for tests of what follows from it.
    #[cfg(test)]
    pub(super) fn set(&mut self, value: f64) {
        self.value = value;
    }
}

/// `base` to a whole power by squaring: the same bits on every machine.
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
