//! Who watches a run on several threads, and what is handed to them.

use crate::progress::Progress;
use crate::world::World;
use eastwest_types::{Span, Time};
use serde::Serialize;

/// All parts of a run between two windows, to be written down.
#[derive(Serialize)]
pub struct PartsNow<'a> {
    /// Its parts.
    pub(super) worlds: Vec<&'a World>,
    pub(super) lookahead: Span,
    pub(super) until: Time,
    pub(super) total: u64,
    pub(super) background: &'a [bool],
}

impl PartsNow<'_> {
    /// How far they are.
    pub fn now(&self) -> Time {
        self.worlds.iter().map(|world| world.site.network.now).max().unwrap_or(Time::ZERO)
    }
}

/// Who watches a run.
pub trait Watcher {
    /// Is told now and then how far it is.
    fn look(&mut self, progress: &Progress) -> Wish;

    /// Gets all parts, where it wished so.
    fn keep(&mut self, parts: &PartsNow);
}

/// What whoever watches a run wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// That it goes on.
    pub go_on: bool,
    /// That it is kept as it is now, before it goes on or stops.
    pub keep: bool,
}

impl<F: FnMut(&Progress) -> bool> Watcher for F {
    fn look(&mut self, progress: &Progress) -> Wish {
        Wish { go_on: self(progress), keep: false }
    }

    fn keep(&mut self, _: &PartsNow) {}
}
