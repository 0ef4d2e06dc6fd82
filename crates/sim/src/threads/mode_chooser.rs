//! Chooses at run time whether the parts of a partitioned run are executed in parallel, or one
//! after the other on one thread.
//!
//! Several threads are slower than one if other processes use the cores, or if there are few events
//! between two barriers. Therefore the rate of events is measured: first in parallel, then on one
//! thread, each for many time slices of the operating system's scheduler. The faster mode is then
//! used for a longer time. After each consecutive trial in which one thread is faster, one thread
//! is used for twice as long as before. If threads begin to sleep at barriers, one thread is tried
//! immediately.
//!
//! If one thread is faster from the beginning, the partitioned run is abandoned: an undivided run
//! is faster than parts on one thread, and little work is lost by a restart. The choice does not
//! change results.

use std::time::Duration;

/// Clock of the caller: wall-clock time since an arbitrary instant. Only differences of times are
/// used.
pub type Clock<'a> = &'a dyn Fn() -> Duration;

/// Wall-clock times for which parallel execution and one thread are tried, and for which the faster
/// mode is then used.
#[derive(Clone, Copy, Debug)]
pub struct TrialTimes {
    /// Wall-clock time for which several threads are tried.
    pub try_together: Duration,
    /// Wall-clock time for which one thread is tried.
    pub try_alone: Duration,
    /// Wall-clock time for which several threads are used after a trial in which several threads
    /// were faster.
    pub together: Duration,
    /// Minimum wall-clock time for which one thread is used after a trial in which one thread was
    /// faster.
    pub alone: Duration,
    /// Number of consecutive trials, counted from the begin of the run, after which a partitioned
    /// run is abandoned if one thread was faster in all of them.
    pub max_failed_trials: u32,
    /// Wall-clock time since the begin of the run after which a partitioned run is no longer
    /// abandoned, because too much work would be lost.
    pub trial_period: Duration,
}

impl Default for TrialTimes {
    fn default() -> TrialTimes {
        let ms = Duration::from_millis;
        TrialTimes {
            try_together: ms(100),
            try_alone: ms(40),
            together: ms(1_000),
            alone: ms(200),
            max_failed_trials: 2,
            trial_period: ms(300),
        }
    }
}

/// Number of windows between two counts of the sleeps of threads at barriers. If threads slept
/// `MANY_SLEEPS` times or more between the two counts, one thread is tried.
const SLEEP_CHECK_WINDOWS: u64 = 64;
const MANY_SLEEPS: u64 = 32;
/// Maximum number of times that the duration for which one thread is used is doubled.
const MOST_DOUBLINGS: u32 = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    TryTogether,
    TryAlone,
    Together,
    Alone,
}

/// Work that all parts of a partitioned run have done since its begin.
#[derive(Clone, Copy, Default)]
pub struct Done {
    /// Number of executed events.
    pub events: u64,
    /// Number of executed windows.
    pub windows: u64,
    /// Number of times that a thread slept at a barrier.
    pub sleeps: u64,
}

impl Done {
    /// Returns the number of events per second since the earlier count `then`; `spent` is the
    /// wall-clock time since `then`.
    fn rate(self, then: Done, spent: Duration) -> u64 {
        let events = u128::from(self.events.saturating_sub(then.events));
        u64::try_from(events * 1_000_000_000 / spent.as_nanos().max(1)).unwrap_or(u64::MAX)
    }
}

/// Chooses at run time between several threads and one thread for a partitioned run.
pub struct ModeChooser<'a> {
    clock: Clock<'a>,
    spans: TrialTimes,
    phase: Phase,
    /// Wall-clock time at which the run began.
    start: Duration,
    /// Wall-clock time at which the current phase began; `before` is the work done until this time.
    began: Duration,
    before: Done,
    /// Wall-clock time of the last count of sleeping threads, and the work done until then.
    last_check: (Duration, Done),
    /// Events per second that were measured when several threads were last tried.
    together: u64,
    /// Number of consecutive trials in which one thread was faster than several.
    failed_trials: u32,
    /// Whether one thread was tried because threads slept at barriers. A further trial for this
    /// reason is made only after several threads have been used for their full time: threads with
    /// uneven parts sleep often, but may be faster nevertheless.
    tried_after_sleeps: bool,
    /// Whether several threads were faster in at least one trial.
    has_been_faster: bool,
}

impl<'a> ModeChooser<'a> {
    /// Returns a chooser that begins with several threads. `events` is the number of events
    /// executed before; if it is not 0, the run was resumed from a checkpoint and is not abandoned.
    pub fn new(clock: Clock<'a>, spans: TrialTimes, events: u64) -> ModeChooser<'a> {
        let (began, phase) = (clock(), Phase::TryTogether);
        let before = Done { events, ..Done::default() };
        let last_check = (began, before);
        ModeChooser {
            clock,
            spans,
            phase,
            start: began,
            began,
            before,
            last_check,
            together: 0,
            failed_trials: 0,
            tried_after_sleeps: false,
            has_been_faster: events > 0,
        }
    }

    /// Begins again with several threads, as at the begin of a run, after `events` events and `windows`
    /// windows of all parts.
    pub fn begin_again(&mut self, events: u64, windows: u64) {
        let done = Done { events, windows, ..self.last_check.1 };
        *self = ModeChooser::new(self.clock, self.spans, 0);
        (self.before, self.last_check.1) = (done, done);
    }

    /// Whether one thread executes the next window of all parts; `done` is the work of all parts
    /// since the begin of the run.
    pub fn runs_on_one_thread(&mut self, done: Done) -> bool {
        let now = (self.clock)();
        let spent = now.saturating_sub(self.began);
        if spent >= self.length() {
            self.end_phase(done.rate(self.before, spent));
            (self.began, self.before) = (now, done);
            self.last_check = (now, done);
        } else if done.windows >= self.last_check.1.windows + SLEEP_CHECK_WINDOWS {
            let (since, then) = std::mem::replace(&mut self.last_check, (now, done));
            if !self.one_thread()
                && !self.tried_after_sleeps
                && done.sleeps >= then.sleeps + MANY_SLEEPS
            {
                self.tried_after_sleeps = true;
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

    /// Whether the partitioned run should be abandoned for an undivided one: several threads were
    /// never faster, and little work would be lost.
    pub fn is_worse_than_undivided(&self) -> bool {
        let tried = !self.has_been_faster && self.failed_trials >= self.spans.max_failed_trials;
        tried && self.began.saturating_sub(self.start) <= self.spans.trial_period
    }

    fn length(&self) -> Duration {
        match self.phase {
            Phase::TryTogether => self.spans.try_together,
            Phase::TryAlone => self.spans.try_alone,
            Phase::Together => self.spans.together,
            // Early in the run the next trial of several threads follows immediately: little work
            // is lost if several threads are slower.
            Phase::Alone
                if !self.has_been_faster && self.failed_trials < self.spans.max_failed_trials =>
            {
                Duration::ZERO
            }
            Phase::Alone => {
                let doublings = self.failed_trials.saturating_sub(1).min(MOST_DOUBLINGS);
                self.spans.alone * (1 << doublings)
            }
        }
    }

    /// Returns the number of events per second above which one thread counts as faster than
    /// several. Until several threads have won a trial, the alternative is an undivided run, which
    /// is a quarter faster than parts on one thread.
    fn worth(&self) -> u64 {
        if self.has_been_faster { self.together } else { self.together / 5 * 4 }
    }

    /// Ends the current phase, in which `rate` events per second were executed, and begins the next
    /// one.
    fn end_phase(&mut self, rate: u64) {
        self.phase = match self.phase {
            Phase::TryTogether => {
                self.together = rate;
                Phase::TryAlone
            }
            Phase::TryAlone if rate > self.worth() => {
                self.failed_trials += 1;
                Phase::Alone
            }
            Phase::TryAlone => {
                (self.failed_trials, self.has_been_faster) = (0, true);
                Phase::Together
            }
            Phase::Together | Phase::Alone => {
                self.tried_after_sleeps = false;
                Phase::TryTogether
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Simulates a chooser for 20,000 ms. Returns the milliseconds in which one thread did all
    /// work, and the time at which this ended, early if the partitioned run is abandoned. One
    /// thread executes 100 events per millisecond; several threads execute `together(ms)`.
    fn alone(together: impl Fn(u64) -> u64, sleeps: bool) -> (u64, u64) {
        let now = Cell::new(0);
        let clock = || Duration::from_millis(now.get());
        let mut chooser = ModeChooser::new(&clock, TrialTimes::default(), 0);
        let (mut done, mut alone) = (Done::default(), 0);
        while now.get() < 20_000 && !chooser.is_worse_than_undivided() {
            let runs_on_one_thread = chooser.runs_on_one_thread(done);
            alone += u64::from(runs_on_one_thread);
            done.events += if runs_on_one_thread { 100 } else { together(now.get()) };
            done.windows += 10;
            done.sleeps += if sleeps && !runs_on_one_thread { 10 } else { 0 };
            now.set(now.get() + 1);
        }
        (alone, now.get())
    }

    #[test]
    fn what_is_faster_is_kept() {
        // 40 of every 1,140 ms are spent on trials of one thread
        let (spent, _) = alone(|_| 150, false);
        assert!((600..760).contains(&spent), "{spent}");
    }

    #[test]
    fn what_never_pays_is_given_up_soon() {
        let (_, until) = alone(|_| 60, false);
        assert!((280..290).contains(&until), "{until}");
        let (_, until) = alone(|_| 115, false);
        assert!((280..290).contains(&until), "{until}");
        // sleeping threads are detected early, before the regular trial
        let (_, until) = alone(|_| 60, true);
        assert!((90..110).contains(&until), "{until}");
    }

    #[test]
    fn a_chooser_that_begins_again_forgets_what_was_slower() {
        let now = Cell::new(0);
        let clock = || Duration::from_millis(now.get());
        let mut chooser = ModeChooser::new(&clock, TrialTimes::default(), 0);
        let mut done = Done::default();
        while !chooser.is_worse_than_undivided() {
            done.events += if chooser.runs_on_one_thread(done) { 100 } else { 10 };
            done.windows += 1;
            now.set(now.get() + 1);
        }
        chooser.begin_again(done.events, done.windows);
        assert!(!chooser.is_worse_than_undivided() && !chooser.runs_on_one_thread(done));
        // several threads are now faster
        let alone = (0..1_000).filter(|_| {
            let runs_on_one_thread = chooser.runs_on_one_thread(done);
            done.events += if runs_on_one_thread { 100 } else { 200 };
            done.windows += 1;
            now.set(now.get() + 1);
            runs_on_one_thread
        });
        assert!((30..60).contains(&alone.count()));
    }

    #[test]
    fn what_is_found_out_late_is_not_given_up() {
        let now = Cell::new(0);
        let clock = || Duration::from_millis(now.get());
        let mut chooser = ModeChooser::new(&clock, TrialTimes::default(), 0);
        let mut done = Done::default();
        // each window takes 150 ms, as in a very large fabric
        let alone = (0..100).filter(|_| {
            now.set(now.get() + 150);
            let runs_on_one_thread = chooser.runs_on_one_thread(done);
            done.events += if runs_on_one_thread { 1_000 } else { 700 };
            done.windows += 1;
            assert!(!chooser.is_worse_than_undivided());
            runs_on_one_thread
        });
        assert!(alone.count() > 80);
    }

    #[test]
    fn one_thread_is_kept_ever_longer_and_cores_that_become_free_are_used_again() {
        // in the last 19 s several threads are tried for 100 ms after 0.2, 0.4, 0.8 … 6.4 s on one
        // thread
        let (spent, until) = alone(|ms| if ms < 1_000 { 150 } else { 50 }, false);
        assert!(until == 20_000 && (17_500..18_700).contains(&spent), "{spent}");
        let busy_for_two_seconds = |ms| if (1_000..3_000).contains(&ms) { 50 } else { 180 };
        let (spent, _) = alone(busy_for_two_seconds, false);
        assert!((1_500..4_500).contains(&spent), "{spent}");
    }
}
