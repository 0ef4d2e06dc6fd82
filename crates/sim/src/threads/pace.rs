//! Whether the parts of a run go on at the same time, or one after the other on one thread.
//!
//! Threads that wait for each other are slower than one where cores are taken by others, or where little
//! happens between two barriers. What counts is how fast events are done, so that is measured: for a
//! while at the same time, then on one thread, for many slices of a scheduler each. The better of the two is
//! kept for longer, and one thread each time in a row for twice as long. Where threads begin to wait for
//! one that has no core, one thread is tried at once. Where it is better from the
//! beginning there is no hope: a run that is not divided is faster than parts on one thread, and little
//! is lost by beginning anew. Nothing of it changes what comes out.

use std::time::Duration;

/// What measures the time that a run takes; only differences count.
pub type Clock<'a> = &'a dyn Fn() -> Duration;

/// How long each is tried, and then kept.
#[derive(Clone, Copy, Debug)]
pub struct Spans {
    /// All together are tried for so long.
    pub try_together: Duration,
    /// One thread is tried for so long.
    pub try_alone: Duration,
    /// All are kept together for so long.
    pub together: Duration,
    /// The least time that one thread is kept.
    pub alone: Duration,
    /// After this many failed tries in a row from the beginning there are no more.
    pub hopeless: u32,
    /// Tries end only within this time from the beginning: later they cost more than they save.
    pub early: Duration,
}

impl Default for Spans {
    fn default() -> Spans {
        let ms = Duration::from_millis;
        Spans {
            try_together: ms(100),
            try_alone: ms(40),
            together: ms(1_000),
            alone: ms(200),
            hopeless: 2,
            early: ms(300),
        }
    }
}

/// Windows that are looked at for threads that sleep, and how many of these are too many.
const LOOK: u64 = 64;
const MANY_SLEEPS: u64 = 32;
/// One thread is kept for at most 2⁵ times as long as at first.
const MOST_DOUBLINGS: u32 = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    TryTogether,
    TryAlone,
    Together,
    Alone,
}

/// What all have done so far.
#[derive(Clone, Copy, Default)]
pub struct Done {
    /// Events.
    pub events: u64,
    /// Windows.
    pub windows: u64,
    /// How often a thread slept.
    pub sleeps: u64,
}

impl Done {
    /// Events a second since then, after this time.
    fn rate(self, then: Done, spent: Duration) -> u64 {
        let events = u128::from(self.events.saturating_sub(then.events));
        u64::try_from(events * 1_000_000_000 / spent.as_nanos().max(1)).unwrap_or(u64::MAX)
    }
}

/// See the module.
pub struct Pace<'a> {
    clock: Clock<'a>,
    spans: Spans,
    phase: Phase,
    /// When the run began.
    start: Duration,
    /// When the phase began, and what had been done.
    began: Duration,
    before: Done,
    /// When the last windows began that were looked at, and what had been done.
    looked: (Duration, Done),
    /// Events a second when all together were tried.
    together: u64,
    /// How often in a row one thread was better.
    in_a_row: u32,
    /// One thread has been tried since others slept, and that is not done again before all have been kept
    /// together for as long as they are: where parts are uneven, they sleep and are faster.
    warned: bool,
    /// Whether together was better at any time.
    paid: bool,
}

impl<'a> Pace<'a> {
    /// Begins with all together, after so many events. Where there were some, the run was kept, and to begin
    /// anew would lose what was done.
    pub fn new(clock: Clock<'a>, spans: Spans, events: u64) -> Pace<'a> {
        let (began, phase) = (clock(), Phase::TryTogether);
        let before = Done { events, ..Done::default() };
        let looked = (began, before);
        Pace {
            clock,
            spans,
            phase,
            start: began,
            began,
            before,
            looked,
            together: 0,
            in_a_row: 0,
            warned: false,
            paid: events > 0,
        }
    }

    /// After so much in all: whether one thread goes on with all parts.
    pub fn is_alone(&mut self, done: Done) -> bool {
        let now = (self.clock)();
        let spent = now.saturating_sub(self.began);
        if spent >= self.length() {
            self.end_phase(done.rate(self.before, spent));
            (self.began, self.before) = (now, done);
            self.looked = (now, done);
        } else if done.windows >= self.looked.1.windows + LOOK {
            let (since, then) = std::mem::replace(&mut self.looked, (now, done));
            if !self.one_thread() && !self.warned && done.sleeps >= then.sleeps + MANY_SLEEPS {
                self.warned = true;
                self.phase = Phase::TryTogether;
                self.end_phase(done.rate(then, now.saturating_sub(since)));
                (self.began, self.before) = (now, done);
            }
        }
        self.one_thread()
    }

    fn one_thread(&self) -> bool {
        matches!(self.phase, Phase::TryAlone | Phase::Alone)
    }

    /// Whether all together were never faster, as often as they have been tried, and little is lost yet.
    pub fn is_hopeless(&self) -> bool {
        let tried = !self.paid && self.in_a_row >= self.spans.hopeless;
        tried && self.began.saturating_sub(self.start) <= self.spans.early
    }

    fn length(&self) -> Duration {
        match self.phase {
            Phase::TryTogether => self.spans.try_together,
            Phase::TryAlone => self.spans.try_alone,
            Phase::Together => self.spans.together,
            // not yet for long: little may be lost where there is no hope
            Phase::Alone if !self.paid && self.in_a_row < self.spans.hopeless => Duration::ZERO,
            Phase::Alone => {
                let doublings = self.in_a_row.saturating_sub(1).min(MOST_DOUBLINGS);
                self.spans.alone * (1 << doublings)
            }
        }
    }

    /// What one thread has to do in a second to be better. At the beginning the choice is between all
    /// together and a run that is not divided, which is a quarter faster than parts on one thread.
    fn worth(&self) -> u64 {
        if self.paid { self.together } else { self.together / 5 * 4 }
    }

    /// Ends a phase in which `rate` events a second were done.
    fn end_phase(&mut self, rate: u64) {
        self.phase = match self.phase {
            Phase::TryTogether => {
                self.together = rate;
                Phase::TryAlone
            }
            Phase::TryAlone if rate > self.worth() => {
                self.in_a_row += 1;
                Phase::Alone
            }
            Phase::TryAlone => {
                (self.in_a_row, self.paid) = (0, true);
                Phase::Together
            }
            Phase::Together | Phase::Alone => {
                self.warned = false;
                Phase::TryTogether
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Milliseconds of 20,000 in which one thread did everything. Alone it does 100 events in a millisecond;
    /// all threads together do `together` events. Ends early once threads are given up.
    fn alone(together: impl Fn(u64) -> u64, sleeps: bool) -> (u64, u64) {
        let now = Cell::new(0);
        let clock = || Duration::from_millis(now.get());
        let mut pace = Pace::new(&clock, Spans::default(), 0);
        let (mut done, mut alone) = (Done::default(), 0);
        while now.get() < 20_000 && !pace.is_hopeless() {
            let is_alone = pace.is_alone(done);
            alone += u64::from(is_alone);
            done.events += if is_alone { 100 } else { together(now.get()) };
            done.windows += 10;
            done.sleeps += if sleeps && !is_alone { 10 } else { 0 };
            now.set(now.get() + 1);
        }
        (alone, now.get())
    }

    #[test]
    fn what_is_faster_is_kept() {
        // 40 of 1,140 ms are spent on finding out
        let (spent, _) = alone(|_| 150, false);
        assert!((600..760).contains(&spent), "{spent}");
    }

    #[test]
    fn what_never_pays_is_given_up_soon() {
        let (_, until) = alone(|_| 60, false);
        assert!((280..290).contains(&until), "{until}");
        let (_, until) = alone(|_| 115, false);
        assert!((280..290).contains(&until), "{until}");
        // threads that sleep are seen at once
        let (_, until) = alone(|_| 60, true);
        assert!((90..110).contains(&until), "{until}");
    }

    #[test]
    fn what_is_found_out_late_is_not_given_up() {
        let now = Cell::new(0);
        let clock = || Duration::from_millis(now.get());
        let mut pace = Pace::new(&clock, Spans::default(), 0);
        let mut done = Done::default();
        // windows that take 150 ms, as in a very large fabric
        let alone = (0..100).filter(|_| {
            now.set(now.get() + 150);
            let is_alone = pace.is_alone(done);
            done.events += if is_alone { 1_000 } else { 700 };
            done.windows += 1;
            assert!(!pace.is_hopeless());
            is_alone
        });
        assert!(alone.count() > 80);
    }

    #[test]
    fn one_thread_is_kept_ever_longer_and_cores_that_become_free_are_used_again() {
        // of the last 19 seconds 100 ms after 0.2, 0.4, 0.8 … 6.4 each
        let (spent, until) = alone(|ms| if ms < 1_000 { 150 } else { 50 }, false);
        assert!(until == 20_000 && (17_500..18_700).contains(&spent), "{spent}");
        let busy_for_two_seconds = |ms| if (1_000..3_000).contains(&ms) { 50 } else { 180 };
        let (spent, _) = alone(busy_for_two_seconds, false);
        assert!((1_500..4_500).contains(&spent), "{spent}");
    }
}
