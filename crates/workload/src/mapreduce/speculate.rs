//! Speculative execution: a second attempt of a slow task on another worker. When one of the two
//! attempts finishes, the other one is killed.
//!
//! On YARN as in Hadoop 3 (DefaultSpeculator, StartEndTimesBase, LegacyTaskRuntimeEstimator). An
//! attempt that has run for t with progress p is estimated to take t / p. Its task may be copied
//! under two conditions: the estimate is not less than the mean run time of the job's finished
//! tasks of its kind plus `threshold` standard deviations, and a copy that takes the mean time from
//! now on would end before the attempt. Nothing is copied before 5 % of the tasks are finished.
//! Every `pause`, the task for which a copy would save most time is copied, while at most
//! max(`minimum`, `cap_total` · tasks, `cap_running` · running tasks) copies run. On Hadoop 1 as in
//! JobInProgress and TaskInProgress: a task is copied if it has run for `lag` and its progress is
//! `gap` or more below the mean of all tasks of its kind, once no task of its kind waits (the rule
//! in Zaharia et al., OSDI 2008).
//!
//! Differences from Hadoop: the master knows progress without delay; a remote split counts as read
//! up to the progress of the map function; copies are assigned before waiting tasks, to the first
//! worker that has room and does not run the task; the loser is killed when the winner's report
//! arrives.

use super::config::{Framework, SpeculationConfig};
use super::context::Context;
use super::report::Report;
use super::scheduler::index;
use super::task::{Stage, Task};
use super::tasks::Tasks;
use super::timer::Timer;
use eastwest_types::{Span, TaskKind, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fraction of a job's tasks of a kind that must be finished before a task of this kind may get a
/// second attempt (`MINIMUM_COMPLETE_PROPORTION_TO_SPECULATE` of StartEndTimesBase).
const DONE_BEFORE: f64 = 0.05;

/// Identity of a task: (job, index of the kind of task, number of the task).
type Key = (u32, usize, u32);

/// A task that has a second (speculative) attempt, or will get one.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Twin {
    /// Workers of the task's attempts that have not ended, as the master knows them.
    workers: Vec<u32>,
    /// Whether the second attempt is requested and not assigned yet.
    wanted: bool,
    /// Whether one attempt of the task has finished at its worker.
    won: bool,
    /// Whether the master knows that the task is finished.
    done: bool,
}

/// Run times of the finished tasks of a job and kind: their number, sum in seconds, and sum of
/// squares.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Times {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Times {
    fn add(&mut self, took: Span) {
        let seconds = took.as_secs_f64();
        self.count += 1.0;
        self.sum += seconds;
        self.squares += seconds * seconds;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    /// Returns the mean run time plus `deviations` standard deviations, in seconds.
    fn outlier(&self, deviations: f64) -> f64 {
        let variance = self.squares / self.count.max(1.0) - self.mean() * self.mean();
        self.mean() + deviations * libm::sqrt(variance.max(0.0))
    }
}

/// Slow tasks, and their second (speculative) attempts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Speculation {
    twins: BTreeMap<Key, Twin>,
    times: BTreeMap<(u32, usize), Times>,
    /// Earliest time of the next second attempt of each job, by job.
    next: BTreeMap<u32, Time>,
}

impl Speculation {
    /// Records at the master that the attempt of a task on a worker has ended.
    pub fn over(&mut self, (job, kind, task): (u32, TaskKind, u32), worker: u32) {
        if let Some(twin) = self.twins.get_mut(&(job, index(kind), task)) {
            twin.workers.retain(|&at| at != worker);
        }
    }

    /// Records that the report of a finished attempt is lost, so that its task is not finished.
    pub fn unreported(&mut self, report: &Report) {
        let key = (report.job, index(report.kind), report.index);
        if let Some(twin) = self.twins.get_mut(&key).filter(|_| report.failed.is_none()) {
            twin.won = false;
        }
        self.over((report.job, report.kind, report.index), report.worker);
    }

    /// Records that the output of a finished map is lost, so that the map is not finished any more.
    pub fn undone(&mut self, job: u32, map: u32) {
        if let Some(twin) = self.twins.get_mut(&(job, index(TaskKind::Map), map)) {
            (twin.won, twin.done) = (false, false);
        }
    }

    /// Whether a task whose attempt or output was lost is unfinished and has no other running
    /// attempt.
    pub fn is_left_alone(&mut self, (job, kind, task): (u32, TaskKind, u32)) -> bool {
        let key = (job, index(kind), task);
        let Some(twin) = self.twins.get(&key) else { return true };
        let (alone, done) = (twin.workers.is_empty(), twin.done);
        if alone {
            self.twins.remove(&key);
        }
        alone && !done
    }

    /// Whether requested second attempts of tasks of a kind (0: maps, 1: reduces) wait for
    /// assignment.
    pub fn wants(&self, kind: usize) -> bool {
        self.twins.iter().any(|(&(_, k, _), twin)| k == kind && twin.wanted)
    }

    /// Removes all tasks of a job that has ended from the state of speculation.
    pub fn forget(&mut self, job: u32) {
        self.twins.retain(|&(of, ..), _| of != job);
        self.times.retain(|&(of, _), _| of != job);
        self.next.remove(&job);
    }
}

/// A running attempt that is checked for slowness.
struct Attempt {
    task: u32,
    worker: u32,
    progress: f64,
    /// Seconds since the assignment of the attempt arrived at its worker.
    ran: f64,
}

impl Speculation {
    /// Schedules the next check for slow tasks, if speculative execution is enabled.
    pub fn look_later(&self, cx: &mut Context) {
        let config = &cx.config.speculation;
        if config.maps || config.reduces {
            cx.wake_in(cx.config.speculation.interval, Timer::Speculate);
        }
    }

    /// Checks all running attempts, and requests second attempts of slow tasks.
    pub fn look(&mut self, cx: &mut Context, tasks: &Tasks) {
        let mut running: BTreeMap<(u32, usize), Vec<Attempt>> = BTreeMap::new();
        for (number, t) in tasks.attempts.iter() {
            if copies(&cx.config.speculation, t.kind) && !matches!(t.stage, Stage::Assigned) {
                let piece = || cx.step_done(t.worker, number);
                let attempt = Attempt {
                    task: t.index,
                    worker: t.worker,
                    progress: t.progress(cx.spec(t.job).maps, piece),
                    ran: cx.now.since(t.times.assigned).as_secs_f64(),
                };
                running.entry((t.job, index(t.kind))).or_default().push(attempt);
            }
        }
        for ((job, kind), attempts) in running {
            match cx.config.framework {
                Framework::Mr1 => self.copy_laggards(cx, tasks, (job, kind), &attempts),
                Framework::Yarn => self.copy_outlier(cx, tasks, (job, kind), &attempts),
            }
        }
        self.look_later(cx);
    }

    /// Requests second attempts of all tasks whose progress is far below the mean (rule of Hadoop
    /// 1).
    fn copy_laggards(
        &mut self,
        cx: &Context,
        tasks: &Tasks,
        (job, kind): (u32, usize),
        attempts: &[Attempt],
    ) {
        let (all, done) = tasks_of(cx, tasks, job, kind);
        let state = tasks.jobs.running(job);
        let wait = [state.maps.left() > 0, state.reduces_given < all][kind];
        if wait {
            return;
        }
        let mut furthest: BTreeMap<u32, f64> = BTreeMap::new();
        for a in attempts {
            let most = furthest.entry(a.task).or_default();
            *most = most.max(a.progress);
        }
        let mean = (f64::from(done) + furthest.values().sum::<f64>()) / f64::from(all);
        let (gap, lag) = (cx.config.speculation.gap, cx.config.speculation.lag.as_secs_f64());
        for a in attempts.iter().filter(|a| mean - a.progress >= gap && a.ran >= lag) {
            self.ask_for_copy((job, kind, a.task), a.worker);
        }
    }

    /// Requests a second attempt of the task for which a second attempt would save most time, if it
    /// would save any time (rule of YARN).
    fn copy_outlier(
        &mut self,
        cx: &Context,
        tasks: &Tasks,
        (job, kind): (u32, usize),
        attempts: &[Attempt],
    ) {
        let config = &cx.config.speculation;
        let (all, done) = tasks_of(cx, tasks, job, kind);
        let Some(times) = self.times.get(&(job, kind)) else { return };
        let early = f64::from(done) < DONE_BEFORE * f64::from(all) || done == 0;
        if early || self.next.get(&job).is_some_and(|&next| cx.now < next) {
            return;
        }
        let (slow, mean) = (times.outlier(config.threshold), times.mean());
        let copies = self.twins.iter();
        let copies = copies.filter(|&(&(j, k, _), twin)| (j, k) == (job, kind) && !twin.done);
        let copies = copies.count() as f64;
        let allowed = (config.cap_running * attempts.len() as f64)
            .max(config.cap_total * f64::from(all))
            .max(f64::from(config.minimum));
        if copies >= allowed {
            return;
        }
        let mut best: Option<(f64, &Attempt)> = None;
        for a in attempts.iter().filter(|a| a.progress > 0.0) {
            let run = a.ran / a.progress.max(0.0001);
            let saved = run - a.ran - mean;
            let has_copy = self.twins.contains_key(&(job, kind, a.task));
            if run >= slow && saved > best.as_ref().map_or(0.0, |&(s, _)| s) && !has_copy {
                best = Some((saved, a));
            }
        }
        if let Some((_, a)) = best {
            self.next.insert(job, cx.now + cx.config.speculation.pause);
            self.ask_for_copy((job, kind, a.task), a.worker);
        }
    }

    fn ask_for_copy(&mut self, key: Key, worker: u32) {
        let twin = Twin { workers: vec![worker], wanted: true, won: false, done: false };
        self.twins.entry(key).or_insert(twin);
    }

    /// Removes and returns the next requested second attempt for a worker, as (job, task); `None`
    /// if there is none. `may` returns whether the worker may run a task of the job.
    pub fn next_copy(
        &mut self,
        kind: TaskKind,
        worker: u32,
        may: impl Fn(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let fits = |&(job, k, _): &Key, twin: &Twin| {
            k == index(kind) && twin.wanted && !twin.workers.contains(&worker) && may(job)
        };
        let (&(job, _, task), twin) = self.twins.iter_mut().find(|(key, twin)| fits(key, twin))?;
        twin.wanted = false;
        twin.workers.push(worker);
        Some((job, task))
    }

    /// Whether another attempt of the same task has finished before the attempt `t`. If not,
    /// records that an attempt of the task has finished.
    pub fn is_beaten(&mut self, t: &Task) -> bool {
        let twin = self.twins.get_mut(&(t.job, index(t.kind), t.index));
        twin.is_some_and(|twin| std::mem::replace(&mut twin.won, true))
    }

    /// Records at the master that a task is finished. Returns whether the task had a second
    /// attempt, so that other attempts must be killed.
    pub fn won(&mut self, cx: &Context, report: &Report) -> bool {
        let key = (report.job, index(report.kind), report.index);
        if !copies(&cx.config.speculation, report.kind) {
            return false;
        }
        self.times.entry((key.0, key.1)).or_default().add(report.took);
        let twin = self.twins.get_mut(&key);
        twin.is_some_and(|twin| {
            (twin.done, twin.wanted) = (true, false);
            true
        })
    }
}

/// Whether the settings allow second attempts of tasks of a kind.
fn copies(config: &SpeculationConfig, kind: TaskKind) -> bool {
    match kind {
        TaskKind::Map => config.maps,
        TaskKind::Reduce => config.reduces,
    }
}

/// Returns the number of all tasks of a kind of a job, and the number of those that are finished.
fn tasks_of(cx: &Context, tasks: &Tasks, job: u32, kind: usize) -> (u32, u32) {
    let (spec, state) = (cx.spec(job), tasks.jobs.running(job));
    [(spec.maps, state.maps_done), (spec.reduces, state.reduces_done)][kind]
}
