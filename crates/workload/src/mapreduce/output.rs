//! Computing of a task's output and writing it to HDFS: a reduce after its merge, or a map of a job
//! without reduces.
//!
//! Reading, computing and writing overlap: the function runs in pieces of at most 16 MiB (64 MiB if
//! blocks are one message), each of which is read and computed in parallel. Then the output of the
//! piece is handed to the writer, which writes it while the next piece runs. The task commits when
//! the function has finished and all output is written.

use super::context::Context;
use super::file::{Owner, Place};
use super::hdfs::Hdfs;
use super::producing::Producing;
use super::shares::share;
use super::task::Stage;
use super::tasks::Tasks;
use super::work::Step;
use eastwest_types::{Rate, TaskKind};

/// Largest number of input or output bytes in one piece of a map or reduce function.
const PIECE: u64 = 16 << 20;
/// Largest number of bytes in one piece of a function if a block is sent as one message, which is
/// in the network before the whole block is computed.
const COARSE_PIECE: u64 = 64 << 20;

impl Tasks {
    /// Starts to compute the output of a map of a job without reduces.
    pub fn produce_map_output(
        &mut self,
        cx: &mut Context,
        hdfs: &mut Hdfs,
        task: u32,
        local: bool,
    ) {
        let t = self.attempts.get(task);
        let (map, read) = (t.index, if local { t.bytes_in } else { 0 });
        let work = cx.config.jobs[t.job as usize].map_work(map);
        self.produce(cx, hdfs, task, (work, cx.config.costs.map_rate), read);
    }

    /// Starts to compute a task's output: its function works on `work` bytes at `rate`, and `read`
    /// bytes of its input are read from the worker's disks.
    pub fn produce(
        &mut self,
        cx: &mut Context,
        hdfs: &mut Hdfs,
        task: u32,
        (work, rate): (u64, Rate),
        read: u64,
    ) {
        let t = self.attempts.get(task);
        let (job, index, worker) = (t.job, t.index, t.worker);
        let spec = &cx.config.jobs[job as usize];
        let output = spec.written_bytes(index);
        let replicas = spec.output_replication.unwrap_or(cx.config.hdfs.output_replication);
        t.bytes_out = output;
        let most = if cx.config.coarse.blocks { COARSE_PIECE } else { PIECE };
        let pieces = work.max(output).div_ceil(most).clamp(1, u64::from(u32::MAX)) as u32;
        let writer = (output > 0).then(|| {
            let at = Place { host: cx.host(worker), worker: Some(worker) };
            hdfs.open_writer(cx, Owner::Task(task), (job, index), at, (output, replicas))
        });
        let producing = Producing { work, rate, read, output, pieces, done: 0, writer };
        self.attempts.get(task).stage = Stage::Producing(Box::new(producing));
        self.produce_piece(cx, task);
    }

    fn producing(&mut self, task: u32) -> &mut Producing {
        match &mut self.attempts.get(task).stage {
            Stage::Producing(p) => p,
            stage => unreachable!("no output is produced in {stage:?}"),
        }
    }

    fn produce_piece(&mut self, cx: &mut Context, task: u32) {
        let p = self.producing(task);
        let part = |bytes| share(bytes, p.pieces, p.done);
        let step = Step { cpu: p.rate.time_for(part(p.work)), read: part(p.read), write: 0 };
        self.step(cx, task, step);
    }

    /// Handles the end of a piece of a task's function; its output is written while the next piece
    /// runs. After the last piece, a map waits for the rest of a remote split.
    pub fn piece_produced(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let p = self.producing(task);
        p.done += 1;
        if p.done == p.pieces {
            if self.attempts.get(task).split.left == 0 {
                self.input_complete(cx, hdfs, task);
            }
            return;
        }
        let (bytes, writer) = (p.part_done(), p.writer);
        if let Some(writer) = writer {
            hdfs.hand_over(cx, writer, bytes);
        }
        self.produce_piece(cx, task);
    }

    /// Handles the arrival of the last input byte of a task, or the end of the last piece of its
    /// function. When both have happened, the function ends and the rest of the output is written.
    pub fn input_complete(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let p = self.producing(task);
        if p.done < p.pieces {
            return;
        }
        let (bytes, writer) = (p.part_done(), p.writer);
        let t = self.attempts.get(task);
        t.times.computed = cx.now;
        if t.kind == TaskKind::Map {
            t.times.merged = cx.now;
        }
        match writer {
            Some(writer) => hdfs.hand_over(cx, writer, bytes),
            None => self.commit(cx, task, Vec::new()),
        }
    }
}
