//! Heartbeats of Hadoop 1 in approximate runs: they are not sent as messages, and only heartbeats
//! with an effect are simulated.
//!
//! A worker's heartbeats arrive at the master at phase + delay + k · interval, like heartbeats sent
//! as messages; an answer takes the delay once more. A heartbeat has an effect in three cases: it
//! brings a report, its worker can run a waiting task, or reduces of its worker learn of finished
//! maps. For reports and finished maps, the worker's next heartbeat is scheduled. While tasks wait,
//! the master visits the workers with free slots in the order of their heartbeats: a choice costs
//! the logarithm of the number of workers, and an idle cluster costs nothing.
//!
//! Differences from Hadoop: a heartbeat reports the state at its arrival, not at its departure; no
//! heartbeat is delayed or lost in the network.

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
    /// One-way delay of a heartbeat from a worker to the master, and of the answer back.
    delay: Span,
    interval: Span,
    /// Arrival time at the master of each worker's first heartbeat, by worker number.
    first: Vec<Time>,
    /// Workers in the order in which their heartbeats arrive within an interval: (arrival time
    /// modulo the heartbeat interval, worker).
    ring: Vec<(Span, u32)>,
    /// Index of each worker in `ring`, by worker number.
    place: Vec<u32>,
    /// Indices in `ring` of the workers with free slots: first for maps, then for reduces.
    free: [BTreeSet<u32>; 2],
    /// Whether a wake-up for the worker's next heartbeat is scheduled, by worker number.
    due: Vec<bool>,
    /// Time of the scheduled heartbeat at which the next worker with free slots gets waiting tasks;
    /// `None` if not scheduled.
    asks: Option<Time>,
    /// Whether maps and whether reduces waited for a slot when `asks` was set.
    wanted: [bool; 2],
}

impl CoarseHeartbeats {
    /// Returns the heartbeat schedule of `workers` workers, with all slots free; `None` if this run
    /// sends heartbeats as messages.
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

    /// Returns the arrival time of a worker's first heartbeat after `time`.
    fn after(&self, worker: u32, time: Time) -> Time {
        let first = self.first[worker as usize];
        if time < first {
            return first;
        }
        let whole = (time.0 - first.0) / self.interval.0 + 1;
        first + self.interval * whole
    }

    /// Returns the time of the first heartbeat after `time` from a worker with free slots for
    /// waiting tasks; `wanted`: whether maps and whether reduces wait.
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

    /// Returns the workers whose heartbeats arrive at the present time.
    fn arriving(&self, now: Time) -> Vec<u32> {
        let within = Span(now.0 % self.interval.0);
        let from = self.ring.partition_point(|&(at, _)| at < within);
        let same = self.ring[from..].iter().take_while(|&&(at, _)| at == within);
        same.map(|&(_, worker)| worker).filter(|&w| self.first[w as usize] <= now).collect()
    }

    /// Returns the one-way delay of a heartbeat; the answer takes the same time.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Schedules a wake-up for the worker's next heartbeat, unless one is scheduled already.
    pub fn soon(&mut self, cx: &mut Context, worker: u32) {
        if !std::mem::replace(&mut self.due[worker as usize], true) {
            cx.wake(self.after(worker, cx.now), Timer::Heartbeat(worker));
        }
    }

    /// Marks the scheduled heartbeat of a worker as arrived at the master.
    pub fn arrived(&mut self, worker: u32) {
        self.due[worker as usize] = false;
    }

    /// Stores whether a worker has free slots; `slots` are its numbers of free map and reduce
    /// slots.
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
    /// this time; otherwise none.
    pub fn workers_due(&mut self, now: Time) -> Vec<u32> {
        if self.asks != Some(now) {
            return Vec::new();
        }
        self.asks = None;
        self.arriving(now)
    }
}
