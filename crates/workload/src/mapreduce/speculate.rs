//! Speculative execution: a second attempt at a task that is slow, on another worker. The first
//! attempt that is through wins, the other is killed.
//!
//! On YARN as in Hadoop 3 (DefaultSpeculator, StartEndTimesBase, LegacyTaskRuntimeEstimator). An
//! attempt that has run for t with progress p will take t / p. Its task is copied if that is no less
//! than the mean run time of the job's finished tasks of its kind plus `threshold` standard
//! deviations, and if a copy that takes the mean from now on would end before it; nothing is copied
//! before 5 % of the tasks are done. Of all such tasks that which a copy would save most
//! is copied, one each `pause`, while no more than max(`minimum`, `cap_total` · tasks,
//! `cap_running` · running tasks) copies run. On Hadoop 1 as in JobInProgress and TaskInProgress: a
//! task is copied if it has run for `lag` and its progress is `gap` or more below the mean of all
//! tasks of its kind, once no task of its kind waits (the rule Zaharia et al., OSDI 2008, describe).
//!
//! Progress is Hadoop's: a map's function counts 2/3 and its merge 1/3; a reduce's fetches, merge and
//! function 1/3 each. Departures: the master knows it without delay; a remote split counts as read
//! as far as its function is; copies are given out before waiting tasks, and to the first worker
//! that has room and does not run the task; the loser is killed when the winner's report arrives.

use super::MapReduce;
use super::Timer;
use super::config::Framework;
use super::control::Report;
use super::scheduler::{Jobs, index};
use super::task::{Stage, Task};
use crate::Action;
use eastwest_types::{Locality, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Part of a job's tasks of a kind that must be done before one is copied
/// (`MINIMUM_COMPLETE_PROPORTION_TO_SPECULATE` of StartEndTimesBase).
const DONE_BEFORE: f64 = 0.05;

/// Job, index of the kind, number.
type Key = (u32, usize, u32);

/// A task that has a copy, or is to have one.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Twin {
    /// Where its attempts are that have not ended, as far as the master knows.
    workers: Vec<u32>,
    /// The copy was not given out yet.
    wanted: bool,
    /// An attempt is through.
    won: bool,
    /// The master knows of that.
    done: bool,
}

/// Run times of finished tasks, in seconds.
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

    /// So many standard deviations above the mean.
    fn outlier(&self, deviations: f64) -> f64 {
        let variance = self.squares / self.count.max(1.0) - self.mean() * self.mean();
        self.mean() + deviations * libm::sqrt(variance.max(0.0))
    }
}

/// What is known of slow tasks and their copies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Speculation {
    twins: BTreeMap<Key, Twin>,
    times: BTreeMap<(u32, usize), Times>,
    /// When a job may be looked at again.
    next: BTreeMap<u32, Time>,
}

impl Speculation {
    /// An attempt has ended for the master.
    pub fn over(&mut self, (job, kind, task): (u32, TaskKind, u32), worker: u32) {
        if let Some(twin) = self.twins.get_mut(&(job, index(kind), task)) {
            twin.workers.retain(|&at| at != worker);
        }
    }

    /// An attempt that was through will never be reported.
    pub fn unreported(&mut self, report: &Report) {
        let key = (report.job, index(report.kind), report.index);
        if let Some(twin) = self.twins.get_mut(&key).filter(|_| report.failed.is_none()) {
            twin.won = false;
        }
        self.over((report.job, report.kind, report.index), report.worker);
    }

    /// The output of a map that was done is gone.
    pub fn undone(&mut self, job: u32, map: u32) {
        if let Some(twin) = self.twins.get_mut(&(job, index(TaskKind::Map), map)) {
            (twin.won, twin.done) = (false, false);
        }
    }

    /// Whether a task whose attempt or output is gone has neither another attempt nor is done.
    pub fn is_left_alone(&mut self, (job, kind, task): (u32, TaskKind, u32)) -> bool {
        let key = (job, index(kind), task);
        let Some(twin) = self.twins.get(&key) else { return true };
        let (alone, done) = (twin.workers.is_empty(), twin.done);
        if alone {
            self.twins.remove(&key);
        }
        alone && !done
    }

    /// Whether copies of tasks of a kind are to be given out.
    pub fn wants(&self, kind: usize) -> bool {
        self.twins.iter().any(|(&(_, k, _), twin)| k == kind && twin.wanted)
    }

    /// A job is over.
    pub fn forget(&mut self, job: u32) {
        self.twins.retain(|&(of, ..), _| of != job);
        self.times.retain(|&(of, _), _| of != job);
        self.next.remove(&job);
    }
}

/// A running attempt, as a look sees it.
struct Attempt {
    task: u32,
    worker: u32,
    progress: f64,
    /// Seconds since its assignment arrived.
    ran: f64,
}

impl MapReduce {
    fn speculates(&self, kind: TaskKind) -> bool {
        match kind {
            TaskKind::Map => self.config.speculation.maps,
            TaskKind::Reduce => self.config.speculation.reduces,
        }
    }

    /// The first look.
    pub(super) fn begin_speculating(&self, now: Time, out: &mut Vec<Action>) {
        if self.speculates(TaskKind::Map) || self.speculates(TaskKind::Reduce) {
            out.push(Timer::Speculate.at(now + self.config.speculation.interval));
        }
    }

    /// Looks at all running tasks.
    pub(super) fn speculate(&mut self, now: Time, out: &mut Vec<Action>) {
        let mut running: BTreeMap<(u32, usize), Vec<Attempt>> = BTreeMap::new();
        for (number, t) in self.tasks.iter() {
            if self.speculates(t.kind) && !matches!(t.stage, Stage::Assigned) {
                let attempt = Attempt {
                    task: t.index,
                    worker: t.worker,
                    progress: self.progress_of(now, number, t),
                    ran: now.since(t.assigned).as_secs_f64(),
                };
                running.entry((t.job, index(t.kind))).or_default().push(attempt);
            }
        }
        for ((job, kind), attempts) in running {
            match self.config.framework {
                Framework::Mr1 => self.copy_laggards((job, kind), &attempts),
                Framework::Yarn => self.copy_outlier(now, (job, kind), &attempts),
            }
        }
        self.begin_speculating(now, out);
    }

    fn tasks_of(&self, job: u32, kind: usize) -> (u32, u32) {
        let spec = self.spec(job);
        let state = self.jobs[job as usize].as_ref().expect("the job runs");
        [(spec.maps, state.maps_done), (spec.reduces, state.reduces_done)][kind]
    }

    /// Hadoop 1: asks for copies of all tasks far behind the others.
    fn copy_laggards(&mut self, (job, kind): (u32, usize), attempts: &[Attempt]) {
        let (tasks, done) = self.tasks_of(job, kind);
        let state = self.jobs[job as usize].as_ref().expect("the job runs");
        let wait = [state.maps.left() > 0, state.reduces_given < tasks][kind];
        if wait {
            return;
        }
        let mut furthest: BTreeMap<u32, f64> = BTreeMap::new();
        for a in attempts {
            let most = furthest.entry(a.task).or_default();
            *most = most.max(a.progress);
        }
        let mean = (f64::from(done) + furthest.values().sum::<f64>()) / f64::from(tasks);
        let (gap, lag) = (self.config.speculation.gap, self.config.speculation.lag.as_secs_f64());
        for a in attempts.iter().filter(|a| mean - a.progress >= gap && a.ran >= lag) {
            self.ask_for_copy((job, kind, a.task), a.worker);
        }
    }

    /// YARN: asks for a copy of the task it would help most, if it helps any.
    fn copy_outlier(&mut self, now: Time, (job, kind): (u32, usize), attempts: &[Attempt]) {
        let config = &self.config.speculation;
        let (tasks, done) = self.tasks_of(job, kind);
        let Some(times) = self.speculation.times.get(&(job, kind)) else { return };
        let early = f64::from(done) < DONE_BEFORE * f64::from(tasks) || done == 0;
        if early || self.speculation.next.get(&job).is_some_and(|&next| now < next) {
            return;
        }
        let (slow, mean) = (times.outlier(config.threshold), times.mean());
        let copies = self.speculation.twins.iter();
        let copies = copies.filter(|&(&(j, k, _), twin)| (j, k) == (job, kind) && !twin.done);
        let copies = copies.count() as f64;
        let allowed = (config.cap_running * attempts.len() as f64)
            .max(config.cap_total * f64::from(tasks))
            .max(f64::from(config.minimum));
        if copies >= allowed {
            return;
        }
        let mut best: Option<(f64, &Attempt)> = None;
        for a in attempts.iter().filter(|a| a.progress > 0.0) {
            let run = a.ran / a.progress.max(0.0001);
            let saved = run - a.ran - mean;
            let has_copy = self.speculation.twins.contains_key(&(job, kind, a.task));
            if run >= slow && saved > best.as_ref().map_or(0.0, |&(s, _)| s) && !has_copy {
                best = Some((saved, a));
            }
        }
        if let Some((_, a)) = best {
            self.speculation.next.insert(job, now + self.config.speculation.pause);
            self.ask_for_copy((job, kind, a.task), a.worker);
        }
    }

    fn ask_for_copy(&mut self, key: Key, worker: u32) {
        let twin = Twin { workers: vec![worker], wanted: true, won: false, done: false };
        self.speculation.twins.entry(key).or_insert(twin);
    }

    /// Gives a worker copies that are wanted, at most so many; returns how many.
    pub(super) fn give_copies(&mut self, worker: u32, kind: TaskKind, room: u32) -> u32 {
        let mut given = 0;
        while given < room {
            let mut wanted = self.speculation.twins.iter().filter(|&(&(job, k, _), twin)| {
                let may = kind == TaskKind::Map
                    || self.config.framework == Framework::Mr1
                    || self.may_reduce(worker, job);
                k == index(kind) && twin.wanted && !twin.workers.contains(&worker) && may
            });
            let Some((&(job, k, task), _)) = wanted.next() else { break };
            let twin = self.speculation.twins.get_mut(&(job, k, task)).expect("it is wanted");
            twin.wanted = false;
            twin.workers.push(worker);
            self.scheduler.also_started(kind, job);
            let (locality, bytes_in) = match kind {
                TaskKind::Map => {
                    let locality = self.jobs.maps(job).locality(task, worker, &self.racks);
                    (locality, self.spec(job).split_bytes(task))
                }
                TaskKind::Reduce => (Locality::None, 0),
            };
            self.give_out(worker, (job, task, kind), locality, bytes_in);
            given += 1;
        }
        given
    }

    /// An attempt is through: whether another one of its task was before.
    pub(super) fn is_beaten(&mut self, task: u32) -> bool {
        let t = self.tasks.get(task);
        let twin = self.speculation.twins.get_mut(&(t.job, index(t.kind), t.index));
        twin.is_some_and(|twin| std::mem::replace(&mut twin.won, true))
    }

    /// At the master: a task is done. Its other attempt is killed.
    pub(super) fn copy_won(&mut self, report: &Report, out: &mut Vec<Action>) {
        let &Report { job, index: task, kind, took, .. } = report;
        if !self.speculates(kind) {
            return;
        }
        self.speculation.times.entry((job, index(kind))).or_default().add(took);
        let Some(twin) = self.speculation.twins.get_mut(&(job, index(kind), task)) else { return };
        (twin.done, twin.wanted) = (true, false);
        let same = |t: &Task| (t.job, t.kind, t.index) == (job, kind, task);
        let others: Vec<u32> =
            self.tasks.iter().filter(|(_, t)| same(t)).map(|(number, _)| number).collect();
        for other in others {
            let t = self.kill_attempt(other, out);
            self.free_dropped(&t);
        }
        self.speculation.is_left_alone((job, kind, task));
    }

    /// How far a task is, from 0 to 1.
    fn progress_of(&self, now: Time, number: u32, t: &Task) -> f64 {
        let piece = || self.hardware.step_done(now, t.worker, number);
        let third = |phases: f64, part: f64| (phases + part) / 3.0;
        match &t.stage {
            Stage::Assigned | Stage::Starting | Stage::Locating => 0.0,
            Stage::Mapping(mapping) => third(0.0, 2.0 * mapping.done(piece())),
            Stage::MergingSpills => third(2.0, piece()),
            Stage::Shuffling => {
                let fetched = t.fetching.as_ref().map_or(0, |f| f.fetched());
                third(0.0, f64::from(fetched) / f64::from(self.spec(t.job).maps))
            }
            Stage::Merging => third(1.0, piece()),
            Stage::Producing(producing) => match t.kind {
                TaskKind::Map => producing.share_done(piece()),
                TaskKind::Reduce => third(2.0, producing.share_done(piece())),
            },
            Stage::Committing => 1.0,
        }
    }
}
