//! The shuffle: a reduce fetches its partition of every map's output.
//!
//! As in Hadoop's ShuffleSchedulerImpl and Fetcher: outputs are grouped by the worker they lie on;
//! up to `parallel_copies` workers are asked at once, none of them twice at once, the next one drawn
//! at random; one request names up to `max_maps_per_fetch` outputs. A connection stays open from the
//! first request to a worker until nothing can come from there any more. A reduce learns of finished
//! maps from the answers to its worker's heartbeats (Hadoop asks by a call of its own, about as
//! often).
//!
//! Outputs on the reduce's own worker are copied at the disk's rate, never over the network; the
//! copy takes one of the parallel places. Empty partitions are asked for like others and answered
//! with a header only. Departures: the serving worker reads from its page cache in no time and
//! serves any number of reduces at once; a reduce has memory and disk enough never to stall a copy.

use super::connections::{Connections, Use};
use super::control::control_message;
use super::task::Stage;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Time};

/// Outputs on one worker, as one reduce sees them.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    /// Outputs the reduce knows of.
    known: u32,
    /// Of these, fetched or asked for.
    taken: u32,
    /// Outputs asked for and not arrived.
    asked: u32,
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
    /// Finished maps the master has told of, in answers sent so far.
    pub told: u32,
    /// Finished maps the reduce knows of.
    known: u32,
    /// Outputs that have arrived.
    fetched: u32,
    order: Stream,
}

impl Fetching {
    /// Nothing known, nothing fetched; `order` draws the next worker to ask.
    pub fn new(workers: usize, order: Stream) -> Fetching {
        Fetching {
            sources: vec![Source::default(); workers],
            ready: Vec::new(),
            busy: 0,
            told: 0,
            known: 0,
            fetched: 0,
            order,
        }
    }
}

impl MapReduce {
    pub(super) fn shuffle_start(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.tasks.get(task).stage = Stage::Shuffling;
        self.fetch_more(now, task, out);
    }

    /// A reduce is told that the first `known` maps reported to the master have finished.
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

    /// Asks further workers while there is a free place.
    fn fetch_more(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        loop {
            let t = self.tasks.get(task);
            let (job, reduce, worker) = (t.job, t.index, t.worker);
            let f = t.fetching.as_mut().expect("the reduce fetches");
            if f.busy >= self.config.shuffle.parallel_copies || f.ready.is_empty() {
                return;
            }
            let drawn = f.order.below(f.ready.len() as u64) as usize;
            let from = f.ready.swap_remove(drawn);
            let s = &mut f.sources[from as usize];
            let first = s.taken;
            s.asked = (s.known - first).min(self.config.shuffle.max_maps_per_fetch);
            s.taken += s.asked;
            f.busy += 1;
            let (asked, conn) = (s.asked, s.conn);
            let spec = &self.config.jobs[job as usize];
            let state = self.jobs[job as usize].as_mut().expect("the job runs");
            let maps = &state.outputs[&from][first as usize..(first + asked) as usize];
            let bytes: u64 = maps.iter().map(|&m| spec.fetch_bytes(m, reduce)).sum();
            t.bytes_in += bytes;
            if from == worker {
                state.shuffle_local_bytes += bytes;
                out.push(Timer::Task(task).at(now + self.config.node.read_rate.time_for(bytes)));
                continue;
            }
            let conn = conn.unwrap_or_else(|| {
                let ends = (self.workers[worker as usize].host, self.workers[from as usize].host);
                let purpose = Use::Fetch { task, from };
                let conn = self.conns.open(purpose, ends, self.config.class, out);
                f.sources[from as usize].conn = Some(conn);
                conn
            });
            let request = u64::from(self.config.shuffle.fetch_request_bytes);
            // The tag carries what is asked for, as the names in a real request would.
            out.push(control_message(conn, Side::Client, request, bytes, Some(job)));
        }
    }

    /// At the worker with the outputs: a request for `bytes` has arrived.
    pub(super) fn send_outputs(
        &mut self,
        task: u32,
        conn: ConnId,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
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

    /// The copy of outputs of the reduce's own worker is complete.
    pub(super) fn copied_locally(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let from = self.tasks.get(task).worker;
        self.fetched(now, task, from, out);
    }

    /// What was asked for from a worker has arrived.
    pub(super) fn fetched(&mut self, now: Time, task: u32, from: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let maps = self.config.jobs[t.job as usize].maps;
        let f = t.fetching.as_mut().expect("the reduce fetches");
        let s = &mut f.sources[from as usize];
        f.fetched += std::mem::take(&mut s.asked);
        f.busy -= 1;
        if s.known > s.taken {
            f.ready.push(from);
        } else if f.known == maps {
            close_if_drained(s, &mut self.conns, out);
        }
        if f.fetched == maps {
            self.shuffle_done(now, task, out);
        } else {
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
