//! Reduce tasks: start of the shuffle, then merge, compute and write. The fetches of map outputs
//! are in [`super::shuffle`].
//!
//! After the arrival of the last map output, running merges end and the rest of the data is merged
//! ([`super::memory`]). Then files that have left the page cache are read while the function runs
//! at `reduce_rate` and its output is written ([`super::output`]).

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
    /// Returns the state of a reduce's shuffle, and the state of its job.
    fn fetching(&mut self, task: u32) -> (&mut Fetching, &Job) {
        let t = self.attempts.get(task);
        let job = self.jobs.running(t.job);
        (t.fetching.as_mut().expect("the reduce fetches"), job)
    }

    /// Starts the shuffle of a reduce: it begins to fetch the outputs of finished maps.
    pub fn shuffle_start(&mut self, cx: &mut Context, task: u32) {
        self.attempts.get(task).stage = Stage::Shuffling;
        let (f, job) = self.fetching(task);
        f.begin(cx.now);
        match cx.config.framework {
            Framework::Mr1 => f.fetch_more(cx, job),
            Framework::Yarn => cx.note(Note::AskForMaps { task }),
        }
    }

    /// Handles information about finished maps at a reduce: the first `known` reported maps have
    /// finished.
    pub fn maps_known(&mut self, cx: &mut Context, task: u32, known: u32) {
        let t = self.attempts.get(task);
        // A map that runs again is reported once more, even to a reduce that already has all
        // outputs.
        let Some(f) = t.fetching.as_mut() else { return };
        let job = self.jobs.running(t.job);
        f.maps_known(cx, job, known);
        if matches!(t.stage, Stage::Shuffling) {
            f.fetch_more(cx, job);
        }
    }

    /// Handles a reduce's fetch request at the worker `from`, which sends the requested map
    /// outputs.
    pub fn send_outputs(
        &mut self,
        cx: &mut Context,
        (task, from): (u32, u32),
        conn: ConnId,
        written_offset: u64,
    ) {
        self.fetching(task).0.send_outputs(cx, from, conn, written_offset);
    }

    /// Handles the arrival of map outputs from the worker `from` at a reduce.
    pub fn arriving(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        if self.fetching(task).0.arriving(cx, from) {
            self.fetch_ended(cx, (task, from));
        }
    }

    /// Handles the end of disk work for a reduce's fetch from the worker `from`; `round` is the
    /// number of failed fetches from this worker when the work began.
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

    /// Handles the loss of a reduce's connection to the worker `from`, from which it was fetching
    /// map outputs.
    pub fn fetch_lost(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        let t = self.attempts.get(task);
        let Some(f) = t.fetching.as_mut() else { return };
        if f.lost(cx, self.jobs.running(t.job), from) {
            cx.note(Note::AttemptFailed { task, cause: FailureCause::Unfetched });
        }
    }

    /// Handles the end of the penalty time of a worker after a failed fetch: the reduce may fetch
    /// from it again.
    pub fn penalty_over(&mut self, cx: &mut Context, (task, from): (u32, u32)) {
        let t = self.attempts.get(task);
        if let Some(f) = t.fetching.as_mut() {
            f.penalty_over(cx, self.jobs.running(t.job), from);
        }
    }

    /// Whether a reduce waits for the response of the worker `from` to a fetch request.
    pub fn fetch_waits(&self, task: u32, from: u32) -> bool {
        let fetching = self.attempts.find(task).and_then(|t| t.fetching.as_ref());
        fetching.is_some_and(|f| f.awaits(from))
    }

    /// Handles the end of one parallel part (CPU, disk) of a reduce's merge from memory to disk.
    pub fn memory_merge_part(&mut self, cx: &mut Context, task: u32) {
        if self.fetching(task).0.memory_merge_part() {
            self.merge_ended(cx, task);
        }
    }

    /// Handles the end of one parallel part (CPU, disk) of a reduce's merge of files.
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

    /// Starts the final merge of a reduce's input after all outputs have arrived, if no other merge
    /// is running.
    fn merge_rest(&mut self, cx: &mut Context, task: u32) {
        if let Some(step) = self.fetching(task).0.merge_rest(cx) {
            self.step(cx, task, step);
        }
    }

    /// Starts the reduce function after the final merge of its input.
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
