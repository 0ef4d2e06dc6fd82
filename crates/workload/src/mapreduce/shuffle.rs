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
//! worker answers any number of reduces at once.

use super::MapReduce;
use super::config::Framework;
use super::connections::{Connections, Use};
use super::control::control_message;
use super::hardware::Work;
use super::memory::{Held, Memory};
use super::task::Stage;
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Time};

/// Outputs on one worker, as one reduce sees them.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Outputs the reduce knows of.
    known: u32,
    /// Of these, fetched or asked for.
    taken: u32,
    /// Outputs asked for and not arrived.
    asked: u32,
    /// Parts of that which have not arrived: the response, and disk work on its way.
    parts: u32,
    /// Bytes asked for.
    bytes: u64,
    /// Where they go.
    held: Held,
    conn: Option<ConnId>,
}

/// What a reduce has fetched from where.
#[derive(Clone, Debug)]
pub struct Fetching {
    sources: Vec<Source>,
    /// Workers with known outputs that nobody has asked for, not being asked now.
    ready: Vec<u32>,
    /// Workers being asked.
    busy: u32,
    /// Finished maps the reduce was told of, in messages sent so far.
    pub told: u32,
    /// Finished maps the reduce knows of.
    known: u32,
    /// Outputs that have arrived.
    fetched: u32,
    order: Stream,
    /// What it holds.
    pub memory: Memory,
}

impl Fetching {
    /// Nothing known, nothing fetched; `order` draws the next worker to ask.
    pub fn new(workers: usize, order: Stream, memory: Memory) -> Fetching {
        Fetching {
            sources: vec![Source::default(); workers],
            ready: Vec::new(),
            busy: 0,
            told: 0,
            known: 0,
            fetched: 0,
            order,
            memory,
        }
    }
}

impl MapReduce {
    pub(super) fn shuffle_start(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.tasks.get(task).stage = Stage::Shuffling;
        match self.config.framework {
            Framework::Mr1 => self.fetch_more(now, task, out),
            Framework::Yarn => self.ask_for_maps(now, task, out),
        }
    }

    /// A reduce is told that the first `known` maps reported have finished.
    pub(super) fn maps_known(&mut self, now: Time, task: u32, known: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let f = t.fetching.as_mut().expect("who fetched everything hears of no new map");
        let job = self.jobs[t.job as usize].as_ref().expect("the job runs");
        for &worker in &job.finished_on[f.known as usize..known as usize] {
            let s = &mut f.sources[worker as usize];
            if s.known == s.taken && s.asked == 0 {
                f.ready.push(worker);
            }
            s.known += 1;
        }
        f.known = known;
        if known == self.config.jobs[t.job as usize].maps {
            for s in &mut f.sources {
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
            let places = f.busy < self.config.shuffle.parallel_copies;
            if !places || f.ready.is_empty() || !f.memory.has_room() {
                return;
            }
            let drawn = f.order.below(f.ready.len() as u64) as usize;
            let from = f.ready.swap_remove(drawn);
            let s = &mut f.sources[from as usize];
            let spec = &self.config.jobs[job as usize];
            let state = self.jobs[job as usize].as_mut().expect("the job runs");
            let first = s.taken as usize;
            let most = (s.known - s.taken).min(self.config.shuffle.max_maps_per_fetch) as usize;
            let outputs = &state.outputs[&from][first..first + most];
            let oldest = outputs[0].mark;
            (s.bytes, s.asked) = (0, 0);
            for output in outputs {
                let bytes = spec.fetch_bytes(output.map, reduce);
                if !f.memory.reserve(bytes, &mut s.held) {
                    break;
                }
                s.bytes += bytes;
                s.asked += 1;
            }
            let bytes = s.bytes;
            (s.taken, s.parts) = (s.taken + s.asked, 1);
            f.busy += 1;
            let conn = s.conn;
            t.bytes_in += bytes;
            if from == worker {
                state.shuffle_local_bytes += bytes;
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

    fn source(&mut self, task: u32, from: u32) -> &mut Source {
        let f = self.tasks.get(task).fetching.as_mut().expect("the reduce fetches");
        &mut f.sources[from as usize]
    }

    /// At the worker with the outputs: reads what has left its page cache.
    fn serve(
        &mut self,
        now: Time,
        (task, from): (u32, u32),
        (bytes, mark): (u64, u64),
        out: &mut Vec<Action>,
    ) {
        if bytes > 0 && !self.hardware.in_memory(from, mark) {
            self.source(task, from).parts += 1;
            self.hardware.read(now, from, bytes, Work::Fetch { task, from }, out);
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
        out.push(Action::Send {
            conn,
            from: Side::Server,
            payload: bytes,
            header: self.config.shuffle.fetch_header_bytes,
            tag: 0,
            purpose: Purpose::Shuffle,
            job: Some(self.tasks.get(task).job),
            record: true,
        });
    }

    /// At the reduce: the bytes are there; outputs too large for its memory go to its disk.
    pub(super) fn arriving(&mut self, now: Time, (task, from): (u32, u32), out: &mut Vec<Action>) {
        let worker = self.tasks.get(task).worker;
        let s = self.source(task, from);
        let to_disk: u64 = s.held.files.iter().sum();
        s.parts += 1;
        self.tasks.get(task).counters.file_written += to_disk;
        let what = Work::Fetch { task, from };
        if self.hardware.write(now, worker, to_disk, what, out) {
            self.source(task, from).parts -= 1;
        }
        if from == worker && self.source(task, from).parts == 1 {
            // A copy in memory still ends by a wake-up.
            self.hardware.compute(now, worker, eastwest_types::Span::ZERO, what, out);
        } else {
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
        let keep = self.config.shuffle.keep_alive;
        let t = self.tasks.get(task);
        let maps = self.config.jobs[t.job as usize].maps;
        let f = t.fetching.as_mut().expect("the reduce fetches");
        let s = &mut f.sources[from as usize];
        f.fetched += std::mem::take(&mut s.asked);
        f.memory.arrived(std::mem::take(&mut s.held));
        f.busy -= 1;
        if !keep {
            if let Some(conn) = s.conn.take() {
                self.conns.close(conn, out);
            }
        }
        if s.known > s.taken {
            f.ready.push(from);
        } else if f.known == maps {
            close_if_drained(s, &mut self.conns, out);
        }
        if f.fetched == maps {
            self.shuffle_done(now, task, out);
        } else {
            self.merge_fetched(now, task, out);
            self.fetch_more(now, task, out);
        }
    }
}

/// Closes the connection to a worker from which nothing more can come.
fn close_if_drained(s: &mut Source, conns: &mut Connections, out: &mut Vec<Action>) {
    if s.asked == 0 && s.taken == s.known {
        if let Some(conn) = s.conn.take() {
            conns.close(conn, out);
        }
    }
}
