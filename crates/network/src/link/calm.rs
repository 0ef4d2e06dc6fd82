//! Ports with RED at which nothing can be signalled for a while.
//!
//! RED's average moves with every packet, but slowly: from below `min` it takes many packets to get
//! there. While fewer than `most` packets are held, an arrival raises it by less than `weight · most`,
//! so that as many arrivals as fit into what is left to `min` need no decision. They are only noted,
//! and RED follows all of them at once, with the same steps on the same numbers as if it had been asked
//! each time. With `weight = 1` the average is the queue of the moment, and nothing needs to be noted.
//!
//! A calm port does not know what has begun to be sent either ([`begun`](super::begun)); what waited
//! before an arrival follows from the notes. It learns it again from its ring where it must decide.

use crate::queue::{Average, Discipline, Queue};
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Arrivals noted before RED is told at the latest: few enough to stay in the cache.
const MOST_NOTES: u32 = 32;
/// For fewer it is not worth becoming calm.
const LEAST_NOTES: u32 = 8;

/// An arrival.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Note {
    now: Time,
    /// When the port had sent all that came before.
    clear_at: Time,
}

impl Note {
    /// When it began to be sent.
    fn start(self) -> Time {
        self.now.max(self.clear_at)
    }
}

/// What a port keeps for its calm times.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Calm {
    pub(super) is_calm: bool,
    /// Whether RED has to follow arrivals.
    pub(super) notes_all: bool,
    /// Arrivals that surely need no decision.
    left: u32,
    /// As long as fewer packets than this are held.
    pub(super) most: u32,
    /// How many notes RED has been told; their packets may still wait.
    told: u32,
    notes: Vec<Note>,
}

impl Calm {
    /// For a port with this discipline, if it can ever be calm.
    pub fn new(queue: &mut Queue, mtu: u32) -> Option<Box<Calm>> {
        let average = queue.steady_average()?;
        let (notes_all, most) = (average.follows(), average.calm_below(mtu));
        let (left, told, notes) = (0, 0, Vec::new());
        (most > 1).then(|| Box::new(Calm { is_calm: false, notes_all, left, most, told, notes }))
    }

    /// An arrival that finds `held` packets, if it needs no decision.
    #[inline(always)]
    pub fn takes(&mut self, held: usize, now: Time, clear_at: Time) -> bool {
        if self.left == 0 || held >= self.most as usize {
            return false;
        }
        self.left -= 1;
        if self.notes_all {
            self.notes.push(Note { now, clear_at });
        }
        true
    }

    /// Tells RED what it has not been told. Notes of packets that wait no more are dropped.
    fn tell(&mut self, average: &mut Average) {
        let mut begun = 0;
        for place in self.told as usize..self.notes.len() {
            let Note { now, clear_at } = self.notes[place];
            while begun < place && self.notes[begun].start() <= now {
                begun += 1;
            }
            let idle = (clear_at <= now).then(|| now.since(clear_at));
            average.follow((place - begun) as f64, idle);
        }
        self.notes.drain(..begun);
        self.told = self.notes.len() as u32;
    }

    /// Tells RED what it missed. Returns whether no decision is needed for a while still, with `held`
    /// packets; else the notes are gone.
    pub fn stays(&mut self, average: &mut Average, held: usize) -> bool {
        self.tell(average);
        self.left = average.calm_for(self.most).min(MOST_NOTES);
        if self.left >= LEAST_NOTES && held < self.most as usize {
            return true;
        }
        (self.is_calm, self.left, self.told) = (false, 0, 0);
        self.notes.clear();
        false
    }

    /// The number of arrivals that need no decision, if they are enough to become calm.
    pub fn can_begin(&self, average: &Average) -> Option<u32> {
        Some(average.calm_for(self.most)).filter(|left| *left >= LEAST_NOTES)
    }

    /// The next `left` arrivals need no decision.
    pub fn begin(&mut self, left: u32) {
        self.is_calm = true;
        self.left = if self.notes_all { left.min(MOST_NOTES) } else { left };
    }

    /// Notes a packet that waits, of which RED knows.
    pub fn note_known(&mut self, start: Time) {
        self.notes.push(Note { now: start, clear_at: start });
        self.told += 1;
    }
}
