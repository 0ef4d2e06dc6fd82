//! Pipeline recovery: a writer whose pipeline has lost a datanode.
//!
//! As in Hadoop 3's DataStreamer. While a block's pipeline is being set up, the block is abandoned:
//! the namenode chooses other targets without the failed one, up to `block_retries` times. After
//! set-up, the lost datanode is removed, and the block continues with the other datanodes, from the
//! bytes that all of these have acknowledged. If too few are left
//! ([`ReplaceDatanode`](crate::mapreduce::ReplaceDatanode)) the namenode chooses another one; a
//! datanode of the pipeline sends it the data that the block has so far, and it joins at the end of
//! the pipeline. Without a replacement the write fails, unless `best_effort` is set; it also fails
//! without any datanode left. A complete file with too few replicas is handled by the namenode
//! ([`crate::mapreduce::replication`]).
//!
//! Differences from Hadoop: the failed hop is found from the bytes that have arrived at each
//! datanode; the namenode does not learn of new generations of a block; datanodes that failed a
//! writer stay excluded until its file is complete (Hadoop: ten minutes).

use super::{Hdfs, State, Writer, is_hop_of};
use crate::mapreduce::connections::Use;
use crate::mapreduce::context::Context;
use crate::mapreduce::note::Note;
use crate::mapreduce::work::Work;
use eastwest_types::{Purpose, Side};

/// Largest number of datanodes that are tried as replacement of one lost datanode (DataStreamer's
/// addDatanode2ExistingPipeline: 3).
const MOST_TRIED: u32 = 3;

impl Writer {
    /// Returns the index of the failed hop in a pipeline without progress: the first hop over which
    /// bytes are missing, otherwise the last hop over which acknowledgements are missing. During
    /// set-up it is the newest hop. In other states, and without any sign, it is `seen`, the hop
    /// whose connection was lost.
    fn broken_hop(&self, seen: usize) -> usize {
        if self.state != State::Streaming {
            return if self.state == State::SettingUp { self.block.hops.len() - 1 } else { seen };
        }
        let missing = self.block.hops.windows(2).position(|two| two[1].arrived < two[0].arrived);
        let first = self
            .block
            .hops
            .first()
            .is_some_and(|hop| hop.arrived < self.block.sent - self.block.resumed);
        match missing {
            _ if first => 0,
            Some(above) => above + 1,
            None => {
                self.block.hops.iter().rposition(|h| h.acknowledged < h.arrived).unwrap_or(seen)
            }
        }
    }
}

impl Hdfs {
    /// Handles the loss of a connection of a pipeline: removes the failed datanode, then replaces
    /// it, continues without it, or abandons the block.
    pub fn hop_lost(&mut self, cx: &mut Context, (writer, hop): (u32, u32)) {
        let policy = cx.config.hdfs.recovery.replace;
        let w = self.writers.get(writer);
        let bad = w.block.hops[w.broken_hop(hop as usize)].replica;
        let fresh = w.state == State::SettingUp && w.block.resumed == 0;
        w.pipe += 1;
        w.block.hops.clear();
        w.block.chain.retain(|&replica| replica != bad);
        w.excluded.push(bad);
        cx.abort_where(|u| is_hop_of(u, writer));
        if fresh {
            self.abandon_block(cx, writer);
            return;
        }
        let w = self.writers.get(writer);
        w.block.sent = w.block.acknowledged;
        w.block.resumed = w.block.sent;
        if w.block.chain.is_empty() {
            self.writer_failed(cx, writer);
        } else if policy.is_due(w.replicas, w.block.chain.len()) {
            self.ask_for_another(cx, writer);
        } else {
            self.open_pipeline(cx, writer);
        }
    }

    /// Abandons a block whose pipeline could not be set up, and begins it again with other
    /// datanodes.
    fn abandon_block(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        w.retries += 1;
        if w.retries > cx.config.failures.block_retries {
            self.writer_failed(cx, writer);
            return;
        }
        w.state = State::Asking;
        match w.session {
            Some(session) => self.namenode.ask(cx, session),
            None => self.writer_answered(cx, writer),
        }
    }

    /// Asks the namenode for a replacement of a lost datanode in the pipeline of a writer.
    fn ask_for_another(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        w.state = State::Replacing;
        match w.session {
            Some(session) => self.namenode.ask(cx, session),
            None => self.replace(cx, writer),
        }
    }

    /// Handles the namenode's choice of a replacement for a lost datanode, if one exists: a
    /// datanode of the pipeline starts to send to the replacement the data that the block has so
    /// far.
    pub fn replace(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        let source = *w.block.chain.last().expect("one is left");
        let usable = |d: u32| !self.replicas.is_dead(d) && !w.excluded.contains(&d);
        let another = cx.racks.place_another(&w.block.chain, source, &usable, &mut w.targets);
        let Some(target) = another else {
            self.not_replaced(cx, writer);
            return;
        };
        w.block.chain.push(target);
        let (bytes, pipe, job) = (w.block.acknowledged, w.pipe, w.job);
        if bytes == 0 {
            self.open_pipeline(cx, writer);
            return;
        }
        let reads = cx.config.node.disks.is_some();
        w.state = State::Transferring;
        w.block.transfer_parts = 1 + u32::from(reads);
        let ends = (cx.host(source), cx.host(target));
        let conn = cx.open(Use::Transfer { writer }, ends);
        let framing = cx.config.hdfs.read_framing(bytes) + cx.config.hdfs.setup_bytes;
        let ends = (conn, Side::Client);
        cx.send(ends, (bytes, framing), Purpose::Rereplication, Some(job));
        if reads {
            cx.read(source, bytes, Work::Transfer { writer, pipe });
        }
    }

    /// Handles the case that no replacement for a lost datanode exists: with `best_effort` the
    /// pipeline continues with the remaining datanodes, otherwise the write fails.
    fn not_replaced(&mut self, cx: &mut Context, writer: u32) {
        if cx.config.hdfs.recovery.best_effort {
            self.open_pipeline(cx, writer);
        } else {
            self.writer_failed(cx, writer);
        }
    }

    /// Handles the arrival of the block's data at the replacement of a lost datanode, which stores
    /// the data.
    pub fn transferred(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        let target = *w.block.chain.last().expect("it joins");
        let (bytes, pipe) = (w.block.acknowledged, w.pipe);
        let is_its = |u| matches!(u, Use::Transfer { writer: of } if of == writer);
        cx.close_where(is_its);
        if cx.store(target, bytes, Work::Transfer { writer, pipe }) {
            self.transfer_part(cx, (writer, pipe));
        }
    }

    /// Counts a finished part (network, disk read or disk write) of the transfer to the replacement
    /// of a lost datanode; after the last part the pipeline continues.
    pub fn transfer_part(&mut self, cx: &mut Context, (writer, pipe): (u32, u32)) {
        let w = self.writers.get(writer);
        if w.pipe != pipe || w.state != State::Transferring {
            return;
        }
        w.block.transfer_parts -= 1;
        if w.block.transfer_parts == 0 {
            self.open_pipeline(cx, writer);
        }
    }

    /// Tries another datanode, after the connection to the replacement of a lost datanode failed.
    pub fn transfer_lost(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        w.pipe += 1;
        w.excluded.extend(w.block.chain.pop());
        w.block.replacements += 1;
        if w.block.replacements < MOST_TRIED {
            self.ask_for_another(cx, writer);
        } else {
            self.not_replaced(cx, writer);
        }
    }

    /// Handles a file that cannot be written: its owner, a task or a client, gets a note.
    pub fn writer_failed(&mut self, cx: &mut Context, writer: u32) {
        let owner = self.writers.get(writer).owner;
        cx.note(Note::FileFailed { owner });
    }
}
