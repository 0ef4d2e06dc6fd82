//! Job output on its way into HDFS.
//!
//! Output is cut into blocks of `block_bytes`, written one after another. A block's first replica
//! goes to the local disk at its rate; the others through a pipeline of connections: writer →
//! second → third replica, with fresh targets for every block. The writer sends chunks, at most
//! `write_window` of them unacknowledged; a replica passes on a chunk once it has arrived whole; the
//! last one acknowledges it, and acknowledgements travel back hop by hop as small messages. A block
//! is written when the local disk is through and every chunk is acknowledged (Shvachko et al. 2010,
//! section 3.A). Departures: remote disks take data as fast as it arrives, as they do in Hadoop
//! where a datanode acknowledges from memory; the namenode is not asked.

use super::connections::Use;
use super::control::control_message;
use super::task::Stage;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Time};

/// A task's output on its way.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Bytes in later blocks.
    left: u64,
    /// Copies of every block, the local one included.
    replicas: u32,
    /// Draws the targets of blocks.
    targets: Stream,
    /// Bytes of this block.
    block: u64,
    /// Bytes of this block given to the pipeline.
    sent: u64,
    /// Bytes of this block acknowledged by all replicas.
    acknowledged: u64,
    /// Chunks sent and not acknowledged.
    outstanding: u32,
    on_disk: bool,
    /// Hops of the pipeline; none if there is only the local replica.
    hops: Vec<ConnId>,
}

impl MapReduce {
    /// Writes a task's share of the job's output, then finishes the task.
    pub(super) fn write_output(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (job, index) = (t.job, t.index);
        let targets = self.stream("output", job, index);
        let spec = &self.config.jobs[job as usize];
        let bytes = spec.written_bytes(index);
        let replicas = spec.output_replication.unwrap_or(self.config.hdfs.output_replication);
        let t = self.tasks.get(task);
        t.bytes_out = bytes;
        if bytes == 0 {
            self.task_finished(now, task, out);
            return;
        }
        t.stage = Stage::Writing(Box::new(Writer {
            left: bytes,
            replicas,
            targets,
            block: 0,
            sent: 0,
            acknowledged: 0,
            outstanding: 0,
            on_disk: false,
            hops: Vec::new(),
        }));
        self.next_block(now, task, out);
    }

    fn writer(&mut self, task: u32) -> &mut Writer {
        match &mut self.tasks.get(task).stage {
            Stage::Writing(writer) => writer,
            stage => unreachable!("the task does not write but is {stage:?}"),
        }
    }

    fn next_block(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let worker = self.tasks.get(task).worker;
        let most = self.config.hdfs.block_bytes;
        let Stage::Writing(w) = &mut self.tasks.get(task).stage else {
            unreachable!("the task writes")
        };
        w.block = w.left.min(most);
        w.left -= w.block;
        (w.sent, w.acknowledged, w.on_disk) = (0, 0, false);
        let chain = self.racks.place(Some(worker), w.replicas, &mut w.targets);
        for (hop, pair) in chain.windows(2).enumerate() {
            let ends = (self.workers[pair[0] as usize].host, self.workers[pair[1] as usize].host);
            let purpose = Use::Pipeline { task, hop: hop as u32 };
            w.hops.push(self.conns.open(purpose, ends, self.config.class, out));
        }
        if w.hops.is_empty() {
            w.acknowledged = w.block;
        }
        out.push(Timer::Task(task).at(now + self.config.node.write_rate.time_for(w.block)));
        self.fill_pipeline(task, out);
    }

    /// Sends chunks as the window allows.
    fn fill_pipeline(&mut self, task: u32, out: &mut Vec<Action>) {
        let (chunk, window) = (self.config.hdfs.write_chunk_bytes, self.config.hdfs.write_window);
        let job = self.tasks.get(task).job;
        let w = self.writer(task);
        let Some(&first) = w.hops.first() else { return };
        while w.sent < w.block && w.outstanding < window {
            let bytes = chunk.min(w.block - w.sent);
            w.sent += bytes;
            w.outstanding += 1;
            out.push(replica_chunk(first, bytes, job));
        }
    }

    /// At a replica: pass the chunk on, or acknowledge it.
    pub(super) fn chunk_arrived(&mut self, task: u32, hop: u32, bytes: u64, out: &mut Vec<Action>) {
        let job = self.tasks.get(task).job;
        let ack = u64::from(self.config.hdfs.ack_bytes);
        let hops = &self.writer(task).hops;
        out.push(match hops.get(hop as usize + 1) {
            Some(&next) => replica_chunk(next, bytes, job),
            None => control_message(hops[hop as usize], Side::Server, ack, bytes, Some(job)),
        });
    }

    /// An acknowledgement has come back over a hop.
    pub(super) fn chunk_acknowledged(
        &mut self,
        now: Time,
        task: u32,
        hop: u32,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let job = self.tasks.get(task).job;
        let ack = u64::from(self.config.hdfs.ack_bytes);
        let w = self.writer(task);
        if hop > 0 {
            let back = w.hops[hop as usize - 1];
            out.push(control_message(back, Side::Server, ack, bytes, Some(job)));
            return;
        }
        w.acknowledged += bytes;
        w.outstanding -= 1;
        self.fill_pipeline(task, out);
        self.block_written(now, task, out);
    }

    /// The local replica of the block is complete.
    pub(super) fn block_on_disk(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.writer(task).on_disk = true;
        self.block_written(now, task, out);
    }

    /// Goes on to the next block or finishes the task, once all replicas are complete.
    fn block_written(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let w = self.writer(task);
        if !w.on_disk || w.acknowledged < w.block {
            return;
        }
        let more = w.left > 0;
        let hops = std::mem::take(&mut w.hops);
        for conn in hops {
            self.conns.close(conn, out);
        }
        if more {
            self.next_block(now, task, out);
        } else {
            self.task_finished(now, task, out);
        }
    }
}

/// A chunk on its way over a hop of the pipeline.
fn replica_chunk(conn: ConnId, bytes: u64, job: u32) -> Action {
    Action::Send {
        conn,
        from: Side::Client,
        payload: bytes,
        header: 0,
        tag: bytes,
        purpose: Purpose::Replica,
        job: Some(job),
        record: true,
    }
}
