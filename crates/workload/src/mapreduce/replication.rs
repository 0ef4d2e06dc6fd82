//! Re-replication: blocks that have lost a replica are copied by datanodes that have one.
//!
//! As in Hadoop 3 (HeartbeatManager, RedundancyMonitor, LowRedundancyBlocks,
//! DataNode.DataTransfer). Every `recheck` the namenode checks its datanodes; a datanode that was
//! silent for 2 · `recheck` + 10 · `heartbeat` is dead, and its replicas are removed from the
//! table. Every `interval` the namenode takes `work` blocks for each live datanode from those with
//! too few replicas: blocks with one replica left first, then those with less than a third, then
//! the others; within each group it continues after the last block of the previous round. The
//! source of a copy is a live datanode that has the block and sends fewer than `streams` copies
//! (`streams_hard` if it has the last replica). At its next heartbeat the source is told to send
//! the block to a target that the rack policy chooses. After a failed copy, source and target are
//! chosen again when `pending` has passed since the first choice. A dead datanode that returns
//! brings its replicas back; surplus replicas are deleted.
//!
//! Differences from Hadoop: the namenode knows at once that a copy has arrived (block reports and
//! heartbeats of datanodes are not sent as messages); one copy of a block is started in a round;
//! surplus replicas are deleted without a message; datanodes do not throttle.

use super::blocks::{Block, Blocks};
use super::connections::Use;
use super::context::Context;
use super::file::Written;
use super::slab::Slab;
use super::timer::Timer;
use super::work::Work;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Number of urgency levels of blocks with too few replicas: one replica left, less than a third of
/// the wanted replicas, all others.
const URGENCIES: usize = 3;

/// A copy of a block from one datanode to another, from the namenode's choice to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockCopy {
    block: Block,
    bytes: u64,
    source: u32,
    target: u32,
    chosen: Time,
    conn: Option<ConnId>,
    /// Number of unfinished parts of the copy: network transfer, disk read, disk write.
    parts: u32,
    /// Whether the connection of the copy has failed.
    failed: bool,
}

/// Blocks with too few replicas by urgency, and copies of blocks in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue {
    needed: [BTreeSet<Block>; URGENCIES],
    /// Last block of each urgency for which a round has chosen a copy; `None`: the next round
    /// starts with the first block.
    seen: [Option<Block>; URGENCIES],
    /// Copies of blocks in progress.
    copies: Slab<BlockCopy>,
    /// Target workers of the copies in progress, by block.
    coming: BTreeMap<Block, Vec<u32>>,
    /// Number of copies that each worker is sending, by worker number.
    sending: Vec<u32>,
    /// Blocks that have a replica on a dead datanode, by worker; used when the datanode returns.
    gone: BTreeMap<u32, Vec<Block>>,
    /// Whether a replication round is scheduled.
    armed: bool,
    /// Earliest time of the next replication round.
    next: Time,
    draws: Stream,
}

impl Queue {
    /// Returns an empty queue: no block needs a copy, and no copy is in progress.
    fn new(workers: usize, seed: u64) -> Queue {
        Queue {
            needed: Default::default(),
            seen: [None; URGENCIES],
            copies: Slab::default(),
            coming: BTreeMap::new(),
            sending: vec![0; workers],
            gone: BTreeMap::new(),
            armed: false,
            next: Time::ZERO,
            draws: Stream::new(seed, "mapreduce/replication"),
        }
    }

    /// Returns at most `most` blocks to copy in this round, the most urgent first. Each level of
    /// urgency continues after the last block of the previous round.
    fn next_blocks(&mut self, most: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        for urgency in 0..URGENCIES {
            let from = self.seen[urgency].map_or(Unbounded, Excluded);
            let before = blocks.len();
            let next = self.needed[urgency].range((from, Unbounded));
            blocks.extend(next.take(most - before));
            let more = blocks.len() == most;
            self.seen[urgency] = if more { blocks.last().copied() } else { None };
            if more {
                break;
            }
        }
        blocks
    }

    /// Records that a dead datanode has a replica of a block, if the namenode learns of the block
    /// after the datanode's death.
    fn gone_with(&mut self, worker: u32, block: Block) {
        self.gone.entry(worker).or_default().push(block);
    }

    fn is_needed(&self) -> bool {
        self.needed.iter().any(|blocks| !blocks.is_empty())
    }
}

/// State of a datanode as the namenode knows it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Datanode {
    /// Time of the datanode's last heartbeat.
    heard: Time,
    /// Whether the namenode has declared the datanode dead.
    dead: bool,
}

/// State of all replicas of blocks, of the datanodes, and of re-replication.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replicas {
    /// Table of blocks with their replicas.
    pub blocks: Blocks,
    queue: Queue,
    datanodes: Vec<Datanode>,
}

impl Replicas {
    /// Returns an empty table of blocks with `workers` live datanodes.
    pub fn new(workers: usize, seed: u64) -> Replicas {
        Replicas {
            blocks: Blocks::default(),
            queue: Queue::new(workers, seed),
            datanodes: vec![Datanode::default(); workers],
        }
    }

    /// Whether the namenode has declared a datanode dead.
    pub fn is_dead(&self, worker: u32) -> bool {
        self.datanodes[worker as usize].dead
    }

    /// Whether the copy of a block with this number is in progress.
    pub fn copies(&self, copy: u32) -> bool {
        self.queue.copies.find(copy).is_some()
    }

    /// Adds the blocks of a complete file to the table, without replicas on datanodes that died
    /// while the file was written.
    pub fn keep_file(
        &mut self,
        cx: &mut Context,
        (job, task): (u32, u32),
        mut blocks: Vec<Written>,
    ) {
        if blocks.is_empty() || cx.config.coarse.is_on() {
            return; // nothing was written, or the run is approximate: no block is lost
        }
        for (number, written) in (0..).zip(&mut blocks) {
            written.replicas.retain(|&w| {
                let dead = self.datanodes[w as usize].dead;
                if dead {
                    self.queue.gone_with(w, Block::Output { job, task, number });
                }
                !dead
            });
        }
        let numbers = 0..blocks.len() as u32;
        self.blocks.keep((job, task), blocks);
        for number in numbers {
            self.judge_block(cx, Block::Output { job, task, number });
        }
        self.replicate_soon(cx);
    }

    /// Handles a heartbeat of a datanode at the namenode. A datanode that was declared dead returns
    /// with its replicas.
    pub fn heard(&mut self, cx: &mut Context, worker: u32) {
        let node = &mut self.datanodes[worker as usize];
        node.heard = cx.now;
        if std::mem::take(&mut node.dead) {
            self.datanode_back(cx, worker);
            self.replicate_soon(cx);
        }
    }

    /// Checks which datanodes have sent no heartbeat for too long, and declares them dead.
    pub fn recheck(&mut self, cx: &mut Context) {
        let silence = cx.config.hdfs.recovery.dead_after();
        for worker in 0..self.datanodes.len() as u32 {
            let node = &mut self.datanodes[worker as usize];
            if !node.dead && cx.now.since(node.heard) >= silence {
                node.dead = true;
                cx.failed();
                self.datanode_dead(cx, worker);
            }
        }
        self.recheck_later(cx);
        self.replicate_soon(cx);
    }

    /// Schedules the namenode's next check for dead datanodes.
    pub fn recheck_later(&self, cx: &mut Context) {
        cx.wake_in(cx.config.hdfs.recovery.recheck, Timer::Recheck);
    }

    fn datanode_dead(&mut self, cx: &mut Context, worker: u32) {
        let copies = self.queue.copies.iter();
        let its: Vec<u32> = copies
            .filter(|(_, c)| c.source == worker || c.target == worker)
            .map(|(number, _)| number)
            .collect();
        for copy in its {
            self.drop_copy(cx, copy);
        }
        let mut gone = Vec::new();
        for (block, mut replicas) in self.blocks.on(cx, worker) {
            replicas.retain(|&w| w != worker);
            self.blocks.set(cx, block, replicas);
            self.judge_block(cx, block);
            gone.push(block);
        }
        self.queue.gone.insert(worker, gone);
    }

    /// Adds the replicas of a datanode that was declared dead and has returned.
    fn datanode_back(&mut self, cx: &mut Context, worker: u32) {
        for block in self.queue.gone.remove(&worker).unwrap_or_default() {
            let Some((_, wanted, replicas)) = self.blocks.get(cx, block) else { continue };
            if replicas.len() < wanted as usize && !replicas.contains(&worker) {
                let mut replicas = replicas.to_vec();
                replicas.push(worker);
                self.blocks.set(cx, block, replicas);
                self.judge_block(cx, block);
            }
        }
    }

    /// Updates whether a block needs a copy, and how urgently. A block without any replica cannot
    /// be copied.
    pub fn judge_block(&mut self, cx: &Context, block: Block) {
        for blocks in &mut self.queue.needed {
            blocks.remove(&block);
        }
        let coming = self.queue.coming.get(&block).map_or(0, Vec::len);
        let Some((_, wanted, replicas)) = self.blocks.get(cx, block) else { return };
        let (wanted, left) = (wanted as usize, replicas.len());
        if left == 0 || left + coming >= wanted {
            return;
        }
        let urgency = match left {
            1 => 0,
            _ if left * 3 < wanted => 1,
            _ => 2,
        };
        self.queue.needed[urgency].insert(block);
    }

    /// Schedules a replication round if blocks need copies and no round is scheduled.
    pub fn replicate_soon(&mut self, cx: &mut Context) {
        let recovery = &cx.config.hdfs.recovery;
        let possible = recovery.work > 0 && recovery.streams.max(recovery.streams_hard) > 0;
        if possible && self.queue.is_needed() && !self.queue.armed {
            self.queue.armed = true;
            let due = self.queue.next.max(cx.now);
            self.queue.next = due + recovery.interval;
            cx.wake(due, Timer::Replicate);
        }
    }

    /// Executes a round of replication: chooses blocks, and for each a source and a target
    /// datanode.
    pub fn replicate(&mut self, cx: &mut Context) {
        self.queue.armed = false;
        let live = self.datanodes.iter().filter(|node| !node.dead).count();
        let most = (cx.config.hdfs.recovery.work as usize).saturating_mul(live);
        for block in self.queue.next_blocks(most) {
            self.choose_copy(cx, block);
        }
        self.replicate_soon(cx);
    }

    /// Chooses source and target of a copy of a block, if a datanode can send the copy and another
    /// datanode can store it.
    fn choose_copy(&mut self, cx: &mut Context, block: Block) {
        let recovery = &cx.config.hdfs.recovery;
        let Some((bytes, _, replicas)) = self.blocks.get(cx, block) else { return };
        let most = if replicas.len() == 1 { recovery.streams_hard } else { recovery.streams };
        let mut held = replicas.to_vec();
        let may_send = |w: &u32| self.queue.sending[*w as usize] < most;
        let sources: Vec<u32> = held.iter().copied().filter(may_send).collect();
        if sources.is_empty() {
            return;
        }
        let queue = &mut self.queue;
        let source = sources[queue.draws.below(sources.len() as u64) as usize];
        let coming = queue.coming.entry(block).or_default();
        held.extend(&*coming);
        let usable = |w: u32| !self.datanodes[w as usize].dead;
        let target = cx.racks.place_another(&held, source, &usable, &mut queue.draws);
        if let Some(target) = target {
            coming.push(target);
            queue.sending[source as usize] += 1;
            let told = cx.now + queue.draws.within(recovery.heartbeat);
            let (conn, parts, failed) = (None, 0, false);
            let copy =
                BlockCopy { block, bytes, source, target, chosen: cx.now, conn, parts, failed };
            let copy = queue.copies.add(copy);
            cx.wake(told, Timer::Copy(copy));
        } else if coming.is_empty() {
            queue.coming.remove(&block);
        }
        self.judge_block(cx, block);
    }

    /// Starts the copy of a block at its source datanode; if the copy has failed and its timeout is
    /// over, drops it.
    pub fn copy_due(&mut self, cx: &mut Context, copy: u32) {
        let &mut BlockCopy { source, target, bytes, failed, .. } = self.queue.copies.get(copy);
        if failed {
            self.drop_copy(cx, copy);
            self.replicate_soon(cx);
            return;
        }
        let ends = (cx.host(source), cx.host(target));
        let conn = cx.open(Use::Copy { copy }, ends);
        let hdfs = &cx.config.hdfs;
        let framing = hdfs.read_framing(bytes) + hdfs.setup_bytes;
        cx.send((conn, Side::Client), (bytes, framing), Purpose::Rereplication, None);
        let reads = cx.config.node.disks.is_some();
        if reads {
            cx.read(source, bytes, Work::Copy(copy));
        }
        let c = self.queue.copies.get(copy);
        (c.conn, c.parts) = (Some(conn), 1 + u32::from(reads));
    }

    /// Handles the arrival of the copy of a block at its target datanode, which stores it.
    pub fn copy_arrived(&mut self, cx: &mut Context, copy: u32) {
        let &mut BlockCopy { target, bytes, .. } = self.queue.copies.get(copy);
        if let Some(conn) = self.queue.copies.get(copy).conn.take() {
            cx.close(conn);
        }
        if cx.store(target, bytes, Work::Copy(copy)) {
            self.copy_part(cx, copy);
        }
    }

    /// Counts a finished part (transfer, read, write) of the copy of a block; after the last part
    /// the block has one more replica.
    pub fn copy_part(&mut self, cx: &mut Context, copy: u32) {
        let c = self.queue.copies.get(copy);
        if c.failed {
            return;
        }
        c.parts -= 1;
        if c.parts > 0 {
            return;
        }
        let (block, target) = (c.block, c.target);
        if let Some((_, wanted, replicas)) = self.blocks.get(cx, block) {
            if replicas.len() < wanted as usize && !replicas.contains(&target) {
                let mut replicas = replicas.to_vec();
                replicas.push(target);
                self.blocks.set(cx, block, replicas);
            }
        }
        self.drop_copy(cx, copy);
        self.replicate_soon(cx);
    }

    /// Handles the loss of the connection over which a block is copied: the namenode chooses source
    /// and target again after the timeout `pending`.
    pub fn copy_lost(&mut self, cx: &mut Context, copy: u32) {
        let c = self.queue.copies.get(copy);
        (c.conn, c.failed) = (None, true);
        let over = c.chosen + cx.config.hdfs.recovery.pending;
        self.queue.sending[c.source as usize] -= 1;
        cx.wake(over.max(cx.now), Timer::Copy(copy));
    }

    /// Removes the copy of a block, complete or not, and checks again whether the block needs a
    /// copy.
    fn drop_copy(&mut self, cx: &mut Context, copy: u32) {
        let c = self.queue.copies.remove(copy);
        if let Some(conn) = c.conn {
            cx.abort(conn);
        }
        if !c.failed {
            self.queue.sending[c.source as usize] -= 1;
        }
        if let Some(coming) = self.queue.coming.get_mut(&c.block) {
            coming.retain(|&w| w != c.target);
            if coming.is_empty() {
                self.queue.coming.remove(&c.block);
            }
        }
        self.judge_block(cx, c.block);
    }
}

#[cfg(test)]
impl Replicas {
    /// Checks that no block has two replicas on one datanode, surplus replicas, or a replica on a
    /// dead datanode, and that the counts of copies are consistent.
    pub fn check(&self, cx: &Context) {
        let mut sending = vec![0; self.datanodes.len()];
        let copies: Vec<&BlockCopy> = self.queue.copies.iter().map(|(_, c)| c).collect();
        for c in &copies {
            sending[c.source as usize] += u32::from(!c.failed);
            assert!(self.queue.coming[&c.block].contains(&c.target));
        }
        assert_eq!(sending, self.queue.sending);
        let coming: usize = self.queue.coming.values().map(Vec::len).sum();
        assert_eq!(coming, copies.len());
        for worker in 0..self.datanodes.len() as u32 {
            for (block, replicas) in self.blocks.on(cx, worker) {
                assert!(!self.is_dead(worker), "{block:?} is on a dead datanode");
                let wanted = self.blocks.get(cx, block).map_or(replicas.len(), |b| b.1 as usize);
                let twice = replicas.iter().filter(|&&w| w == worker).count() > 1;
                assert!(!twice && replicas.len() <= wanted, "{block:?}: {replicas:?}");
            }
        }
    }
}
