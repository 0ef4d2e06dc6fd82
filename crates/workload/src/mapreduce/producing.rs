//! Progress of a task that computes output for HDFS.

use super::shares::share;
use eastwest_types::Rate;
use serde::{Deserialize, Serialize};

/// Progress of a task that computes output for HDFS in pieces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Producing {
    /// Bytes on which the map or reduce function works.
    pub work: u64,
    /// Rate of the map or reduce function: bytes of `work` per CPU time.
    pub rate: Rate,
    /// Input bytes that are read from the worker's own disks.
    pub read: u64,
    /// Size of the task's whole output in bytes.
    pub output: u64,
    /// Number of pieces into which the function's work is divided.
    pub pieces: u32,
    /// Number of finished pieces of the function.
    pub done: u32,
    /// Number of the HDFS writer of the output; `None` if the task writes nothing.
    pub writer: Option<u32>,
}

impl Producing {
    /// Returns the output bytes of the piece that has just finished. The last pieces get the
    /// remainder of the division, so that a file is not complete before its function has finished.
    pub fn part_done(&self) -> u64 {
        share(self.output, self.pieces, self.pieces - self.done)
    }

    /// Returns the progress of a task's function, from 0 to 1; `piece` is the finished fraction of
    /// its running piece.
    pub fn share_done(&self, piece: f64) -> f64 {
        let running = if self.done < self.pieces { piece } else { 0.0 };
        (f64::from(self.done) + running) / f64::from(self.pieces)
    }
}
