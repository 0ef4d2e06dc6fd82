//! Failures: attempts that fail or are killed, tasks that run again, jobs that fail, workers that
//! are lost.
//!
//! As in Hadoop (TaskImpl, JobInProgress), a failed attempt is reported like a finished one, and
//! its task waits again. After `map_attempts` or `reduce_attempts` failures the job fails and all
//! its attempts are killed. A killed attempt (lost worker, lost application master) does not count
//! as a failure. A map whose output cannot be fetched any more runs again.
//!
//! An attempt fails at its end, so that all its work is lost. Whether it fails is drawn from the
//! random stream `mapreduce/failure/<kind>/<job>/<task>/<failures>`. Differences from Hadoop: a
//! killed task closes its connections at once, but work on cores and disks that it has begun (at
//! most a piece) runs to its end; nodes are not blacklisted; the output of failed attempts needs no
//! deletion.

//!
//! The master checks its workers every third of `expiry` (JobTracker's ExpireTrackers, YARN's
//! AbstractLivelinessMonitor). A worker without heartbeat for `expiry` is lost: its attempts are
//! killed and their tasks wait again; its finished maps run again while their job's reduces need
//! the outputs; application masters on it start again elsewhere. A heartbeat of a lost worker makes
//! it a new worker with all its slots free. How the namenode detects lost datanodes and replicates
//! their blocks is in [`super::replication`].

use super::config::{FailingTask, Framework};
use super::control::Control;
use super::nodes::Nodes;
use super::report::{FailureCause, Report};
use super::scheduler::index;
use super::task::{Stage, Task};
use eastwest_engine::random::Stream;
use eastwest_types::{Span, TaskKind};

impl Control {
    /// Whether the attempt fails at its end, by the setting of failing tasks or by a random draw.
    pub fn is_to_fail(&mut self, n: &mut Nodes, task: u32) -> bool {
        let failures = &n.cx.config.failures;
        if failures.attempts == 0.0 && failures.tasks.is_empty() {
            return false;
        }
        let t = n.tasks.attempts.get(task);
        let (job, number, kind) = (t.job, t.index, t.kind);
        let state = n.tasks.jobs.running(job);
        let before = state.failures.get(&(index(kind), number)).copied().unwrap_or(0);
        let name = &n.cx.config.jobs[job as usize].name;
        let named = |f: &&FailingTask| {
            (&f.job, f.kind, f.task) == (name, kind, number) && before < f.attempts
        };
        if failures.tasks.iter().any(|f| named(&f)) {
            return true;
        }
        let kind = index(kind);
        let mut stream =
            Stream::new(n.cx.seed, &format!("mapreduce/failure/{kind}/{job}/{number}/{before}"));
        stream.unit() < failures.attempts
    }

    /// Removes a failed or killed attempt from the table of tasks, from its worker and from the
    /// master's state.
    fn drop_attempt(&mut self, n: &mut Nodes, task: u32) -> Task {
        let t = n.drop_attempt(task);
        self.workers.forget(&mut n.cx, t.worker, task);
        self.yarn.forget_container(t.job, task);
        t
    }

    /// Handles the failure of an attempt at its worker: the master will get a report.
    pub fn attempt_failed(&mut self, n: &mut Nodes, task: u32, cause: FailureCause) {
        let t = self.drop_attempt(n, task);
        self.attempt_ended(n, Report { failed: Some(cause), ..t.report() });
    }

    /// Handles the report of a failed attempt at the master: the task waits again, or its job fails
    /// after too many failures.
    pub fn failure_reported(&mut self, n: &mut Nodes, report: Report) {
        let Report { job, index: task, kind, failed: cause, .. } = report;
        let most = match kind {
            TaskKind::Map => n.cx.config.failures.map_attempts,
            TaskKind::Reduce => n.cx.config.failures.reduce_attempts,
        };
        n.tasks.jobs.count_failed(job, kind);
        let failed = n.tasks.jobs.get(job).failures.entry((index(kind), task)).or_default();
        *failed += 1;
        if *failed >= most {
            let reason = cause.unwrap_or(FailureCause::Itself).reason(kind);
            self.fail_job(n, job, reason);
        } else {
            self.run_again(n, (job, kind, task));
        }
    }

    /// Makes a task wait for assignment again after its attempt was lost, unless another attempt of
    /// the task is running.
    fn run_again(&mut self, n: &mut Nodes, (job, kind, task): (u32, TaskKind, u32)) {
        let Some(state) = n.tasks.jobs.find(job) else { return };
        if self.speculation.is_left_alone((job, kind, task)) {
            state.take_back(kind, task, &n.cx.racks);
            self.offer_again(n, job, kind);
        }
    }

    /// Offers one more waiting task of a job to the scheduler. On YARN this needs a registered
    /// application master, which requests a container for the task.
    fn offer_again(&mut self, n: &Nodes, job: u32, kind: TaskKind) {
        if n.cx.config.framework == Framework::Mr1 || self.yarn.is_registered(job) {
            self.scheduler.offer(kind, job, 1);
        }
    }

    /// Makes a map wait for assignment again; the scheduler had planned the map for a worker, but
    /// had not assigned it.
    pub fn run_again_unplaced(&mut self, n: &mut Nodes, job: u32, map: u32) {
        self.scheduler.finished(TaskKind::Map, job);
        if let Some(state) = n.tasks.jobs.find(job) {
            state.maps.put_back(map, &n.cx.racks);
            self.offer_again(n, job, TaskKind::Map);
        }
    }

    /// Makes the task of a finished attempt wait for assignment again, because the attempt's report
    /// is lost.
    pub fn run_again_unreported(&mut self, n: &mut Nodes, report: &Report) {
        if n.tasks.jobs.runs(report.job) {
            self.scheduler.finished(report.kind, report.job);
            self.speculation.unreported(report);
            self.run_again(n, (report.job, report.kind, report.index));
        }
    }

    /// Kills an attempt, which does not count as a failure; its task waits for assignment again.
    fn kill_attempt(&mut self, n: &mut Nodes, task: u32) -> Task {
        let t = self.drop_attempt(n, task);
        n.tasks.jobs.count_killed(&t);
        self.scheduler.finished(t.kind, t.job);
        self.speculation.over((t.job, t.kind, t.index), t.worker);
        self.run_again(n, (t.job, t.kind, t.index));
        t
    }

    /// Kills an attempt, which does not count as a failure, and frees its slot or container; its
    /// task waits again.
    pub fn kill_and_free(&mut self, n: &mut Nodes, task: u32) {
        let t = self.kill_attempt(n, task);
        self.free_dropped(n, &t);
    }

    /// Frees the slot or container of a killed attempt. On Hadoop 1 an attempt whose assignment has
    /// not arrived at the worker uses no slot yet.
    fn free_dropped(&mut self, n: &Nodes, t: &Task) {
        let on_its_way = matches!(t.stage, Stage::Assigned);
        if n.cx.config.framework == Framework::Yarn || !on_its_way {
            self.free_slot(n, t.worker, t.kind);
        }
    }

    /// Frees a slot of a worker, or on YARN a container, after a task of the kind has ended.
    pub fn free_slot(&mut self, n: &Nodes, worker: u32, kind: TaskKind) {
        match n.cx.config.framework {
            Framework::Mr1 => self.workers.free_slot(&n.cx, worker, kind),
            Framework::Yarn => self.yarn.ended(&n.cx.config.yarn, worker, kind),
        }
    }

    /// Handles a reduce's report that it could not fetch a map's output from a worker. After enough
    /// reports the map runs again, and its attempt counts as failed.
    pub fn fetch_failure_reported(&mut self, n: &mut Nodes, (job, map, from): (u32, u32, u32)) {
        let failures = &n.cx.config.failures;
        let (most, fraction) = (failures.fetch_reports, failures.fetch_fraction);
        let reduces = self.scheduler.load(TaskKind::Reduce, job).running;
        let Some(state) = n.tasks.jobs.find(job) else { return };
        if state.reduces_done == n.cx.spec(job).reduces {
            return;
        }
        let Some(reports) = state.outputs.failed(map, from) else { return };
        if reports >= most && f64::from(reports) >= fraction * f64::from(reduces) {
            self.output_lost(n, job, map);
            let (kind, worker) = (TaskKind::Map, from);
            let (took, failed) = (Span::ZERO, Some(FailureCause::Unserved));
            let report = Report { worker, job, index: map, kind, written_offset: 0, failed, took };
            self.failure_reported(n, report);
        }
    }

    /// Marks the output of a finished map as lost; the map does not count as finished any more.
    fn output_lost(&mut self, n: &mut Nodes, job: u32, map: u32) {
        self.speculation.undone(job, map);
        let state = n.tasks.jobs.get(job);
        if state.outputs.lose(map) {
            state.maps_done -= 1;
        }
    }

    /// Fails a job: kills its attempts, and removes its state and its output.
    pub fn fail_job(&mut self, n: &mut Nodes, job: u32, reason: &'static str) {
        for task in n.tasks.attempts_where(|t| t.job == job) {
            let t = self.drop_attempt(n, task);
            n.tasks.jobs.count_killed(&t);
            self.free_dropped(n, &t);
        }
        for kind in [TaskKind::Map, TaskKind::Reduce] {
            self.scheduler.forget(kind, job);
        }
        n.clients.drop_job(&mut n.cx, &mut n.hdfs, job);
        self.yarn.drop_master(&mut n.cx, job);
        n.hdfs.replicas.blocks.delete_output(job);
        self.job_over(n, job, Some(reason));
    }

    /// Checks all workers for missing heartbeats, and declares the workers lost that were silent
    /// for `expiry`.
    pub fn look(&mut self, n: &mut Nodes) {
        for worker in 0..n.cx.hosts.len() as u32 {
            if self.workers.expires(&n.cx, worker) {
                n.cx.failed();
                self.lose(n, worker);
            }
            if self.finished {
                return;
            }
        }
        self.look_later(n);
    }

    fn lose(&mut self, n: &mut Nodes, worker: u32) {
        for task in n.tasks.attempts_where(|t| t.worker == worker) {
            self.kill_attempt(n, task);
        }
        for (job, map) in self.scheduler.lost(worker) {
            self.run_again_unplaced(n, job, map);
        }
        let mut unheard = self.workers.lose(&mut n.cx, worker);
        unheard.extend(self.yarn.drop_reports(&mut n.cx, |report| report.worker == worker));
        for report in unheard {
            self.run_again_unreported(n, &report);
        }
        self.outputs_on(n, worker);
        if n.cx.config.framework == Framework::Yarn {
            for job in self.yarn.node_lost(worker) {
                self.restart(n, job);
            }
        }
    }

    /// Makes maps that finished on a lost worker run again, if a reduce may need their outputs.
    fn outputs_on(&mut self, n: &mut Nodes, worker: u32) {
        for job in 0..n.tasks.jobs.table.len() as u32 {
            let Some(state) = n.tasks.jobs.find(job) else { continue };
            if state.reduces_done == n.cx.spec(job).reduces {
                continue;
            }
            for map in state.outputs.maps_on(worker) {
                self.output_lost(n, job, map);
                self.run_again(n, (job, TaskKind::Map, map));
            }
        }
    }
}
