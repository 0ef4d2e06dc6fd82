//! Windows of a partitioned run: every part executes its events before the end of the window, then
//! all parts wait at a barrier and exchange messages.

use super::mode_chooser::{Clock, Done, ModeChooser};
use super::part_messages::PartMessages;
use super::report::PartReport;
use super::step::in_step;
use super::watch::{PartsSnapshot, Request, Watcher};
use crate::streams_in_parts::LastFrames;
use crate::world::{Progress, World};
use eastwest_engine::meeting::{Meeting, Watch};
use eastwest_types::{Span, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// State that the threads of a partitioned run share: parts, barrier, messages and reports.
pub struct Exchange<'a> {
    worlds: Vec<Mutex<&'a mut World>>,
    /// Barrier at which the threads wait between two windows.
    pub meeting: Meeting,
    /// Messages between parts, by parity of the window, sending part and receiving part.
    messages: Vec<Mutex<PartMessages>>,
    /// Reports of the parts, by parity of the window and part.
    reports: Vec<Mutex<PartReport>>,
    /// Reports of the parts about raw Ethernet frames, by parity of the window and part.
    frames: Vec<Mutex<Vec<LastFrames>>>,
    lookahead: Span,
    until: Time,
    /// Number of finished flows from which on the rest of the run is executed in step (event by
    /// event, on one thread).
    flows: u64,
    /// Number of raw Ethernet frames in flight, after the last one of a workload was sent, up to which
    /// the run is executed in step.
    few_frames: i64,
}

/// Simulated time, in windows (lookahead times), that is executed in step while the last raw Ethernet
/// frames of a workload are in flight, before the parts report again.
const WINDOWS_OF_LAST_FRAMES: u64 = 64;

/// Locks a mutex, even if another thread has panicked while it held the lock.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Exchange<'a> {
    /// Returns the state that the threads of the parts `worlds` share. Each part can run ahead of
    /// the others by `lookahead`; after `flows` finished flows the rest of the run is executed in
    /// step.
    pub fn new(worlds: &'a mut [World], lookahead: Span, until: Time, flows: u64) -> Exchange<'a> {
        let parts = worlds.len();
        let few_frames = worlds.first().map_or(0, |world| world.frames_of_two_windows(lookahead));
        Exchange {
            worlds: worlds.iter_mut().map(Mutex::new).collect(),
            meeting: Meeting::new(parts),
            messages: (0..2 * parts * parts).map(|_| Mutex::default()).collect(),
            reports: (0..2 * parts).map(|_| Mutex::new(PartReport::NOTHING)).collect(),
            frames: (0..2 * parts).map(|_| Mutex::default()).collect(),
            few_frames,
            lookahead,
            until,
            flows,
        }
    }

    /// Returns the number of parts of the partitioned run, which equals the number of threads.
    pub fn parts(&self) -> usize {
        self.worlds.len()
    }

    /// Calls `f` with all parts, on one thread, while the other threads wait.
    pub fn with_all<R>(&self, f: impl FnOnce(&mut [&mut World]) -> R) -> R {
        let mut guards: Vec<_> = self.worlds.iter().map(locked).collect();
        let mut worlds: Vec<&mut World> = guards.iter_mut().map(|guard| &mut ***guard).collect();
        f(&mut worlds)
    }

    fn messages(&self, parity: usize, from: usize, to: usize) -> MutexGuard<'_, PartMessages> {
        locked(&self.messages[(parity * self.parts() + from) * self.parts() + to])
    }

    /// Publishes the messages and the report of part number `me` to the other parts, at the end of
    /// a window. `alone`: one thread executes the next windows of all parts.
    fn publish(&self, parity: usize, me: usize, world: &mut World, alone: bool) {
        let next_event = world.site.network.sources.winner().0.time();
        let mut next = next_event.min(world.site.network.fabric.next_hand_over());
        let cut = world.partition_mut();
        next = next.min(std::mem::replace(&mut cut.first_out, Time::NEVER));
        for to in 0..self.parts() {
            if PartMessages::are_in(world, to) {
                self.messages(parity, me, to).take(world, to);
            }
        }
        let bound = if next == Time::NEVER { next } else { next + self.lookahead };
        let mut step = world.next_look_across(bound);
        if step == bound {
            step = Time::NEVER;
        }
        if me == 0 {
            step = step.min(world.next_sample()).min(world.next_ask());
        }
        if self.few_frames > 0 {
            *locked(&self.frames[parity * self.parts() + me]) = world.report_last_frames();
        }
        *locked(&self.reports[parity * self.parts() + me]) =
            PartReport { next, step, alone, ..PartReport::of(world) };
    }

    /// Returns the sum of the reports of all parts for the window of this parity (number of the
    /// window modulo 2).
    fn combined_report(&self, parity: usize) -> PartReport {
        let parts = parity * self.parts()..(parity + 1) * self.parts();
        let all = self.reports[parts.clone()].iter();
        let sum = all.fold(PartReport::NOTHING, |sum, report| sum.and(*locked(report)));
        if self.few_frames == 0 {
            return sum; // no workload sends raw Ethernet frames
        }
        let mut frames = self.frames[parts].iter().map(locked);
        // All parts have reports about the same workloads.
        let mut of_workloads = frames.next().map_or_else(Vec::new, |of_first| of_first.clone());
        for of_part in frames {
            of_workloads.iter_mut().zip(&*of_part).for_each(|(sum, of)| sum.add(*of));
        }
        let last_frames = of_workloads.iter().map(|of| of.under_way).min().unwrap_or(i64::MAX);
        let has_missed_end = of_workloads.iter().any(|of| of.under_way == 0 && of.is_looked_for);
        let why = "the last raw Ethernet frames arrived within one delay of a cable of each other";
        let abort_reason = sum.abort_reason.or(has_missed_end.then_some(why));
        PartReport { last_frames, abort_reason, ..sum }
    }

    /// Delivers the messages of other parts for the part number `me` to its world (the state of the
    /// part).
    fn receive(&self, parity: usize, me: usize, world: &mut World) {
        for from in 0..self.parts() {
            self.messages(parity, from, me).deliver(world);
        }
    }

    /// Returns the reason why no further window follows; `None` if the run continues.
    fn ends(&self, all: &PartReport) -> Option<Windows> {
        if let Some(why) = all.obstacle() {
            return Some(Windows::Sequential(why));
        }
        let is_last = all.has_ended || all.next > self.until || all.done >= self.flows;
        is_last.then_some(Windows::Last)
    }

    /// Returns the time until which one thread must execute all parts in step; `None` if the parts can
    /// execute a window.
    fn steps_until(&self, all: &PartReport) -> Option<Time> {
        if all.last_frames <= self.few_frames {
            let slice = Span(self.lookahead.0.saturating_mul(WINDOWS_OF_LAST_FRAMES));
            return Some((all.next + slice).min(self.until));
        }
        (all.step <= all.next).then_some(all.step.min(self.until))
    }

    /// Returns the simulated time at which the next window ends.
    fn end(&self, all: &PartReport) -> Time {
        (all.next + self.lookahead).min(all.step).min(Time(self.until.0 + 1))
    }
}

/// Reason why the execution in windows ends.
pub enum Windows {
    /// The run is nearly done: the rest is executed in step, event by event.
    Last,
    /// The run must be repeated undivided on one thread; the value is the reason for the user.
    Sequential(&'static str),
    /// The observer has stopped the run.
    Interrupted,
}

/// State of the thread of part 0, which also coordinates the other threads.
pub struct Coordinator<'a> {
    /// Observer of the run, which receives the progress and writes checkpoints.
    pub watcher: &'a mut dyn Watcher,
    /// Wall-clock time between two calls of the observer.
    pub check_interval: Duration,
    /// Clock of the caller, which measures wall-clock time.
    pub clock: Clock<'a>,
    /// Wall-clock time of the last call of the observer.
    pub last_check: Duration,
    /// Simulated time at which the run ends at the latest.
    pub until: Time,
    /// Number of windows after which the run is checked once, and the minimum mean number of events
    /// per window: with fewer events the run is repeated undivided.
    pub min_events_per_window: (u64, u64),
    /// Number of flows in the run, over all workloads.
    pub total: u64,
    /// Least number of unfinished flows from which on the rest of the run is executed in step. Used
    /// only to write checkpoints, like the next field.
    pub last_flows: u64,
    /// For each workload: true if the run may end before this workload has finished.
    pub background: Vec<bool>,
    /// Simulated time by which a part can run ahead of other parts (lookahead): the smallest delay
    /// of all cables.
    pub lookahead: Span,
    /// Chooses between several threads and one; `None`: several threads are always used.
    pub mode_chooser: Option<ModeChooser<'a>>,
    /// Latest request of the observer; a requested checkpoint is written when all parts have ended
    /// a window.
    pub request: Request,
    /// Number of windows executed so far.
    pub windows: u64,
    /// Number of windows in which one thread executed all parts, because this was faster.
    pub alone: u64,
    /// Number of events that all parts have executed so far.
    pub events: u64,
    /// Number of events that were executed before the first window.
    pub events_before: u64,
    /// Sum over all windows of the square of the number of events in the window.
    pub squares: u128,
}

impl Coordinator<'_> {
    fn runs_on_one_thread(&mut self, x: &Exchange) -> bool {
        let (windows, events, sleeps) = (self.windows, self.events, x.meeting.slept());
        self.mode_chooser
            .as_mut()
            .is_some_and(|chooser| chooser.runs_on_one_thread(Done { events, windows, sleeps }))
    }

    /// Counts a window. Returns the reason why no further window follows; `None` if the run
    /// continues.
    fn after_window(&mut self, all: &PartReport, world: &World) -> Option<Windows> {
        self.windows += 1;
        let (before, now) = (self.events, all.events);
        self.squares += u128::from(now - before).pow(2);
        self.events = now;
        let has_begun = !world.replicates() || self.has_first_events(now);
        let begins = world.replicates() && has_begun && !self.has_first_events(before);
        let has_few = match world.replicates() {
            true => begins && self.has_few_around_an_event(),
            false => self.has_few_per_window(),
        };
        if has_few {
            return Some(Windows::Sequential(
                "too few events happen within the delay of a cable, so that threads would mostly \
                 wait for each other",
            ));
        }
        if let Some(chooser) = &mut self.mode_chooser
            && begins
        {
            chooser.begin_again(now, self.windows);
        }
        if has_begun && self.mode_chooser.as_ref().is_some_and(ModeChooser::is_worse_than_undivided)
        {
            return Some(Windows::Sequential(
                "several threads were not faster, for example because cores are busy",
            ));
        }
        self.on_progress(all, world)
    }

    /// Whether there were too few events in the first windows.
    fn has_few_per_window(&self) -> bool {
        let (windows, each) = self.min_events_per_window;
        self.windows == windows && self.events - self.events_before < windows * each
    }

    /// Whether a run of `events` events has had as many as the first windows must have. Replicated
    /// workloads can begin with many windows of few events, such as the set-up of a job, which take
    /// little time. Only then is it decided whether several threads are worthwhile.
    fn has_first_events(&self, events: u64) -> bool {
        let (windows, each) = self.min_events_per_window;
        events >= self.events_before + windows * each
    }

    /// Whether the mean event has had too few others in its window.
    fn has_few_around_an_event(&self) -> bool {
        let all = u128::from(self.events - self.events_before);
        self.squares < all * u128::from(self.min_events_per_window.1)
    }

    /// Calls the observer if `check_interval` has passed. Returns [`Windows::Interrupted`] if the
    /// observer stops the run, otherwise `None`.
    pub fn on_progress(&mut self, all: &PartReport, world: &World) -> Option<Windows> {
        self.observe(&Progress {
            now: world.site.network.now,
            until: self.until,
            done: match world.replicates() {
                true => world.site.drivers.done(),
                false => (all.done, self.total),
            },
            packet_hops: all.hops,
            events: all.events,
        })
    }

    /// Calls the observer like [`Coordinator::on_progress`], at the beginning of a run that is not
    /// divided yet. A requested checkpoint is written when the run is divided.
    pub fn on_beginning(&mut self, world: &World) -> Option<Windows> {
        let progress = world.progress();
        self.observe(&Progress { until: self.until, ..progress })
    }

    fn observe(&mut self, progress: &Progress) -> Option<Windows> {
        let now = (self.clock)();
        if self.request.checkpoint || now.saturating_sub(self.last_check) < self.check_interval {
            return None;
        }
        self.last_check = now;
        let request = self.watcher.on_progress(progress);
        if request.checkpoint {
            self.request = request;
            return None;
        }
        (!request.proceed).then_some(Windows::Interrupted)
    }

    /// Writes a checkpoint if the observer has requested one. Returns [`Windows::Interrupted`] if
    /// the run stops after the checkpoint, otherwise `None`.
    pub fn checkpoint_if_requested(&mut self, worlds: &[&mut World]) -> Option<Windows> {
        if !self.request.checkpoint {
            return None;
        }
        let worlds = worlds.iter().map(|world| &**world).collect();
        let (lookahead, until, total) = (self.lookahead, self.until, self.total);
        let (last_flows, background) = (self.last_flows, &self.background);
        let snapshot = PartsSnapshot { worlds, lookahead, until, total, last_flows, background };
        self.watcher.checkpoint(&snapshot);
        self.request.checkpoint = false;
        (!self.request.proceed).then_some(Windows::Interrupted)
    }
}

/// Executes the windows of part number `me` on the calling thread. `coordinator` is `Some` only on
/// the thread of part 0. Returns the reason why the windows ended.
pub fn windows(x: &Exchange, me: usize, mut coordinator: Option<&mut Coordinator>) -> Windows {
    let _watch = Watch(&x.meeting);
    locked(&x.worlds[me]).start_part();
    let mut parity = 0;
    loop {
        parity ^= 1;
        let mut world = locked(&x.worlds[me]);
        let alone = coordinator.as_mut().is_some_and(|coordinator| {
            coordinator.runs_on_one_thread(x) || coordinator.request.checkpoint
        });
        x.publish(parity, me, &mut world, alone);
        drop(world);
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
        let all = x.combined_report(parity);
        let mut world = locked(&x.worlds[me]);
        x.receive(parity, me, &mut world);
        let ends = x.ends(&all).or_else(|| coordinator.as_mut()?.after_window(&all, &world));
        if let Some(end) = ends {
            if x.ends(&all).is_none() {
                x.meeting.abandon(); // only the coordinator knows that the run ends
            }
            return end;
        }
        if !all.alone && x.steps_until(&all).is_none() {
            run_window(&mut world, x.end(&all));
            continue;
        }
        drop(world);
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
        if let Some(coordinator) = &mut coordinator
            && let Some(end) = x.with_all(|worlds| run_on_one_thread(worlds, x, &all, coordinator))
        {
            x.meeting.abandon();
            return end;
        }
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
    }
}

fn run_window(world: &mut World, end: Time) {
    if world.run_window(end).is_err() {
        world.abort_partitioned("a thread could not finish its part of the run");
    }
}

/// Executes on one thread the events that must be executed in step or, as long as one thread is
/// faster, the windows of all parts. A requested checkpoint is written first: between two windows
/// no message is in flight from one part to another. Returns the reason why the windows end; `None`
/// if they continue.
fn run_on_one_thread(
    worlds: &mut [&mut World],
    x: &Exchange,
    first: &PartReport,
    coordinator: &mut Coordinator,
) -> Option<Windows> {
    let mut all = *first;
    loop {
        if let Some(end) = coordinator.checkpoint_if_requested(worlds) {
            return Some(end);
        }
        if let Some(until) = x.steps_until(&all) {
            in_step(worlds, until, x.flows);
        } else {
            let end = x.end(&all);
            worlds.iter_mut().for_each(|world| run_window(world, end));
        }
        if !first.alone {
            return None;
        }
        for (me, world) in worlds.iter_mut().enumerate() {
            x.publish(0, me, world, false);
        }
        all = x.combined_report(0);
        for (me, world) in worlds.iter_mut().enumerate() {
            x.receive(0, me, world);
        }
        if x.ends(&all).is_some() {
            return None; // every thread finds the reason in the next reports
        }
        let end = coordinator.after_window(&all, worlds[0]);
        coordinator.alone += 1;
        if end.is_some() || !coordinator.runs_on_one_thread(x) {
            return end;
        }
    }
}
