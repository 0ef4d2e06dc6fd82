//! Work on dedicated cores and disks. If every task has its own core and every stream of data its
//! own disk, the end of a piece of work is known at its start. A piece of work then needs one
//! wake-up, and all parallel parts of a step together need one.
//!
//! Used only in approximate runs, in which the number of events matters. Work ends at the times at
//! which it would end in [`super::resource`] with a core or disk for each piece of work. Not used
//! with speculation, which needs the progress of running work.

use super::config::MapReduceConfig;
use super::timer::Timer;
use super::work::Work;
use crate::protocol::Action;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Table of running pieces of work on dedicated cores and disks; slots of finished work are used
/// again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Dedicated {
    pieces: Vec<Option<Work>>,
    free: Vec<u32>,
}

impl Dedicated {
    /// Returns the empty table of running work, if cores and disks are not shared, the run is
    /// approximate and there is no speculation; otherwise `None`.
    pub fn new(config: &MapReduceConfig) -> Option<Dedicated> {
        let node = &config.node;
        let shares = node.cores.is_some() || node.disks.is_some() || node.dirty_bytes > 0;
        let watched = config.speculation.maps || config.speculation.reduces;
        (config.coarse.is_on() && !shares && !watched).then(Dedicated::default)
    }

    /// Starts a piece of work that ends at the time `end`.
    pub fn start(&mut self, end: Time, what: Work, out: &mut Vec<Action>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.pieces.push(None);
            self.pieces.len() as u32 - 1
        });
        self.pieces[place as usize] = Some(what);
        out.push(Timer::Dedicated(place).at(end));
    }

    /// Removes the finished piece of work in the slot `place` of the table. Returns its purpose.
    pub fn ended(&mut self, place: u32) -> Work {
        self.free.push(place);
        self.pieces[place as usize].take().expect("a piece ends once")
    }

    /// Returns the number of running pieces of work on dedicated cores and disks.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.pieces.len() - self.free.len()
    }
}
