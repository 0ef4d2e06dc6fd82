//! YARN: the resource manager grants containers to application masters, which run the tasks of
//! their jobs in the containers.
//!
//! As in Hadoop 3 (Vavilapalli et al., SoCC 2013; RMContainerAllocator, ContainerLauncherImpl,
//! EventFetcher):
//! 1. A submitted job waits for a container of its application master. It gets the container at the
//!    heartbeat of a node with free resources. Jobs are served in order of submission, while
//!    masters use at most `am_share` of the cluster (the first master is always allowed). The
//!    resource manager tells the node to launch the master.
//! 2. The master calls the resource manager every `am_heartbeat`, the first time one `am_heartbeat`
//!    after its start (RMCommunicator's thread sleeps before it calls), and requests all maps at
//!    once. After the slow start it plans reduces: all of them when no map waits, before that as
//!    many as RMContainerAllocator's ramp-up allows. It plans after each call, so that the next
//!    call requests them (RMContainerAllocator.heartbeat: getResources, then scheduleReduces).
//! 3. A node's heartbeat reports the containers that have ended and makes the resource manager fill
//!    the node's memory: reduces first, since they have the higher priority, then maps. The next
//!    call of the master brings it the containers; it calls their nodes, which launch them.
//! 4. A task reports its end to its master. A running reduce asks the master every `event_poll` for
//!    finished maps. When all tasks are done and the job is committed, the master unregisters.
//!
//! These steps use messages over the network; between processes of one host they take no time.
//! Differences from Hadoop: before the last map is assigned, a reduce gets a container only if a
//! map would still fit beside all reduces and masters of the node, instead of being preempted when
//! maps starve; a further master gets a container only if a task would still fit; containers are
//! not reused; a node launches any number of containers at once; the headroom of a job is the free
//! memory of the whole cluster.

use super::config::YarnConfig;
use super::connections::Use;
use super::containers::{Container, Containers};
use super::context::Context;
use super::job::Job;
use super::report::Report;
use super::slab::Slab;
use super::timer::Timer;
use super::work::Work;
use eastwest_types::{ConnId, Side, TaskKind, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Application master of a job on YARN.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Master {
    /// Number of the worker on which the application master runs.
    worker: u32,
    container: Container,
    conn: Option<ConnId>,
    /// Tasks whose containers were granted since the master's last call.
    granted: Vec<u32>,
    /// Tasks whose containers are in the answer that is now in the network.
    answered: Vec<u32>,
    /// Number of the master's calls to the resource manager that are not answered yet.
    calls: u32,
    /// Total number of reduces that the call now in the network requests.
    asks: u32,
    /// Total number of reduces that the next call will request.
    planned: u32,
    /// Whether the job is committed, so that the master's last call asks to unregister.
    leaving: bool,
    /// Time of the master's next start or call. A wake-up at another time belongs to an earlier
    /// master and is ignored.
    due: Time,
}

/// State of a job at the resource manager of YARN.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Application {
    /// Application master of the job; `None` while none runs.
    master: Option<Master>,
    /// Number of application masters that the job has lost with their nodes.
    failures: u32,
    /// Whether the job's application master has called the resource manager.
    registered: bool,
}

/// Content of an application master's call to the resource manager.
pub struct Call {
    /// Whether this is the first call of the master, which requests all maps.
    pub first: bool,
    /// Number of reduces that the call requests in addition to earlier calls.
    pub reduces: u32,
}

/// State of YARN: resource manager, application masters and containers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Yarn {
    /// Containers and resources in use of each node, by worker number.
    nodes: Vec<Containers>,
    /// Jobs whose application masters wait for a container, in order of submission.
    waiting: VecDeque<u32>,
    /// Memory of all running application masters in bytes.
    masters: u64,
    /// Memory of all granted containers in bytes.
    used: u64,
    applications: BTreeMap<u32, Application>,
    /// Reports of ended attempts on their way to the application masters.
    reports: Slab<Report>,
}

/// Returns the total number of reduces that a job's application master requests. `maps` and
/// `reduces`: numbers of tasks of the job; `memory`: bytes of memory that the job may use.
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

impl Yarn {
    /// Returns the state of YARN with `nodes` nodes and no containers.
    pub fn new(nodes: usize) -> Yarn {
        Yarn {
            nodes: vec![Containers::default(); nodes],
            waiting: VecDeque::new(),
            masters: 0,
            used: 0,
            applications: BTreeMap::new(),
            reports: Slab::default(),
        }
    }

    /// Submits a job to the resource manager; the job waits for a container of its application
    /// master.
    pub fn submit(&mut self, job: u32) {
        self.applications.entry(job).or_default();
        self.waiting.push_back(job);
    }

    fn find(&self, job: u32) -> Option<&Master> {
        self.applications.get(&job)?.master.as_ref()
    }

    fn master(&mut self, job: u32) -> &mut Master {
        let application = self.applications.get_mut(&job);
        application.and_then(|a| a.master.as_mut()).expect("the job has a master")
    }

    /// Returns the node (worker) on which a job's application master runs.
    pub fn node_of(&self, job: u32) -> u32 {
        self.find(job).expect("the job has a master").worker
    }

    /// Whether the application master of a job has called the resource manager.
    pub fn is_registered(&self, job: u32) -> bool {
        self.applications.get(&job).is_some_and(|a| a.registered)
    }

    /// Whether the application master of a job waits for an answer of the resource manager.
    pub fn waits(&self, job: u32) -> bool {
        self.find(job).is_some_and(|master| master.calls > 0)
    }

    /// Returns the number of further containers for tasks of a kind that fit on a node now.
    pub fn room(&self, yarn: &YarnConfig, worker: u32, kind: TaskKind) -> u32 {
        self.nodes[worker as usize].room(yarn, Container::of(yarn, kind))
    }

    /// Whether a reduce of a job may get a container on a node. Before the last map of the job is
    /// assigned, only if a map would still fit beside all reduces and application masters of the
    /// node.
    pub fn may_reduce(&self, cx: &Context, job: (u32, &Job), worker: u32) -> bool {
        let yarn = &cx.config.yarn;
        let (map, reduce) = (TaskKind::Map, TaskKind::Reduce);
        let (map, reduce) = (Container::of(yarn, map), Container::of(yarn, reduce));
        job.1.maps_given == cx.spec(job.0).maps
            || self.nodes[worker as usize].leaves_room(yarn, reduce, map)
    }

    /// Moves the ended containers of a node to the list for the heartbeat that is being sent.
    pub fn report(&mut self, worker: u32) {
        self.nodes[worker as usize].report();
    }

    /// Records at the node that the container of a task has ended.
    pub fn ended(&mut self, yarn: &YarnConfig, worker: u32, kind: TaskKind) {
        self.nodes[worker as usize].ended.push(Container::of(yarn, kind));
    }

    /// Handles a node's heartbeat at the resource manager: frees its ended containers, and grants
    /// containers to waiting application masters.
    pub fn heard(&mut self, cx: &mut Context, worker: u32) {
        let node = &mut self.nodes[worker as usize];
        for container in std::mem::take(&mut node.reported) {
            node.free(container);
            self.used -= container.memory;
        }
        self.launch_masters(cx, worker);
    }

    /// Grants containers of a node to application masters that wait for one.
    fn launch_masters(&mut self, cx: &mut Context, worker: u32) {
        let yarn = &cx.config.yarn;
        let memory = yarn.allocated(yarn.am_memory);
        let container = Container { memory, vcores: yarn.am_vcores, lasting: true };
        let all = u128::from(yarn.node_memory) * cx.hosts.len() as u128;
        let most = (all as f64 * yarn.am_share) as u64;
        let [map, reduce] = [TaskKind::Map, TaskKind::Reduce].map(|kind| Container::of(yarn, kind));
        let vcores = map.vcores.max(reduce.vcores);
        let task = Container { memory: map.memory.max(reduce.memory), vcores, lasting: false };
        while let Some(&job) = self.waiting.front() {
            let yarn = &cx.config.yarn;
            let node = &mut self.nodes[worker as usize];
            let further = self.masters + memory <= most && node.leaves_room(yarn, container, task);
            let may = self.masters == 0 || further;
            if !may || !node.fits(yarn, container) {
                return;
            }
            self.waiting.pop_front();
            node.take(container);
            self.masters += memory;
            self.used += memory;
            let application = self.applications.get_mut(&job).expect("it was submitted");
            application.master = Some(Master {
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
            });
            self.tell_to_launch(cx, job);
        }
    }

    /// Sends the command to launch a job's application master to the node of the master.
    pub fn tell_to_launch(&self, cx: &mut Context, job: u32) {
        let ends = (cx.master, cx.host(self.node_of(job)));
        let conn = cx.open_control(Use::Master { job }, ends);
        cx.tell(conn, Side::Client, cx.config.control.assignment_bytes, 0, Some(job));
    }

    /// Handles the command to launch a job's application master at its node: the master starts
    /// after the launch time.
    pub fn launched(&mut self, cx: &mut Context, job: u32) {
        let due = cx.now + cx.config.yarn.container_launch;
        if self.find(job).is_some() {
            self.master(job).due = due;
            cx.wake(due, Timer::Master(job));
        }
    }

    /// Handles the wake-up of a job's application master: starts it, or sends its next call to the
    /// resource manager.
    pub fn due(&mut self, cx: &mut Context, job: u32, state: Option<&Job>) {
        // A master that was lost since the wake-up was scheduled has nothing to do.
        let Some(master) = self.find(job).filter(|master| master.due == cx.now) else { return };
        let Some(state) = state else { return };
        let worker = master.worker;
        if master.conn.is_some() {
            self.call(cx, job, state);
            return;
        }
        cx.compute(worker, cx.config.yarn.am_start, Work::Master(job));
    }

    /// Handles the end of the start of a job's application master. The master registers with its
    /// first call to the resource manager, one `am_heartbeat` later.
    pub fn started(&mut self, cx: &mut Context, job: u32) {
        if self.find(job).is_none_or(|master| master.conn.is_some()) {
            return; // the master was lost during its start
        }
        let conn = self.open(cx, job);
        let due = cx.now + cx.config.yarn.am_heartbeat;
        let master = self.master(job);
        (master.conn, master.due) = (Some(conn), due);
        cx.wake(due, Timer::Master(job));
    }

    /// Opens the connection of a job's application master to the resource manager.
    fn open(&self, cx: &mut Context, job: u32) -> ConnId {
        let ends = (cx.host(self.node_of(job)), cx.master);
        cx.open_control(Use::Application { job }, ends)
    }

    /// Sends a call of a job's application master to the resource manager, and plans the reduces of
    /// the next call.
    fn call(&mut self, cx: &mut Context, job: u32, state: &Job) {
        let spec = cx.spec(job);
        let yarn = &cx.config.yarn;
        let needed = (cx.config.control.slowstart * f64::from(spec.maps)).ceil() as u32;
        let all = yarn.node_memory.saturating_mul(cx.hosts.len() as u64);
        let own = |kind| Container::of(yarn, kind).memory;
        let maps_held = state.maps_given - state.maps_done;
        let reduces_held = state.reduces_given - state.reduces_done;
        let held = u64::from(maps_held) * own(TaskKind::Map)
            + u64::from(reduces_held) * own(TaskKind::Reduce);
        let memory = all.saturating_sub(self.used).saturating_add(held);
        let wanted = match state.maps_done < needed {
            true => 0,
            false => reduces_wanted(yarn, state, (spec.maps, spec.reduces), memory),
        };
        let master = self.master(job);
        if master.leaving {
            return;
        }
        master.asks = master.planned;
        master.planned = wanted.max(master.planned);
        master.calls += 1;
        let conn = master.conn.expect("it runs");
        cx.tell(conn, Side::Client, cx.config.control.heartbeat_bytes, 0, Some(job));
        master.due = cx.now + cx.config.yarn.am_heartbeat;
        cx.wake(master.due, Timer::Master(job));
    }

    /// Handles the call of a job's application master at the resource manager, and answers it with
    /// the granted containers. `asked` is the number of reduces that earlier calls have requested.
    pub fn called(&mut self, cx: &mut Context, job: u32, asked: u32) -> Call {
        let application = self.applications.get_mut(&job).expect("it has called");
        let first = !std::mem::replace(&mut application.registered, true);
        let master = self.master(job);
        let conn = master.conn.expect("it runs");
        master.answered.append(&mut master.granted);
        let reduces = master.asks.saturating_sub(asked);
        let control = &cx.config.control;
        let bytes = u64::from(control.answer_bytes)
            + u64::from(control.assignment_bytes) * master.answered.len() as u64;
        cx.tell(conn, Side::Server, bytes, 0, Some(job));
        Call { first, reduces }
    }

    /// Handles the resource manager's answer at a job's application master. Returns the numbers of
    /// the tasks whose containers the answer contains.
    pub fn answered(&mut self, job: u32) -> Vec<u32> {
        let master = self.master(job);
        master.calls -= 1;
        std::mem::take(&mut master.answered)
    }

    /// Whether a job's application master has sent its request to unregister and all its calls are
    /// answered.
    pub fn is_leaving(&self, job: u32) -> bool {
        self.find(job).is_some_and(|master| master.leaving && master.calls == 0)
    }

    /// Grants a container on a node to a task; the task's application master learns of it in the
    /// answer to its next call.
    pub fn grant(&mut self, cx: &Context, worker: u32, task: u32, (job, kind): (u32, TaskKind)) {
        let container = Container::of(&cx.config.yarn, kind);
        self.nodes[worker as usize].take(container);
        self.used += container.memory;
        self.master(job).granted.push(task);
    }

    /// Removes the container of a killed attempt from the answers to its application master, so
    /// that the container is not launched.
    pub fn forget_container(&mut self, job: u32, task: u32) {
        let application = self.applications.get_mut(&job);
        if let Some(master) = application.and_then(|a| a.master.as_mut()) {
            master.granted.retain(|&of| of != task);
            master.answered.retain(|&of| of != task);
        }
    }

    /// Sends the report of an ended task to its application master. Returns the report if both are
    /// on one node, so that no message is needed; otherwise `None`.
    pub fn tell_master(&mut self, cx: &mut Context, report: Report) -> Option<Report> {
        let report = self.reports.add(report);
        self.tell_again(cx, report)
    }

    /// Sends the report with the number `report` to its application master, for the first time or
    /// again after the connection failed. Returns the report if task and application master are on
    /// one node, otherwise `None`.
    pub fn tell_again(&mut self, cx: &mut Context, report: u32) -> Option<Report> {
        let &mut Report { worker, job, .. } = self.reports.get(report);
        let to = self.node_of(job);
        if to == worker {
            return Some(self.reports.remove(report));
        }
        let ends = (cx.host(worker), cx.host(to));
        let conn = cx.open_control(Use::Report { report }, ends);
        cx.tell(conn, Side::Client, cx.config.control.heartbeat_bytes, 0, Some(job));
        None
    }

    /// Handles the arrival of a report at the application master; `report` is its number. Removes
    /// and returns the report.
    pub fn told(&mut self, report: u32) -> Report {
        self.reports.remove(report)
    }

    /// Removes the reports for which `gone` returns true, because their application masters will
    /// not receive them. Returns these reports; their tasks must run again.
    pub fn drop_reports(
        &mut self,
        cx: &mut Context,
        gone: impl Fn(&Report) -> bool,
    ) -> Vec<Report> {
        let numbers: Vec<u32> =
            self.reports.iter().filter(|(_, r)| gone(r)).map(|(number, _)| number).collect();
        let mut dropped = Vec::new();
        for report in numbers {
            cx.abort_where(|u| matches!(u, Use::Report { report: of } if of == report));
            dropped.push(self.reports.remove(report));
        }
        dropped
    }

    /// Sends the unregister request of a committed job's application master to the resource
    /// manager.
    pub fn unregister(&mut self, cx: &mut Context, job: u32) {
        let master = self.master(job);
        master.leaving = true;
        master.calls += 1;
        let conn = master.conn.expect("it runs");
        cx.tell(conn, Side::Client, cx.config.control.heartbeat_bytes, 0, Some(job));
    }

    /// Removes the application master of a job after it has unregistered.
    pub fn left(&mut self, cx: &mut Context, job: u32) {
        let application = self.applications.remove(&job).expect("it leaves once");
        let master = application.master.expect("it leaves once");
        cx.close(master.conn.expect("it ran"));
        self.masters -= master.container.memory;
        self.nodes[master.worker as usize].ended.push(master.container);
    }

    /// Handles the loss of an application master's connection to the resource manager: opens a new
    /// connection. The containers of a lost answer are sent again with the next answer.
    pub fn connection_lost(&mut self, cx: &mut Context, job: u32) {
        let conn = self.open(cx, job);
        let master = self.master(job);
        master.conn = Some(conn);
        master.calls = u32::from(master.leaving);
        if master.leaving {
            cx.tell(conn, Side::Client, cx.config.control.heartbeat_bytes, 0, Some(job));
        }
    }

    /// Removes a lost node with its containers. Returns the jobs whose application masters ran on
    /// the node.
    pub fn node_lost(&mut self, worker: u32) -> Vec<u32> {
        let node = std::mem::take(&mut self.nodes[worker as usize]);
        self.used -= node.memory;
        let on_it = |a: &Application| a.master.as_ref().is_some_and(|m| m.worker == worker);
        self.applications.iter().filter(|(_, a)| on_it(a)).map(|(&job, _)| job).collect()
    }

    /// Handles the loss of a job's application master with its node. Returns the number of
    /// application masters that the job has lost so far.
    pub fn master_lost(&mut self, cx: &mut Context, job: u32) -> u32 {
        let application = self.applications.get_mut(&job).expect("it had one");
        let master = application.master.take().expect("it had one");
        application.failures += 1;
        application.registered = false;
        self.masters -= master.container.memory;
        abort(cx, job);
        self.applications[&job].failures
    }

    /// Removes the application master of a job that has failed or ended, with its connections and
    /// reports.
    pub fn drop_master(&mut self, cx: &mut Context, job: u32) {
        self.waiting.retain(|&of| of != job);
        abort(cx, job);
        if let Some(master) = self.applications.remove(&job).and_then(|a| a.master) {
            self.masters -= master.container.memory;
            self.nodes[master.worker as usize].ended.push(master.container);
        }
        self.drop_reports(cx, |report| report.job == job);
    }

    /// Returns the number of reports on their way to application masters.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.reports.count().0
    }
}

/// Aborts the connections between a job's application master and the resource manager.
fn abort(cx: &mut Context, job: u32) {
    cx.abort_where(
        |u| matches!(u, Use::Master { job: of } | Use::Application { job: of } if of == job),
    );
}
