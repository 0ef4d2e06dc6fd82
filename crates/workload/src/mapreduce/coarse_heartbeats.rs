//! Heartbeats of Hadoop 1 in approximate runs: they are no messages, and only those that have an effect are
//! simulated.
//!
//! A worker's heartbeats arrive at the master at phase + delay + k · interval, as they would if all
//! were sent; an answer takes the delay once more. One matters if it brings a report, if it can take
//! a waiting task, or if reduces of its worker are to hear of finished maps. For the first and last
//! reason a worker is due at its next arrival. For the second the master asks, while tasks wait,
//! those with free slots one after another in the order of their arrivals: a choice costs the
//! logarithm of the number of workers, and an idle cluster costs nothing.
//!
//! Differences from Hadoop: a heartbeat tells what is so when it arrives, not when it left; none is delayed or
//! lost on its way.

use super::config::{Framework, MapReduceConfig};
use super::context::Context;
use super::scheduler::SchedulerKind;
use super::timer::Timer;
use eastwest_engine::random::Stream;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Arrival times of heartbeats, and the workers that may be given tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoarseHeartbeats {
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

impl CoarseHeartbeats {
    /// Returns the state for this number of workers, with all slots free, if heartbeats are no messages in this
    /// run.
    pub fn new(config: &MapReduceConfig, workers: usize, seed: u64) -> Option<CoarseHeartbeats> {
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
        Some(CoarseHeartbeats {
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

    /// How long a heartbeat or its answer takes.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Schedules the worker's next heartbeat, which has an effect.
    pub fn soon(&mut self, cx: &mut Context, worker: u32) {
        if !std::mem::replace(&mut self.due[worker as usize], true) {
            cx.wake(self.after(worker, cx.now), Timer::Heartbeat(worker));
        }
    }

    /// Notes that a scheduled heartbeat has arrived.
    pub fn arrived(&mut self, worker: u32) {
        self.due[worker as usize] = false;
    }

    /// Notes the free slots of a worker.
    pub fn slots_changed(&mut self, worker: u32, slots: [u32; 2]) {
        let place = self.place[worker as usize];
        for (free, slots) in self.free.iter_mut().zip(slots) {
            match slots {
                0 => free.remove(&place),
                _ => free.insert(place),
            };
        }
    }

    /// Schedules the next heartbeat of a worker that could take waiting tasks of these kinds.
    pub fn schedule_assignment(&mut self, cx: &mut Context, wanted: [bool; 2]) {
        if wanted == [false; 2] || (self.asks.is_some() && self.wanted == wanted) {
            return;
        }
        self.wanted = wanted;
        let Some(next) = self.next_free(wanted, cx.now) else { return };
        if self.asks.is_none_or(|asks| next < asks) {
            self.asks = Some(next);
            cx.wake(next, Timer::Ask);
        }
    }

    /// Returns the workers whose scheduled heartbeat takes waiting tasks now.
    pub fn workers_due(&mut self, now: Time) -> Vec<u32> {
        if self.asks != Some(now) {
            return Vec::new();
        }
        self.asks = None;
        self.arriving(now)
    }
}
