//! Assignment: what the answer to a heartbeat gives the worker to do.
//!
//! As in Hadoop 1's JobQueueTaskScheduler maps fill the free slots of the worker; with the plain
//! schedulers one without its split in the rack ends the maps of an answer; reduces are limited to
//! `reduces_per_heartbeat`. With `spread` a worker of `s` slots is given tasks only up to
//! ⌈s · (waiting + running) / all slots⌉ running ones; Quincy spreads by itself.

use super::MapReduce;
use super::config::Framework;
use super::memory::Memory;
use super::scheduler::{Jobs, SchedulerKind, index};
use super::shuffle::Fetching;
use super::task::Task;
use eastwest_types::{Locality, TaskKind, Time};

impl MapReduce {
    /// How many tasks of a kind the worker may be given, by its free slots and the even spread.
    fn room(&self, worker: u32, kind: TaskKind) -> u32 {
        let k = index(kind);
        let control = &self.config.control;
        let slots = [self.config.map_slots, self.config.reduce_slots][k];
        let most = [control.maps_per_heartbeat, control.reduces_per_heartbeat][k];
        if self.config.framework == Framework::Yarn {
            return self.node_room(worker, kind).min(most);
        }
        let free = self.workers[worker as usize].free_sent[k];
        let planned = kind == TaskKind::Map && self.config.scheduler == SchedulerKind::Quincy;
        let cap = if control.spread && !planned {
            let all = u128::from(slots) * self.workers.len() as u128;
            let tasks = self.scheduler.waiting(kind) + self.scheduler.running(kind);
            let wanted = u128::from(slots) * u128::from(tasks);
            wanted.div_ceil(all).min(u128::from(slots)) as u32
        } else {
            slots
        };
        free.min(cap.saturating_sub(slots - free)).min(most)
    }

    pub(super) fn assign_maps(&mut self, now: Time, worker: u32) {
        let free = match self.config.framework {
            Framework::Mr1 => self.workers[worker as usize].free_sent[index(TaskKind::Map)],
            Framework::Yarn => self.node_room(worker, TaskKind::Map),
        };
        let room = self.room(worker, TaskKind::Map);
        let copies = self.give_copies(worker, TaskKind::Map, room);
        self.scheduler.asked(now, worker, free - copies);
        let plain = self.config.scheduling.delay.is_none()
            && matches!(self.config.scheduler, SchedulerKind::Fifo | SchedulerKind::Fair);
        for _ in copies..room {
            let next = self.scheduler.next_map(worker, &self.racks, &mut self.jobs);
            let Some((job, map)) = next else { return };
            let locality = self.jobs.maps(job).locality(map, worker, &self.racks);
            let bytes_in = self.spec(job).split_bytes(map);
            self.job(job).maps_given += 1;
            self.give_out(worker, (job, map, TaskKind::Map), locality, bytes_in);
            if locality == Locality::Remote && plain {
                return;
            }
        }
    }

    pub(super) fn assign_reduces(&mut self, worker: u32) {
        let room = self.room(worker, TaskKind::Reduce);
        let copies = self.give_copies(worker, TaskKind::Reduce, room);
        for _ in copies..room {
            let Some(job) = self.scheduler.pick(TaskKind::Reduce) else { return };
            if self.config.framework == Framework::Yarn && !self.may_reduce(worker, job) {
                return;
            }
            let state = self.job(job);
            let reduce = state.reduces_back.pop().unwrap_or_else(|| {
                state.next_reduce += 1;
                state.next_reduce - 1
            });
            state.reduces_given += 1;
            self.scheduler.started(TaskKind::Reduce, job);
            self.give_out(worker, (job, reduce, TaskKind::Reduce), Locality::None, 0);
        }
    }

    /// Puts a task into the answer to a worker.
    pub(super) fn give_out(
        &mut self,
        worker: u32,
        (job, task, kind): (u32, u32, TaskKind),
        locality: Locality,
        bytes_in: u64,
    ) {
        let maps = self.spec(job).maps;
        let mut given = Task::new((job, task, kind), worker);
        (given.locality, given.bytes_in) = (locality, bytes_in);
        given.fetching = (kind == TaskKind::Reduce).then(|| {
            let order = self.stream("fetch", job, task);
            let memory = Memory::new(&self.config.shuffle, &self.config.sort);
            Box::new(match self.config.coarse.fetches {
                None => Fetching::new(maps, order, memory),
                Some(_) => Fetching::in_parts((maps, self.job(job).part_maps), order, memory),
            })
        });
        let slot = self.tasks.add(given);
        if self.config.framework == Framework::Yarn {
            self.grant(worker, slot, (job, kind));
            return;
        }
        let w = &mut self.workers[worker as usize];
        w.assigned.push(slot);
        if kind == TaskKind::Reduce {
            w.reduces.push(slot);
            if self.beats.is_some() {
                self.job(job).reducers.push(worker);
            }
        }
    }
}
