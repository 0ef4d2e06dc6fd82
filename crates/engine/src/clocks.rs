//! Clocks of the parts of one simulation that run at the same time.
//!
//! Each part has a clock: it has carried out all of its events before that time, and whatever it has for
//! others because of them has been handed over. What a part does reaches another no sooner than the
//! *lookahead* later, so a part may go on until the lookahead after the other clocks (conservative
//! simulation: Chandy and Misra 1979; Bryant 1977). Parts are not brought to one point in time by a
//! barrier: within the lookahead one may be ahead of another, so that one that has more to do at the
//! moment does not hold all others up.
//!
//! A part that has to wait looks at the clocks for a fraction of a millisecond and then sleeps until another one
//! wakes it: what waits for long takes no time from who else wants the core.

use eastwest_types::Time;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// How often a part looks before it sleeps, and pauses between two looks: about 100 µs in all, a few
/// times what it costs to sleep and to be woken.
const LOOKS: u32 = 300;
const PAUSES: u32 = 16;

/// A clock has a cache line and its neighbour for itself: processors fetch them in pairs.
#[repr(align(128))]
struct Clock {
    now: AtomicU64,
    sleeps: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

/// The clocks of all parts.
pub struct Clocks {
    clocks: Vec<Clock>,
    abandoned: AtomicBool,
    slept: AtomicU64,
}

impl Clocks {
    /// Clocks of so many parts that have carried out all before `start`.
    pub fn new(parts: usize, start: Time) -> Clocks {
        let clock = |_| Clock {
            now: AtomicU64::new(start.0),
            sleeps: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        };
        Clocks {
            clocks: (0..parts).map(clock).collect(),
            abandoned: AtomicBool::new(false),
            slept: AtomicU64::new(0),
        }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.clocks.len()
    }

    /// The clock of a part. What it had handed over before is seen by who has seen the clock.
    #[inline]
    pub fn of(&self, part: usize) -> Time {
        Time(self.clocks[part].now.load(Ordering::SeqCst))
    }

    /// The least of all clocks but that of `part`; [`Time::NEVER`] where there is no other.
    pub fn least_of_others(&self, part: usize) -> Time {
        let others = (0..self.clocks.len()).filter(|&other| other != part);
        others.map(|other| self.of(other)).min().unwrap_or(Time::NEVER)
    }

    /// Sets the clock of a part; wakes who sleeps.
    pub fn advance(&self, part: usize, to: Time) {
        debug_assert!(to >= self.of(part), "clocks do not go back");
        self.clocks[part].now.store(to.0, Ordering::SeqCst);
        self.wake_all();
    }

    /// How often a part had to sleep: often where not every part has a core for itself.
    pub fn slept(&self) -> u64 {
        self.slept.load(Ordering::Relaxed)
    }

    /// Lets all others return from [`Clocks::wait`] with false, for good: a part cannot go on.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Wakes who sleeps: what they wait for may have become true.
    pub fn wake_all(&self) {
        for clock in &self.clocks {
            // stored before and loaded after, in one order for all: either this sees that the other
            // sleeps, or the other sees what was stored when it looks once more before it does
            if clock.sleeps.load(Ordering::SeqCst) {
                drop(clock.lock.lock().unwrap_or_else(PoisonError::into_inner));
                clock.wake.notify_all();
            }
        }
    }

    /// Waits until `ready`, which is asked again when a clock has advanced. False where the simulation
    /// was abandoned.
    pub fn wait(&self, part: usize, ready: impl Fn() -> bool) -> bool {
        let over = || self.abandoned.load(Ordering::SeqCst);
        for _ in 0..LOOKS {
            if ready() || over() {
                return !over();
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        self.slept.fetch_add(1, Ordering::Relaxed);
        let clock = &self.clocks[part];
        let mut guard = clock.lock.lock().unwrap_or_else(PoisonError::into_inner);
        clock.sleeps.store(true, Ordering::SeqCst);
        while !ready() && !over() {
            guard = clock.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        clock.sleeps.store(false, Ordering::SeqCst);
        !over()
    }
}

/// Abandons the simulation when a part ends by a panic: the others would wait for it for ever.
pub struct Watch<'a>(pub &'a Clocks);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_runs_further_ahead_than_the_lookahead_and_all_get_to_the_end() {
        for parts in [2, 3, 5] {
            let (lookahead, end) = (7, 3_000);
            let clocks = Clocks::new(parts, Time::ZERO);
            let bound = |part: usize| Time(clocks.least_of_others(part).0 + lookahead);
            std::thread::scope(|scope| {
                for part in 0..parts {
                    let (clocks, bound) = (&clocks, &bound);
                    scope.spawn(move || {
                        while clocks.of(part) < Time(end) {
                            let now = clocks.of(part);
                            assert!(clocks.wait(part, || bound(part) > now));
                            // the others can only have gone on since
                            clocks.advance(part, bound(part).min(Time(now.0 + 1 + part as u64)));
                            assert!(clocks.of(part) <= bound(part));
                        }
                    });
                }
            });
            assert!((0..parts).all(|part| clocks.of(part) >= Time(end)));
        }
    }

    #[test]
    fn who_waits_for_someone_that_panicked_is_told() {
        let clocks = Clocks::new(2, Time::ZERO);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _watch = Watch(&clocks);
                panic!("on purpose");
            });
            assert!(!clocks.wait(0, || clocks.of(1) > Time::ZERO));
            assert!(other.join().is_err());
        });
    }
}
