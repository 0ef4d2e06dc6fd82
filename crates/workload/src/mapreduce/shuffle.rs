//! The shuffle: a reduce fetches its partition of every map's output.
//!
//! As in Hadoop's ShuffleSchedulerImpl and Fetcher: outputs are grouped by the worker that stores
//! them. The reduce fetches from up to `parallel_copies` workers at once, with one request at a
//! time to each worker, and draws the next worker at random. One request names up to
//! `max_maps_per_fetch` outputs. With `keep_alive` a connection stays open from the first request
//! to a worker until no more outputs can come from this worker; otherwise every request has its own
//! connection. Where outputs are stored, and when fetches wait for memory, is in [`super::memory`].
//! On Hadoop 1 a reduce learns of finished maps from the responses to its worker's heartbeats, on
//! YARN from its application master.
//!
//! Outputs that have left the page cache of their worker are read from its disks while they are
//! sent. Outputs on the reduce's own worker never use the network, and count as one of the parallel
//! fetches. Empty partitions are requested like others, and the response is a header only.
//!
//! Differences from Hadoop: a request names only outputs for which there is memory (Hadoop breaks
//! off a response it has no room for); a serving worker answers any number of reduces at once. The
//! rule by which a reduce gives up is in [`failures`]; the parts that an approximate run fetches
//! instead of single outputs are in [`parts`].

mod failures;
mod parts;
mod source;

pub use parts::part_maps;

use super::connections::Use;
use super::context::Context;
use super::counters::Counters;
use super::job::{Job, Output};
use super::memory::{Held, Memory};
use super::note::Note;
use super::shares::share;
use super::timer::Timer;
use super::work::{Step, Work};
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Span, Time};
use failures::{ABORT, FetchFailures};
use parts::Parts;
use serde::{Deserialize, Serialize};
use source::{MapSet, Source};
use std::collections::BTreeMap;

/// Identity of a reduce that fetches map outputs: task, job, number, worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Reduce {
    /// Number of the reduce in the table of running tasks.
    pub task: u32,
    /// Number of the reduce's job.
    pub job: u32,
    /// Number of the reduce within its job.
    pub index: u32,
    /// Number of the worker that runs the reduce.
    pub worker: u32,
}

/// State of the shuffle of one reduce: outputs on each worker, fetches in progress, memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetching {
    reduce: Reduce,
    /// Map outputs that the reduce knows, by worker; in approximate runs by part.
    sources: BTreeMap<u32, Source>,
    /// Workers (in approximate runs parts) from which the reduce may fetch now.
    ready: Vec<u32>,
    /// Number of the reduce's fetches in progress.
    active_fetches: u32,
    /// Number of finished maps in the last message that has arrived at the reduce.
    pub known: u32,
    /// Maps whose output the reduce has requested or received.
    claimed: MapSet,
    /// Number of map outputs that have arrived at the reduce.
    fetched: u32,
    /// Random stream that chooses the next worker to fetch from.
    order: Stream,
    failures: FetchFailures,
    /// Parts of the input in an approximate run; `None` if the output of each map is fetched
    /// separately.
    parts: Option<Parts>,
    memory: Memory,
    /// Bytes of map outputs that the reduce has requested, without failed fetches.
    pub bytes: u64,
    /// Bytes of map outputs that the reduce has requested from its own worker.
    pub local_bytes: u64,
    /// Counters of the reduce's fetches and merges, with the meaning of Hadoop's counters.
    pub counters: Counters,
}

impl Fetching {
    /// Returns the state of the shuffle of a reduce that knows no finished map yet.
    pub fn new(cx: &Context, reduce: Reduce, job: &Job) -> Fetching {
        let maps = cx.spec(reduce.job).maps;
        let parts = cx.config.coarse.fetches.map(|_| Parts::new(maps, job.outputs.part_maps));
        Fetching {
            reduce,
            sources: BTreeMap::new(),
            ready: Vec::new(),
            active_fetches: 0,
            known: 0,
            claimed: MapSet::new(if parts.is_some() { 0 } else { maps }),
            fetched: 0,
            order: cx.stream("fetch", reduce.job, reduce.index),
            failures: FetchFailures::default(),
            parts,
            memory: Memory::new(&cx.config.shuffle, &cx.config.sort),
            bytes: 0,
            local_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// Records the time at which the reduce begins to fetch.
    pub fn begin(&mut self, now: Time) {
        self.failures.begin(now);
    }

    /// Handles a message to the reduce: the first `known` maps have finished, in the order in which
    /// they were reported.
    pub fn maps_known(&mut self, cx: &mut Context, job: &Job, known: u32) {
        let before = self.known;
        self.known = before.max(known);
        if let Some(parts) = &mut self.parts {
            for part in parts.complete(known) {
                self.sources.entry(part).or_default().known = 1;
                self.ready.push(part);
            }
        } else {
            for &worker in &job.outputs.finished_on[before as usize..self.known as usize] {
                self.with_source(worker, |s| s.known += 1);
            }
        }
        if known >= cx.spec(self.reduce.job).maps {
            self.sources.values_mut().for_each(|s| close_if_drained(cx, s));
        }
    }

    /// Applies `change` to the state of the outputs on the worker `from`, and adds the worker to
    /// `ready` if the reduce may fetch from it now.
    fn with_source(&mut self, from: u32, change: impl FnOnce(&mut Source)) {
        let s = self.sources.entry(from).or_default();
        let was = s.is_ready();
        change(s);
        if !was && s.is_ready() {
            self.ready.push(from);
        }
    }

    /// Starts further fetches of the reduce while the limit of parallel copies and the memory allow
    /// it.
    pub fn fetch_more(&mut self, cx: &mut Context, job: &Job) {
        loop {
            let places = self.active_fetches < cx.config.shuffle.parallel_copies;
            if !places || self.ready.is_empty() || !self.memory.has_room() {
                return;
            }
            let drawn = self.order.below(self.ready.len() as u64) as usize;
            let from = self.ready.swap_remove(drawn);
            let written_offset = match self.parts {
                None => self.take_outputs(cx, job, from),
                Some(_) => Some(self.take_part(cx, job, from)),
            };
            if let Some(written_offset) = written_offset {
                self.request(cx, from, written_offset);
            }
        }
    }

    /// Chooses the outputs that the next request to a worker names, and reserves memory for them.
    /// Returns the bytes that the worker's machine had written to files before the oldest of these
    /// outputs; `None` if there are no outputs to request.
    fn take_outputs(&mut self, cx: &Context, job: &Job, from: u32) -> Option<u64> {
        let s = self.sources.entry(from).or_default();
        let spec = cx.spec(self.reduce.job);
        let most = cx.config.shuffle.max_maps_per_fetch as usize;
        let outputs = job.outputs.on(from);
        let mut oldest = u64::MAX;
        (s.bytes, s.answered) = (0, false);
        while s.requested.len() < most && s.has_more() {
            let next = s.retry.front().copied().unwrap_or(s.examined);
            let output = outputs[next as usize];
            if !output.lost && !self.claimed.has(output.map) {
                let bytes = spec.fetch_bytes(output.map, self.reduce.index);
                if !self.memory.reserve(bytes, &mut s.held) {
                    break;
                }
                s.bytes += bytes;
                oldest = oldest.min(output.written_offset);
                s.requested.push(next);
                self.claimed.set(output.map, true);
            }
            if s.retry.pop_front().is_none() {
                s.examined += 1;
            }
        }
        (!s.requested.is_empty()).then_some(oldest)
    }

    /// Chooses a part of the input to fetch and reserves memory for the part. One output of the
    /// part is drawn; the worker of this output sends the whole part. Returns the bytes that the
    /// worker's machine had written to files before the drawn output.
    fn take_part(&mut self, cx: &Context, job: &Job, part: u32) -> u64 {
        let parts = self.parts.as_mut().expect("it fetches in parts");
        let count = parts.count(part);
        let drawn = self.order.below(u64::from(count));
        let (_, number) = parts.ask(part, drawn, &job.outputs.finished_on);
        let spec = cx.spec(self.reduce.job);
        let input = share(spec.bytes.shuffle, spec.reduces, self.reduce.index);
        let bytes = parts.bytes(part, input);
        let s = self.sources.entry(part).or_default();
        (s.examined, s.bytes, s.answered) = (1, bytes, false);
        s.requested.push(0);
        s.held = Held::default();
        self.memory.reserve_part(bytes, count, &mut s.held);
        job.outputs.written_offsets[number]
    }

    /// Sends the request for the chosen outputs of a worker. `written_offset` is the number of
    /// bytes that the worker's machine had written to files before the oldest of these outputs.
    fn request(&mut self, cx: &mut Context, from: u32, written_offset: u64) {
        let (worker, at) = (self.reduce.worker, self.worker_of(from));
        let s = self.sources.entry(from).or_default();
        s.parts = 1;
        self.active_fetches += 1;
        self.bytes += s.bytes;
        if at == worker {
            self.local_bytes += s.bytes;
            self.read_uncached(cx, from, written_offset);
            self.arriving(cx, from);
            return;
        }
        let ends = (cx.host(worker), cx.host(at));
        let purpose = Use::Fetch { task: self.reduce.task, from };
        let conn = *s.conn.get_or_insert_with(|| cx.open(purpose, ends));
        if self.parts.is_some() {
            self.send_outputs(cx, from, conn, written_offset);
            return;
        }
        let request = cx.config.shuffle.fetch_request_bytes;
        // the tag stands for the names of outputs that a real request contains
        cx.tell(conn, Side::Client, request, written_offset, Some(self.reduce.job));
    }

    /// Returns the worker that sends the outputs of a source: the source itself, or in approximate
    /// runs the worker of the part.
    fn worker_of(&self, source: u32) -> u32 {
        self.parts.as_ref().map_or(source, |parts| parts.worker(source))
    }

    fn source(&mut self, from: u32) -> &mut Source {
        self.sources.entry(from).or_default()
    }

    /// Reads the requested outputs from the serving worker's disks if they have left its page
    /// cache.
    fn read_uncached(&mut self, cx: &mut Context, from: u32, written_offset: u64) {
        let (task, worker) = (self.reduce.task, self.worker_of(from));
        let s = self.source(from);
        if s.bytes > 0 && !cx.hardware.in_memory(worker, written_offset) {
            s.parts += 1;
            cx.read(worker, s.bytes, Work::Fetch { task, from, round: s.failures });
        }
    }

    /// Handles a reduce's request at the serving worker, which sends the outputs. `written_offset`
    /// is the number of bytes that the worker's machine had written to files before the oldest of
    /// these outputs.
    pub fn send_outputs(&mut self, cx: &mut Context, from: u32, conn: ConnId, written_offset: u64) {
        self.read_uncached(cx, from, written_offset);
        let bytes = self.source(from).bytes;
        let header = cx.config.shuffle.fetch_header_bytes;
        let job = Some(self.reduce.job);
        cx.send((conn, Side::Server), (bytes, header), Purpose::Shuffle, job);
    }

    /// Handles the arrival of a response at the reduce; outputs too large for memory are written to
    /// disk. Returns whether the fetch is complete, disk work included.
    pub fn arriving(&mut self, cx: &mut Context, from: u32) -> bool {
        let Reduce { task, worker, .. } = self.reduce;
        let here = self.worker_of(from) == worker;
        let s = self.source(from);
        let to_disk: u64 = s.held.files.iter().sum();
        s.parts += 1;
        s.answered = true;
        let what = Work::Fetch { task, from, round: s.failures };
        if cx.write(worker, to_disk, what) {
            s.parts -= 1;
        }
        let waits = here && s.parts == 1;
        self.counters.file_written += to_disk;
        if waits {
            // a copy within memory takes no time, but still ends by a wake-up
            cx.compute(worker, Span::ZERO, what);
            return false;
        }
        self.part_done(from)
    }

    /// Handles the end of disk work for a fetch. `round`: number of failed fetches from the worker
    /// `from` when the work began. Returns whether the fetch is complete; false if it has failed
    /// since the work began.
    pub fn work_ended(&mut self, from: u32, round: u32) -> bool {
        let s = self.source(from);
        s.failures == round && !s.requested.is_empty() && self.part_done(from)
    }

    /// Counts a finished part of a fetch (response, disk work). Returns whether all parts are
    /// finished.
    fn part_done(&mut self, from: u32) -> bool {
        let s = self.source(from);
        s.parts -= 1;
        s.parts == 0
    }

    /// Handles a complete fetch from a worker. Returns whether the outputs of all maps have
    /// arrived.
    pub fn fetch_ended(&mut self, cx: &mut Context, job: &Job, from: u32) -> bool {
        let keep = cx.config.shuffle.keep_alive && cx.config.coarse.fetches.is_none();
        let maps = cx.spec(self.reduce.job).maps;
        let s = self.sources.entry(from).or_default();
        self.failures.fetched(cx.now, from, &s.requested);
        let asked = s.requested.drain(..).count() as u32;
        self.fetched += self.parts.as_ref().map_or(asked, |parts| parts.count(from));
        self.memory.arrived(std::mem::take(&mut s.held));
        self.active_fetches -= 1;
        if !keep {
            close(cx, s);
        }
        if s.is_ready() {
            self.ready.push(from);
        } else if self.known >= maps {
            close_if_drained(cx, s);
        }
        if self.parts.is_some() {
            self.sources.remove(&from);
        }
        if self.fetched == maps {
            self.sources.values_mut().for_each(|s| close(cx, s));
            return true;
        }
        self.go_on(cx, job);
        false
    }

    /// Starts the merges of the reduce that are due, and further fetches.
    pub fn go_on(&mut self, cx: &mut Context, job: &Job) {
        let task = self.reduce.task;
        if let Some(bytes) = self.memory.begin_memory_merge() {
            let step = self.merge_step(cx, 0, bytes);
            self.memory.memory_parts = self.begin_merge(cx, step, Work::MemoryMerge(task));
        }
        if let Some(bytes) = self.memory.begin_file_merge() {
            let step = self.merge_step(cx, bytes, bytes);
            self.memory.file_parts = self.begin_merge(cx, step, Work::DiskMerge(task));
        }
        self.fetch_more(cx, job);
    }

    /// Starts a merge of the reduce's input. Returns the number of its parallel parts.
    fn begin_merge(&mut self, cx: &mut Context, step: Step, what: Work) -> u32 {
        self.counters.cpu += step.cpu;
        cx.begin_parts(self.reduce.worker, step, what).parts
    }

    /// Returns the work of a merge that reads `read` and writes `write` bytes of files, and adds it
    /// to the counters.
    fn merge_step(&mut self, cx: &Context, read: u64, write: u64) -> Step {
        let worker = self.reduce.worker;
        self.memory.written_offset =
            self.memory.written_offset.min(cx.hardware.written_offset(worker));
        let from_disk = read > 0 && !cx.hardware.in_memory(worker, self.memory.written_offset);
        self.counters.file_read += read;
        self.counters.file_written += write;
        self.counters.spills += u32::from(write > 0);
        let cpu = cx.config.costs.merge_rate.map_or(Span::ZERO, |r| r.time_for(write));
        Step { cpu, read: if from_disk { read } else { 0 }, write }
    }

    /// Handles the end of one parallel part (CPU, disk) of a merge from memory to disk. Returns
    /// whether the merge is complete.
    pub fn memory_merge_part(&mut self) -> bool {
        self.memory.memory_merge_part()
    }

    /// Handles the end of one parallel part (CPU, disk) of a merge of files. Returns whether the
    /// merge is complete.
    pub fn file_merge_part(&mut self) -> bool {
        self.memory.file_merge_part()
    }

    /// Returns the work of the final merge after all outputs have arrived; `None` while another
    /// merge is running.
    pub fn merge_rest(&mut self, cx: &Context) -> Option<Step> {
        let (spilled, again) = self.memory.take_rest(cx.config.sort.factor)?;
        Some(self.merge_step(cx, again, spilled + again))
    }

    /// Returns the bytes of merged files that the reduce function reads, and whether they have left
    /// the page cache.
    pub fn left_on_disk(&self, cx: &Context) -> (u64, bool) {
        let (bytes, written_offset) = self.memory.left();
        let cold = bytes > 0 && written_offset != u64::MAX;
        (bytes, cold && !cx.hardware.in_memory(self.reduce.worker, written_offset))
    }

    /// Handles the loss of the connection to a worker: the outputs of the failed fetch are
    /// requested again after a penalty. Returns whether the reduce gives up.
    pub fn lost(&mut self, cx: &mut Context, job: &Job, from: u32) -> bool {
        let s = self.sources.entry(from).or_default();
        s.conn = None;
        if s.requested.is_empty() || s.answered {
            return false;
        }
        self.active_fetches -= 1;
        self.bytes -= s.bytes;
        self.memory.give_back(&std::mem::take(&mut s.held));
        if self.parts.is_some() {
            *s = Source { known: 1, ..Source::default() };
            self.ready.push(from);
            self.fetch_more(cx, job);
            return false;
        }
        s.failures += 1;
        s.penalized = true;
        let numbers = std::mem::take(&mut s.requested);
        s.retry.extend(&numbers);
        self.counters.failed_fetches += numbers.len() as u32;
        let (most, over) = self.failed(cx, job, (from, &numbers));
        let shuffle = &cx.config.shuffle;
        let growth = (1..most.min(100)).fold(1.0, |g, _| g * shuffle.penalty_growth);
        let penalty = (shuffle.penalty.0 as f64 * growth).min(shuffle.penalty_max.0 as f64);
        cx.wake_in(Span(penalty as u64), Timer::Penalty { task: self.reduce.task, from });
        let maps = cx.spec(self.reduce.job).maps;
        if over || most >= ABORT.max(maps / 10) {
            return true;
        }
        self.fetch_more(cx, job);
        false
    }

    /// Counts the failed fetches of outputs of a worker, and reports them to the master. Returns
    /// the largest number of failures of one of these outputs, and whether the reduce gives up.
    fn failed(
        &mut self,
        cx: &mut Context,
        job: &Job,
        (from, numbers): (u32, &[u32]),
    ) -> (u32, bool) {
        let maps = cx.spec(self.reduce.job).maps;
        let at_once = cx.config.shuffle.notify_read_error;
        let each = cx.config.shuffle.failures_reported;
        let outputs = job.outputs.on(from);
        let (mut most, mut over) = (0, false);
        for &number in numbers {
            let Output { map, lost, .. } = outputs[number as usize];
            self.claimed.set(map, false);
            if lost {
                self.refetch_rerun_output(job, map);
            }
            let times = self.failures.failed(from, number);
            most = times.max(most);
            if at_once || times % each == 0 {
                let output = (self.reduce.job, map, from);
                cx.note(Note::FetchFailed { worker: self.reduce.worker, output });
            }
            over |= self.failures.must_give_up(cx.now, (self.fetched, maps), job.longest_map);
        }
        (most, over)
    }

    /// Schedules a request for the new output of a map that has run again, if the reduce had
    /// skipped this output.
    fn refetch_rerun_output(&mut self, job: &Job, map: u32) {
        let Some((worker, number)) = job.outputs.place(map) else { return };
        self.with_source(worker, |s| {
            if number < s.examined && !s.retry.contains(&number) {
                s.retry.push_back(number);
            }
        });
    }

    /// Handles the end of the penalty of a worker after a failed fetch: the reduce may fetch from
    /// it again.
    pub fn penalty_over(&mut self, cx: &mut Context, job: &Job, from: u32) {
        self.with_source(from, |s| s.penalized = false);
        self.fetch_more(cx, job);
    }

    /// Returns the number of map outputs that have arrived at the reduce.
    pub fn fetched(&self) -> u32 {
        self.fetched
    }

    /// Whether the reduce waits for the response of the worker `from` to a fetch request.
    pub fn awaits(&self, from: u32) -> bool {
        self.sources.get(&from).is_some_and(|s| !s.requested.is_empty() && !s.answered)
    }
}

/// Closes the reduce's connection to a worker, if one is open.
fn close(cx: &mut Context, s: &mut Source) {
    if let Some(conn) = s.conn.take() {
        cx.close(conn);
    }
}

/// Closes the reduce's connection to a worker, if the worker has no more outputs to fetch.
fn close_if_drained(cx: &mut Context, s: &mut Source) {
    if s.requested.is_empty() && !s.has_more() {
        close(cx, s);
    }
}
