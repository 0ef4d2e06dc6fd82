//! The part of a task that computes output and writes it to HDFS: a reduce after its merge, or a map
//! of a job without reduces.
//!
//! Reading, computing and writing overlap: the function runs in pieces of at most 16 MiB (64 MiB where
//! blocks are one message), each of
//! which is read and computed at the same time and then handed to the writer, which works on while
//! the next piece runs. The task commits when the function is through and all is written.

use super::MapReduce;
use super::shares::share;
use super::task::{Stage, Step};
use super::write::Owner;
use crate::Action;
use eastwest_types::{Rate, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// Input or output of a piece, at most.
const PIECE: u64 = 16 << 20;
/// The same where blocks are one message: they are on their way from the beginning.
const COARSE_PIECE: u64 = 64 << 20;

/// A task that computes its output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Producing {
    /// Bytes the function computes on.
    work: u64,
    rate: Rate,
    /// Bytes read from the worker's disks.
    read: u64,
    output: u64,
    pieces: u32,
    /// Pieces that are through.
    done: u32,
    /// Who writes the output, if there is some.
    writer: Option<u32>,
}

impl Producing {
    /// Output of the piece that has just run. Odd bytes go to the last pieces: a file is never
    /// complete before its function is through.
    fn part_done(&self) -> u64 {
        share(self.output, self.pieces, self.pieces - self.done)
    }

    /// How far the function is when such a part of the running piece is done.
    pub fn share_done(&self, piece: f64) -> f64 {
        let running = if self.done < self.pieces { piece } else { 0.0 };
        (f64::from(self.done) + running) / f64::from(self.pieces)
    }

    /// Who writes the output, if there is some.
    pub fn writer(&self) -> Option<u32> {
        self.writer
    }
}

impl MapReduce {
    /// A map of a job without reduces computes its output.
    pub(super) fn produce_map_output(
        &mut self,
        now: Time,
        task: u32,
        local: bool,
        out: &mut Vec<Action>,
    ) {
        let t = self.tasks.get(task);
        let (map, read) = (t.index, if local { t.bytes_in } else { 0 });
        let work = self.config.jobs[t.job as usize].map_work(map);
        self.produce(now, task, (work, self.config.costs.map_rate), read, out);
    }

    /// Computes a task's output from so much work at a rate, reading so much from the disks.
    pub(super) fn produce(
        &mut self,
        now: Time,
        task: u32,
        (work, rate): (u64, Rate),
        read: u64,
        out: &mut Vec<Action>,
    ) {
        let t = self.tasks.get(task);
        let (job, index, worker) = (t.job, t.index, t.worker);
        let spec = &self.config.jobs[job as usize];
        let output = spec.written_bytes(index);
        let replicas = spec.output_replication.unwrap_or(self.config.hdfs.output_replication);
        t.bytes_out = output;
        let most = if self.config.coarse.blocks { COARSE_PIECE } else { PIECE };
        let pieces = work.max(output).div_ceil(most).clamp(1, u64::from(u32::MAX)) as u32;
        let writer = (output > 0).then(|| {
            let at = (self.workers[worker as usize].host, Some(worker));
            self.open_writer(now, Owner::Task(task), (job, index), at, (output, replicas), out)
        });
        let producing = Producing { work, rate, read, output, pieces, done: 0, writer };
        self.tasks.get(task).stage = Stage::Producing(Box::new(producing));
        self.produce_piece(now, task, out);
    }

    fn producing(&mut self, task: u32) -> &mut Producing {
        match &mut self.tasks.get(task).stage {
            Stage::Producing(p) => p,
            stage => unreachable!("no output is produced in {stage:?}"),
        }
    }

    fn produce_piece(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let p = self.producing(task);
        let part = |bytes| share(bytes, p.pieces, p.done);
        let step = Step { cpu: p.rate.time_for(part(p.work)), read: part(p.read), write: 0 };
        self.step(now, task, step, out);
    }

    /// A piece is through: it is written while the next one runs. The last one of a remote map waits
    /// for the rest of its split.
    pub(super) fn piece_produced(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let p = self.producing(task);
        p.done += 1;
        if p.done == p.pieces {
            if self.tasks.get(task).input_left == 0 {
                self.input_complete(now, task, out);
            }
            return;
        }
        let (bytes, writer) = (p.part_done(), p.writer);
        if let Some(writer) = writer {
            self.hand_over(now, writer, bytes, out);
        }
        self.produce_piece(now, task, out);
    }

    /// All input is there; if the function has computed too, it is through.
    pub(super) fn input_complete(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let p = self.producing(task);
        if p.done < p.pieces {
            return;
        }
        let (bytes, writer) = (p.part_done(), p.writer);
        let t = self.tasks.get(task);
        t.computed = now;
        if t.kind == TaskKind::Map {
            t.merged = now;
        }
        match writer {
            Some(writer) => self.hand_over(now, writer, bytes, out),
            None => self.commit(now, task, out),
        }
    }
}
