//! State of a task attempt on its worker: stage and progress.

use super::counters::Counters;
use super::file::Written;
use super::mapping::Mapping;
use super::producing::Producing;
use super::report::Report;
use super::shuffle::Fetching;
use eastwest_types::{ConnId, Locality, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// Stage of a task attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// The assignment is in the network on its way to the worker.
    Assigned,
    /// The Java virtual machine of the task starts.
    Starting,
    /// The map waits for the namenode's answer with the replicas of its split.
    Locating,
    /// The map reads its split, computes and spills output to disk.
    Mapping(Box<Mapping>),
    /// The map merges its spills into one output.
    MergingSpills,
    /// The reduce fetches map outputs.
    Shuffling,
    /// The reduce merges the fetched map outputs.
    Merging,
    /// The reduce, or a map without reduces, computes its output and writes it to HDFS.
    Producing(Box<Producing>),
    /// The task commits. Its output is complete; the value lists the blocks if the output is a file
    /// in HDFS.
    Committing(Vec<Written>),
}

/// Times of the steps of a task attempt.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// Time at which the assignment of the task arrived at the worker.
    pub assigned: Time,
    /// Time at which the task began to read its split or to fetch map outputs.
    pub started: Time,
    /// Time at which the task had all of its input.
    pub input_done: Time,
    /// Time at which the merge of a reduce's input or of a map's spills ended.
    pub merged: Time,
    /// Time at which the map or reduce function ended.
    pub computed: Time,
}

/// State of a map's read of a split on another worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SplitRead {
    /// Workers from which the map could not read the split.
    pub avoid: Vec<u32>,
    /// Number of searches that found no replica of the split.
    pub sought: u32,
    /// Number of unfinished network transfers and datanode disk reads of the split.
    pub left: u32,
}

/// State of a task attempt, from its assignment to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Number of the task's job.
    pub job: u32,
    /// Number of the task among the job's tasks of this kind, from 0.
    pub index: u32,
    /// Kind of the task: map or reduce.
    pub kind: TaskKind,
    /// Number of the worker that runs the attempt.
    pub worker: u32,
    /// Times of the attempt's steps so far.
    pub times: Times,
    /// Locality of a map's input split; `Locality::None` for a reduce.
    pub locality: Locality,
    /// Input bytes: size of a map's split, or bytes that a reduce has fetched.
    pub bytes_in: u64,
    /// Shuffle bytes that a reduce has fetched from its own worker.
    pub shuffle_local: u64,
    /// State of a map's read of a split on another worker.
    pub split: SplitRead,
    /// Output bytes: of a map for all reduces together, or bytes written to HDFS.
    pub bytes_out: u64,
    /// Counters of the attempt, with the meaning of Hadoop's counters.
    pub counters: Counters,
    /// Stage of the attempt.
    pub stage: Stage,
    /// Number of unfinished parallel parts (CPU, disk) of the attempt's running step.
    pub parts: u32,
    /// State of a reduce's shuffle: the map outputs that it knows, requests and has fetched. `None`
    /// for maps and for reduces whose shuffle has ended.
    pub fetching: Option<Box<Fetching>>,
    /// Connection of a reduce on YARN to its application master, for requests for finished maps;
    /// `None` if none is open.
    pub events: Option<ConnId>,
}

impl Task {
    /// Returns a task attempt whose assignment is in the network.
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

    /// Returns a report of the attempt in which the results are missing: offset and run time are 0,
    /// the cause of failure is `None`.
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

    /// Records that a read from the worker's disks ended at `now`. For a map that does not merge
    /// its spills, `now` becomes the time at which its input is complete.
    pub fn file_read(&mut self, now: Time) {
        if self.kind == TaskKind::Map && !matches!(self.stage, Stage::MergingSpills) {
            self.times.input_done = now;
        }
    }

    /// Returns the progress of the attempt from 0 to 1. `maps`: number of maps of the job; `piece`:
    /// returns the finished fraction of the running piece of work. As in Hadoop, a map's function
    /// counts 2/3 and its merge 1/3 (in a job without reduces the function counts 1); a reduce's
    /// fetches, merge and function count 1/3 each.
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
