//! A task on its worker: what it is doing, and how far it is.

use super::counters::Counters;
use super::file::Written;
use super::mapping::Mapping;
use super::producing::Producing;
use super::report::Report;
use super::shuffle::Fetching;
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
    /// The output is there, in these blocks if it is a file; the task commits.
    Committing(Vec<Written>),
}

/// Times of a task's steps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// The assignment reached the worker.
    pub assigned: Time,
    /// The task began to read or fetch.
    pub started: Time,
    /// Its input was complete.
    pub input_done: Time,
    /// The input of a reduce or the spills of a map were merged.
    pub merged: Time,
    /// The map or reduce function was through.
    pub computed: Time,
}

/// How a map comes by its split.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SplitRead {
    /// Workers from which it could not be read.
    pub avoid: Vec<u32>,
    /// How often no replica was found.
    pub sought: u32,
    /// Transfers and datanode reads that a remote split still needs.
    pub left: u32,
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
    /// Times of its steps.
    pub times: Times,
    /// How far a map's split is.
    pub locality: Locality,
    /// Read or fetched.
    pub bytes_in: u64,
    /// Bytes that a reduce has fetched from its own worker.
    pub shuffle_local: u64,
    /// How a map comes by its split.
    pub split: SplitRead,
    /// Spilled or written.
    pub bytes_out: u64,
    /// Counters of the task, as Hadoop keeps them.
    pub counters: Counters,
    /// What it is doing.
    pub stage: Stage,
    /// Parts of the running step that are not through.
    pub parts: u32,
    /// State of a reduce's shuffle: outputs that it knows of, asks for and has fetched. `None` for maps and
    /// for reduces whose shuffle is done.
    pub fetching: Option<Box<Fetching>>,
    /// Connection of a reduce on YARN to its application master.
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
            times: Times::default(),
            locality: Locality::None,
            bytes_in: 0,
            shuffle_local: 0,
            split: SplitRead::default(),
            bytes_out: 0,
            counters: Counters::default(),
            stage: Stage::Assigned,
            parts: 0,
            fetching: None,
            events: None,
        }
    }

    /// Tells of the end of the attempt, with no success so far.
    pub fn report(&self) -> Report {
        Report {
            worker: self.worker,
            job: self.job,
            index: self.index,
            kind: self.kind,
            written_offset: 0,
            failed: None,
            took: Span::ZERO,
        }
    }

    /// The task has read from its worker's disks: of a map, so much of its split.
    pub fn file_read(&mut self, now: Time) {
        if self.kind == TaskKind::Map && !matches!(self.stage, Stage::MergingSpills) {
            self.times.input_done = now;
        }
    }

    /// How far it is, from 0 to 1; its running piece of work is done to a part. Progress is Hadoop's:
    /// a map's function counts 2/3 and its merge 1/3; a reduce's fetches, merge and function 1/3 each.
    pub fn progress(&self, maps: u32, piece: impl Fn() -> f64) -> f64 {
        let third = |phases: f64, part: f64| (phases + part) / 3.0;
        match &self.stage {
            Stage::Assigned | Stage::Starting | Stage::Locating => 0.0,
            Stage::Mapping(mapping) => third(0.0, 2.0 * mapping.done(piece())),
            Stage::MergingSpills => third(2.0, piece()),
            Stage::Shuffling => {
                let fetched = self.fetching.as_ref().map_or(0, |f| f.fetched());
                third(0.0, f64::from(fetched) / f64::from(maps))
            }
            Stage::Merging => third(1.0, piece()),
            Stage::Producing(producing) => match self.kind {
                TaskKind::Map => producing.share_done(piece()),
                TaskKind::Reduce => third(2.0, producing.share_done(piece())),
            },
            Stage::Committing(_) => 1.0,
        }
    }
}
