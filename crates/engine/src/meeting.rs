//! Barrier for the threads of a parallel run. A thread that arrives before the others polls for a
//! while and then sleeps, so that waiting takes no CPU time from other threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Number of polls before a waiting thread sleeps: about 50 µs, with [`PAUSES`] pause instructions
/// of the processor after each poll.
const LOOKS: u32 = 1_000;
/// Number of pause instructions of the processor after each poll of a waiting thread.
const PAUSES: u32 = 4;

/// Guard of a thread that uses a barrier: if the thread panics, the guard abandons the run, since
/// the other threads would wait at the barrier for ever.
pub struct Watch<'a>(pub &'a Meeting);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

/// Barrier at which all threads of a run wait for each other.
pub struct Meeting {
    members: usize,
    come: AtomicUsize,
    /// Number of completed rounds: how often all threads have met at the barrier.
    round: AtomicU64,
    asleep: AtomicUsize,
    over: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    slept: AtomicU64,
}

impl Meeting {
    /// Returns a barrier for `members` threads.
    pub fn new(members: usize) -> Meeting {
        Meeting {
            members,
            come: AtomicUsize::new(0),
            round: AtomicU64::new(0),
            asleep: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            slept: AtomicU64::new(0),
        }
    }

    /// Returns how many times a thread has gone to sleep at this barrier, summed over all threads.
    pub fn slept(&self) -> u64 {
        self.slept.load(Ordering::Relaxed)
    }

    /// Abandons the run: releases all waiting threads. From now on [`Meeting::meet`] returns false.
    pub fn abandon(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        // The new round is stored before this load and sleepers register before they check the
        // round, both with sequential consistency. So either this thread sees the sleeper, or the
        // thread that is about to sleep sees the new round.
        if self.asleep.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.wake.notify_all();
        }
    }

    /// Waits at the barrier until all threads have called this function. When the function returns,
    /// the thread sees everything that the other threads wrote to memory before their calls.
    /// Returns false if the run was abandoned.
    pub fn meet(&self) -> bool {
        let round = self.round.load(Ordering::SeqCst);
        if self.come.fetch_add(1, Ordering::SeqCst) + 1 == self.members {
            self.come.store(0, Ordering::SeqCst);
            self.round.store(round + 1, Ordering::SeqCst);
            self.wake_all();
            return !self.over.load(Ordering::SeqCst);
        }
        let ready =
            || self.round.load(Ordering::SeqCst) != round || self.over.load(Ordering::SeqCst);
        for _ in 0..LOOKS {
            if ready() {
                return !self.over.load(Ordering::SeqCst);
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        self.slept.fetch_add(1, Ordering::Relaxed);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while !ready() {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        !self.over.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        for members in [1, 2, 3, 5] {
            let (meeting, sum) = (Meeting::new(members), AtomicU64::new(0));
            thread::scope(|scope| {
                for _ in 0..members {
                    scope.spawn(|| {
                        for round in 1..=2_000 {
                            sum.fetch_add(1, Ordering::Relaxed);
                            assert!(meeting.meet());
                            assert_eq!(sum.load(Ordering::Relaxed), round * members as u64);
                            assert!(meeting.meet());
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn who_waits_long_sleeps_and_is_woken() {
        let meeting = Meeting::new(2);
        thread::scope(|scope| {
            let early = scope.spawn(|| (0..20).all(|_| meeting.meet()));
            for round in 0..20 {
                while meeting.slept() <= round {
                    thread::yield_now();
                }
                assert!(meeting.meet());
            }
            assert!(early.join().expect("it does not panic"));
        });
        assert_eq!(meeting.slept(), 20);
    }

    #[test]
    fn whoever_waits_for_a_thread_that_has_panicked_is_let_go() {
        let meeting = Meeting::new(2);
        thread::scope(|scope| {
            let waits = scope.spawn(|| meeting.meet());
            let panics = scope.spawn(|| {
                let _watch = Watch(&meeting);
                panic!("as this test wants it");
            });
            assert!(panics.join().is_err());
            assert!(!waits.join().expect("it is let go"));
        });
    }
}
