//! The namenode's table of blocks: where the replicas of every block are now.
//!
//! The input of all jobs lies in HDFS from the beginning, a job's output from the end of the task
//! that wrote it. Nothing is deleted but what a failed job has written and what attempts leave that
//! were killed. Where splits were placed follows from the job's stream and is drawn again when it is
//! needed: only splits that have lost or gained a replica since are in the table.

use super::MapReduce;
use super::hdfs::Racks;
use crate::Action;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A block of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Block {
    /// The split of a map.
    Split {
        /// Its job.
        job: u32,
        /// The map.
        map: u32,
    },
    /// What a task or a client has written.
    Output {
        /// Its job.
        job: u32,
        /// The task.
        task: u32,
        /// Which block of its file.
        number: u32,
    },
}

/// A block that was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Written {
    /// Its size.
    pub bytes: u64,
    /// Replicas it should have.
    pub wanted: u32,
    /// Workers that have one.
    pub replicas: Vec<u32>,
}

/// All blocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Blocks {
    /// Of every file, by job and task.
    written: BTreeMap<(u32, u32), Vec<Written>>,
    /// Splits that are not where they were placed, by job and map.
    moved: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Blocks {
    /// Splits of a job that are not where they were placed.
    pub fn moved_of(&self, job: u32) -> impl Iterator<Item = (u32, &[u32])> {
        let all = self.moved.range((job, 0)..=(job, u32::MAX));
        all.map(|(&(_, map), replicas)| (map, &replicas[..]))
    }

    /// A job has failed: what it has written is deleted.
    pub fn delete_output(&mut self, job: u32) {
        self.written.retain(|&(of, _), _| of != job);
    }
}

impl MapReduce {
    /// A file is complete: its blocks are kept, without the replicas of datanodes that have died
    /// since their block was written. A task that ran again has written it anew.
    pub(super) fn keep_file(
        &mut self,
        now: Time,
        (job, task): (u32, u32),
        mut blocks: Vec<Written>,
        out: &mut Vec<Action>,
    ) {
        if blocks.is_empty() || self.config.coarse.is_on() {
            return; // a map of a job with reduces, a file of no bytes; or no block is ever lost
        }
        for (number, written) in (0..).zip(&mut blocks) {
            let block = Block::Output { job, task, number };
            written.replicas.retain(|&w| {
                let dead = self.workers[w as usize].dead;
                if dead {
                    self.replication.gone_with(w, block);
                }
                !dead
            });
        }
        let numbers = 0..blocks.len() as u32;
        self.blocks.written.insert((job, task), blocks);
        for number in numbers {
            self.judge_block(Block::Output { job, task, number });
        }
        self.replicate_soon(now, out);
    }

    /// Size, replicas wanted and replicas of a block, if it is there. A split must have been moved.
    pub(super) fn block(&self, block: Block) -> Option<(u64, u32, &[u32])> {
        match block {
            Block::Split { job, map } => {
                let replicas = self.blocks.moved.get(&(job, map))?;
                let wanted = self.config.hdfs.replication;
                Some((self.spec(job).split_bytes(map), wanted, replicas))
            }
            Block::Output { job, task, number } => {
                let file = self.blocks.written.get(&(job, task))?;
                let block = file.get(number as usize)?;
                Some((block.bytes, block.wanted, &block.replicas))
            }
        }
    }

    /// The replicas of a block have changed.
    pub(super) fn move_block(&mut self, block: Block, replicas: Vec<u32>) {
        match block {
            Block::Split { job, map } => {
                if let Some(state) = &mut self.jobs[job as usize] {
                    state.maps.moved(map, &replicas, &self.racks);
                }
                self.blocks.moved.insert((job, map), replicas);
            }
            Block::Output { job, task, number } => {
                if let Some(file) = self.blocks.written.get_mut(&(job, task)) {
                    file[number as usize].replicas = replicas;
                }
            }
        }
    }

    /// All blocks that have a replica on a worker, with all their replicas.
    pub(super) fn blocks_on(&self, worker: u32) -> Vec<(Block, Vec<u32>)> {
        let mut found = Vec::new();
        for job in 0..self.config.jobs.len() as u32 {
            for (map, placed) in (0..).zip(self.placed(job)) {
                let now = self.blocks.moved.get(&(job, map)).unwrap_or(&placed);
                // An empty split is no block.
                if now.contains(&worker) && self.spec(job).split_bytes(map) > 0 {
                    found.push((Block::Split { job, map }, now.clone()));
                }
            }
        }
        for (&(job, task), file) in &self.blocks.written {
            for (number, block) in (0..).zip(file) {
                if block.replicas.contains(&worker) {
                    found.push((Block::Output { job, task, number }, block.replicas.clone()));
                }
            }
        }
        found
    }

    /// Where the splits of a job were placed.
    fn placed(&self, job: u32) -> impl Iterator<Item = Vec<u32>> + '_ {
        let spec = self.spec(job);
        let splits = if spec.bytes.input > 0 && spec.clients.is_none() { spec.maps } else { 0 };
        let mut stream = self.stream("placement", job, 0);
        let copies = self.config.hdfs.replication;
        let racks: &Racks = &self.racks;
        (0..splits).map(move |_| racks.place(None, copies, &mut stream))
    }
}
