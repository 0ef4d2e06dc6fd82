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
//! worker answers any number of reduces at once. Fetches that fail are in [`failures`]; what an
//! approximate run fetches instead of single outputs is in [`parts`].

mod failures;
mod parts;

pub use parts::part_maps;

use super::MapReduce;
use super::config::Framework;
use super::connections::{Connections, Use};
use super::control::{control_message, data_message};
use super::hardware::Work;
use super::job::Job;
use super::memory::{Held, Memory};
use super::task::Stage;
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Span, Time};
use parts::Part;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Outputs on one worker, as one reduce sees them. They are numbered in the order of the reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Source {
    /// Outputs the reduce knows of.
    known: u32,
    /// Of these, the first ones that were looked at.
    taken: u32,
    /// Of these, what could not be fetched.
    again: VecDeque<u32>,
    /// Outputs asked for and not arrived.
    asking: Vec<u32>,
    /// Parts of that which have not arrived: the response, and disk work on its way.
    parts: u32,
    /// The response has arrived.
    answered: bool,
    /// Bytes asked for.
    bytes: u64,
    /// Where they go.
    held: Held,
    conn: Option<ConnId>,
    /// Fetches that have failed.
    failures: u32,
    /// Not asked again yet after a failure.
    penalized: bool,
}

impl Source {
    /// Whether there is something to ask for.
    fn has_more(&self) -> bool {
        !self.again.is_empty() || self.known > self.taken
    }

    /// Whether it may be asked.
    fn is_ready(&self) -> bool {
        self.asking.is_empty() && !self.penalized && self.has_more()
    }
}

/// A bit for each map.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Got(Vec<u64>);

impl Got {
    fn new(maps: u32) -> Got {
        Got(vec![0; maps.div_ceil(64) as usize])
    }

    fn has(&self, map: u32) -> bool {
        self.0[map as usize / 64] >> (map % 64) & 1 == 1
    }

    fn set(&mut self, map: u32, to: bool) {
        let (word, bit) = (&mut self.0[map as usize / 64], 1 << (map % 64));
        *word = if to { *word | bit } else { *word & !bit };
    }
}

/// What a reduce has fetched from where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetching {
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
    health: failures::Health,
    /// Where the sources are parts of the input instead of workers.
    parts: Option<parts::Parts>,
    /// What it holds.
    pub memory: Memory,
}

impl Fetching {
    /// Nothing known, nothing fetched of so many maps; `order` draws the next worker to ask.
    pub fn new(maps: u32, order: Stream, memory: Memory) -> Fetching {
        Fetching {
            sources: BTreeMap::new(),
            ready: Vec::new(),
            busy: 0,
            told: 0,
            known: 0,
            got: Got::new(maps),
            fetched: 0,
            order,
            health: failures::Health::default(),
            parts: None,
            memory,
        }
    }

    /// A map's output is asked for where it was made again, if the reduce had passed it over there.
    fn turn_to_another(&mut self, job: &Job, map: u32) {
        let Some(&worker) = job.map_at.get(&map) else { return };
        let made = job.outputs[&worker].iter().rposition(|o| o.map == map && !o.lost);
        let number = made.expect("its worker lists it") as u32;
        let s = self.sources.entry(worker).or_default();
        if number < s.taken && !s.again.contains(&number) {
            let was = s.is_ready();
            s.again.push_back(number);
            if !was && s.is_ready() {
                self.ready.push(worker);
            }
        }
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

impl MapReduce {
    pub(super) fn shuffle_start(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        t.stage = Stage::Shuffling;
        t.fetching.as_mut().expect("the reduce fetches").health.begin(now);
        match self.config.framework {
            Framework::Mr1 => self.fetch_more(now, task, out),
            Framework::Yarn => self.ask_for_maps(now, task, out),
        }
    }

    /// A reduce is told that the first `known` maps reported have finished.
    pub(super) fn maps_known(&mut self, now: Time, task: u32, known: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        // Maps that run again are reported once more, also to who has all.
        let Some(f) = t.fetching.as_mut() else { return };
        let job = self.jobs[t.job as usize].as_ref().expect("the job runs");
        f.parts_known(known);
        let news = f.known as usize..(known as usize).max(f.known as usize);
        for &worker in job.finished_on[news].iter().filter(|_| f.parts.is_none()) {
            let s = f.sources.entry(worker).or_default();
            let was = s.is_ready();
            s.known += 1;
            if !was && s.is_ready() {
                f.ready.push(worker);
            }
        }
        f.known = f.known.max(known);
        if known >= self.config.jobs[t.job as usize].maps {
            for s in f.sources.values_mut() {
                close_if_drained(s, &mut self.conns, out);
            }
        }
        if matches!(t.stage, Stage::Shuffling) {
            self.fetch_more(now, task, out);
        }
    }

    /// Asks further workers while there is a free place and memory.
    pub(super) fn fetch_more(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        loop {
            let t = self.tasks.get(task);
            let (job, reduce, worker) = (t.job, t.index, t.worker);
            let f = t.fetching.as_mut().expect("the reduce fetches");
            let in_parts = f.parts.is_some();
            let places = f.busy < self.config.shuffle.parallel_copies;
            if !places || f.ready.is_empty() || !f.memory.has_room() {
                return;
            }
            let drawn = f.order.below(f.ready.len() as u64) as usize;
            let from = f.ready.swap_remove(drawn);
            if in_parts {
                self.fetch_part_of(now, task, from, out);
                continue;
            }
            let s = f.sources.entry(from).or_default();
            let spec = &self.config.jobs[job as usize];
            let state = self.jobs[job as usize].as_ref().expect("the job runs");
            let most = self.config.shuffle.max_maps_per_fetch as usize;
            let outputs = &state.outputs[&from];
            let mut oldest = u64::MAX;
            (s.bytes, s.answered) = (0, false);
            while s.asking.len() < most && s.has_more() {
                let next = s.again.front().copied().unwrap_or(s.taken);
                let output = outputs[next as usize];
                let wanted = !output.lost && !f.got.has(output.map);
                if wanted {
                    let bytes = spec.fetch_bytes(output.map, reduce);
                    if !f.memory.reserve(bytes, &mut s.held) {
                        break;
                    }
                    s.bytes += bytes;
                    oldest = oldest.min(output.mark);
                    s.asking.push(next);
                    f.got.set(output.map, true);
                }
                if s.again.pop_front().is_none() {
                    s.taken += 1;
                }
            }
            if s.asking.is_empty() {
                continue;
            }
            let bytes = s.bytes;
            s.parts = 1;
            f.busy += 1;
            let conn = s.conn;
            t.bytes_in += bytes;
            if from == worker {
                t.shuffle_local += bytes;
                self.serve(now, (task, from), (bytes, oldest), out);
                self.arriving(now, (task, from), out);
                continue;
            }
            let conn = conn.unwrap_or_else(|| {
                let ends = (self.workers[worker as usize].host, self.workers[from as usize].host);
                let purpose = Use::Fetch { task, from };
                self.conns.open(purpose, ends, self.config.class, out)
            });
            self.source(task, from).conn = Some(conn);
            let request = u64::from(self.config.shuffle.fetch_request_bytes);
            // The tag carries what is asked for, as the names in a real request would.
            out.push(control_message(conn, Side::Client, request, oldest, Some(job)));
        }
    }

    /// Asks for a part of the input.
    fn fetch_part_of(&mut self, now: Time, task: u32, part: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (job, reduce, worker) = (t.job, t.index, t.worker);
        let f = t.fetching.as_mut().expect("the reduce fetches");
        let state = self.jobs[job as usize].as_ref().expect("the job runs");
        let Part { worker: from, bytes, mark } =
            f.take_part(part, (&self.config.jobs[job as usize], reduce), state);
        f.sources.entry(part).or_default().parts = 1;
        f.busy += 1;
        t.bytes_in += bytes;
        if from == worker {
            t.shuffle_local += bytes;
            self.serve(now, (task, part), (bytes, mark), out);
            self.arriving(now, (task, part), out);
            return;
        }
        let ends = (self.host(worker), self.host(from));
        let purpose = Use::Fetch { task, from: part };
        let conn = self.conns.open(purpose, ends, self.config.class, out);
        self.source(task, part).conn = Some(conn);
        self.send_outputs(now, (task, part), conn, mark, out);
    }

    fn source_worker(&mut self, task: u32, from: u32) -> u32 {
        self.tasks.get(task).fetching.as_ref().expect("the reduce fetches").worker_of(from)
    }

    fn source(&mut self, task: u32, from: u32) -> &mut Source {
        let f = self.tasks.get(task).fetching.as_mut().expect("the reduce fetches");
        f.sources.entry(from).or_default()
    }

    /// At the worker with the outputs: reads what has left its page cache.
    fn serve(
        &mut self,
        now: Time,
        (task, from): (u32, u32),
        (bytes, mark): (u64, u64),
        out: &mut Vec<Action>,
    ) {
        let worker = self.source_worker(task, from);
        if bytes > 0 && !self.hardware.in_memory(worker, mark) {
            let s = self.source(task, from);
            s.parts += 1;
            let what = Work::Fetch { task, from, round: s.failures };
            self.hardware.read(now, worker, bytes, what, out);
        }
    }

    /// At the worker with the outputs: a request has arrived. The oldest output asked for was
    /// written at `mark`.
    pub(super) fn send_outputs(
        &mut self,
        now: Time,
        (task, from): (u32, u32),
        conn: ConnId,
        mark: u64,
        out: &mut Vec<Action>,
    ) {
        let bytes = self.source(task, from).bytes;
        self.serve(now, (task, from), (bytes, mark), out);
        let job = Some(self.tasks.get(task).job);
        let ends = (conn, Side::Server);
        let header = self.config.shuffle.fetch_header_bytes;
        out.push(data_message(ends, (bytes, header), Purpose::Shuffle, job));
    }

    /// At the reduce: the bytes are there; outputs too large for its memory go to its disk.
    pub(super) fn arriving(&mut self, now: Time, (task, from): (u32, u32), out: &mut Vec<Action>) {
        let worker = self.tasks.get(task).worker;
        let here = self.source_worker(task, from) == worker;
        let s = self.source(task, from);
        let to_disk: u64 = s.held.files.iter().sum();
        s.parts += 1;
        s.answered = true;
        let what = Work::Fetch { task, from, round: s.failures };
        self.tasks.get(task).counters.file_written += to_disk;
        if self.hardware.write(now, worker, to_disk, what, out) {
            self.source(task, from).parts -= 1;
        }
        if here && self.source(task, from).parts == 1 {
            // A copy in memory still ends by a wake-up.
            self.hardware.compute(now, worker, Span::ZERO, what, out);
        } else {
            self.fetch_part(now, (task, from), out);
        }
    }

    /// Disk work for a fetch is through, unless the fetch has failed meanwhile.
    pub(super) fn fetch_work(
        &mut self,
        now: Time,
        (task, from, round): (u32, u32, u32),
        out: &mut Vec<Action>,
    ) {
        let s = self.source(task, from);
        if s.failures == round && !s.asking.is_empty() {
            self.fetch_part(now, (task, from), out);
        }
    }

    /// A part of what was asked for from a worker is through.
    pub(super) fn fetch_part(
        &mut self,
        now: Time,
        (task, from): (u32, u32),
        out: &mut Vec<Action>,
    ) {
        let s = self.source(task, from);
        s.parts -= 1;
        if s.parts > 0 {
            return;
        }
        let keep = self.config.shuffle.keep_alive && self.config.coarse.fetches.is_none();
        let t = self.tasks.get(task);
        let maps = self.config.jobs[t.job as usize].maps;
        let f = t.fetching.as_mut().expect("the reduce fetches");
        let s = f.sources.entry(from).or_default();
        f.health.fetched(now, from, &s.asking);
        f.fetched += f.outputs_of(from);
        let s = f.sources.entry(from).or_default();
        f.memory.arrived(std::mem::take(&mut s.held));
        f.busy -= 1;
        if !keep {
            if let Some(conn) = s.conn.take() {
                self.conns.close(conn, out);
            }
        }
        if s.is_ready() {
            f.ready.push(from);
        } else if f.known >= maps {
            close_if_drained(s, &mut self.conns, out);
        }
        if f.parts.is_some() {
            f.sources.remove(&from);
        }
        if f.fetched == maps {
            for s in f.sources.values_mut() {
                if let Some(conn) = s.conn.take() {
                    self.conns.close(conn, out);
                }
            }
            self.shuffle_done(now, task, out);
        } else {
            self.merge_fetched(now, task, out);
            self.fetch_more(now, task, out);
        }
    }
}

/// Closes the connection to a worker from which nothing more can come.
fn close_if_drained(s: &mut Source, conns: &mut Connections, out: &mut Vec<Action>) {
    if s.asking.is_empty() && !s.has_more() {
        if let Some(conn) = s.conn.take() {
            conns.close(conn, out);
        }
    }
}
