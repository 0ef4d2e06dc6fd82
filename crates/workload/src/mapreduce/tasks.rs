//! State of running tasks, and the steps into which their work is divided.
//!
//! A step is work on a core and on disks in parallel, since Hadoop's streams overlap reading,
//! computing and writing. A step ends when its longest part ends.

use super::context::Context;
use super::file::Written;
use super::hdfs::Hdfs;
use super::job::JobTable;
use super::note::Note;
use super::slab::Slab;
use super::task::{Stage, Task};
use super::timer::Timer;
use super::work::{Step, Work};
use eastwest_types::{Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// State of all jobs, and of the task attempts that are assigned and not finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tasks {
    /// State of all jobs, by job number.
    pub jobs: JobTable,
    /// Task attempts that are assigned and not finished, by number.
    pub attempts: Slab<Task>,
}

impl Tasks {
    /// Returns the state of `jobs` jobs that have not begun, without running tasks.
    pub fn new(jobs: usize) -> Tasks {
        Tasks { jobs: JobTable::new(jobs), attempts: Slab::default() }
    }

    /// Returns the numbers of the task attempts for which `meant` returns true.
    pub fn attempts_where(&self, meant: impl Fn(&Task) -> bool) -> Vec<u32> {
        self.attempts.iter().filter(|(_, t)| meant(t)).map(|(number, _)| number).collect()
    }

    /// Returns the worker that runs a task attempt.
    pub fn worker_of(&self, task: u32) -> u32 {
        self.attempts.find(task).expect("the attempt runs").worker
    }

    /// Starts work of a task in addition to its present step; `what` is the purpose of the work.
    /// Returns the number of its parallel parts; the end of each part is reported.
    pub fn begin_parts(&mut self, cx: &mut Context, task: u32, step: Step, what: Work) -> u32 {
        let t = self.attempts.get(task);
        t.counters.cpu += step.cpu;
        cx.begin_parts(t.worker, step, what).parts
    }

    /// Starts a step of a task; [`Tasks::task_step`] is called when all its parts have ended.
    pub fn step(&mut self, cx: &mut Context, task: u32, step: Step) {
        let t = self.attempts.get(task);
        t.counters.cpu += step.cpu;
        let begun = cx.begin_parts(t.worker, step, Work::Step(task));
        t.parts = begun.parts;
        if let Some(read) = begun.read {
            t.file_read(cx.now + read);
        }
    }

    /// Counts a finished part of a task's step; after the last part the task continues.
    pub fn part_ended(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let t = self.attempts.get(task);
        t.parts -= 1;
        if t.parts == 0 {
            self.task_step(cx, hdfs, task);
        }
    }

    /// Starts the Java virtual machine of a task at its worker.
    pub fn launch(&mut self, cx: &mut Context, task: u32) {
        let (start, jitter) = (cx.config.costs.task_start, cx.config.costs.task_start_jitter);
        let t = self.attempts.get(task);
        self.jobs.count_launched(t);
        t.stage = Stage::Starting;
        let (job, index, kind) = (t.job, t.index, t.kind);
        let drawn = match (jitter, kind) {
            (Span::ZERO, _) => Span::ZERO,
            (width, TaskKind::Map) => cx.stream("map-start", job, index).within(width),
            (width, TaskKind::Reduce) => cx.stream("reduce-start", job, index).within(width),
        };
        let cpu = start + drawn;
        self.step(cx, task, Step { cpu, ..Step::default() });
    }

    /// Continues a task after the end of a step: starts the next step of its stage, or its next
    /// stage.
    pub fn task_step(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let t = self.attempts.get(task);
        match &t.stage {
            Stage::Starting => {
                t.times.started = cx.now;
                let (job, kind) = (t.job, t.kind);
                self.jobs.get(job).started.get_or_insert(cx.now);
                match kind {
                    TaskKind::Map => self.map_start(cx, hdfs, task),
                    TaskKind::Reduce => self.shuffle_start(cx, task),
                }
            }
            Stage::Mapping(_) => self.piece_mapped(cx, task),
            Stage::MergingSpills => {
                t.times.merged = cx.now;
                cx.note(Note::AttemptThrough { task });
            }
            Stage::Committing(_) => cx.note(Note::AttemptThrough { task }),
            Stage::Merging => self.reduce_start(cx, hdfs, task),
            Stage::Producing(_) => self.piece_produced(cx, hdfs, task),
            stage => unreachable!("no step runs in {stage:?}"),
        }
    }

    /// Records that a task has finished a read from its worker's disks.
    pub fn file_read(&mut self, now: Time, task: u32) {
        self.attempts.get(task).file_read(now);
    }

    /// Starts the commit of a task whose output is complete; `blocks` lists its blocks if the
    /// output is a file in HDFS.
    pub fn commit(&mut self, cx: &mut Context, task: u32, blocks: Vec<Written>) {
        let wait = cx.config.costs.task_commit;
        self.attempts.get(task).stage = Stage::Committing(blocks);
        if wait == Span::ZERO {
            cx.note(Note::AttemptThrough { task });
        } else {
            cx.wake_in(wait, Timer::Commit(task));
        }
    }
}
