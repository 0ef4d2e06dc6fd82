//! Attempts that fail or are killed, tasks that run again, jobs that fail.
//!
//! As in Hadoop (TaskImpl, JobInProgress): a failed attempt is reported like one that is done; its
//! task waits again, until `map_attempts` or `reduce_attempts` of them have failed: then the job
//! fails and all its attempts are killed. A killed attempt (lost worker, lost application master)
//! counts as no failure. A map whose output can no longer be fetched runs again.
//!
//! An attempt fails at its end, so that all it did was in vain; whether it does is drawn from the
//! stream `mapreduce/failure/<job>/<task>` of its kind, one draw per attempt. Differences from Hadoop: a killed
//! task gives up its connections at once, but what it had begun on cores and disks (at most a piece)
//! runs to its end; nodes are not blacklisted; the output of failed attempts needs no deletion.

//!
//! The master looks at its workers every third of `expiry` (JobTracker's ExpireTrackers, YARN's
//! AbstractLivelinessMonitor). One that has not been heard of for `expiry` is lost: its attempts are
//! killed and their tasks wait again; maps that were done on it run again as long as their job's
//! reduces need outputs; what its application masters managed starts again. If it is heard of later
//! it is a new worker with all its slots free. When the namenode believes it lost, and what becomes
//! of its blocks, is [`super::replication`]'s business.

use super::config::{FailingTask, Framework};
use super::control::Control;
use super::nodes::Nodes;
use super::report::{FailureCause, Report};
use super::scheduler::index;
use super::task::{Stage, Task};
use eastwest_engine::random::Stream;
use eastwest_types::{Span, TaskKind};

impl Control {
    /// Whether the attempt that has come to its end fails.
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

    /// Takes an attempt off its worker, and nobody expects it any more.
    fn drop_attempt(&mut self, n: &mut Nodes, task: u32) -> Task {
        let t = n.drop_attempt(task);
        self.workers.forget(t.worker, task);
        self.yarn.forget_container(t.job, task);
        t
    }

    /// At the worker: an attempt has failed.
    pub fn attempt_failed(&mut self, n: &mut Nodes, task: u32, cause: FailureCause) {
        let t = self.drop_attempt(n, task);
        self.attempt_ended(n, Report { failed: Some(cause), ..t.report() });
    }

    /// At the master: an attempt has failed.
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

    /// A task that was given out waits again, unless it has another attempt.
    fn run_again(&mut self, n: &mut Nodes, (job, kind, task): (u32, TaskKind, u32)) {
        let Some(state) = n.tasks.jobs.find(job) else { return };
        if self.speculation.is_left_alone((job, kind, task)) {
            state.take_back(kind, task, &n.cx.racks);
            self.offer_again(n, job, kind);
        }
    }

    /// One more task of a job waits. On YARN its master asks for it, once there is one.
    fn offer_again(&mut self, n: &Nodes, job: u32, kind: TaskKind) {
        if n.cx.config.framework == Framework::Mr1 || self.yarn.is_registered(job) {
            self.scheduler.offer(kind, job, 1);
        }
    }

    /// A map that was meant for a worker, and never given out, waits again.
    pub fn run_again_unplaced(&mut self, n: &mut Nodes, job: u32, map: u32) {
        self.scheduler.finished(TaskKind::Map, job);
        if let Some(state) = n.tasks.jobs.find(job) {
            state.maps.put_back(map, &n.cx.racks);
            self.offer_again(n, job, TaskKind::Map);
        }
    }

    /// The task of an attempt that was through and is never reported waits again.
    pub fn run_again_unreported(&mut self, n: &mut Nodes, report: &Report) {
        if n.tasks.jobs.runs(report.job) {
            self.scheduler.finished(report.kind, report.job);
            self.speculation.unreported(report);
            self.run_again(n, (report.job, report.kind, report.index));
        }
    }

    /// The master kills an attempt that is no failure of its own; its task waits again.
    fn kill_attempt(&mut self, n: &mut Nodes, task: u32) -> Task {
        let t = self.drop_attempt(n, task);
        n.tasks.jobs.count_killed(&t);
        self.scheduler.finished(t.kind, t.job);
        self.speculation.over((t.job, t.kind, t.index), t.worker);
        self.run_again(n, (t.job, t.kind, t.index));
        t
    }

    /// Kills an attempt as `kill_attempt` does, and frees its slot or container.
    pub fn kill_and_free(&mut self, n: &mut Nodes, task: u32) {
        let t = self.kill_attempt(n, task);
        self.free_dropped(n, &t);
    }

    /// Gives back the slot or container of an attempt that was killed. On Hadoop 1 a slot is taken
    /// when the assignment arrives.
    fn free_dropped(&mut self, n: &Nodes, t: &Task) {
        let on_its_way = matches!(t.stage, Stage::Assigned);
        if n.cx.config.framework == Framework::Yarn || !on_its_way {
            self.free_slot(n, t.worker, t.kind);
        }
    }

    /// A slot or a container is free again.
    pub fn free_slot(&mut self, n: &Nodes, worker: u32, kind: TaskKind) {
        match n.cx.config.framework {
            Framework::Mr1 => self.workers.free_slot(worker, kind),
            Framework::Yarn => self.yarn.ended(&n.cx.config.yarn, worker, kind),
        }
    }

    /// A reduce could not fetch a map's output from a worker. When enough reduces say so, the map
    /// runs again, and its attempt counts as failed.
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

    /// The output of a finished map is given up: the map is not done any more.
    fn output_lost(&mut self, n: &mut Nodes, job: u32, map: u32) {
        self.speculation.undone(job, map);
        let state = n.tasks.jobs.get(job);
        if state.outputs.lose(map) {
            state.maps_done -= 1;
        }
    }

    /// A job fails: its attempts are killed, and it is forgotten.
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

    /// Looks at all workers.
    pub fn look(&mut self, n: &mut Nodes) {
        for worker in 0..n.cx.hosts.len() as u32 {
            if self.workers.expires(&n.cx, worker) {
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
        let mut unheard = self.workers.lose(&n.cx, worker);
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

    /// Maps that were done on a lost worker run again where a reduce may need them.
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
