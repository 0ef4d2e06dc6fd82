//! A reduce task after its shuffle: merge, compute and write.
//!
//! When the last output has arrived, running merges end and what is left is merged ([`super::memory`]).
//! Then the files, as far as they have left the page cache, are read while the function runs at
//! `reduce_rate` and its output is written ([`super::output`]).

use super::config::Framework;
use super::context::Context;
use super::hdfs::Hdfs;
use super::job::Job;
use super::note::Note;
use super::report::FailureCause;
use super::shuffle::Fetching;
use super::task::Stage;
use super::tasks::Tasks;
use eastwest_types::ConnId;

impl Tasks {
    /// Returns the shuffle of a reduce, and its job.
    fn fetching(&mut self, task: u32) -> (&mut Fetching, &Job) {
        let t = self.attempts.get(task);
        let job = self.jobs.running(t.job);
        (t.fetching.as_mut().expect("the reduce fetches"), job)
    }

    /// A reduce begins to fetch.
    pub fn shuffle_start(&mut self, cx: &mut Context, task: u32) {
        self.attempts.get(task).stage = Stage::Shuffling;
        let (f, job) = self.fetching(task);
        f.begin(cx.now);
        match cx.config.framework {
            Framework::Mr1 => f.fetch_more(cx, job),
            Framework::Yarn => cx.note(Note::AskForMaps { task }),
        }
    }

    /// A reduce is told that the first `known` maps reported have finished.
    pub fn maps_known(&mut self, cx: &mut Context, task: u32, known: u32) {
        let t = self.attempts.get(task);
        // Maps that run again are reported once more, also to who has all.
        let Some(f) = t.fetching.as_mut() else { return };
        let job = self.jobs.running(t.job);
        f.maps_known(cx, job, known);
        if matches!(t.stage, Stage::Shuffling) {
            f.fetch_more(cx, job);
        }
    }

    /// At the worker with the outputs: a request has arrived.
    pub fn send_outputs(
        &mut self,
        cx: &mut Context,
        (task, from): (u32, u32),
        conn: ConnId,
        written_offset: u64,
    ) {
        self.fetching(task).0.send_outputs(cx, from, conn, written_offset);
    }

    /// At the reduce: outputs are there.
    pub fn arriving(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        if self.fetching(task).0.arriving(cx, from) {
            self.fetch_ended(cx, (task, from));
        }
    }

    /// Disk work for a fetch is through.
    pub fn fetch_work(&mut self, cx: &mut Context, (task, from, round): (u32, u32, u32)) {
        if self.fetching(task).0.work_ended(from, round) {
            self.fetch_ended(cx, (task, from));
        }
    }

    fn fetch_ended(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        let (f, job) = self.fetching(task);
        if f.fetch_ended(cx, job, from) {
            let t = self.attempts.get(task);
            t.times.input_done = cx.now;
            t.stage = Stage::Merging;
            self.merge_rest(cx, task);
        }
    }

    /// A connection to a worker with outputs is gone.
    pub fn fetch_lost(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        let t = self.attempts.get(task);
        let Some(f) = t.fetching.as_mut() else { return };
        if f.lost(cx, self.jobs.running(t.job), from) {
            cx.note(Note::AttemptFailed { task, cause: FailureCause::Unfetched });
        }
    }

    /// The penalty of a worker is over.
    pub fn penalty_over(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        let t = self.attempts.get(task);
        if let Some(f) = t.fetching.as_mut() {
            f.penalty_over(cx, self.jobs.running(t.job), from);
        }
    }

    /// Whether an answer of a worker with outputs is awaited.
    pub fn fetch_waits(&self, task: u32, from: u32) -> bool {
        let fetching = self.attempts.find(task).and_then(|t| t.fetching.as_ref());
        fetching.is_some_and(|f| f.awaits(from))
    }

    /// A part of a reduce's merge from memory is through.
    pub fn memory_merge_part(&mut self, cx: &mut Context, task: u32) {
        if self.fetching(task).0.memory_merge_part() {
            self.merge_ended(cx, task);
        }
    }

    /// A part of a reduce's merge of files is through.
    pub fn file_merge_part(&mut self, cx: &mut Context, task: u32) {
        if self.fetching(task).0.file_merge_part() {
            self.merge_ended(cx, task);
        }
    }

    fn merge_ended(&mut self, cx: &mut Context, task: u32) {
        if matches!(self.attempts.get(task).stage, Stage::Merging) {
            self.merge_rest(cx, task);
        } else {
            let (f, job) = self.fetching(task);
            f.go_on(cx, job);
        }
    }

    /// All outputs are there: when no merge runs any more, merges what is left for the reduce.
    fn merge_rest(&mut self, cx: &mut Context, task: u32) {
        if let Some(step) = self.fetching(task).0.merge_rest(cx) {
            self.step(cx, task, step);
        }
    }

    /// The input is merged: the reduce function runs.
    pub fn reduce_start(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let t = self.attempts.get(task);
        let f = t.fetching.take().expect("the reduce has fetched");
        let (files, cold) = f.left_on_disk(cx);
        t.times.merged = cx.now;
        (t.bytes_in, t.shuffle_local) = (f.bytes, f.local_bytes);
        t.counters += f.counters;
        t.counters.file_read += files;
        let (work, rate) = (t.bytes_in, cx.config.costs.reduce_rate);
        self.produce(cx, hdfs, task, (work, rate), if cold { files } else { 0 });
    }
}
