//! Resequencing at a receiver, which delivers the frames of a stream in order. It holds a frame
//! until all earlier frames of the stream have arrived or are lost, as the receivers of Gusat et
//! al. (*Benchmarking the Ethernet-Federated Datacenter*, 2009) do with adaptive routing.
//!
//! The receiver learns at once when a frame is lost, as if the network reported it, and then no
//! longer waits for this frame; a real receiver needs a timer. With priority-based flow control no
//! frame is lost because of a full queue.

use eastwest_types::{Packet, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Resequencing buffer of a receiver that delivers the frames of one stream in order, with
/// statistics of the held frames.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Resequencer {
    /// Highest frame number up to which all frames were delivered or lost.
    done: u64,
    /// Frames above `done`, by number: `true` if held, `false` if lost.
    beyond: BTreeMap<u64, bool>,
    /// Number of frames that are held at present.
    held: u64,
    /// Largest number of frames held at one time.
    most: u64,
    /// Number of frames that had to wait for an earlier frame.
    waited: u64,
    /// Integral over time of the number of held frames until `at`, in frames × ps.
    area: u128,
    at: Time,
}

impl Resequencer {
    /// Whether a frame would be held if it arrived now, because an earlier frame has neither
    /// arrived nor been lost. `number`: low 32 bits of the frame's number.
    pub fn would_hold(&self, number: u32) -> bool {
        Packet::widen(u64::from(number), self.done + 1) > self.done + 1
    }

    /// Handles the arrival of a frame. `number`: low 32 bits of the frame's number; the first frame
    /// of the stream has number 1.
    pub fn arrives(&mut self, now: Time, number: u32) {
        let number = Packet::widen(u64::from(number), self.done + 1);
        if number == self.done + 1 && self.beyond.is_empty() {
            self.done = number;
            return;
        }
        self.pass(now);
        if number <= self.done {
            return; // reported lost before it arrived
        }
        self.held += 1;
        self.waited += u64::from(number > self.done + 1);
        self.note(number, true);
        // Counts only frames that still wait, not those delivered at this time.
        self.most = self.most.max(self.held);
    }

    /// Records the loss of a frame, so that later frames no longer wait for it. `number`: low 32
    /// bits of the frame's number.
    pub fn misses(&mut self, now: Time, number: u32) {
        self.pass(now);
        let number = Packet::widen(u64::from(number), self.done + 1);
        if number > self.done {
            self.note(number, false);
        }
    }

    fn pass(&mut self, now: Time) {
        // A loss may be reported late, with a time before `at`.
        if now > self.at {
            self.area += u128::from(self.held) * u128::from(now.0 - self.at.0);
            self.at = now;
        }
    }

    fn note(&mut self, number: u64, here: bool) {
        self.beyond.insert(number, here);
        while let Some(first) = self.beyond.first_entry().filter(|e| *e.key() == self.done + 1) {
            self.held -= u64::from(first.remove());
            self.done += 1;
        }
    }

    /// Returns the highest frame number up to which all frames were delivered or reported lost.
    pub fn handed_on(&self) -> u64 {
        self.done
    }

    /// Returns the largest number of frames held at one time.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Returns the number of frames that had to wait for an earlier frame.
    pub fn waited(&self) -> u64 {
        self.waited
    }

    /// Returns the mean number of held frames: its integral over time, divided by the time between
    /// `from` and `to`; 0 if this time is 0.
    pub fn mean(&self, from: Time, to: Time) -> f64 {
        let span = to.0.saturating_sub(from.0);
        if span == 0 { 0.0 } else { self.area as f64 / span as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::Span;

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_us(n)
    }

    #[test]
    fn frames_wait_for_the_one_before_them() {
        let mut r = Resequencer::default();
        for (at, number) in [(1, 1), (2, 3), (4, 4), (8, 2), (9, 5)] {
            assert_eq!(r.would_hold(number), number == 3 || number == 4);
            r.arrives(us(at), number);
        }
        // Frame 3 waits for 6 µs, and frame 4 for 4 µs.
        assert_eq!((r.most(), r.waited(), r.held, r.done), (2, 2, 0, 5));
        assert!((r.mean(us(0), us(10)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nobody_waits_for_what_is_lost() {
        let mut r = Resequencer::default();
        r.arrives(us(1), 2);
        r.arrives(us(2), 5);
        r.misses(us(3), 1);
        assert_eq!((r.done, r.held), (2, 1));
        r.misses(us(3), 4);
        r.misses(us(5), 3);
        assert_eq!((r.done, r.held, r.waited()), (5, 0, 2));
        r.arrives(us(6), 6);
        assert_eq!((r.done, r.waited()), (6, 2));
    }

    #[test]
    fn numbers_wrap() {
        let mut r = Resequencer { done: (1 << 32) - 2, ..Resequencer::default() };
        r.arrives(us(1), 0);
        r.arrives(us(2), u32::MAX);
        r.arrives(us(3), 1);
        assert_eq!((r.done, r.most(), r.held), ((1 << 32) + 1, 1, 0));
    }
}
