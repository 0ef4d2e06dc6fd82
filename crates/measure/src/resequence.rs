//! A receiver that hands on the frames of a stream in their order: it holds those that came before one
//! that is still missing, as the receivers of Gusat et al. (*Benchmarking the Ethernet-Federated Datacenter*,
//! 2009) do behind adaptive routing.
//!
//! It knows at once when a frame was lost, as if the network told, and then waits for it no longer; a real
//! one needs a timer for that. With priority-based flow control nothing is lost.

use eastwest_types::{Packet, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a receiver holds of one stream, and what it has held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Resequencer {
    /// Frames up to this number have been handed on, or lost.
    done: u64,
    /// Beyond them, by number: whether the frame is here; it is lost otherwise.
    beyond: BTreeMap<u64, bool>,
    /// Frames here.
    held: u64,
    /// The most at one time.
    most: u64,
    /// Frames that had to be held.
    waited: u64,
    /// Frames × picoseconds until `at`.
    area: u128,
    at: Time,
}

impl Resequencer {
    /// Whether a frame with this number would be held: one before it has neither arrived nor been lost. Of
    /// numbers the low 32 bits count.
    pub fn would_hold(&self, number: u32) -> bool {
        Packet::widen(u64::from(number), self.done + 1) > self.done + 1
    }

    /// A frame has arrived; of its number, from 1, the low 32 bits count.
    pub fn arrives(&mut self, now: Time, number: u32) {
        let number = Packet::widen(u64::from(number), self.done + 1);
        if number == self.done + 1 && self.beyond.is_empty() {
            self.done = number;
            return;
        }
        self.pass(now);
        if number <= self.done {
            return; // told to be lost before it came
        }
        self.held += 1;
        self.waited += u64::from(number > self.done + 1);
        self.note(number, true);
        // what waits now, not what passed through at this instant
        self.most = self.most.max(self.held);
    }

    /// A frame is lost: none waits for it any more.
    pub fn misses(&mut self, now: Time, number: u32) {
        self.pass(now);
        let number = Packet::widen(u64::from(number), self.done + 1);
        if number > self.done {
            self.note(number, false);
        }
    }

    fn pass(&mut self, now: Time) {
        // losses can be told of late
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

    /// How many frames have been handed on, or told to be lost: all up to this number.
    pub fn handed_on(&self) -> u64 {
        self.done
    }

    /// The most frames held at one time.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Frames that had to wait for an earlier one.
    pub fn waited(&self) -> u64 {
        self.waited
    }

    /// Frames held, on average over the time between two instants.
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
        // 3 waits for 6 µs, 4 for 4 µs
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
