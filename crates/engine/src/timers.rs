//! List of scheduled wake-ups, ordered like events ([`crate::order`]).
//!
//! The list is a binary heap of (time, tie rank, token). A user that often restarts its timer can
//! store the deadline itself, and schedule a new wake-up only if the pending one would be too late.

use crate::order::{Class, Key, tie_rank};
use crate::random::mix;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pending wake-ups of one event class, in the order of events. Each wake-up has a token, a number
/// by which the caller recognizes it.
#[derive(Serialize, Deserialize)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, u64)>>,
    class: Class,
    seed: u64,
    /// Whether [`Timers::take`] has returned the earliest wake-up, which is still in the heap.
    is_taken: bool,
}

impl Timers {
    /// Returns an empty list of wake-ups of the event class `class`; `seed` decides the order of
    /// wake-ups at the same time.
    pub fn new(class: Class, seed: u64) -> Timers {
        Timers { heap: BinaryHeap::new(), class, seed, is_taken: false }
    }

    /// Reserves memory for this number of further wake-ups.
    pub fn reserve(&mut self, wake_ups: usize) {
        self.heap.reserve(wake_ups);
    }

    /// Schedules a wake-up at time `at`, and stores `token` with it. A hash of `source` decides the
    /// order of wake-ups at the same time. Returns whether [`Timers::first`] has changed: the new
    /// wake-up is the earliest one, or replaces a wake-up that was taken.
    pub fn push(&mut self, at: Time, source: u64, token: u64) -> bool {
        let rank = self.rank(at, source);
        if std::mem::take(&mut self.is_taken)
            && let Some(mut first) = self.heap.peek_mut()
        {
            *first = Reverse((at, rank, token));
            return true;
        }
        let earlier = self.heap.peek().is_none_or(|Reverse(first)| (at, rank) < (first.0, first.1));
        self.heap.push(Reverse((at, rank, token)));
        earlier
    }

    /// Returns the tie rank of a wake-up of `source` at time `at`.
    pub fn rank(&self, at: Time, source: u64) -> u64 {
        tie_rank(Key::new(at, self.class), mix(source) as u32, self.seed)
    }

    /// Returns the event key (time and class) of the earliest wake-up, or [`Key::NEVER`] if there
    /// is none.
    pub fn first(&self) -> Key {
        match self.heap.peek() {
            Some(Reverse((at, ..))) if *at < Time::NEVER => Key::new(*at, self.class),
            _ => Key::NEVER,
        }
    }

    /// Returns the tie rank of the earliest wake-up, by which it is ordered among wake-ups at the
    /// same time; 0 if there is none.
    pub fn first_rank(&self) -> u64 {
        self.heap.peek().map_or(0, |Reverse((_, rank, _))| *rank)
    }

    /// Returns the token of the earliest wake-up; `None` if there is none.
    pub fn first_token(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((.., token))| *token)
    }

    /// Calls `show` with the token of every wake-up before `time`, in any order.
    pub fn each_before(&self, time: Time, mut show: impl FnMut(u64)) {
        fn visit(
            heap: &[Reverse<(Time, u64, u64)>],
            place: usize,
            time: Time,
            show: &mut impl FnMut(u64),
        ) {
            if let Some(&Reverse((at, _, token))) = heap.get(place)
                && at < time
            {
                show(token);
                // No wake-up of a binary heap is earlier than the one above it.
                visit(heap, 2 * place + 1, time, show);
                visit(heap, 2 * place + 2, time, show);
            }
        }
        visit(self.heap.as_slice(), 0, time, &mut show);
    }

    /// Removes the wake-ups for whose tokens `is_kept` returns false.
    pub fn retain(&mut self, mut is_kept: impl FnMut(u64) -> bool) {
        self.heap.retain(|Reverse((.., token))| is_kept(*token));
    }

    /// Removes the earliest wake-up and returns its token; `None` if there is none.
    pub fn pop(&mut self) -> Option<u64> {
        self.heap.pop().map(|Reverse((_, _, token))| token)
    }

    /// Takes the earliest wake-up and returns its token, like [`Timers::pop`]. The next
    /// [`Timers::push`] replaces the wake-up, which takes fewer steps than a removal and an
    /// insertion. Until then, or until [`Timers::end_take`], no other function may be called.
    pub fn take(&mut self) -> Option<u64> {
        let token = self.first_token();
        self.is_taken = token.is_some();
        token
    }

    /// Removes the wake-up that was taken, unless another one has replaced it. Returns whether
    /// [`Timers::first`] has changed.
    pub fn end_take(&mut self) -> bool {
        let is_taken = std::mem::take(&mut self.is_taken);
        if is_taken {
            self.heap.pop();
        }
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_depend_on_insertion() {
        let drain = |tokens: &[u64]| {
            let mut timers = Timers::new(Class::Wake, 5);
            for &t in tokens {
                timers.push(Time(t / 4), t, t);
            }
            std::iter::from_fn(|| timers.pop()).collect::<Vec<_>>()
        };
        let forward = drain(&(0..40).collect::<Vec<_>>());
        let backward = drain(&(0..40).rev().collect::<Vec<_>>());
        assert_eq!(forward, backward);
        assert!(forward.windows(2).all(|w| w[0] / 4 <= w[1] / 4));
    }

    #[test]
    fn removed_wake_ups_do_not_change_the_order_of_others() {
        let drain = |tokens: &[u64], is_kept: fn(u64) -> bool| {
            let mut timers = Timers::new(Class::Wake, 5);
            tokens.iter().for_each(|&t| _ = timers.push(Time(t / 4), t, t));
            timers.retain(is_kept);
            std::iter::from_fn(|| timers.pop()).collect::<Vec<_>>()
        };
        let all: Vec<u64> = (0..40).collect();
        let odd: Vec<u64> = all.iter().copied().filter(|t| t % 2 == 1).collect();
        assert_eq!(drain(&all, |t| t % 2 == 1), drain(&odd, |_| true));
    }

    #[test]
    fn a_wake_up_that_was_taken_is_removed_or_replaced() {
        let mut popped = Timers::new(Class::Timer, 5);
        let mut taken = Timers::new(Class::Timer, 5);
        for t in 0..40 {
            popped.push(Time(t / 4), t, t);
            taken.push(Time(t / 4), t, t);
        }
        for step in 0..200u64 {
            let token = popped.pop();
            assert_eq!(taken.take(), token);
            // Up to two new wake-ups follow; from the 60th step on none, so that the list empties.
            for again in 0..if step < 60 { step % 3 } else { 0 } {
                let (at, number) = (Time(step / 3 + 5 * again), 100 + 3 * step + again);
                popped.push(at, number, number);
                let changes = taken.push(at, number, number);
                assert!(changes || taken.first_token() != Some(number));
            }
            taken.end_take();
            assert_eq!(
                (taken.first(), taken.first_token()),
                (popped.first(), popped.first_token())
            );
        }
        assert_eq!(taken.take(), None);
        assert!(!taken.end_take());
    }

    #[test]
    fn looking_ahead_changes_nothing() {
        let mut timers = Timers::new(Class::Timer, 5);
        let mut untouched = Timers::new(Class::Timer, 5);
        assert_eq!((timers.first_token(), timers.first_rank()), (None, 0));
        for t in 0..40 {
            timers.push(Time(t / 4), t, t);
            untouched.push(Time(t / 4), t, t);
        }
        for bound in [0, 1, 3, 7, 100] {
            let mut seen = Vec::new();
            timers.each_before(Time(bound), |token| seen.push(token));
            seen.sort_unstable();
            assert_eq!(seen, (0..40.min(4 * bound)).collect::<Vec<_>>());
        }
        while let Some(token) = untouched.first_token() {
            assert_eq!(
                (timers.first(), timers.first_rank()),
                (untouched.first(), untouched.first_rank())
            );
            assert_eq!((timers.pop(), untouched.pop()), (Some(token), Some(token)));
        }
        assert_eq!(timers.pop(), None);
    }
}
