//! Table of HDFS blocks at the namenode: the workers that have a replica of each block.
//!
//! The input of all jobs is in HDFS from the start of the run; the output of a task is in HDFS when
//! the task has ended. Output is deleted only if its job fails. The initial replicas of a job's
//! input splits are drawn from the job's random stream, and drawn again when needed. The table
//! holds only the splits that have lost or gained a replica since the start.

use super::context::Context;
use super::file::Written;
use super::note::Note;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A block of a file in HDFS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Block {
    /// Input split of a map, which is one block.
    Split {
        /// Number of the job that reads the split.
        job: u32,
        /// Number of the map within its job, from 0.
        map: u32,
    },
    /// Block of a file that a task or a stand-alone client has written.
    Output {
        /// Number of the job that writes the block.
        job: u32,
        /// Number of the task or client within its job, from 0.
        task: u32,
        /// Number of the block within its file, from 0.
        number: u32,
    },
}

/// Table of blocks at the namenode: written output, and input splits whose replicas have changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Blocks {
    /// Blocks of every complete file that was written to HDFS, by (job, task).
    written: BTreeMap<(u32, u32), Vec<Written>>,
    /// Workers that have a replica of an input split, by (job, map). Holds only splits whose
    /// replicas have changed since the start of the run.
    moved: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Blocks {
    /// Returns the splits of a job whose replicas have changed: for each the number of the map and
    /// the workers with a replica.
    pub fn moved_of(&self, job: u32) -> impl Iterator<Item = (u32, &[u32])> {
        let all = self.moved.range((job, 0)..=(job, u32::MAX));
        all.map(|(&(_, map), replicas)| (map, &replicas[..]))
    }

    /// Removes the output of a failed job from the table of blocks.
    pub fn delete_output(&mut self, job: u32) {
        self.written.retain(|&(of, _), _| of != job);
    }

    /// Adds the blocks of a complete file to the table; `file` is (job, task). The file of a task
    /// that ran again replaces the earlier one.
    pub fn keep(&mut self, file: (u32, u32), blocks: Vec<Written>) {
        self.written.insert(file, blocks);
    }

    /// Returns the size in bytes, the wanted number of replicas and the workers with a replica of a
    /// block; `None` if the block does not exist, or if it is a split whose replicas have never
    /// changed.
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

    /// Stores the workers that now have a replica of a block.
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

    /// Returns all blocks with a replica on a worker, each with all workers that have a replica.
    pub fn on(&self, cx: &Context, worker: u32) -> Vec<(Block, Vec<u32>)> {
        let mut found = Vec::new();
        for job in 0..cx.config.jobs.len() as u32 {
            for (map, placed) in (0..).zip(placed(cx, job)) {
                let held = self.moved.get(&(job, map)).unwrap_or(&placed);
                // An empty split has no block in HDFS.
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

/// Returns the workers with the initial replicas of each split of a job, map by map.
fn placed(cx: &Context, job: u32) -> impl Iterator<Item = Vec<u32>> + '_ {
    let spec = cx.spec(job);
    let splits = if spec.bytes.input > 0 && spec.clients.is_none() { spec.maps } else { 0 };
    let mut stream = cx.stream("placement", job, 0);
    let copies = cx.config.hdfs.replication;
    (0..splits).map(move |_| cx.racks.place(None, copies, &mut stream))
}
