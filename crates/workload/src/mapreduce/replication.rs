//! Re-replication: blocks that have lost a replica are copied by datanodes that have one.
//!
//! As in Hadoop 3 (HeartbeatManager, RedundancyMonitor, LowRedundancyBlocks, DataNode.DataTransfer).
//! Every `recheck` the namenode looks at its datanodes; one that was silent for 2 · `recheck` +
//! 10 · `heartbeat` is dead, and its replicas are struck from the table. Every `interval` the
//! namenode takes `work` blocks for each live datanode from those with too few replicas: blocks with
//! one replica left first, then those with less than a third, then the others, each kind in turn
//! from where the last round ended. A live datanode that has the block and sends less than `streams`
//! copies (`streams_hard` where it has the last one) is told with its next heartbeat to send it to a
//! target that the rack policy names. A copy that breaks off is chosen anew `pending` after it was
//! chosen first. A datanode that is heard of again brings its replicas back; what is then too much is
//! deleted.
//!
//! Departures: the namenode knows at once that a copy has arrived (block reports and heartbeats of
//! datanodes are no messages); one copy of a block is begun in a round; replicas beyond what is
//! wanted go without a message; datanodes do not throttle.

use super::blocks::Block;
use super::connections::Use;
use super::control::data_message;
use super::hardware::Work;
use super::slab::Slab;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Purpose, Side, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Kinds of need, the most urgent first.
const URGENCIES: usize = 3;

/// A copy from the namenode's choice to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockCopy {
    block: Block,
    bytes: u64,
    source: u32,
    target: u32,
    chosen: Time,
    conn: Option<ConnId>,
    /// Parts that are not through: the transfer, reading, writing.
    parts: u32,
    /// It broke off.
    failed: bool,
}

/// Blocks with too few replicas, and copies under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replication {
    needed: [BTreeSet<Block>; URGENCIES],
    /// The last block of each kind that was looked at.
    seen: [Option<Block>; URGENCIES],
    /// Copies under way.
    pub copies: Slab<BlockCopy>,
    /// Targets of copies under way.
    coming: BTreeMap<Block, Vec<u32>>,
    /// Copies every worker sends.
    sending: Vec<u32>,
    /// Replicas on dead datanodes, for when they come back.
    gone: BTreeMap<u32, Vec<Block>>,
    /// A round is due.
    armed: bool,
    /// When the next one may be.
    next: Time,
    draws: Stream,
}

impl Replication {
    /// All blocks have their replicas.
    pub fn new(workers: usize, seed: u64) -> Replication {
        Replication {
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

    /// The next blocks to look at, at most so many.
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

    /// A datanode that is dead has a replica of a block of which the namenode learns only now.
    pub fn gone_with(&mut self, worker: u32, block: Block) {
        self.gone.entry(worker).or_default().push(block);
    }

    fn is_needed(&self) -> bool {
        self.needed.iter().any(|blocks| !blocks.is_empty())
    }
}

impl MapReduce {
    /// At the namenode: looks which datanodes are dead.
    pub(super) fn recheck(&mut self, now: Time, out: &mut Vec<Action>) {
        let silence = self.config.hdfs.recovery.dead_after();
        for worker in 0..self.workers.len() as u32 {
            let w = &mut self.workers[worker as usize];
            if !w.dead && now.since(w.heard) >= silence {
                w.dead = true;
                self.datanode_dead(worker, out);
            }
        }
        self.recheck_later(now, out);
        self.replicate_soon(now, out);
    }

    /// Asks to look at the datanodes again.
    pub(super) fn recheck_later(&self, now: Time, out: &mut Vec<Action>) {
        out.push(Timer::Recheck.at(now + self.config.hdfs.recovery.recheck));
    }

    fn datanode_dead(&mut self, worker: u32, out: &mut Vec<Action>) {
        let copies = self.replication.copies.iter();
        let its: Vec<u32> = copies
            .filter(|(_, c)| c.source == worker || c.target == worker)
            .map(|(number, _)| number)
            .collect();
        for copy in its {
            self.drop_copy(copy, out);
        }
        let mut gone = Vec::new();
        for (block, mut replicas) in self.blocks_on(worker) {
            replicas.retain(|&w| w != worker);
            self.move_block(block, replicas);
            self.judge_block(block);
            gone.push(block);
        }
        self.replication.gone.insert(worker, gone);
    }

    /// A datanode that was dead reports the blocks it has.
    pub(super) fn datanode_back(&mut self, worker: u32) {
        for block in self.replication.gone.remove(&worker).unwrap_or_default() {
            let Some((_, wanted, replicas)) = self.block(block) else { continue };
            if replicas.len() < wanted as usize && !replicas.contains(&worker) {
                let mut replicas = replicas.to_vec();
                replicas.push(worker);
                self.move_block(block, replicas);
                self.judge_block(block);
            }
        }
    }

    /// Whether a block must be copied, and how urgently. One without replicas cannot be.
    pub(super) fn judge_block(&mut self, block: Block) {
        for blocks in &mut self.replication.needed {
            blocks.remove(&block);
        }
        let coming = self.replication.coming.get(&block).map_or(0, Vec::len);
        let Some((_, wanted, replicas)) = self.block(block) else { return };
        let (wanted, left) = (wanted as usize, replicas.len());
        if left == 0 || left + coming >= wanted {
            return;
        }
        let urgency = match left {
            1 => 0,
            _ if left * 3 < wanted => 1,
            _ => 2,
        };
        self.replication.needed[urgency].insert(block);
    }

    /// Asks for a round if there is something to copy.
    pub(super) fn replicate_soon(&mut self, now: Time, out: &mut Vec<Action>) {
        let recovery = &self.config.hdfs.recovery;
        let possible = recovery.work > 0 && recovery.streams.max(recovery.streams_hard) > 0;
        if possible && self.replication.is_needed() && !self.replication.armed {
            self.replication.armed = true;
            let due = self.replication.next.max(now);
            self.replication.next = due + recovery.interval;
            out.push(Timer::Replicate.at(due));
        }
    }

    /// A round: chooses blocks to copy.
    pub(super) fn replicate(&mut self, now: Time, out: &mut Vec<Action>) {
        self.replication.armed = false;
        let live = self.workers.iter().filter(|w| !w.dead).count();
        let most = (self.config.hdfs.recovery.work as usize).saturating_mul(live);
        for block in self.replication.next_blocks(most) {
            self.choose_copy(now, block, out);
        }
        self.replicate_soon(now, out);
    }

    /// Chooses source and target of a copy, if there are any.
    fn choose_copy(&mut self, now: Time, block: Block, out: &mut Vec<Action>) {
        let recovery = &self.config.hdfs.recovery;
        let Some((bytes, _, replicas)) = self.block(block) else { return };
        let most = if replicas.len() == 1 { recovery.streams_hard } else { recovery.streams };
        let mut held = replicas.to_vec();
        let may_send = |w: &u32| self.replication.sending[*w as usize] < most;
        let sources: Vec<u32> = held.iter().copied().filter(may_send).collect();
        if sources.is_empty() {
            return;
        }
        let replication = &mut self.replication;
        let source = sources[replication.draws.below(sources.len() as u64) as usize];
        let coming = replication.coming.entry(block).or_default();
        held.extend(&*coming);
        let usable = |w: u32| !self.workers[w as usize].dead;
        let target = self.racks.place_another(&held, source, &usable, &mut replication.draws);
        if let Some(target) = target {
            coming.push(target);
            replication.sending[source as usize] += 1;
            let told = now + replication.draws.within(recovery.heartbeat);
            let (conn, parts, failed) = (None, 0, false);
            let copy = BlockCopy { block, bytes, source, target, chosen: now, conn, parts, failed };
            out.push(Timer::Copy(replication.copies.add(copy)).at(told));
        } else if coming.is_empty() {
            replication.coming.remove(&block);
        }
        self.judge_block(block);
    }

    /// At the source: it is told to send a copy. Or a copy that broke off is given up.
    pub(super) fn copy_due(&mut self, now: Time, copy: u32, out: &mut Vec<Action>) {
        let &mut BlockCopy { source, target, bytes, failed, .. } =
            self.replication.copies.get(copy);
        if failed {
            self.drop_copy(copy, out);
            self.replicate_soon(now, out);
            return;
        }
        let ends = (self.host(source), self.host(target));
        let conn = self.conns.open(Use::Copy { copy }, ends, self.config.class, out);
        let hdfs = &self.config.hdfs;
        let framing = hdfs.read_framing(bytes) + hdfs.setup_bytes;
        let ends = (conn, Side::Client);
        out.push(data_message(ends, (bytes, framing), Purpose::Rereplication, None));
        let reads = self.config.node.disks.is_some();
        if reads {
            self.hardware.read(now, source, bytes, Work::Copy(copy), out);
        }
        let c = self.replication.copies.get(copy);
        (c.conn, c.parts) = (Some(conn), 1 + u32::from(reads));
    }

    /// At the target: a copy has arrived and is stored.
    pub(super) fn copy_arrived(&mut self, now: Time, copy: u32, out: &mut Vec<Action>) {
        let &mut BlockCopy { target, bytes, .. } = self.replication.copies.get(copy);
        if let Some(conn) = self.replication.copies.get(copy).conn.take() {
            self.conns.close(conn, out);
        }
        if self.hardware.store(now, target, bytes, Work::Copy(copy), out) {
            self.copy_part(now, copy, out);
        }
    }

    /// A part of a copy is through; with the last one the block has one more replica.
    pub(super) fn copy_part(&mut self, now: Time, copy: u32, out: &mut Vec<Action>) {
        let c = self.replication.copies.get(copy);
        if c.failed {
            return;
        }
        c.parts -= 1;
        if c.parts > 0 {
            return;
        }
        let (block, target) = (c.block, c.target);
        if let Some((_, wanted, replicas)) = self.block(block) {
            if replicas.len() < wanted as usize && !replicas.contains(&target) {
                let mut replicas = replicas.to_vec();
                replicas.push(target);
                self.move_block(block, replicas);
            }
        }
        self.drop_copy(copy, out);
        self.replicate_soon(now, out);
    }

    /// The connection of a copy is gone: it is chosen anew when its time is over.
    pub(super) fn copy_lost(&mut self, now: Time, copy: u32, out: &mut Vec<Action>) {
        let c = self.replication.copies.get(copy);
        (c.conn, c.failed) = (None, true);
        let over = c.chosen + self.config.hdfs.recovery.pending;
        self.replication.sending[c.source as usize] -= 1;
        out.push(Timer::Copy(copy).at(over.max(now)));
    }

    /// A copy is over, one way or the other.
    fn drop_copy(&mut self, copy: u32, out: &mut Vec<Action>) {
        let c = self.replication.copies.remove(copy);
        if let Some(conn) = c.conn {
            self.conns.abort(conn, out);
        }
        if !c.failed {
            self.replication.sending[c.source as usize] -= 1;
        }
        if let Some(coming) = self.replication.coming.get_mut(&c.block) {
            coming.retain(|&w| w != c.target);
            if coming.is_empty() {
                self.replication.coming.remove(&c.block);
            }
        }
        self.judge_block(c.block);
    }
}

#[cfg(test)]
impl MapReduce {
    /// No block has a replica twice, one too many or one on a dead datanode; what is under way adds
    /// up.
    pub fn check_blocks(&self) {
        let mut sending = vec![0; self.workers.len()];
        let copies: Vec<&BlockCopy> = self.replication.copies.iter().map(|(_, c)| c).collect();
        for c in &copies {
            sending[c.source as usize] += u32::from(!c.failed);
            assert!(self.replication.coming[&c.block].contains(&c.target));
        }
        assert_eq!(sending, self.replication.sending);
        let coming: usize = self.replication.coming.values().map(Vec::len).sum();
        assert_eq!(coming, copies.len());
        for worker in 0..self.workers.len() as u32 {
            for (block, replicas) in self.blocks_on(worker) {
                assert!(!self.workers[worker as usize].dead, "{block:?} is on a dead datanode");
                let wanted = self.block(block).map_or(replicas.len(), |b| b.1 as usize);
                let twice = replicas.iter().filter(|&&w| w == worker).count() > 1;
                assert!(!twice && replicas.len() <= wanted, "{block:?}: {replicas:?}");
            }
        }
    }
}
