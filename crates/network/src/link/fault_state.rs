//! State of a link under faults. Both kinds of ports follow the same rules, so that they treat every packet
//! equally; a change at an instant is carried out after all other events of that instant.
//!
//! * **Loss** is decided when a packet gets to the far end, by the loss model in force then.
//! * **A rate** holds for packets whose first bit is sent after the change: the one being sent finishes as it
//!   started, queued packets are timed anew.
//! * **Delay and jitter** hold for the same packets. A link keeps the order: a packet that would overtake the
//!   one in front of it arrives together with it.
//! * **Down**: the port sends as before, and its packets are lost. A packet arrives only if the link was up
//!   from its first bit sent until its arrival.
//!
//! A packet that is lost in flight is removed at the time of its arrival, as an event of
//! [`Class::Departure`](eastwest_engine::order::Class::Departure).

use crate::fault::LossChain;
use crate::losses::Cause;
use eastwest_engine::random::Stream;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// State of a link for which the scenario has faults.
#[derive(Serialize, Deserialize)]
pub(super) struct FaultState {
    /// Picoseconds per byte without faults, times 2¹⁶.
    pub(super) own_ps_per_byte_q16: u64,
    /// Number of failures in force.
    pub(super) failures: u32,
    /// Number of packets at the head of the ring that a past failure has hit: they will be lost.
    pub(super) doomed: usize,
    pub(super) loss: Option<LossChain>,
    pub(super) random: Stream,
    pub(super) jitter: Span,
    pub(super) jitter_seed: u64,
    /// Packets lost in flight.
    pub(super) lost: u64,
    /// Number of the packet for which the loss model was last asked, and whether it is lost.
    pub(super) drawn: Option<(u64, bool)>,
    /// At an eager port, packets sent by this time started before the last change of rate.
    pub(super) settled: Time,
    /// Longest wait and longest queue in bytes at earlier rates.
    pub(super) longest: (Span, u64),
    /// Bytes on the link of packets lost in flight.
    pub(super) lost_bytes: u64,
    pub(super) earlier: EarlierRates,
}

/// Time for which a link has been sending, where faults have changed its rate. Bytes are counted in the order
/// in which they arrive or are lost; each was sent at the rate in force when its packet started.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct EarlierRates {
    /// A count of bytes, all of them arrived or lost, and the time of sending them, in picoseconds times 2¹⁶.
    over: (u64, u128),
    /// For each earlier rate with bytes beyond that count: the count up to which bytes were sent at that rate,
    /// and its picoseconds per byte, times 2¹⁶.
    open: Vec<(u64, u64)>,
}

impl EarlierRates {
    /// Notes a change of rate: `passed` bytes have arrived or were lost, and those up to `started` are sent at
    /// the old rate.
    pub fn end(&mut self, passed: u64, started: u64, ps_per_byte_q16: u64) {
        while let Some(&(until, own)) = self.open.first().filter(|(until, _)| *until <= passed) {
            self.over = (until, self.over.1 + u128::from(until - self.over.0) * u128::from(own));
            self.open.remove(0);
        }
        self.open.push((started, ps_per_byte_q16));
    }

    /// Returns the time, in picoseconds, that the transmission of the first `passed` bytes took;
    /// bytes after the last change of rate were sent at the present rate, `ps_per_byte_q16`.
    pub fn sending(&self, passed: u64, ps_per_byte_q16: u64) -> u128 {
        let (mut at, mut sum) = self.over;
        for &(until, own) in self.open.iter().chain([&(passed, ps_per_byte_q16)]) {
            let end = until.min(passed).max(at);
            sum += u128::from(end - at) * u128::from(own);
            at = end;
        }
        sum >> 16
    }
}

impl FaultState {
    /// Decides by the loss model whether packet `number` of the link is lost; decides once per
    /// packet.
    pub fn draw(&mut self, number: u64) {
        if self.drawn.is_none_or(|(drawn, _)| drawn != number) {
            let lost = self.loss.as_mut().is_some_and(|chain| chain.loses(&mut self.random));
            self.drawn = Some((number, lost));
        }
    }

    /// Returns the cause by which the packet that would arrive next is lost; `None` if it is not
    /// lost.
    pub fn cause(&self) -> Option<Cause> {
        if self.failures > 0 || self.doomed > 0 {
            return Some(Cause::LinkDown);
        }
        self.drawn.is_some_and(|(_, lost)| lost).then_some(Cause::Loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_was_sent_at_the_rate_of_its_time() {
        let mut earlier = EarlierRates::default();
        assert_eq!(earlier.sending(100, 3 << 16), 300);
        earlier.end(100, 150, 3 << 16);
        assert_eq!(earlier.sending(120, 7 << 16), 360, "what was on the way is sent as it began");
        assert_eq!(earlier.sending(160, 7 << 16), 450 + 70);
        earlier.end(120, 160, 7 << 16);
        assert_eq!(earlier.sending(170, 3 << 16), 450 + 70 + 30);
        earlier.end(200, 200, 3 << 16);
        assert_eq!((earlier.sending(200, 1 << 16), earlier.open.len()), (450 + 70 + 120, 1));
    }
}
