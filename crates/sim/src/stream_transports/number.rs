//! Numbers that identify transports in packets, timers and samples.

use serde::{Deserialize, Serialize};

/// Number that identifies a transport; 0 is TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportNumber(pub u8);

impl TransportNumber {
    /// The number of TCP.
    pub const TCP: TransportNumber = TransportNumber(0);
    /// Number of low bits of a timer identifier that contain the transport's own number of the
    /// timer; the higher bits contain the number of the transport.
    const TIMER_BITS: u32 = 40;

    /// Returns the identifier of a timer of this transport, unique among all transports; `number`
    /// is the transport's own number of the timer, below 2^40.
    pub fn timer(self, number: u64) -> u64 {
        u64::from(self.0) << TransportNumber::TIMER_BITS | number
    }

    /// Returns the transport to which a timer identifier belongs, and the transport's own number of
    /// the timer.
    pub fn of_timer(id: u64) -> (TransportNumber, u64) {
        let number = (id >> TransportNumber::TIMER_BITS) as u8;
        (TransportNumber(number), id & ((1 << TransportNumber::TIMER_BITS) - 1))
    }
}
