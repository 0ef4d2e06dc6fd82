//! The namenode's table of blocks: where the replicas of every block are now.
//!
//! The input of all jobs lies in HDFS from the beginning, a job's output from the end of the task
//! that wrote it. Nothing is deleted but what a failed job has written and what attempts leave that
//! were killed. Where splits were placed follows from the job's stream and is drawn again when it is
//! needed: only splits that have lost or gained a replica since are in the table.

use super::context::Context;
use super::file::Written;
use super::note::Note;
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

/// All blocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Blocks {
    /// Blocks of every file that was written, by job and task.
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

    /// A file is complete. A task that ran again has written it anew.
    pub fn keep(&mut self, file: (u32, u32), blocks: Vec<Written>) {
        self.written.insert(file, blocks);
    }

    /// Size, replicas wanted and replicas of a block, if it is there. A split must have been moved.
    pub fn get(&self, cx: &Context, block: Block) -> Option<(u64, u32, &[u32])> {
        match block {
            Block::Split { job, map } => {
                let replicas = self.moved.get(&(job, map))?;
                let wanted = cx.config.hdfs.replication;
                Some((cx.spec(job).split_bytes(map), wanted, replicas))
            }
            Block::Output { job, task, number } => {
                let file = self.written.get(&(job, task))?;
                let block = file.get(number as usize)?;
                Some((block.bytes, block.wanted, &block.replicas))
            }
        }
    }

    /// The replicas of a block have changed.
    pub fn set(&mut self, cx: &mut Context, block: Block, replicas: Vec<u32>) {
        match block {
            Block::Split { job, map } => {
                cx.note(Note::SplitMoved { job, map, replicas: replicas.clone() });
                self.moved.insert((job, map), replicas);
            }
            Block::Output { job, task, number } => {
                if let Some(file) = self.written.get_mut(&(job, task)) {
                    file[number as usize].replicas = replicas;
                }
            }
        }
    }

    /// All blocks that have a replica on a worker, with all their replicas.
    pub fn on(&self, cx: &Context, worker: u32) -> Vec<(Block, Vec<u32>)> {
        let mut found = Vec::new();
        for job in 0..cx.config.jobs.len() as u32 {
            for (map, placed) in (0..).zip(placed(cx, job)) {
                let held = self.moved.get(&(job, map)).unwrap_or(&placed);
                // An empty split is no block.
                if held.contains(&worker) && cx.spec(job).split_bytes(map) > 0 {
                    found.push((Block::Split { job, map }, held.clone()));
                }
            }
        }
        for (&(job, task), file) in &self.written {
            for (number, block) in (0..).zip(file) {
                if block.replicas.contains(&worker) {
                    found.push((Block::Output { job, task, number }, block.replicas.clone()));
                }
            }
        }
        found
    }
}

/// Where the splits of a job were placed.
fn placed(cx: &Context, job: u32) -> impl Iterator<Item = Vec<u32>> + '_ {
    let spec = cx.spec(job);
    let splits = if spec.bytes.input > 0 && spec.clients.is_none() { spec.maps } else { 0 };
    let mut stream = cx.stream("placement", job, 0);
    let copies = cx.config.hdfs.replication;
    (0..splits).map(move |_| cx.racks.place(None, copies, &mut stream))
}
