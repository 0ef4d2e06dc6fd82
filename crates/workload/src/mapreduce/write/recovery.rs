//! A writer whose pipeline has lost a datanode.
//!
//! As in Hadoop 3's DataStreamer. While a block's pipeline is set up, the block is abandoned: the
//! namenode names other targets, without the one that failed, up to `block_retries` times. Later the
//! datanode is left out, and the block goes on with the others from what all had acknowledged. Where
//! few are left ([`ReplaceDatanode`](crate::mapreduce::ReplaceDatanode)) the namenode names another
//! one, which is sent what there is of the block by one that has it, and joins at the end of the
//! pipeline. If none can be had the write fails, unless `best_effort` is set; it fails too with no
//! datanode left. A file that is complete with fewer replicas than wanted is the namenode's business
//! ([`crate::mapreduce::replication`]).
//!
//! Departures: who is to blame is found from what has arrived where; the namenode is not told of new
//! generations of a block; datanodes that failed a writer stay excluded as long as its file lasts
//! (Hadoop: ten minutes).

use super::{Owner, State, Writer, is_hop_of};
use crate::Action;
use crate::mapreduce::MapReduce;
use crate::mapreduce::connections::Use;
use crate::mapreduce::control::data_message;
use crate::mapreduce::failure::Cause;
use crate::mapreduce::hardware::Work;
use eastwest_types::{Purpose, Side, Time};

/// Datanodes that are tried in the place of a lost one (DataStreamer's
/// addDatanode2ExistingPipeline: 3).
const MOST_TRIED: u32 = 3;

impl Writer {
    /// The hop that is to blame when nothing arrives on some: the first over which bytes are missing,
    /// else the last whose acknowledgements are. While a pipeline is set up, the newest.
    fn broken_hop(&self, seen: usize) -> usize {
        if self.state != State::Streaming {
            return if self.state == State::SettingUp { self.hops.len() - 1 } else { seen };
        }
        let missing = self.hops.windows(2).position(|two| two[1].arrived < two[0].arrived);
        let first = self.hops.first().is_some_and(|hop| hop.arrived < self.sent - self.resumed);
        match missing {
            _ if first => 0,
            Some(above) => above + 1,
            None => self.hops.iter().rposition(|h| h.acknowledged < h.arrived).unwrap_or(seen),
        }
    }
}

impl MapReduce {
    /// A connection of a pipeline is gone.
    pub(in crate::mapreduce) fn hop_lost(
        &mut self,
        now: Time,
        (writer, hop): (u32, u32),
        out: &mut Vec<Action>,
    ) {
        let policy = self.config.hdfs.recovery.replace;
        let w = self.writers.get(writer);
        let bad = w.hops[w.broken_hop(hop as usize)].replica;
        let fresh = w.state == State::SettingUp && w.resumed == 0;
        w.pipe += 1;
        w.hops.clear();
        w.chain.retain(|&replica| replica != bad);
        w.excluded.push(bad);
        self.conns.abort_where(|u| is_hop_of(u, writer), out);
        if fresh {
            self.abandon_block(now, writer, out);
            return;
        }
        let w = self.writers.get(writer);
        w.sent = w.acknowledged;
        w.resumed = w.sent;
        if w.chain.is_empty() {
            self.writer_failed(now, writer, out);
        } else if policy.is_due(w.replicas, w.chain.len()) {
            self.ask_for_another(now, writer, out);
        } else {
            self.open_pipeline(now, writer, out);
        }
    }

    /// The pipeline of a block could not be set up: the block begins anew with other targets.
    fn abandon_block(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        w.retries += 1;
        if w.retries > self.config.failures.block_retries {
            self.writer_failed(now, writer, out);
            return;
        }
        w.state = State::Asking;
        match w.session {
            Some(session) => self.ask_namenode(now, session, out),
            None => self.writer_answered(now, writer, out),
        }
    }

    /// Asks the namenode for a datanode in the place of a lost one.
    fn ask_for_another(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        w.state = State::Replacing;
        match w.session {
            Some(session) => self.ask_namenode(now, session, out),
            None => self.replace(now, writer, out),
        }
    }

    /// The namenode has named another datanode, or has none: it is sent what there is of the block.
    pub(super) fn replace(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        let source = *w.chain.last().expect("one is left");
        let usable = |d: u32| !self.workers[d as usize].dead && !w.excluded.contains(&d);
        let another = self.racks.place_another(&w.chain, source, &usable, &mut w.targets);
        let Some(target) = another else {
            self.not_replaced(now, writer, out);
            return;
        };
        w.chain.push(target);
        let (bytes, pipe, job) = (w.acknowledged, w.pipe, w.job);
        if bytes == 0 {
            self.open_pipeline(now, writer, out);
            return;
        }
        let reads = self.config.node.disks.is_some();
        w.state = State::Transferring;
        w.transfer_parts = 1 + u32::from(reads);
        let ends = (self.host(source), self.host(target));
        let conn = self.conns.open(Use::Transfer { writer }, ends, self.config.class, out);
        let framing = self.config.hdfs.read_framing(bytes) + self.config.hdfs.setup_bytes;
        let ends = (conn, Side::Client);
        out.push(data_message(ends, (bytes, framing), Purpose::Rereplication, Some(job)));
        if reads {
            self.hardware.read(now, source, bytes, Work::Transfer { writer, pipe }, out);
        }
    }

    /// No datanode takes the place of a lost one.
    fn not_replaced(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        if self.config.hdfs.recovery.best_effort {
            self.open_pipeline(now, writer, out);
        } else {
            self.writer_failed(now, writer, out);
        }
    }

    /// At the datanode that joins: what there is of the block has arrived, and is stored.
    pub(in crate::mapreduce) fn transferred(
        &mut self,
        now: Time,
        writer: u32,
        out: &mut Vec<Action>,
    ) {
        let w = self.writers.get(writer);
        let target = *w.chain.last().expect("it joins");
        let (bytes, pipe) = (w.acknowledged, w.pipe);
        let is_its = |u| matches!(u, Use::Transfer { writer: of } if of == writer);
        self.conns.close_where(is_its, out);
        if self.hardware.store(now, target, bytes, Work::Transfer { writer, pipe }, out) {
            self.transfer_part(now, (writer, pipe), out);
        }
    }

    /// A part of it is through; with the last one the pipeline goes on.
    pub(in crate::mapreduce) fn transfer_part(
        &mut self,
        now: Time,
        (writer, pipe): (u32, u32),
        out: &mut Vec<Action>,
    ) {
        let w = self.writers.get(writer);
        if w.pipe != pipe || w.state != State::Transferring {
            return;
        }
        w.transfer_parts -= 1;
        if w.transfer_parts == 0 {
            self.open_pipeline(now, writer, out);
        }
    }

    /// The connection to the datanode that was to join is gone: another one is tried.
    pub(in crate::mapreduce) fn transfer_lost(
        &mut self,
        now: Time,
        writer: u32,
        out: &mut Vec<Action>,
    ) {
        let w = self.writers.get(writer);
        w.pipe += 1;
        w.excluded.extend(w.chain.pop());
        w.replacements += 1;
        if w.replacements < MOST_TRIED {
            self.ask_for_another(now, writer, out);
        } else {
            self.not_replaced(now, writer, out);
        }
    }

    /// The file cannot be written.
    pub(super) fn writer_failed(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        match self.writers.get(writer).owner {
            Owner::Task(task) => self.attempt_failed(now, task, Cause::Unwritten, out),
            Owner::Client(client) => {
                self.client_failed(now, client, "a client had no datanode left to write to", out);
            }
        }
    }
}
