//! Attempts that fail or are killed, tasks that run again, jobs that fail.
//!
//! As in Hadoop (TaskImpl, JobInProgress): a failed attempt is reported like one that is done; its
//! task waits again, until `map_attempts` or `reduce_attempts` of them have failed: then the job
//! fails and all its attempts are killed. A killed attempt (lost worker, lost application master)
//! counts as no failure. A map whose output can no longer be fetched runs again.
//!
//! An attempt fails at its end, so that all it did was in vain; whether it does is drawn from the
//! stream `mapreduce/failure/<job>/<task>` of its kind, one draw per attempt. Departures: a killed
//! task gives up its connections at once, but what it had begun on cores and disks (at most a piece)
//! runs to its end; nodes are not blacklisted; the output of failed attempts needs no deletion.

use super::config::Framework;
use super::connections::Use;
use super::control::Report;
use super::namenode::Caller;
use super::scheduler::index;
use super::task::{Stage, Task};
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{JobRecord, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// Why an attempt has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Cause {
    /// By itself, as the scenario wants it.
    Itself,
    /// No datanode had its split (BlockMissingException).
    Missing,
    /// No datanode was left to write to (DataStreamer: all datanodes are bad; failed to replace a bad
    /// datanode).
    Unwritten,
    /// Too many fetches failed (ShuffleError: MAX_FAILED_UNIQUE_FETCHES).
    Unfetched,
    /// Its output could not be fetched by others (TOO_MANY_FETCH_FAILURES).
    Unserved,
}

impl Cause {
    /// What is said of a job whose task has failed too often, the last time for this cause.
    fn reason(self, kind: TaskKind) -> &'static str {
        match (kind, self) {
            (TaskKind::Map, Cause::Missing) => {
                "a map failed too often: no datanode had a block of its split"
            }
            (TaskKind::Map, Cause::Unwritten) => {
                "a map failed too often: no datanode was left to write to"
            }
            (TaskKind::Map, Cause::Unserved) => {
                "a map failed too often: its output could not be fetched"
            }
            (TaskKind::Map, _) => "a map failed too often",
            (TaskKind::Reduce, Cause::Unwritten) => {
                "a reduce failed too often: no datanode was left to write to"
            }
            (TaskKind::Reduce, Cause::Unfetched) => {
                "a reduce failed too often: too many fetches failed"
            }
            (TaskKind::Reduce, _) => "a reduce failed too often",
        }
    }
}

impl MapReduce {
    /// Whether the attempt that has come to its end fails.
    pub(super) fn is_to_fail(&mut self, task: u32) -> bool {
        let failures = &self.config.failures;
        if failures.attempts == 0.0 && failures.tasks.is_empty() {
            return false;
        }
        let t = self.tasks.get(task);
        let (job, number, kind) = (t.job, t.index, t.kind);
        let state = self.jobs[job as usize].as_ref().expect("the job runs");
        let before = state.failures.get(&(index(kind), number)).copied().unwrap_or(0);
        let name = &self.config.jobs[job as usize].name;
        let named = |f: &&super::config::FailingTask| {
            (&f.job, f.kind, f.task) == (name, kind, number) && before < f.attempts
        };
        if failures.tasks.iter().any(|f| named(&f)) {
            return true;
        }
        let kind = index(kind);
        let mut stream =
            Stream::new(self.seed, &format!("mapreduce/failure/{kind}/{job}/{number}/{before}"));
        stream.unit() < failures.attempts
    }

    /// Takes an attempt off its worker: its connections end, its files are given up.
    fn drop_attempt(&mut self, task: u32, out: &mut Vec<Action>) -> Task {
        if let Some(session) = self.session_of(Caller::Split { task }) {
            self.drop_session(session, out);
        }
        let t = self.tasks.remove(task);
        if let Stage::Producing(producing) = &t.stage {
            if let Some(writer) = producing.writer() {
                self.drop_writer(writer, out);
            }
        }
        let of_task = |u| match u {
            Use::Split { task: of, .. } | Use::Fetch { task: of, .. } => of == task,
            Use::Launch { task: of } | Use::Events { task: of } => of == task,
            _ => false,
        };
        self.conns.abort_where(of_task, out);
        let w = &mut self.workers[t.worker as usize];
        w.assigned.retain(|&of| of != task);
        w.reduces.retain(|&of| of != task);
        w.map_events.retain(|&(of, _)| of != task);
        if let Some(job) = &mut self.jobs[t.job as usize] {
            job.forget_container(task);
        }
        t
    }

    /// At the worker: an attempt has failed.
    pub(super) fn attempt_failed(
        &mut self,
        now: Time,
        task: u32,
        cause: Cause,
        out: &mut Vec<Action>,
    ) {
        let t = self.drop_attempt(task, out);
        let report = Report {
            worker: t.worker,
            job: t.job,
            index: t.index,
            kind: t.kind,
            mark: 0,
            failed: Some(cause),
            took: Span::ZERO,
        };
        self.attempt_ended(now, report, out);
    }

    /// At the master: an attempt has failed.
    pub(super) fn failure_reported(&mut self, now: Time, report: Report, out: &mut Vec<Action>) {
        let Report { job, index: task, kind, failed: cause, .. } = report;
        let most = match kind {
            TaskKind::Map => self.config.failures.map_attempts,
            TaskKind::Reduce => self.config.failures.reduce_attempts,
        };
        self.count_failed(job, kind);
        let failed = self.job(job).failures.entry((index(kind), task)).or_default();
        *failed += 1;
        if *failed >= most {
            let reason = cause.unwrap_or(Cause::Itself).reason(kind);
            self.fail_job(now, job, reason, out);
        } else {
            self.run_again(job, kind, task);
        }
    }

    /// A task that was given out waits again, unless it has another attempt.
    pub(super) fn run_again(&mut self, job: u32, kind: TaskKind, task: u32) {
        let Some(state) = self.jobs[job as usize].as_mut() else { return };
        if !self.speculation.is_left_alone((job, kind, task)) {
            return;
        }
        match kind {
            TaskKind::Map => {
                state.maps.put_back(task, &self.racks);
                state.maps_given -= 1;
            }
            TaskKind::Reduce => {
                state.reduces_back.push(task);
                state.reduces_given -= 1;
            }
        }
        self.offer_again(job, kind);
    }

    /// One more task of a job waits. On YARN its master asks for it, once there is one.
    fn offer_again(&mut self, job: u32, kind: TaskKind) {
        if self.config.framework == Framework::Mr1 || self.job(job).registered {
            self.scheduler.offer(kind, job, 1);
        }
    }

    /// A map that was meant for a worker, and never given out, waits again.
    pub(super) fn run_again_unplaced(&mut self, job: u32, map: u32) {
        if let Some(state) = self.jobs[job as usize].as_mut() {
            state.maps.put_back(map, &self.racks);
            self.offer_again(job, TaskKind::Map);
        }
    }

    /// The master kills an attempt that is no failure of its own; its task waits again.
    pub(super) fn kill_attempt(&mut self, task: u32, out: &mut Vec<Action>) -> Task {
        let t = self.drop_attempt(task, out);
        self.count_killed(&t);
        self.scheduler.finished(t.kind, t.job);
        self.speculation.over((t.job, t.kind, t.index), t.worker);
        self.run_again(t.job, t.kind, t.index);
        t
    }

    /// Gives back the slot or container of an attempt that was killed. On Hadoop 1 a slot is taken
    /// when the assignment arrives.
    pub(super) fn free_dropped(&mut self, t: &Task) {
        let on_its_way = matches!(t.stage, Stage::Assigned);
        if self.config.framework == Framework::Yarn || !on_its_way {
            self.free_slot(t.worker, (t.job, t.kind));
        }
    }

    /// A reduce could not fetch a map's output from a worker. When enough reduces say so, the map
    /// runs again, and its attempt counts as failed.
    pub(super) fn fetch_failure_reported(
        &mut self,
        now: Time,
        (job, map, from): (u32, u32, u32),
        out: &mut Vec<Action>,
    ) {
        let failures = &self.config.failures;
        let (most, fraction) = (failures.fetch_reports, failures.fetch_fraction);
        let reduces = self.scheduler.load(TaskKind::Reduce, job).running;
        let Some(state) = self.jobs[job as usize].as_mut() else { return };
        let through = state.reduces_done == self.config.jobs[job as usize].reduces;
        if through || state.map_at.get(&map) != Some(&from) {
            return;
        }
        let reports = state.fetch_failures.entry(map).or_default();
        *reports += 1;
        if *reports >= most && f64::from(*reports) >= fraction * f64::from(reduces) {
            self.output_lost(job, map);
            let (kind, worker) = (TaskKind::Map, from);
            let (took, failed) = (Span::ZERO, Some(Cause::Unserved));
            let report = Report { worker, job, index: map, kind, mark: 0, failed, took };
            self.failure_reported(now, report, out);
        }
    }

    /// The output of a finished map is given up: the map is not done any more.
    pub(super) fn output_lost(&mut self, job: u32, map: u32) {
        self.speculation.undone(job, map);
        let state = self.job(job);
        state.fetch_failures.remove(&map);
        let Some(worker) = state.map_at.remove(&map) else { return };
        let outputs = state.outputs.get_mut(&worker).expect("it lists the output");
        for output in outputs.iter_mut().filter(|output| output.map == map) {
            output.lost = true;
        }
        state.maps_done -= 1;
    }

    /// A job fails: its attempts are killed, and it is forgotten.
    pub(super) fn fail_job(
        &mut self,
        now: Time,
        job: u32,
        reason: &'static str,
        out: &mut Vec<Action>,
    ) {
        let running: Vec<u32> =
            self.tasks.iter().filter(|(_, t)| t.job == job).map(|(number, _)| number).collect();
        for task in running {
            let t = self.drop_attempt(task, out);
            self.count_killed(&t);
            self.free_dropped(&t);
        }
        for kind in [TaskKind::Map, TaskKind::Reduce] {
            self.scheduler.forget(kind, job);
        }
        self.drop_clients(job, out);
        self.drop_master(job, out);
        self.blocks.delete_output(job);
        self.job_over(now, job, Some(reason), out);
    }

    /// A job has finished or failed, and is forgotten.
    pub(super) fn job_over(
        &mut self,
        now: Time,
        job: u32,
        failed: Option<&'static str>,
        out: &mut Vec<Action>,
    ) {
        let state = self.jobs[job as usize].take().expect("a job ends once");
        self.speculation.forget(job);
        let spec = self.spec(job);
        out.push(Action::Job(Box::new(JobRecord {
            job,
            name: spec.name.clone(),
            kind: spec.kind,
            class: self.config.class,
            submitted: spec.submit,
            started: state.started.unwrap_or(now),
            finished: now,
            maps: spec.maps,
            reduces: spec.reduces,
            input_bytes: spec.bytes.input,
            shuffle_bytes: spec.bytes.shuffle,
            shuffle_local_bytes: state.shuffle_local_bytes,
            output_bytes: spec.bytes.output,
            failed,
            counters: state.counters,
        })));
        self.done += 1;
        self.finish_if_done(out);
    }

    /// Asks to look at the workers again.
    pub(super) fn look_later(&self, now: Time, out: &mut Vec<Action>) {
        out.push(Timer::Look.at(now + Span(self.config.failures.expiry.0 / 3)));
    }
}
