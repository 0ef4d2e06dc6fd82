//! Heartbeats of Hadoop 1 that are no messages, and of which only those are looked at that matter.
//!
//! A worker's heartbeats arrive at the master at phase + delay + k · interval, as they would if all
//! were sent; an answer takes the delay once more. One matters if it brings a report, if it can take
//! a waiting task, or if reduces of its worker are to hear of finished maps. For the first and last
//! reason a worker is due at its next arrival. For the second the master asks, while tasks wait,
//! those with free slots one after another in the order of their arrivals: a choice costs the
//! logarithm of the number of workers, and an idle cluster costs nothing.
//!
//! Departures: a heartbeat tells what is so when it arrives, not when it left; none is delayed or
//! lost on its way.

use super::config::{Framework, MapReduceConfig};
use super::scheduler::{SchedulerKind, index};
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{Span, TaskKind, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// When heartbeats arrive, and who may be given tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Beats {
    /// From a worker to the master, and back.
    delay: Span,
    interval: Span,
    /// When the first heartbeat of each worker arrives.
    first: Vec<Time>,
    /// Workers in the order of their arrivals within an interval, with the time from its beginning.
    ring: Vec<(Span, u32)>,
    /// Where each worker is in it.
    place: Vec<u32>,
    /// Places of workers with free slots, by kind.
    free: [BTreeSet<u32>; 2],
    /// Whether a worker's next arrival is waited for.
    due: Vec<bool>,
    /// When the next worker is asked whether it takes waiting tasks.
    asks: Option<Time>,
    /// Kinds of tasks that waited when that was decided.
    wanted: [bool; 2],
}

impl Beats {
    /// For so many workers, all slots of which are free, if heartbeats are to be no messages.
    pub fn new(config: &MapReduceConfig, workers: usize, seed: u64) -> Option<Beats> {
        let delay = config.coarse.heartbeats?;
        let plain = config.framework == Framework::Mr1
            && config.scheduler != SchedulerKind::Quincy
            && !config.control.out_of_band_heartbeat;
        if !plain {
            return None;
        }
        let interval = config.control.heartbeat;
        let mut phase = Stream::new(seed, "mapreduce/heartbeat");
        let first: Vec<Time> =
            (0..workers).map(|_| Time::ZERO + phase.within(interval) + delay).collect();
        let within = |at: Time| Span(at.0 % interval.0);
        let mut ring: Vec<(Span, u32)> =
            (0..).zip(&first).map(|(w, &at)| (within(at), w)).collect();
        ring.sort_unstable();
        let mut place = vec![0; workers];
        for (at, &(_, worker)) in (0..).zip(&ring) {
            place[worker as usize] = at;
        }
        let all: BTreeSet<u32> = (0..workers as u32).collect();
        let free = [all.clone(), all];
        let due = vec![false; workers];
        Some(Beats {
            delay,
            interval,
            first,
            ring,
            place,
            free,
            due,
            asks: None,
            wanted: [false; 2],
        })
    }

    /// The worker's first heartbeat that arrives after a time.
    fn after(&self, worker: u32, time: Time) -> Time {
        let first = self.first[worker as usize];
        if time < first {
            return first;
        }
        let whole = (time.0 - first.0) / self.interval.0 + 1;
        first + self.interval * whole
    }

    /// The worker with free slots for wanted tasks whose heartbeat arrives next after a time.
    fn next_free(&self, wanted: [bool; 2], time: Time) -> Option<Time> {
        let within = Span(time.0 % self.interval.0);
        let from = self.ring.partition_point(|&(at, _)| at <= within) as u32;
        let first = |k: usize| {
            let places = &self.free[k];
            places.range(from..).next().or_else(|| places.iter().next()).copied()
        };
        let kinds = (0..2).filter(|&k| wanted[k]).filter_map(first);
        kinds.map(|place| self.after(self.ring[place as usize].1, time)).min()
    }

    /// Workers whose heartbeats arrive now.
    fn arriving(&self, now: Time) -> Vec<u32> {
        let within = Span(now.0 % self.interval.0);
        let from = self.ring.partition_point(|&(at, _)| at < within);
        let same = self.ring[from..].iter().take_while(|&&(at, _)| at == within);
        same.map(|&(_, worker)| worker).filter(|&w| self.first[w as usize] <= now).collect()
    }
}

impl MapReduce {
    /// The worker's next heartbeat matters.
    pub(super) fn beat_soon(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let Some(beats) = &mut self.beats else { return };
        if !std::mem::replace(&mut beats.due[worker as usize], true) {
            out.push(Timer::Heartbeat(worker).at(beats.after(worker, now)));
        }
    }

    /// A worker's free slots have changed.
    pub(super) fn slots_changed(&mut self, worker: u32) {
        let Some(beats) = &mut self.beats else { return };
        let place = beats.place[worker as usize];
        for kind in [TaskKind::Map, TaskKind::Reduce] {
            let k = index(kind);
            match self.workers[worker as usize].free[k] {
                0 => beats.free[k].remove(&place),
                _ => beats.free[k].insert(place),
            };
        }
    }

    /// At the master: a heartbeat that matters has arrived, unless it was looked at just now.
    pub(super) fn beat(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let Some(beats) = &mut self.beats else { return };
        beats.due[worker as usize] = false;
        let w = &mut self.workers[worker as usize];
        if w.heard < now {
            w.reported = std::mem::take(&mut w.finished);
            w.free_sent = w.free;
            self.heartbeat_arrived(now, worker, out);
        }
    }

    /// At the master: the answer to a heartbeat leaves, if it says anything.
    pub(super) fn answer_beat(&self, now: Time, worker: u32, delay: Span, out: &mut Vec<Action>) {
        let w = &self.workers[worker as usize];
        if !w.assigned.is_empty() || !w.map_events.is_empty() {
            out.push(Timer::Answer(worker).at(now + delay));
        }
    }

    /// How long a heartbeat or its answer takes, if they are no messages.
    pub(super) fn beat_delay(&self) -> Option<Span> {
        self.beats.as_ref().map(|beats| beats.delay)
    }

    fn wanted(&self) -> [bool; 2] {
        [TaskKind::Map, TaskKind::Reduce]
            .map(|kind| self.scheduler.waiting(kind) > 0 || self.speculation.wants(index(kind)))
    }

    /// Has the next worker asked that could take waiting tasks.
    pub(super) fn seek_takers(&mut self, now: Time, out: &mut Vec<Action>) {
        if self.beats.is_none() || self.finished {
            return;
        }
        let wanted = self.wanted();
        let beats = self.beats.as_mut().expect("it was looked at");
        if wanted == [false; 2] || (beats.asks.is_some() && beats.wanted == wanted) {
            return;
        }
        beats.wanted = wanted;
        let Some(next) = beats.next_free(wanted, now) else { return };
        if beats.asks.is_none_or(|asks| next < asks) {
            beats.asks = Some(next);
            out.push(Timer::Ask.at(next));
        }
    }

    /// It is the turn of a worker to take waiting tasks.
    pub(super) fn ask_takers(&mut self, now: Time, out: &mut Vec<Action>) {
        let Some(beats) = self.beats.as_mut().filter(|beats| beats.asks == Some(now)) else {
            return; // another one's turn came before
        };
        beats.asks = None;
        for worker in beats.arriving(now) {
            if !self.finished && self.wanted() != [false; 2] {
                self.beat(now, worker, out);
            }
        }
    }
}
