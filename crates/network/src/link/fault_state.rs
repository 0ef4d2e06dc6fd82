//! State of a link under faults. The rules are the same in all modes of a port, so that the mode
//! has no effect on packets. A change by a fault is applied after all other events at the same
//! time.
//!
//! * **Loss**: the loss model in force decides when a packet reaches the far end.
//! * **Rate**: a new rate applies to packets whose transmission starts after the change. The
//!   packet in transmission finishes at the old rate; the times of queued packets are computed
//!   again.
//! * **Delay and jitter**: new values apply to packets whose transmission starts after the change.
//!   Packets stay in order: a packet that would overtake the previous packet arrives at the same
//!   time as that packet.
//! * **Down**: the port sends as usual, and its packets are lost. A packet arrives only if the
//!   link was up from the start of its transmission until its arrival.
//!
//! A packet that is lost in flight is removed at the time at which it would have arrived, as an
//! event of [`Class::Departure`](eastwest_engine::order::Class::Departure).

use crate::fault::LossChain;
use crate::losses::Cause;
use eastwest_engine::random::Stream;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// State of a link under faults: failures, loss model, and changes of its rate.
#[derive(Serialize, Deserialize)]
pub(super) struct FaultState {
    /// Transmission time per byte without faults, in ps times 2¹⁶.
    pub(super) own_ps_per_byte_q16: u64,
    /// Number of failures that are in force now; the link is up if it is zero.
    pub(super) failures: u32,
    /// Number of packets at the head of the ring of packets in flight that will be lost, since the
    /// link was down while they were sent.
    pub(super) doomed: usize,
    pub(super) loss: Option<LossChain>,
    pub(super) random: Stream,
    pub(super) jitter: Span,
    pub(super) jitter_seed: u64,
    /// Number of packets lost in flight on this link so far.
    pub(super) lost: u64,
    /// Number of the packet for which the loss model was last asked, and whether this packet is
    /// lost.
    pub(super) drawn: Option<(u64, bool)>,
    /// Time by which all packets that started before the last change of rate have been sent; used
    /// if departures are fixed at enqueue (eager port).
    pub(super) settled: Time,
    /// Longest waiting time, and longest queue in bytes on the link, before the last change of
    /// rate.
    pub(super) longest: (Span, u64),
    /// Bytes on the link (with framing) of packets lost in flight so far.
    pub(super) lost_bytes: u64,
    pub(super) earlier: EarlierRates,
}

/// Time for which a link has been sending, if faults have changed its rate. Bytes are counted in
/// the order in which they arrive or are lost. Each packet counts with the rate at which its
/// transmission started.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct EarlierRates {
    /// Number of bytes since the start of the run that are already summed, and their transmission
    /// time in ps times 2¹⁶. All of them have arrived or been lost.
    over: (u64, u128),
    /// Earlier rates with bytes that are not in `over` yet. Each entry has the byte count up to
    /// which the rate was used, and the transmission time per byte in ps times 2¹⁶.
    open: Vec<(u64, u64)>,
}

impl EarlierRates {
    /// Records a change of rate. `passed` is the number of bytes that have arrived or been lost.
    /// Bytes up to `started` are sent at the old rate, `ps_per_byte_q16`.
    pub fn end(&mut self, passed: u64, started: u64, ps_per_byte_q16: u64) {
        while let Some(&(until, own)) = self.open.first().filter(|(until, _)| *until <= passed) {
            self.over = (until, self.over.1 + u128::from(until - self.over.0) * u128::from(own));
            self.open.remove(0);
        }
        self.open.push((started, ps_per_byte_q16));
    }

    /// Returns the transmission time in ps of the first `passed` bytes. Bytes after the last change
    /// of rate were sent at the current rate, `ps_per_byte_q16`.
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
    /// Asks the loss model whether packet `number` of the link is lost, once per packet, and
    /// records the answer.
    pub fn draw(&mut self, number: u64) {
        if self.drawn.is_none_or(|(drawn, _)| drawn != number) {
            let lost = self.loss.as_mut().is_some_and(|chain| chain.loses(&mut self.random));
            self.drawn = Some((number, lost));
        }
    }

    /// Returns the cause of loss of the packet that would arrive next; `None` if this packet is not
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
