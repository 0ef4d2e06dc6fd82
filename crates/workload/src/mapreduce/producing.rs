//! How far the part of a task is that computes output.

use super::shares::share;
use eastwest_types::Rate;
use serde::{Deserialize, Serialize};

/// A task that computes its output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Producing {
    /// Bytes the function computes on.
    pub work: u64,
    /// How fast.
    pub rate: Rate,
    /// Bytes read from the worker's disks.
    pub read: u64,
    /// Bytes of all output.
    pub output: u64,
    /// Pieces of the function.
    pub pieces: u32,
    /// Pieces that are through.
    pub done: u32,
    /// Who writes the output, if there is some.
    pub writer: Option<u32>,
}

impl Producing {
    /// Output of the piece that has just run. Odd bytes go to the last pieces: a file is never
    /// complete before its function is through.
    pub fn part_done(&self) -> u64 {
        share(self.output, self.pieces, self.pieces - self.done)
    }

    /// How far the function is when such a part of the running piece is done.
    pub fn share_done(&self, piece: f64) -> f64 {
        let running = if self.done < self.pieces { piece } else { 0.0 };
        (f64::from(self.done) + running) / f64::from(self.pieces)
    }
}
