//! Heartbeats of Hadoop 1 in approximate runs: they are not sent as messages, and only heartbeats
//! with an effect are simulated.
//!
//! A worker's heartbeats arrive at the master at phase + delay + k · interval, as real messages
//! would; an answer takes the delay once more. A heartbeat has an effect if it brings a report, if
//! its worker can take a waiting task, or if reduces of its worker learn of finished maps. In the
//! first and last case the worker's next arrival is scheduled. In the second case, while tasks
//! wait, the master goes through the workers with free slots in the order of their arrivals: a
//! choice costs the logarithm of the number of workers, and an idle cluster costs nothing.
//!
//! Differences from Hadoop: a heartbeat reports the state at its arrival, not at its departure;
//! none is delayed or lost in the network.

use super::config::{Framework, MapReduceConfig};
use super::context::Context;
use super::scheduler::SchedulerKind;
use super::timer::Timer;
use eastwest_engine::random::Stream;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Heartbeats that are computed instead of sent as messages: their arrival times at the master, and
/// the workers with free slots.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoarseHeartbeats {
    /// Delay from a worker to the master, and back.
    delay: Span,
    interval: Span,
    /// Arrival time of the first heartbeat of each worker.
    first: Vec<Time>,
    /// Workers in the order of their arrivals within an interval, with the time from its beginning.
    ring: Vec<(Span, u32)>,
    /// Index of each worker in `ring`.
    place: Vec<u32>,
    /// Indices in `ring` of workers with free slots, by kind of task.
    free: [BTreeSet<u32>; 2],
    /// Whether the next arrival of a worker is scheduled.
    due: Vec<bool>,
    /// Time at which the next worker is asked whether it takes waiting tasks.
    asks: Option<Time>,
    /// Kinds of tasks that waited when `asks` was set.
    wanted: [bool; 2],
}

impl CoarseHeartbeats {
    /// Returns the state for this number of workers, with all slots free; `None` if this run sends
    /// heartbeats as messages.
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

    /// Returns the arrival of the worker's first heartbeat after a time.
    fn after(&self, worker: u32, time: Time) -> Time {
        let first = self.first[worker as usize];
        if time < first {
            return first;
        }
        let whole = (time.0 - first.0) / self.interval.0 + 1;
        first + self.interval * whole
    }

    /// Returns the first arrival after a time of a worker with free slots for wanted tasks.
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

    /// Returns the workers whose heartbeats arrive now.
    fn arriving(&self, now: Time) -> Vec<u32> {
        let within = Span(now.0 % self.interval.0);
        let from = self.ring.partition_point(|&(at, _)| at < within);
        let same = self.ring[from..].iter().take_while(|&&(at, _)| at == within);
        same.map(|&(_, worker)| worker).filter(|&w| self.first[w as usize] <= now).collect()
    }

    /// Returns the one-way delay of a heartbeat, which its answer takes too.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Schedules a wake-up for the worker's next heartbeat, because it will have an effect.
    pub fn soon(&mut self, cx: &mut Context, worker: u32) {
        if !std::mem::replace(&mut self.due[worker as usize], true) {
            cx.wake(self.after(worker, cx.now), Timer::Heartbeat(worker));
        }
    }

    /// Notes that the scheduled heartbeat of a worker has arrived at the master.
    pub fn arrived(&mut self, worker: u32) {
        self.due[worker as usize] = false;
    }

    /// Notes the numbers of free map and reduce slots of a worker.
    pub fn slots_changed(&mut self, worker: u32, slots: [u32; 2]) {
        let place = self.place[worker as usize];
        for (free, slots) in self.free.iter_mut().zip(slots) {
            match slots {
                0 => free.remove(&place),
                _ => free.insert(place),
            };
        }
    }

    /// Schedules a wake-up for the next heartbeat of a worker with free slots for waiting tasks;
    /// `wanted`: whether maps and whether reduces wait.
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

    /// Returns the workers whose heartbeats arrive now, if an assignment of tasks was scheduled for
    /// now; otherwise none.
    pub fn workers_due(&mut self, now: Time) -> Vec<u32> {
        if self.asks != Some(now) {
            return Vec::new();
        }
        self.asks = None;
        self.arriving(now)
    }
}
