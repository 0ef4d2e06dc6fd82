//! Application masters of jobs on YARN: they launch containers, inform reduces of finished maps,
//! and recover from failures of nodes and connections.
//!
//! As in Hadoop 3: after the loss of a connection the client opens another one and repeats the
//! messages that may not have arrived; a container that could not be launched counts as a killed
//! attempt; the master of a job on a lost node starts again elsewhere and keeps the finished tasks,
//! like MRAppMaster's recovery from the job history, up to `master_attempts` times.

use super::config::Framework;
use super::connections::Use;
use super::control::Control;
use super::nodes::Nodes;
use super::timer::Timer;
use super::yarn::Call;
use eastwest_types::{ConnId, Side, TaskKind};

impl Control {
    /// Handles, at the resource manager, the periodic call with which a job's application master
    /// requests containers.
    pub fn master_called(&mut self, n: &mut Nodes, job: u32) {
        let state = n.tasks.jobs.get(job);
        let Call { first, reduces } = self.yarn.called(&mut n.cx, job, state.reduces_asked);
        state.reduces_asked += reduces;
        if first {
            self.scheduler.offer(TaskKind::Map, job, state.maps.left());
        }
        if reduces > 0 {
            self.scheduler.offer(TaskKind::Reduce, job, reduces);
        }
    }

    /// Handles the resource manager's answer at a job's application master: tells nodes to launch
    /// the granted containers.
    pub fn master_answered(&mut self, n: &mut Nodes, job: u32) {
        let from = self.yarn.node_of(job);
        for task in self.yarn.answered(job) {
            let worker = n.tasks.attempts.get(task).worker;
            if worker == from {
                self.container_launched(n, task);
                continue;
            }
            let ends = (n.cx.host(from), n.cx.host(worker));
            let conn = n.cx.open_control(Use::Launch { task }, ends);
            let bytes = n.cx.config.control.assignment_bytes;
            n.cx.tell(conn, Side::Client, bytes, 0, Some(job));
        }
        if self.yarn.is_leaving(job) {
            self.yarn.left(&mut n.cx, job);
            self.job_over(n, job, None);
        }
    }

    /// Handles the command to launch a task's container at its node: the container starts after the
    /// launch time.
    pub fn container_launched(&self, n: &mut Nodes, task: u32) {
        n.tasks.attempts.get(task).times.assigned = n.cx.now;
        n.cx.wake_in(n.cx.config.yarn.container_launch, Timer::Container(task));
    }

    /// Kills a task's attempt because the connection over which its container should be launched
    /// failed.
    pub fn launch_lost(&mut self, n: &mut Nodes, task: u32) {
        self.kill_and_free(n, task);
    }

    /// Handles the report of a finished task at its application master; `report` is its number in
    /// the table of reports that have not been received.
    pub fn report_arrived(&mut self, n: &mut Nodes, report: u32) {
        let report = self.yarn.told(report);
        self.task_reported(n, report);
    }

    /// Sends the report of a finished task again, after the connection to the application master
    /// failed; `report` is its number in the table of reports that have not been received.
    pub fn report_lost(&mut self, n: &mut Nodes, report: u32) {
        if let Some(report) = self.yarn.tell_again(&mut n.cx, report) {
            self.task_reported(n, report);
        }
    }

    /// Sends a running reduce's request for the list of finished maps to its job's application
    /// master.
    pub fn ask_for_maps(&self, n: &mut Nodes, task: u32) {
        let t = n.tasks.attempts.get(task);
        let Some(before) = t.fetching.as_ref().map(|f| f.known) else { return };
        let to = self.yarn.node_of(t.job);
        if to == t.worker {
            let known = n.tasks.jobs.running(t.job).outputs.reported();
            self.maps_told(n, task, known);
            return;
        }
        let ends = (n.cx.host(t.worker), n.cx.host(to));
        let conn = *t.events.get_or_insert_with(|| n.cx.open_control(Use::Events { task }, ends));
        let bytes = n.cx.config.control.answer_bytes;
        n.cx.tell(conn, Side::Client, bytes, u64::from(before), Some(t.job));
    }

    /// Handles a reduce's request for finished maps at its application master: answers with their
    /// number. `before` is the number of finished maps that the reduce knows.
    pub fn maps_asked(&self, n: &mut Nodes, (task, before): (u32, u32), conn: ConnId) {
        let t = n.tasks.attempts.get(task);
        let known = n.tasks.jobs.running(t.job).outputs.reported();
        if t.fetching.is_none() {
            return;
        }
        let fresh = known - before;
        let control = &n.cx.config.control;
        let bytes =
            u64::from(control.answer_bytes) + u64::from(control.map_event_bytes) * u64::from(fresh);
        n.cx.tell(conn, Side::Server, bytes, u64::from(known), Some(t.job));
    }

    /// Handles the answer about finished maps at the reduce; `known` is their number. The reduce
    /// sends another request, unless all maps of the job have ended and it knows all of them.
    pub fn maps_told(&self, n: &mut Nodes, task: u32, known: u32) {
        let t = n.tasks.attempts.get(task);
        // A map that ran again may have ended while the answer was in the network: then the reduce
        // asks again.
        let ended = n.tasks.jobs.running(t.job).outputs.reported();
        if known >= n.cx.spec(t.job).maps && known == ended {
            if let Some(conn) = t.events.take() {
                n.cx.close(conn);
            }
        } else {
            n.cx.wake_in(n.cx.config.yarn.event_poll, Timer::Poll(task));
        }
        n.tasks.maps_known(&mut n.cx, task, known);
    }

    /// Schedules a reduce's next request for finished maps after its connection to the application
    /// master failed.
    pub fn events_lost(&self, n: &mut Nodes, task: u32) {
        n.tasks.attempts.get(task).events = None;
        n.cx.wake_in(n.cx.config.yarn.event_poll, Timer::Poll(task));
    }

    /// Schedules new requests for finished maps, because a map has run a second time and finished.
    /// Only reduces that already knew all maps of the job ask again.
    pub fn poll_again(&self, n: &mut Nodes, job: u32) {
        let maps = n.cx.spec(job).maps;
        let again = n.tasks.jobs.running(job).outputs.reported() > maps;
        if !again || n.cx.config.framework != Framework::Yarn {
            return;
        }
        for task in n.tasks.attempts_where(|t| {
            let known = t.fetching.as_ref().map(|f| f.known);
            t.job == job && t.events.is_none() && known.is_some_and(|known| known >= maps)
        }) {
            n.cx.wake_in(n.cx.config.yarn.event_poll, Timer::Poll(task));
        }
    }

    /// Starts a job's application master again after its node was lost. The running attempts of the
    /// job are killed; the new master keeps the finished tasks (as in Hadoop's recovery from the
    /// job history). A job without unfinished tasks ends.
    pub fn restart(&mut self, n: &mut Nodes, job: u32) {
        for task in n.tasks.attempts_where(|t| t.job == job) {
            self.kill_and_free(n, task);
        }
        for told in self.yarn.drop_reports(&mut n.cx, |report| report.job == job) {
            self.run_again_unreported(n, &told);
        }
        for map in self.scheduler.take_back(job) {
            self.run_again_unplaced(n, job, map);
        }
        let failures = self.yarn.master_lost(&mut n.cx, job);
        let state = n.tasks.jobs.get(job);
        if state.is_through(n.cx.spec(job)) {
            self.yarn.drop_master(&mut n.cx, job);
            self.job_over(n, job, None);
        } else if failures >= n.cx.config.failures.master_attempts {
            self.fail_job(n, job, "its application master failed too often");
        } else {
            state.reduces_asked = state.reduces_given;
            for kind in [TaskKind::Map, TaskKind::Reduce] {
                self.scheduler.withdraw(kind, job);
            }
            self.yarn.submit(job);
        }
    }
}
