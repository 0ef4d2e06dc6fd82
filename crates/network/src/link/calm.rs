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

use super::{Link, Passage};
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
    is_calm: bool,
    /// Whether RED has to follow arrivals.
    notes_all: bool,
    /// Arrivals that surely need no decision.
    left: u32,
    /// As long as fewer packets than this are held.
    most: u32,
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

    /// Notes a packet that waits, of which RED knows.
    fn note_known(&mut self, start: Time) {
        self.notes.push(Note { now: start, clear_at: start });
        self.told += 1;
    }
}

impl Link {
    #[cfg(test)]
    pub(super) fn is_calm(&self) -> bool {
        self.calm.as_ref().is_some_and(|calm| calm.is_calm)
    }

    /// When the packet at this place of the ring begins to be sent, or began.
    fn start_of(&self, held: &Passage) -> Time {
        held.arrive.before(self.delay + self.send_time(u32::from(held.ip_len)))
    }

    /// At a calm port that can no longer take packets unseen: tells RED what it missed. The port stays
    /// calm where the average allows it, and otherwise knows again what has begun.
    pub(super) fn look_up(&mut self) {
        let Some(calm) = self.calm.as_mut().filter(|c| c.is_calm) else { return };
        let average = self.queue.steady_average().expect("only ports with RED are calm");
        calm.tell(average);
        calm.left = average.calm_for(calm.most).min(MOST_NOTES);
        if calm.left >= LEAST_NOTES && self.on_wire.len() < calm.most as usize {
            return;
        }
        (calm.is_calm, calm.left, calm.told) = (false, 0, 0);
        calm.notes.clear();
        self.keeps_begun = true;
        self.next_start = self.on_wire.get(0).map_or(Time::NEVER, |held| self.start_of(held));
    }

    /// Becomes calm if the packet that was just let in has left the queue short and the average low.
    #[inline]
    pub(super) fn calm_down(&mut self) {
        let Some(calm) = &self.calm else { return };
        let most = calm.most;
        if self.on_wire.len() as u32 > most / 2 {
            return; // where it comes and goes, both ways cost
        }
        let average = self.queue.steady_average().expect("only ports with RED are calm");
        let left = average.calm_for(most);
        if left >= LEAST_NOTES {
            self.begin_calm(left);
        }
    }

    #[inline(never)]
    fn begin_calm(&mut self, left: u32) {
        let mut calm = self.calm.take().expect("it has been looked at");
        calm.is_calm = true;
        calm.left = left;
        if calm.notes_all {
            calm.left = left.min(MOST_NOTES);
            for place in self.begun..self.on_wire.len() as u32 {
                let held = self.on_wire.get(place).expect("it was counted");
                calm.note_known(self.start_of(held));
            }
        }
        self.keeps_begun = false;
        (self.begun, self.begun_bytes, self.next_start) = (0, 0, Time::NEVER);
        self.calm = Some(calm);
    }
}
