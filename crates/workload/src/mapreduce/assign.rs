//! Assignment of tasks to a worker, in the answer to the worker's heartbeat.
//!
//! As in Hadoop 1's JobQueueTaskScheduler, maps fill the free slots of the worker. With FIFO or
//! Fair without delay scheduling, an answer contains at most one map whose split has no replica in
//! the worker's rack; it is the last map of the answer. The number of reduces is limited to
//! `reduces_per_heartbeat`. With `spread`, a worker of `s` slots runs at most ⌈s · (waiting +
//! running tasks) / all slots⌉ tasks of a kind; Quincy has its own rule instead.

use super::config::Framework;
use super::control::Control;
use super::nodes::Nodes;
use super::report::Report;
use super::scheduler::{Jobs, SchedulerKind, index};
use super::shuffle::{Fetching, Reduce};
use super::task::Task;
use eastwest_types::{Locality, TaskKind};

impl Control {
    /// Returns the number of further tasks of a kind that fit on a worker: free slots, or on YARN
    /// free container resources, as the master knows them.
    fn free(&self, n: &Nodes, worker: u32, kind: TaskKind) -> u32 {
        match n.cx.config.framework {
            Framework::Mr1 => self.workers.free(worker, kind),
            Framework::Yarn => self.yarn.room(&n.cx.config.yarn, worker, kind),
        }
    }

    /// Returns the number of tasks of a kind that the master may assign to a worker in one answer:
    /// its free slots, limited by the settings of tasks per heartbeat and of `spread`.
    fn room(&self, n: &Nodes, worker: u32, kind: TaskKind) -> u32 {
        let k = index(kind);
        let control = &n.cx.config.control;
        let slots = [n.cx.config.map_slots, n.cx.config.reduce_slots][k];
        let most = [control.maps_per_heartbeat, control.reduces_per_heartbeat][k];
        let free = self.free(n, worker, kind);
        if n.cx.config.framework == Framework::Yarn {
            return free.min(most);
        }
        let planned = kind == TaskKind::Map && n.cx.config.scheduler == SchedulerKind::Quincy;
        let cap = if control.spread && !planned {
            let all = u128::from(slots) * n.cx.hosts.len() as u128;
            let tasks = self.scheduler.waiting(kind) + self.scheduler.running(kind);
            let wanted = u128::from(slots) * u128::from(tasks);
            wanted.div_ceil(all).min(u128::from(slots)) as u32
        } else {
            slots
        };
        free.min(cap.saturating_sub(slots - free)).min(most)
    }

    /// Assigns speculative copies and waiting maps to the free map slots of a worker, or on YARN to
    /// its free container resources.
    pub fn assign_maps(&mut self, n: &mut Nodes, worker: u32) {
        let free = self.free(n, worker, TaskKind::Map);
        let room = self.room(n, worker, TaskKind::Map);
        let copies = self.give_copies(n, worker, TaskKind::Map, room);
        self.scheduler.asked(n.cx.now, worker, free - copies);
        let plain = n.cx.config.scheduling.delay.is_none()
            && matches!(n.cx.config.scheduler, SchedulerKind::Fifo | SchedulerKind::Fair);
        for _ in copies..room {
            let next = self.scheduler.next_map(worker, &n.cx.racks, &mut n.tasks.jobs);
            let Some((job, map)) = next else { return };
            n.tasks.jobs.get(job).maps_given += 1;
            let locality = self.give_out(n, worker, (job, map, TaskKind::Map));
            if locality == Locality::Remote && plain {
                return;
            }
        }
    }

    /// Assigns speculative copies and waiting reduces to the free reduce slots of a worker, or on
    /// YARN to its free container resources.
    pub fn assign_reduces(&mut self, n: &mut Nodes, worker: u32) {
        let room = self.room(n, worker, TaskKind::Reduce);
        let copies = self.give_copies(n, worker, TaskKind::Reduce, room);
        for _ in copies..room {
            let Some(job) = self.scheduler.pick(TaskKind::Reduce) else { return };
            if !self.may_reduce(n, worker, job) {
                return;
            }
            let reduce = n.tasks.jobs.get(job).give_reduce();
            self.scheduler.started(TaskKind::Reduce, job);
            self.give_out(n, worker, (job, reduce, TaskKind::Reduce));
        }
    }

    /// Whether a reduce of a job may be assigned to a worker with room for it: always on Hadoop 1;
    /// on YARN unless it would leave no room for maps of the job.
    fn may_reduce(&self, n: &Nodes, worker: u32, job: u32) -> bool {
        n.cx.config.framework == Framework::Mr1
            || self.yarn.may_reduce(&n.cx, (job, n.tasks.jobs.running(job)), worker)
    }

    /// Assigns at most `room` requested speculative copies to a worker; returns their number.
    fn give_copies(&mut self, n: &mut Nodes, worker: u32, kind: TaskKind, room: u32) -> u32 {
        for given in 0..room {
            let Control { yarn, speculation, .. } = self;
            let mr1 = kind == TaskKind::Map || n.cx.config.framework == Framework::Mr1;
            let may = |job| mr1 || yarn.may_reduce(&n.cx, (job, n.tasks.jobs.running(job)), worker);
            let Some((job, task)) = speculation.next_copy(kind, worker, may) else { return given };
            self.scheduler.also_started(kind, job);
            self.give_out(n, worker, (job, task, kind));
        }
        room
    }

    /// Assigns a task to a worker: adds it to the answer to the worker's heartbeat, or on YARN
    /// grants a container to the job's application master. Returns the locality of a map's input
    /// split.
    fn give_out(
        &mut self,
        n: &mut Nodes,
        worker: u32,
        (job, index, kind): (u32, u32, TaskKind),
    ) -> Locality {
        let mut given = Task::new((job, index, kind), worker);
        if kind == TaskKind::Map {
            given.locality = n.tasks.jobs.maps(job).locality(index, worker, &n.cx.racks);
            given.bytes_in = n.cx.spec(job).split_bytes(index);
        }
        let locality = given.locality;
        let task = n.tasks.attempts.add(given);
        if kind == TaskKind::Reduce {
            let reduce = Reduce { task, job, index, worker };
            let fetching = Fetching::new(&n.cx, reduce, n.tasks.jobs.running(job));
            n.tasks.attempts.get(task).fetching = Some(Box::new(fetching));
        }
        if n.cx.config.framework == Framework::Yarn {
            self.yarn.grant(&n.cx, worker, task, (job, kind));
            return locality;
        }
        self.workers.assign(&n.cx, worker, task, kind);
        if kind == TaskKind::Reduce && self.workers.beats.is_some() {
            n.tasks.jobs.get(job).reducers.push(worker);
        }
        locality
    }

    /// Kills the other running attempts of a task, after one attempt has finished.
    pub fn kill_others(&mut self, n: &mut Nodes, report: &Report) {
        let &Report { job, index, kind, .. } = report;
        for other in n.tasks.attempts_where(|t| (t.job, t.kind, t.index) == (job, kind, index)) {
            self.kill_and_free(n, other);
        }
        self.speculation.is_left_alone((job, kind, index));
    }
}
