//! YARN: the resource manager gives containers to application masters, which run the tasks of their
//! jobs in them.
//!
//! As in Hadoop 3 (Vavilapalli et al., SoCC 2013; RMContainerAllocator, ContainerLauncherImpl,
//! EventFetcher):
//! 1. A submitted job waits for a container of its application master. One is given on the heartbeat
//!    of a node with room, in order of submission, as long as masters take no more than `am_share`
//!    of the cluster (a first one always may). The resource manager tells the node to launch it.
//! 2. The master calls the resource manager every `am_heartbeat`, the first time one `am_heartbeat`
//!    after its start (RMCommunicator's thread sleeps before it calls), and asks for all maps at once.
//!    When the slow start is reached it plans reduces: all when no map waits, before as many as
//!    RMContainerAllocator's ramp-up allows. It plans after each call, so that the next call asks for
//!    them (RMContainerAllocator.heartbeat: getResources, then scheduleReduces).
//! 3. A node's heartbeat reports the containers that have ended and makes the resource manager fill
//!    the node's memory: reduces first, since they have the higher priority, then maps. The next
//!    call of the master brings it the containers; it calls their nodes, which launch them.
//! 4. A task reports its end to its master. A running reduce asks it every `event_poll` for finished
//!    maps. When all tasks are done and the job is committed, the master unregisters.
//!
//! All of that are messages over the network, except between processes of one host, which take no
//! time. Departures: a reduce is given early only where a map would still fit beside all reduces and
//! masters of the node, instead of being preempted when maps starve, and a further master only where
//! a task would; containers are not reused; a
//! node launches any number of containers at once; headroom is that of the whole cluster.

mod recovery;

use super::config::YarnConfig;
use super::connections::Use;
use super::control::{Report, control_message};
use super::hardware::Work;
use super::job::Job;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::{ConnId, HostId, Side, TaskKind, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the resource manager knows beside jobs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Yarn {
    /// Jobs whose masters wait for a container.
    waiting: VecDeque<u32>,
    /// Memory of running masters.
    masters: u64,
    /// Memory of all containers.
    used: u64,
}

/// Containers of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Containers {
    /// Memory taken, as the resource manager sees it.
    memory: u64,
    vcores: u32,
    /// Of it, by reduces and masters.
    lasting: u64,
    lasting_vcores: u32,
    /// Ended since the last heartbeat.
    ended: Vec<Container>,
    /// Reported by the heartbeat on its way.
    reported: Vec<Container>,
}

/// A container.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Container {
    memory: u64,
    vcores: u32,
    /// Of a reduce or a master.
    lasting: bool,
}

impl Containers {
    fn take(&mut self, c: Container) {
        self.memory += c.memory;
        self.vcores += c.vcores;
        if c.lasting {
            self.lasting += c.memory;
            self.lasting_vcores += c.vcores;
        }
    }

    fn free(&mut self, c: Container) {
        self.memory -= c.memory;
        self.vcores -= c.vcores;
        if c.lasting {
            self.lasting -= c.memory;
            self.lasting_vcores -= c.vcores;
        }
    }

    /// Whether another container would fit beside one and all that lasts.
    fn leaves_room(&self, yarn: &YarnConfig, c: Container, other: Container) -> bool {
        self.lasting + c.memory + other.memory <= yarn.node_memory
            && (!yarn.count_vcores
                || self.lasting_vcores + c.vcores + other.vcores <= yarn.node_vcores)
    }

    fn fits(&self, yarn: &YarnConfig, c: Container) -> bool {
        self.memory + c.memory <= yarn.node_memory
            && (!yarn.count_vcores || self.vcores + c.vcores <= yarn.node_vcores)
    }

    /// A heartbeat leaves: what has ended goes with it.
    pub fn report(&mut self) {
        self.reported.append(&mut self.ended);
    }
}

/// The application master of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Master {
    /// Where it runs.
    worker: u32,
    container: Container,
    conn: Option<ConnId>,
    /// Containers given since its last call.
    granted: Vec<u32>,
    /// Containers in the answer on its way.
    answered: Vec<u32>,
    /// Calls without answer.
    calls: u32,
    /// Reduces the call on its way asks for in all.
    asks: u32,
    /// Reduces the next call asks for in all.
    planned: u32,
    /// The job is committed: the last call unregisters.
    leaving: bool,
    /// When it acts next: earlier wake-ups are of a master before it.
    due: Time,
}

/// Reduces a job's master asks for in all, given the memory the job may have.
fn reduces_wanted(yarn: &YarnConfig, job: &Job, (maps, reduces): (u32, u32), memory: u64) -> u32 {
    if job.maps_given == maps {
        return reduces;
    }
    let done = f64::from(job.maps_done) / f64::from(maps);
    let for_reduces = (memory as f64 * done.min(yarn.rampup_limit)) as u64;
    let needed = u64::from(maps - job.maps_done) * yarn.allocated(yarn.map_memory);
    let spare = memory.saturating_sub(for_reduces).saturating_sub(needed);
    let fit = (for_reduces + spare) / yarn.allocated(yarn.reduce_memory);
    u32::try_from(fit).unwrap_or(u32::MAX).min(reduces)
}

impl MapReduce {
    fn container(&self, kind: TaskKind) -> Container {
        let yarn = &self.config.yarn;
        let (memory, vcores) = match kind {
            TaskKind::Map => (yarn.map_memory, yarn.map_vcores),
            TaskKind::Reduce => (yarn.reduce_memory, yarn.reduce_vcores),
        };
        let lasting = kind == TaskKind::Reduce;
        Container { memory: yarn.allocated(memory), vcores, lasting }
    }

    /// A job has been submitted to the resource manager.
    pub(super) fn submit_application(&mut self, job: u32) {
        self.yarn.waiting.push_back(job);
    }

    /// At the resource manager: a node's heartbeat frees its ended containers and fills it.
    pub(super) fn fill_node(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let node = &mut self.workers[worker as usize].containers;
        for container in std::mem::take(&mut node.reported) {
            node.free(container);
            self.yarn.used -= container.memory;
        }
        self.launch_masters(worker, out);
        self.assign_reduces(worker);
        self.assign_maps(now, worker);
    }

    /// Gives containers of a node to masters that wait.
    fn launch_masters(&mut self, worker: u32, out: &mut Vec<Action>) {
        let yarn = &self.config.yarn;
        let memory = yarn.allocated(yarn.am_memory);
        let container = Container { memory, vcores: yarn.am_vcores, lasting: true };
        let all = u128::from(yarn.node_memory) * self.workers.len() as u128;
        let most = (all as f64 * yarn.am_share) as u64;
        let (map, reduce) = (self.container(TaskKind::Map), self.container(TaskKind::Reduce));
        let vcores = map.vcores.max(reduce.vcores);
        let task = Container { memory: map.memory.max(reduce.memory), vcores, lasting: false };
        while let Some(&job) = self.yarn.waiting.front() {
            let node = &mut self.workers[worker as usize].containers;
            let further = self.yarn.masters + memory <= most
                && node.leaves_room(&self.config.yarn, container, task);
            let may = self.yarn.masters == 0 || further;
            if !may || !node.fits(&self.config.yarn, container) {
                return;
            }
            self.yarn.waiting.pop_front();
            node.take(container);
            self.yarn.masters += memory;
            self.yarn.used += memory;
            let master = Master {
                worker,
                container,
                conn: None,
                granted: Vec::new(),
                answered: Vec::new(),
                calls: 0,
                asks: 0,
                planned: 0,
                leaving: false,
                due: Time::NEVER,
            };
            self.job(job).master = Some(master);
            let ends = (self.master, self.host(worker));
            let conn = self.conns.open(Use::Master { job }, ends, self.config.control_class, out);
            let bytes = u64::from(self.config.control.assignment_bytes);
            out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
        }
    }

    /// At the node: launches the master.
    pub(super) fn master_launched(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let due = now + self.config.yarn.container_launch;
        if self.jobs[job as usize].as_ref().is_some_and(|state| state.master.is_some()) {
            self.app(job).due = due;
            out.push(Timer::Master(job).at(due));
        }
    }

    /// The master's time has come: to start, or to call.
    pub(super) fn master_due(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        // A master that left in the meantime has nothing to do.
        let Some(state) = self.jobs[job as usize].as_mut() else { return };
        let Some(master) = state.master.as_ref().filter(|master| master.due == now) else { return };
        let worker = master.worker;
        if master.conn.is_some() {
            self.master_calls(now, job, out);
            return;
        }
        self.hardware.compute(now, worker, self.config.yarn.am_start, Work::Master(job), out);
    }

    /// The master runs: it registers, and calls for the first time one `am_heartbeat` later.
    pub(super) fn master_started(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let state = self.jobs[job as usize].as_ref().and_then(|state| state.master.as_ref());
        if state.is_none_or(|master| master.conn.is_some()) {
            return; // it was lost meanwhile
        }
        let worker = self.app(job).worker;
        let ends = (self.host(worker), self.master);
        let class = self.config.control_class;
        let conn = self.conns.open(Use::Application { job }, ends, class, out);
        let due = now + self.config.yarn.am_heartbeat;
        let master = self.app(job);
        (master.conn, master.due) = (Some(conn), due);
        out.push(Timer::Master(job).at(due));
    }

    fn app(&mut self, job: u32) -> &mut Master {
        self.job(job).master.as_mut().expect("the job has a master")
    }

    /// The master calls the resource manager.
    fn master_calls(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let spec = &self.config.jobs[job as usize];
        let (maps, reduces) = (spec.maps, spec.reduces);
        let yarn = &self.config.yarn;
        let needed = (self.config.control.slowstart * f64::from(maps)).ceil() as u32;
        let all = yarn.node_memory.saturating_mul(self.workers.len() as u64);
        let own = |kind| self.container(kind).memory;
        let (map, reduce) = (own(TaskKind::Map), own(TaskKind::Reduce));
        let state = self.jobs[job as usize].as_mut().expect("the job runs");
        let maps_held = state.maps_given - state.maps_done;
        let held = u64::from(maps_held) * map
            + u64::from(state.reduces_given - state.reduces_done) * reduce;
        let memory = all.saturating_sub(self.yarn.used).saturating_add(held);
        let slow = state.maps_done < needed;
        let wanted = if slow { 0 } else { reduces_wanted(yarn, state, (maps, reduces), memory) };
        let master = state.master.as_mut().expect("it calls");
        if master.leaving {
            return;
        }
        master.asks = master.planned;
        master.planned = wanted.max(master.planned);
        master.calls += 1;
        let conn = master.conn.expect("it runs");
        let bytes = u64::from(self.config.control.heartbeat_bytes);
        out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
        master.due = now + self.config.yarn.am_heartbeat;
        out.push(Timer::Master(job).at(master.due));
    }

    /// At the resource manager: a master has called.
    pub(super) fn master_called(&mut self, job: u32, out: &mut Vec<Action>) {
        let state = self.job(job);
        let maps = state.maps.left();
        let master = state.master.as_mut().expect("it has called");
        let conn = master.conn.expect("it runs");
        master.answered.append(&mut master.granted);
        let given = master.answered.len() as u64;
        let first = !std::mem::replace(&mut state.registered, true);
        let more = master.asks.saturating_sub(state.reduces_asked);
        state.reduces_asked += more;
        if first {
            self.scheduler.offer(TaskKind::Map, job, maps);
        }
        if more > 0 {
            self.scheduler.offer(TaskKind::Reduce, job, more);
        }
        let control = &self.config.control;
        let bytes = u64::from(control.answer_bytes) + u64::from(control.assignment_bytes) * given;
        out.push(control_message(conn, Side::Server, bytes, 0, Some(job)));
    }

    /// At the master: the answer is there; its containers are launched.
    pub(super) fn master_answered(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let master = self.app(job);
        master.calls -= 1;
        let from = master.worker;
        for task in std::mem::take(&mut master.answered) {
            let worker = self.tasks.get(task).worker;
            if worker == from {
                self.container_launched(now, task, out);
                continue;
            }
            let ends = (self.host(from), self.host(worker));
            let class = self.config.control_class;
            let conn = self.conns.open(Use::Launch { task }, ends, class, out);
            let bytes = u64::from(self.config.control.assignment_bytes);
            out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
        }
        if self.app(job).leaving && self.app(job).calls == 0 {
            self.master_left(now, job, out);
        }
    }

    /// At the node: a task's container is launched.
    pub(super) fn container_launched(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.tasks.get(task).assigned = now;
        out.push(Timer::Container(task).at(now + self.config.yarn.container_launch));
    }

    /// A container of a node that the resource manager gives to a task: its master hears of it.
    pub(super) fn grant(&mut self, worker: u32, task: u32, (job, kind): (u32, TaskKind)) {
        let container = self.container(kind);
        self.workers[worker as usize].containers.take(container);
        self.yarn.used += container.memory;
        self.app(job).granted.push(task);
    }

    /// Containers of a kind that a node has room for.
    pub(super) fn node_room(&self, worker: u32, kind: TaskKind) -> u32 {
        let yarn = &self.config.yarn;
        let container = self.container(kind);
        let node = &self.workers[worker as usize].containers;
        let memory = (yarn.node_memory - node.memory.min(yarn.node_memory)) / container.memory;
        let vcores = match yarn.count_vcores {
            true => yarn.node_vcores.saturating_sub(node.vcores) / container.vcores.max(1),
            false => u32::MAX,
        };
        u32::try_from(memory).unwrap_or(u32::MAX).min(vcores)
    }

    /// Whether a reduce may be given to a node: before the last map of its job is given out, only
    /// where a map would still fit beside all that lasts.
    pub(super) fn may_reduce(&self, worker: u32, job: u32) -> bool {
        let state = self.jobs[job as usize].as_ref().expect("the job runs");
        if state.maps_given == self.spec(job).maps {
            return true;
        }
        let node = &self.workers[worker as usize].containers;
        let (map, reduce) = (self.container(TaskKind::Map), self.container(TaskKind::Reduce));
        node.leaves_room(&self.config.yarn, reduce, map)
    }

    /// At the node: the container of a task has ended.
    pub(super) fn free_container(&mut self, worker: u32, (_, kind): (u32, TaskKind)) {
        let container = self.container(kind);
        self.workers[worker as usize].containers.ended.push(container);
    }

    /// At the node: a task tells its master that it has ended.
    pub(super) fn tell_master(&mut self, now: Time, report: u32, out: &mut Vec<Action>) {
        let &mut Report { worker, job, .. } = self.reports.get(report);
        let to = self.app(job).worker;
        if to == worker {
            self.report_arrived(now, report, out);
            return;
        }
        let ends = (self.host(worker), self.host(to));
        let class = self.config.control_class;
        let conn = self.conns.open(Use::Report { report }, ends, class, out);
        let bytes = u64::from(self.config.control.heartbeat_bytes);
        out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
    }

    /// A running reduce asks its master for finished maps.
    pub(super) fn ask_for_maps(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        if t.fetching.is_none() {
            return;
        }
        let (job, worker, conn) = (t.job, t.worker, t.events);
        let to = self.app(job).worker;
        if to == worker {
            let known = self.job(job).finished_on.len() as u32;
            self.maps_told(now, task, known, out);
            return;
        }
        let conn = conn.unwrap_or_else(|| {
            let ends: (HostId, HostId) = (self.host(worker), self.host(to));
            self.conns.open(Use::Events { task }, ends, self.config.control_class, out)
        });
        self.tasks.get(task).events = Some(conn);
        let bytes = u64::from(self.config.control.answer_bytes);
        out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
    }

    /// At the master: a reduce asks.
    pub(super) fn maps_asked(&mut self, task: u32, conn: ConnId, out: &mut Vec<Action>) {
        let job = self.tasks.get(task).job;
        let known = self.job(job).finished_on.len() as u32;
        let t = self.tasks.get(task);
        let Some(fetching) = t.fetching.as_mut() else { return };
        let fresh = known - std::mem::replace(&mut fetching.told, known);
        let control = &self.config.control;
        let bytes =
            u64::from(control.answer_bytes) + u64::from(control.map_event_bytes) * u64::from(fresh);
        out.push(control_message(conn, Side::Server, bytes, u64::from(known), Some(job)));
    }

    /// At the reduce: the master's answer; the next question follows unless it knows of all
    /// maps that have ended, and these are all of the job.
    pub(super) fn maps_told(&mut self, now: Time, task: u32, known: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        // A map that ran again may have ended while the answer was on its way: then it asks on.
        let ended = self.jobs[t.job as usize].as_ref().expect("the job runs").finished_on.len();
        let all = known >= self.config.jobs[t.job as usize].maps && known as usize == ended;
        if all {
            if let Some(conn) = t.events.take() {
                self.conns.close(conn, out);
            }
        } else {
            out.push(Timer::Poll(task).at(now + self.config.yarn.event_poll));
        }
        self.maps_known(now, task, known, out);
    }

    /// The job is committed: its master unregisters.
    pub(super) fn unregister(&mut self, job: u32, out: &mut Vec<Action>) {
        let bytes = u64::from(self.config.control.heartbeat_bytes);
        let master = self.app(job);
        master.leaving = true;
        master.calls += 1;
        let conn = master.conn.expect("it runs");
        out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
    }

    /// The master has left: so does the job.
    fn master_left(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let master = self.job(job).master.take().expect("it leaves once");
        self.conns.close(master.conn.expect("it ran"), out);
        self.yarn.masters -= master.container.memory;
        self.workers[master.worker as usize].containers.ended.push(master.container);
        self.job_over(now, job, None, out);
    }
}
