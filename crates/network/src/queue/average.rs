//! Average queue length of random early detection (RED; Floyd and Jacobson 1993, section 4 and
//! equation 2.1). For each arriving packet, `avg ← avg + w·(q − avg)`, where `q` is the current
//! queue length. After an idle time in which `m` packets could have been sent, `avg ← avg·(1 −
//! w)^m`. With `w = 1` the average is the current queue length.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Average queue length of RED at one port, with the settings of the averaging.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Average {
    /// Weight of the current queue length in the average, from 0 to 1.
    weight: f64,
    /// Transmission time of a packet of mean size in picoseconds.
    packet_ps: f64,
    value: f64,
}

impl Average {
    /// Returns the average of an empty queue. `weight` is the weight of the current queue, and
    /// `packet_ps` the transmission time of a packet of mean size in ps.
    pub fn new(weight: f64, packet_ps: u64) -> Average {
        Average { weight, packet_ps: packet_ps.max(1) as f64, value: 0.0 }
    }

    /// Returns the average queue length, in the unit of the thresholds (packets or IP bytes) of
    /// RED.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
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
                // Times are shorter than 2⁶³ ps, and the conversion of signed numbers is faster.
                let packets = idle.0 as i64 as f64 / self.packet_ps;
                self.value *= power(1.0 - w, packets as i64);
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
fn power(mut base: f64, mut exponent: i64) -> f64 {
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
