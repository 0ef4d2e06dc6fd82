//! Progress of a task that computes output.

use super::shares::share;
use eastwest_types::Rate;
use serde::{Deserialize, Serialize};

/// State of a task that computes its output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Producing {
    /// Bytes that the map or reduce function works on.
    pub work: u64,
    /// Rate of the map or reduce function.
    pub rate: Rate,
    /// Bytes read from the worker's disks.
    pub read: u64,
    /// Bytes of the whole output.
    pub output: u64,
    /// Number of pieces of the function.
    pub pieces: u32,
    /// Number of finished pieces.
    pub done: u32,
    /// Number of the writer of the output, if there is any output.
    pub writer: Option<u32>,
}

impl Producing {
    /// Returns the output bytes of the piece that has just finished. Remainders go to the last
    /// pieces: a file is never complete before its function has finished.
    pub fn part_done(&self) -> u64 {
        share(self.output, self.pieces, self.pieces - self.done)
    }

    /// Returns the progress of the function, from 0 to 1, given the finished fraction of the
    /// running piece.
    pub fn share_done(&self, piece: f64) -> f64 {
        let running = if self.done < self.pieces { piece } else { 0.0 };
        (f64::from(self.done) + running) / f64::from(self.pieces)
    }
}
