//! A task on its worker, and the steps it goes through.
//!
//! A step is work on cores and disks at the same time, as Hadoop's streams overlap reading,
//! computing and writing: it ends with the longest of its parts.

use super::MapReduce;
use super::blocks::Written;
use super::hardware::Work;
use super::map::Mapping;
use super::output::Producing;
use super::shuffle::Fetching;
use crate::Action;
use eastwest_types::{ConnId, Locality, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// What a task is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// The assignment is on its way to the worker.
    Assigned,
    /// Its Java virtual machine starts.
    Starting,
    /// A map asks the namenode where its split is.
    Locating,
    /// A map reads, computes and spills.
    Mapping(Box<Mapping>),
    /// A map merges its spills.
    MergingSpills,
    /// A reduce fetches.
    Shuffling,
    /// A reduce merges what it has fetched.
    Merging,
    /// Output is computed and written.
    Producing(Box<Producing>),
    /// The output is there; the task commits.
    Committing,
}

/// What Hadoop's counters would say of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Written to local disks by spills and merges (`FILE_BYTES_WRITTEN`; as records,
    /// `SPILLED_RECORDS`).
    pub file_written: u64,
    /// Read back from them (`FILE_BYTES_READ`).
    pub file_read: u64,
    /// Spills of a map; merges to the disk of a reduce.
    pub spills: u32,
    /// Put out by the function of a map that has reduces (`MAP_OUTPUT_BYTES`).
    pub collected: u64,
    /// Fetches that failed (`FAILED_SHUFFLE`).
    pub failed_fetches: u32,
    /// Core time (`CPU_MILLISECONDS`), the virtual machine's start included.
    pub cpu: Span,
}

/// A task from its assignment until it has finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Number of its job.
    pub job: u32,
    /// Number within its job and kind.
    pub index: u32,
    /// Map or reduce.
    pub kind: TaskKind,
    /// Where it runs.
    pub worker: u32,
    /// When the assignment reached the worker.
    pub assigned: Time,
    /// When it began to read or fetch.
    pub started: Time,
    /// When its input was complete.
    pub input_done: Time,
    /// When the input of a reduce or the spills of a map were merged.
    pub merged: Time,
    /// When the map or reduce function was through.
    pub computed: Time,
    /// How far a map's split is.
    pub locality: Locality,
    /// Read or fetched.
    pub bytes_in: u64,
    /// Of what a reduce has fetched, what was on its worker.
    pub shuffle_local: u64,
    /// Workers from which the split could not be read.
    pub avoid: Vec<u32>,
    /// How often no replica of the split was found.
    pub sought: u32,
    /// Blocks of its output, when that is complete.
    pub written: Vec<Written>,
    /// Spilled or written.
    pub bytes_out: u64,
    /// What its counters say.
    pub counters: Counters,
    /// What it is doing.
    pub stage: Stage,
    /// Parts of the running step that are not through.
    pub parts: u32,
    /// Transfers and datanode reads a remote map's split still needs.
    pub input_left: u32,
    /// Of a reduce until its shuffle is done: what it has fetched from where.
    pub fetching: Option<Box<Fetching>>,
    /// Of a reduce on YARN: its connection to its application master.
    pub events: Option<ConnId>,
}

impl Task {
    /// A task whose assignment is on its way.
    pub fn new((job, index, kind): (u32, u32, TaskKind), worker: u32) -> Task {
        Task {
            job,
            index,
            kind,
            worker,
            assigned: Time::ZERO,
            started: Time::ZERO,
            input_done: Time::ZERO,
            merged: Time::ZERO,
            computed: Time::ZERO,
            locality: Locality::None,
            bytes_in: 0,
            shuffle_local: 0,
            avoid: Vec::new(),
            sought: 0,
            written: Vec::new(),
            bytes_out: 0,
            counters: Counters::default(),
            stage: Stage::Assigned,
            parts: 0,
            input_left: 0,
            fetching: None,
            events: None,
        }
    }
}

/// Parts of a step that run at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Core time.
    pub cpu: Span,
    /// Bytes read from local disks.
    pub read: u64,
    /// Bytes written to local disks.
    pub write: u64,
}

impl MapReduce {
    /// Starts parts of something a task does; returns how many of them must be waited for, at least
    /// one: what takes no time still ends by a wake-up.
    pub(super) fn begin_parts(
        &mut self,
        now: Time,
        task: u32,
        step: Step,
        what: Work,
        out: &mut Vec<Action>,
    ) -> u32 {
        let t = self.tasks.get(task);
        t.counters.cpu += step.cpu;
        let worker = t.worker;
        if let Some(read) = self.hardware.step_alone(now, worker, step, what, out) {
            if step.read > 0 && what == Work::Step(task) {
                self.file_read(now + read, task);
            }
            return 1;
        }
        let mut parts = 0;
        if step.read > 0 {
            let what = if what == Work::Step(task) { Work::Read(task) } else { what };
            self.hardware.read(now, worker, step.read, what, out);
            parts += 1;
        }
        if step.write > 0 && !self.hardware.write(now, worker, step.write, what, out) {
            parts += 1;
        }
        if step.cpu > Span::ZERO || parts == 0 {
            self.hardware.compute(now, worker, step.cpu, what, out);
            parts += 1;
        }
        parts
    }

    /// Starts a step of a task: [`MapReduce::task_step`] follows when all its parts are through.
    pub(super) fn step(&mut self, now: Time, task: u32, step: Step, out: &mut Vec<Action>) {
        let parts = self.begin_parts(now, task, step, Work::Step(task), out);
        self.tasks.get(task).parts = parts;
    }

    /// A part of a task's step is through.
    pub(super) fn part_ended(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        t.parts -= 1;
        if t.parts == 0 {
            self.task_step(now, task, out);
        }
    }

    /// A task has read from its worker's disks: of a map, so much of its split.
    pub(super) fn file_read(&mut self, now: Time, task: u32) {
        let t = self.tasks.get(task);
        if t.kind == TaskKind::Map && !matches!(t.stage, Stage::MergingSpills) {
            t.input_done = now;
        }
    }

    /// At the worker: the task's virtual machine starts.
    pub(super) fn launch(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.count_launched(task);
        let (start, jitter) = (self.config.costs.task_start, self.config.costs.task_start_jitter);
        let t = self.tasks.get(task);
        t.stage = Stage::Starting;
        let (job, index, kind) = (t.job, t.index, t.kind);
        let drawn = match (jitter, kind) {
            (Span::ZERO, _) => Span::ZERO,
            (width, TaskKind::Map) => self.stream("map-start", job, index).within(width),
            (width, TaskKind::Reduce) => self.stream("reduce-start", job, index).within(width),
        };
        let cpu = start + drawn;
        self.step(now, task, Step { cpu, ..Step::default() }, out);
    }

    /// What a task did is through: its stage says what comes next.
    pub(super) fn task_step(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        match &t.stage {
            Stage::Starting => {
                t.started = now;
                let (job, kind) = (t.job, t.kind);
                self.job(job).started.get_or_insert(now);
                match kind {
                    TaskKind::Map => self.map_start(now, task, out),
                    TaskKind::Reduce => self.shuffle_start(now, task, out),
                }
            }
            Stage::Mapping(_) => self.piece_mapped(now, task, out),
            Stage::MergingSpills => {
                t.merged = now;
                self.task_finished(now, task, out);
            }
            Stage::Committing => self.task_finished(now, task, out),
            Stage::Merging => self.reduce_start(now, task, out),
            Stage::Producing(_) => self.piece_produced(now, task, out),
            stage => unreachable!("no step runs in {stage:?}"),
        }
    }

    /// The task's output is written: it commits.
    pub(super) fn commit(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let wait = self.config.costs.task_commit;
        self.tasks.get(task).stage = Stage::Committing;
        if wait == Span::ZERO {
            self.task_finished(now, task, out);
        } else {
            out.push(super::Timer::Commit(task).at(now + wait));
        }
    }
}
