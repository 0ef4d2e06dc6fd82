//! What becomes of masters and containers when nodes or connections fail.
//!
//! As in Hadoop 3: who loses a connection opens another and says again what may not have arrived; a
//! container that could not be launched is an attempt that was killed; the master of a job that was
//! on a lost node starts again elsewhere and goes on from the tasks that are done, as MRAppMaster's
//! recovery from the job history does, up to `master_attempts` times.

use crate::Action;
use crate::mapreduce::connections::Use;
use crate::mapreduce::control::{Report, control_message};
use crate::mapreduce::job::Job;
use crate::mapreduce::task::Task;
use crate::mapreduce::{MapReduce, Timer};
use eastwest_types::{Side, TaskKind, Time};

impl MapReduce {
    /// Whether a master awaits the resource manager's answer.
    pub(in crate::mapreduce) fn master_waits(&self, job: u32) -> bool {
        let state = self.jobs[job as usize].as_ref();
        state.and_then(|s| s.master.as_ref()).is_some_and(|master| master.calls > 0)
    }

    /// The connection by which a node was told to launch a master is gone: it is told again.
    pub(in crate::mapreduce) fn master_lost(&mut self, job: u32, out: &mut Vec<Action>) {
        let worker = self.app(job).worker;
        let ends = (self.master, self.host(worker));
        let conn = self.conns.open(Use::Master { job }, ends, self.config.control_class, out);
        let bytes = u64::from(self.config.control.assignment_bytes);
        out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
    }

    /// A master's connection to the resource manager is gone: it opens another. What the answer would
    /// have brought comes with the next.
    pub(in crate::mapreduce) fn application_lost(&mut self, job: u32, out: &mut Vec<Action>) {
        let worker = self.app(job).worker;
        let ends = (self.host(worker), self.master);
        let class = self.config.control_class;
        let conn = self.conns.open(Use::Application { job }, ends, class, out);
        let bytes = u64::from(self.config.control.heartbeat_bytes);
        let master = self.app(job);
        master.conn = Some(conn);
        master.calls = 0;
        if master.leaving {
            master.calls = 1;
            out.push(control_message(conn, Side::Client, bytes, 0, Some(job)));
        }
    }

    /// A master could not tell a node to launch a container: its attempt is over.
    pub(in crate::mapreduce) fn launch_lost(&mut self, task: u32, out: &mut Vec<Action>) {
        let t = self.kill_attempt(task, out);
        self.free_dropped(&t);
    }

    /// A task could not tell its master that it has ended: it tries again.
    pub(in crate::mapreduce) fn report_lost(
        &mut self,
        now: Time,
        report: u32,
        out: &mut Vec<Action>,
    ) {
        self.tell_master(now, report, out);
    }

    /// A reduce could not ask its master for finished maps: it asks again later.
    pub(in crate::mapreduce) fn events_lost(
        &mut self,
        now: Time,
        task: u32,
        out: &mut Vec<Action>,
    ) {
        self.tasks.get(task).events = None;
        out.push(Timer::Poll(task).at(now + self.config.yarn.event_poll));
    }

    /// Reduces that know of all maps ask again: some map has run once more.
    pub(in crate::mapreduce) fn poll_again(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let maps = self.spec(job).maps;
        let all_known = |t: &Task| {
            let known = t.fetching.as_ref().map(|f| f.known);
            t.job == job && t.events.is_none() && known.is_some_and(|known| known >= maps)
        };
        for (task, _) in self.tasks.iter().filter(|(_, t)| all_known(t)) {
            out.push(Timer::Poll(task).at(now + self.config.yarn.event_poll));
        }
    }

    /// A node is lost, with its containers and the masters in them.
    pub(in crate::mapreduce) fn node_lost(
        &mut self,
        now: Time,
        worker: u32,
        out: &mut Vec<Action>,
    ) {
        let node = std::mem::take(&mut self.workers[worker as usize].containers);
        self.yarn.used -= node.memory;
        let on_it = |job: &Option<Box<Job>>| {
            let master = job.as_ref().and_then(|state| state.master.as_ref());
            master.is_some_and(|master| master.worker == worker)
        };
        for job in 0..self.jobs.len() as u32 {
            if on_it(&self.jobs[job as usize]) {
                self.restart(now, job, out);
            }
        }
    }

    /// The master of a job is lost: what it ran is killed, and another one starts and goes on from
    /// the tasks that are done (as with Hadoop's recovery from the job history). A job that was
    /// through is done.
    fn restart(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let running: Vec<u32> =
            self.tasks.iter().filter(|(_, t)| t.job == job).map(|(number, _)| number).collect();
        for task in running {
            let t = self.kill_attempt(task, out);
            self.free_dropped(&t);
        }
        for told in self.drop_reports(|report| report.job == job, out) {
            let Report { index, kind, .. } = told;
            self.scheduler.finished(kind, job);
            self.speculation.unreported(&told);
            self.run_again(job, kind, index);
        }
        for map in self.scheduler.take_back(job) {
            self.scheduler.finished(TaskKind::Map, job);
            self.run_again_unplaced(job, map);
        }
        let most = self.config.failures.master_attempts;
        let master = self.job(job).master.take().expect("it had one");
        self.yarn.masters -= master.container.memory;
        self.abort_master(job, out);
        let (maps, reduces) = (self.spec(job).maps, self.spec(job).reduces);
        let state = self.job(job);
        state.master_failures += 1;
        if (state.maps_done, state.reduces_done) == (maps, reduces) {
            self.job_over(now, job, None, out);
        } else if state.master_failures >= most {
            self.fail_job(now, job, "its application master failed too often", out);
        } else {
            state.registered = false;
            state.reduces_asked = state.reduces_given;
            for kind in [TaskKind::Map, TaskKind::Reduce] {
                self.scheduler.withdraw(kind, job);
            }
            self.submit_application(job);
        }
    }

    fn abort_master(&mut self, job: u32, out: &mut Vec<Action>) {
        let its =
            |u| matches!(u, Use::Master { job: of } | Use::Application { job: of } if of == job);
        self.conns.abort_where(its, out);
    }

    /// A job has failed: its master leaves.
    pub(in crate::mapreduce) fn drop_master(&mut self, job: u32, out: &mut Vec<Action>) {
        self.yarn.waiting.retain(|&of| of != job);
        self.abort_master(job, out);
        if let Some(master) = self.job(job).master.take() {
            self.yarn.masters -= master.container.memory;
            self.workers[master.worker as usize].containers.ended.push(master.container);
        }
        self.drop_reports(|report| report.job == job, out);
    }

    /// Masters will not hear some reports: their tasks, like those of killed attempts, must run again.
    pub(in crate::mapreduce) fn drop_reports(
        &mut self,
        gone: impl Fn(&Report) -> bool,
        out: &mut Vec<Action>,
    ) -> Vec<Report> {
        let numbers: Vec<u32> =
            self.reports.iter().filter(|(_, r)| gone(r)).map(|(number, _)| number).collect();
        let mut dropped = Vec::new();
        for report in numbers {
            let its = |u| matches!(u, Use::Report { report: of } if of == report);
            self.conns.abort_where(its, out);
            dropped.push(self.reports.remove(report));
        }
        dropped
    }
}

impl Job {
    /// A container's attempt was killed: nobody launches it any more.
    pub fn forget_container(&mut self, task: u32) {
        if let Some(master) = &mut self.master {
            master.granted.retain(|&of| of != task);
            master.answered.retain(|&of| of != task);
        }
    }
}
