//! The shuffle: a reduce fetches its partition of every map's output.
//!
//! As in Hadoop's ShuffleSchedulerImpl and Fetcher: outputs are grouped by the worker they lie on;
//! up to `parallel_copies` workers are asked at once, none of them twice at once, the next one drawn
//! at random; one request names up to `max_maps_per_fetch` outputs. With `keep_alive` a connection
//! stays open from the first request to a worker until nothing can come from there any more,
//! otherwise every request has its own. Where outputs go, and when fetches wait for memory, is
//! [`super::memory`]'s business. On Hadoop 1 a reduce learns of finished maps from the answers to
//! its worker's heartbeats, on YARN from its application master.
//!
//! Outputs that have left the page cache of their worker are read from its disks while they are
//! sent. Those on the reduce's own worker never use the network and take one of the parallel places.
//! Empty partitions are asked for like others and answered with a header only. Departures: a request
//! names only what there is memory for (Hadoop breaks off a response it has no room for); a serving
//! worker answers any number of reduces at once. When a reduce gives up is in [`health`]; what an
//! approximate run fetches instead of single outputs is in [`parts`].

mod health;
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
use health::{ABORT, Health};
use parts::Parts;
use serde::{Deserialize, Serialize};
use source::{Got, Source};
use std::collections::BTreeMap;

/// A reduce that fetches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Reduce {
    /// Its number among all running tasks.
    pub task: u32,
    /// Its job.
    pub job: u32,
    /// Its number within its job.
    pub index: u32,
    /// Where it runs.
    pub worker: u32,
}

/// What a reduce has fetched from where, and what it holds of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetching {
    reduce: Reduce,
    /// Workers with outputs the reduce knows of.
    sources: BTreeMap<u32, Source>,
    /// Workers that may be asked.
    ready: Vec<u32>,
    /// Workers being asked.
    busy: u32,
    /// Reports of finished maps the reduce was told of, in messages sent so far.
    pub told: u32,
    /// Reports of finished maps the reduce knows of.
    pub known: u32,
    /// Maps whose output has arrived or is asked for.
    got: Got,
    /// How many have arrived.
    fetched: u32,
    order: Stream,
    health: Health,
    /// Where the sources are parts of the input instead of workers.
    parts: Option<Parts>,
    memory: Memory,
    /// Bytes asked for that have not failed.
    pub bytes: u64,
    /// Those of the bytes that are on the reduce's own worker.
    pub local_bytes: u64,
    /// Counters of fetches and merges.
    pub counters: Counters,
}

impl Fetching {
    /// Nothing known, nothing fetched.
    pub fn new(cx: &Context, reduce: Reduce, job: &Job) -> Fetching {
        let maps = cx.spec(reduce.job).maps;
        let parts = cx.config.coarse.fetches.map(|_| Parts::new(maps, job.outputs.part_maps));
        Fetching {
            reduce,
            sources: BTreeMap::new(),
            ready: Vec::new(),
            busy: 0,
            told: 0,
            known: 0,
            got: Got::new(if parts.is_some() { 0 } else { maps }),
            fetched: 0,
            order: cx.stream("fetch", reduce.job, reduce.index),
            health: Health::default(),
            parts,
            memory: Memory::new(&cx.config.shuffle, &cx.config.sort),
            bytes: 0,
            local_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// The reduce begins to fetch.
    pub fn begin(&mut self, now: Time) {
        self.health.begin(now);
    }

    /// The reduce is told that the first `known` maps reported have finished.
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

    /// Changes a source, which may be asked if that makes it ready.
    fn with_source(&mut self, from: u32, change: impl FnOnce(&mut Source)) {
        let s = self.sources.entry(from).or_default();
        let was = s.is_ready();
        change(s);
        if !was && s.is_ready() {
            self.ready.push(from);
        }
    }

    /// Asks further workers while there is a free place and memory.
    pub fn fetch_more(&mut self, cx: &mut Context, job: &Job) {
        loop {
            let places = self.busy < cx.config.shuffle.parallel_copies;
            if !places || self.ready.is_empty() || !self.memory.has_room() {
                return;
            }
            let drawn = self.order.below(self.ready.len() as u64) as usize;
            let from = self.ready.swap_remove(drawn);
            let mark = match self.parts {
                None => self.take_outputs(cx, job, from),
                Some(_) => Some(self.take_part(cx, job, from)),
            };
            if let Some(mark) = mark {
                self.ask(cx, from, mark);
            }
        }
    }

    /// Takes what one request to a worker names, and finds a place for it. Returns what the worker's
    /// machine had written before the oldest output, if there is one.
    fn take_outputs(&mut self, cx: &Context, job: &Job, from: u32) -> Option<u64> {
        let s = self.sources.entry(from).or_default();
        let spec = cx.spec(self.reduce.job);
        let most = cx.config.shuffle.max_maps_per_fetch as usize;
        let outputs = job.outputs.on(from);
        let mut oldest = u64::MAX;
        (s.bytes, s.answered) = (0, false);
        while s.asking.len() < most && s.has_more() {
            let next = s.again.front().copied().unwrap_or(s.taken);
            let output = outputs[next as usize];
            if !output.lost && !self.got.has(output.map) {
                let bytes = spec.fetch_bytes(output.map, self.reduce.index);
                if !self.memory.reserve(bytes, &mut s.held) {
                    break;
                }
                s.bytes += bytes;
                oldest = oldest.min(output.mark);
                s.asking.push(next);
                self.got.set(output.map, true);
            }
            if s.again.pop_front().is_none() {
                s.taken += 1;
            }
        }
        (!s.asking.is_empty()).then_some(oldest)
    }

    /// Takes a part of the input and finds a place for it. Returns what the worker's machine had
    /// written before that output of it which it was drawn for.
    fn take_part(&mut self, cx: &Context, job: &Job, part: u32) -> u64 {
        let parts = self.parts.as_mut().expect("it fetches in parts");
        let count = parts.count(part);
        let drawn = self.order.below(u64::from(count));
        let (_, number) = parts.ask(part, drawn, &job.outputs.finished_on);
        let spec = cx.spec(self.reduce.job);
        let input = share(spec.bytes.shuffle, spec.reduces, self.reduce.index);
        let bytes = parts.bytes(part, input);
        let s = self.sources.entry(part).or_default();
        (s.taken, s.bytes, s.answered) = (1, bytes, false);
        s.asking.push(0);
        s.held = Held::default();
        self.memory.reserve_part(bytes, count, &mut s.held);
        job.outputs.marks[number]
    }

    /// Asks for what was taken from a source. Its oldest output was written at `mark`.
    fn ask(&mut self, cx: &mut Context, from: u32, mark: u64) {
        let (worker, at) = (self.reduce.worker, self.worker_of(from));
        let s = self.sources.entry(from).or_default();
        s.parts = 1;
        self.busy += 1;
        self.bytes += s.bytes;
        if at == worker {
            self.local_bytes += s.bytes;
            self.serve(cx, from, mark);
            self.arriving(cx, from);
            return;
        }
        let ends = (cx.host(worker), cx.host(at));
        let purpose = Use::Fetch { task: self.reduce.task, from };
        let conn = *s.conn.get_or_insert_with(|| cx.open(purpose, ends));
        if self.parts.is_some() {
            self.send_outputs(cx, from, conn, mark);
            return;
        }
        let request = cx.config.shuffle.fetch_request_bytes;
        // The tag carries what is asked for, as the names in a real request would.
        cx.tell(conn, Side::Client, request, mark, Some(self.reduce.job));
    }

    /// The worker a source is on.
    fn worker_of(&self, source: u32) -> u32 {
        self.parts.as_ref().map_or(source, |parts| parts.worker(source))
    }

    fn source(&mut self, from: u32) -> &mut Source {
        self.sources.entry(from).or_default()
    }

    /// At the worker with the outputs: reads what has left its page cache.
    fn serve(&mut self, cx: &mut Context, from: u32, mark: u64) {
        let (task, worker) = (self.reduce.task, self.worker_of(from));
        let s = self.source(from);
        if s.bytes > 0 && !cx.hardware.in_memory(worker, mark) {
            s.parts += 1;
            cx.read(worker, s.bytes, Work::Fetch { task, from, round: s.failures });
        }
    }

    /// At the worker with the outputs: a request has arrived. The oldest output asked for was
    /// written at `mark`.
    pub fn send_outputs(&mut self, cx: &mut Context, from: u32, conn: ConnId, mark: u64) {
        self.serve(cx, from, mark);
        let bytes = self.source(from).bytes;
        let header = cx.config.shuffle.fetch_header_bytes;
        let job = Some(self.reduce.job);
        cx.send((conn, Side::Server), (bytes, header), Purpose::Shuffle, job);
    }

    /// At the reduce: the bytes are there; outputs too large for its memory go to its disk. Returns
    /// whether that ends the fetch.
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
            // A copy in memory still ends by a wake-up.
            cx.compute(worker, Span::ZERO, what);
            return false;
        }
        self.part_ended(from)
    }

    /// Disk work for a fetch is through. Returns whether that ends the fetch, unless it has failed
    /// meanwhile.
    pub fn work_ended(&mut self, from: u32, round: u32) -> bool {
        let s = self.source(from);
        s.failures == round && !s.asking.is_empty() && self.part_ended(from)
    }

    fn part_ended(&mut self, from: u32) -> bool {
        let s = self.source(from);
        s.parts -= 1;
        s.parts == 0
    }

    /// All that was asked for from a source is there. Returns whether that was the last of all.
    pub fn fetch_ended(&mut self, cx: &mut Context, job: &Job, from: u32) -> bool {
        let keep = cx.config.shuffle.keep_alive && cx.config.coarse.fetches.is_none();
        let maps = cx.spec(self.reduce.job).maps;
        let s = self.sources.entry(from).or_default();
        self.health.fetched(cx.now, from, &s.asking);
        let asked = s.asking.drain(..).count() as u32;
        self.fetched += self.parts.as_ref().map_or(asked, |parts| parts.count(from));
        self.memory.arrived(std::mem::take(&mut s.held));
        self.busy -= 1;
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

    /// Begins the merges it is time for, and asks for more.
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

    fn begin_merge(&mut self, cx: &mut Context, step: Step, what: Work) -> u32 {
        self.counters.cpu += step.cpu;
        cx.begin_parts(self.reduce.worker, step, what).parts
    }

    /// A merge that reads and writes so many bytes of files; counted.
    fn merge_step(&mut self, cx: &Context, read: u64, write: u64) -> Step {
        let worker = self.reduce.worker;
        self.memory.mark = self.memory.mark.min(cx.hardware.mark(worker));
        let from_disk = read > 0 && !cx.hardware.in_memory(worker, self.memory.mark);
        self.counters.file_read += read;
        self.counters.file_written += write;
        self.counters.spills += u32::from(write > 0);
        let cpu = cx.config.costs.merge_rate.map_or(Span::ZERO, |r| r.time_for(write));
        Step { cpu, read: if from_disk { read } else { 0 }, write }
    }

    /// A part of a merge from memory is through. Returns whether the merge is.
    pub fn memory_merge_part(&mut self) -> bool {
        self.memory.memory_merge_part()
    }

    /// A part of a merge of files is through. Returns whether the merge is.
    pub fn file_merge_part(&mut self) -> bool {
        self.memory.file_merge_part()
    }

    /// All outputs are there: when no merge runs any more, the merge of what is left for the reduce.
    pub fn merge_rest(&mut self, cx: &Context) -> Option<Step> {
        let (spilled, again) = self.memory.take_rest(cx.config.sort.factor)?;
        Some(self.merge_step(cx, again, spilled + again))
    }

    /// Bytes of files that the reduce reads, and whether they have left the page cache.
    pub fn left_on_disk(&self, cx: &Context) -> (u64, bool) {
        let (bytes, mark) = self.memory.left();
        let cold = bytes > 0 && mark != u64::MAX;
        (bytes, cold && !cx.hardware.in_memory(self.reduce.worker, mark))
    }

    /// A connection to a worker is gone: what was asked for is asked for again later. Returns whether
    /// the reduce gives up.
    pub fn lost(&mut self, cx: &mut Context, job: &Job, from: u32) -> bool {
        let s = self.sources.entry(from).or_default();
        s.conn = None;
        if s.asking.is_empty() || s.answered {
            return false;
        }
        self.busy -= 1;
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
        let numbers = std::mem::take(&mut s.asking);
        s.again.extend(&numbers);
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

    /// Outputs of a worker could not be fetched. Returns how often that of them which has failed most
    /// has, and whether the reduce gives up.
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
            self.got.set(map, false);
            if lost {
                self.turn_to_another(job, map);
            }
            let times = self.health.failed(from, number);
            most = times.max(most);
            if at_once || times % each == 0 {
                let output = (self.reduce.job, map, from);
                cx.note(Note::FetchFailed { worker: self.reduce.worker, output });
            }
            over |= self.health.is_hopeless(cx.now, (self.fetched, maps), job.longest_map);
        }
        (most, over)
    }

    /// A map's output is asked for where it was made again, if the reduce had passed it over there.
    fn turn_to_another(&mut self, job: &Job, map: u32) {
        let Some((worker, number)) = job.outputs.place(map) else { return };
        self.with_source(worker, |s| {
            if number < s.taken && !s.again.contains(&number) {
                s.again.push_back(number);
            }
        });
    }

    /// The penalty of a worker is over.
    pub fn penalty_over(&mut self, cx: &mut Context, job: &Job, from: u32) {
        self.with_source(from, |s| s.penalized = false);
        self.fetch_more(cx, job);
    }

    /// Outputs that have arrived.
    pub fn fetched(&self) -> u32 {
        self.fetched
    }

    /// Whether an answer of this worker is awaited.
    pub fn awaits(&self, from: u32) -> bool {
        self.sources.get(&from).is_some_and(|s| !s.asking.is_empty() && !s.answered)
    }
}

/// Closes the connection to a worker.
fn close(cx: &mut Context, s: &mut Source) {
    if let Some(conn) = s.conn.take() {
        cx.close(conn);
    }
}

/// Closes the connection to a worker from which nothing more can come.
fn close_if_drained(cx: &mut Context, s: &mut Source) {
    if s.asking.is_empty() && !s.has_more() {
        close(cx, s);
    }
}
