//! The master: jobs, heartbeats and reports.
//!
//! On Hadoop 1 it is the jobtracker; on YARN it is the resource manager and all application
//! masters, whose messages are in [`super::yarn`].

use super::coarse_heartbeats::CoarseHeartbeats;
use super::config::{Framework, MapReduceConfig};
use super::content::{Answer, Heartbeat};
use super::job::Job;
use super::nodes::Nodes;
use super::owners;
use super::racks::Racks;
use super::report::{FailureCause, Report};
use super::scheduler::{Scheduler, index};
use super::shuffle::part_maps;
use super::speculate::Speculation;
use super::task::Stage;
use super::timer::Timer;
use super::workers::Workers;
use super::yarn::Yarn;
use crate::protocol::Action;
use eastwest_types::{ConnId, JobRecord, Span, TaskKind, TaskRecord, Time};
use serde::{Deserialize, Serialize};

/// The master of the cluster: jobtracker, or on YARN resource manager and application masters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Control {
    /// Scheduler, which chooses the job that gets the next free slot or container.
    pub scheduler: Scheduler,
    /// Workers with the slots and heartbeats that the master knows.
    pub workers: Workers,
    /// State of containers and application masters on YARN.
    pub yarn: Yarn,
    /// State of speculative execution: second attempts of slow tasks.
    pub speculation: Speculation,
    /// Number of jobs submitted so far, which is also the number of the next job.
    submitted: u32,
    /// Number of jobs that have ended, finished or failed.
    pub done: u32,
    /// Whether all jobs have ended.
    pub finished: bool,
}

impl Control {
    /// Returns the initial state of the master of a cluster with `workers` workers.
    pub fn new(config: &MapReduceConfig, workers: usize, racks: &Racks, seed: u64) -> Control {
        let each = match config.framework {
            Framework::Mr1 => [config.map_slots, config.reduce_slots],
            Framework::Yarn => config.yarn.slots(),
        };
        let slots = each.map(|n| u64::from(n) * workers as u64);
        let owners = owners::owners(config);
        Control {
            scheduler: Scheduler::new(config.scheduler, &config.scheduling, owners, slots, racks),
            workers: Workers::new(config, workers, seed),
            yarn: Yarn::new(workers),
            speculation: Speculation::default(),
            submitted: 0,
            done: 0,
            finished: false,
        }
    }

    /// Submits the jobs that are due at the start, and schedules the first check for slow tasks.
    pub fn begin(&mut self, n: &mut Nodes) {
        self.speculation.look_later(&mut n.cx);
        self.submit(n);
        self.finish_if_done(n);
    }

    /// Submits the jobs that are due and schedules a wake-up for the next one.
    pub fn submit(&mut self, n: &mut Nodes) {
        while let Some(job) = n.cx.config.jobs.get(self.submitted as usize) {
            if job.submit > n.cx.now {
                n.cx.wake(job.submit, Timer::Submit);
                return;
            }
            n.cx.wake_in(n.cx.config.control.job_setup, Timer::Setup(self.submitted));
            self.submitted += 1;
        }
    }

    /// Admits a job after its set-up: its maps can be assigned from now on.
    pub fn admit(&mut self, n: &mut Nodes, job: u32) {
        let mut stream = n.cx.stream("placement", job, 0);
        let spec = n.cx.spec(job);
        let (maps, clients) = (spec.maps, spec.clients);
        let mut state = Job::new(spec, &n.cx.racks, n.cx.config.hdfs.replication, &mut stream);
        for (map, replicas) in n.hdfs.replicas.blocks.moved_of(job) {
            state.maps.moved(map, replicas, &n.cx.racks);
        }
        state.outputs.part_maps = part_maps(spec, &n.cx.config);
        n.tasks.jobs.table[job as usize] = Some(Box::new(state));
        if let Some(clients) = clients {
            n.clients.start(&mut n.cx, job, clients);
        } else if n.cx.config.framework == Framework::Yarn {
            self.yarn.submit(job);
        } else {
            self.scheduler.offer(TaskKind::Map, job, maps);
            self.offer_reduces(n, job);
        }
    }

    /// Offers the reduces of a job to the scheduler when the fraction `slowstart` of its maps has
    /// finished.
    fn offer_reduces(&mut self, n: &mut Nodes, job: u32) {
        let spec = n.cx.spec(job);
        let needed = (n.cx.config.control.slowstart * f64::from(spec.maps)).ceil() as u32;
        let state = n.tasks.jobs.get(job);
        if spec.reduces > state.reduces_asked && state.maps_done >= needed {
            state.reduces_asked = spec.reduces;
            self.scheduler.offer(TaskKind::Reduce, job, spec.reduces);
        }
    }

    /// Handles the wake-up at the time of a worker's next heartbeat.
    pub fn heartbeat_due(&mut self, n: &mut Nodes, worker: u32) {
        if self.workers.beats.is_some() {
            self.beat(n, worker);
        } else if self.workers.is_due(&mut n.cx, worker) {
            self.send_heartbeat(n, worker);
        }
    }

    /// Sends a worker's heartbeat at once; if the answer to the last heartbeat is outstanding,
    /// sends it when that answer has arrived.
    fn send_heartbeat(&mut self, n: &mut Nodes, worker: u32) {
        if self.workers.send_heartbeat(&mut n.cx, &n.tasks, worker) {
            self.yarn.report(worker);
        }
    }

    /// Handles a heartbeat in an approximate run, in which heartbeats are not sent as messages.
    fn beat(&mut self, n: &mut Nodes, worker: u32) {
        if let Some(heartbeat) = self.workers.beat(&n.cx, &n.tasks, worker) {
            self.heartbeat_arrived(n, worker, None, heartbeat);
        }
    }

    /// Handles a worker's heartbeat at the master: handles its reports, and answers with tasks.
    /// `conn` is the connection of the heartbeat; `None` if it was no message.
    pub fn heartbeat_arrived(
        &mut self,
        n: &mut Nodes,
        worker: u32,
        conn: Option<ConnId>,
        heartbeat: Heartbeat,
    ) {
        self.workers.heard(&n.cx, worker, conn, heartbeat.free);
        for report in heartbeat.reports {
            self.task_reported(n, report);
        }
        for failure in heartbeat.fetch_failures {
            self.fetch_failure_reported(n, failure);
        }
        if self.finished {
            return;
        }
        match n.cx.config.framework {
            Framework::Mr1 => {
                self.assign_maps(n, worker);
                self.assign_reduces(n, worker);
            }
            Framework::Yarn => {
                self.yarn.heard(&mut n.cx, worker);
                self.assign_reduces(n, worker);
                self.assign_maps(n, worker);
            }
        }
        self.workers.answer(&mut n.cx, &n.tasks, worker, &heartbeat.fetching);
    }

    /// Handles the answer to a heartbeat at the worker, in a run in which heartbeats are not sent as
    /// messages.
    pub fn answer_due(&mut self, n: &mut Nodes, worker: u32) {
        let answer = self.workers.take_answer(&n.cx, worker);
        self.answer_arrived(n, worker, answer);
    }

    /// Handles the answer to a heartbeat at the worker.
    pub fn answer_arrived(&mut self, n: &mut Nodes, worker: u32, answer: Answer) {
        if self.workers.answered(&mut n.cx, &mut n.tasks, worker, answer) {
            self.send_heartbeat(n, worker);
        }
    }

    /// Returns whether maps and whether reduces wait for a worker with free slots; includes
    /// speculative attempts.
    fn wanted(&self) -> [bool; 2] {
        [TaskKind::Map, TaskKind::Reduce]
            .map(|kind| self.scheduler.waiting(kind) > 0 || self.speculation.wants(index(kind)))
    }

    /// Schedules the next assignment if heartbeats are not sent as messages: at the next heartbeat
    /// of a worker that has free slots for waiting tasks.
    pub fn schedule_assignment(&mut self, n: &mut Nodes) {
        if self.workers.beats.is_none() || self.finished {
            return;
        }
        let wanted = self.wanted();
        if let Some(beats) = &mut self.workers.beats {
            beats.schedule_assignment(&mut n.cx, wanted);
        }
    }

    /// Assigns waiting tasks to the workers whose heartbeats arrive now.
    pub fn ask_takers(&mut self, n: &mut Nodes) {
        let beats = self.workers.beats.as_mut();
        for worker in
            beats.map_or(Vec::new(), |beats: &mut CoarseHeartbeats| beats.workers_due(n.cx.now))
        {
            if !self.finished && self.wanted() != [false; 2] {
                self.beat(n, worker);
            }
        }
    }

    /// Handles the end of the work of a task's attempt at its worker. The attempt fails if the
    /// settings of failures demand this; it is killed if another attempt of the task was faster;
    /// otherwise it succeeds.
    pub fn task_finished(&mut self, n: &mut Nodes, task: u32) {
        if self.is_to_fail(n, task) {
            self.attempt_failed(n, task, FailureCause::Itself);
            return;
        }
        if self.speculation.is_beaten(n.tasks.attempts.get(task)) {
            self.kill_and_free(n, task);
            return;
        }
        let mut t = n.tasks.attempts.remove(task);
        if let Stage::Committing(blocks) = &mut t.stage {
            let blocks = std::mem::take(blocks);
            n.hdfs.replicas.keep_file(&mut n.cx, (t.job, t.index), blocks);
        }
        n.tasks.jobs.count_done(&n.cx, &t);
        let written_offset = n.cx.hardware.written_offset(t.worker).saturating_sub(t.bytes_out);
        n.tasks.jobs.get(t.job).shuffle_local_bytes += t.shuffle_local;
        let took = n.cx.now.since(t.times.assigned);
        let report = Report { written_offset, took, ..t.report() };
        n.cx.out.push(Action::Task(Box::new(TaskRecord {
            job: t.job,
            task: t.index,
            kind: t.kind,
            host: n.cx.host(t.worker),
            assigned: t.times.assigned,
            started: t.times.started,
            input_done: t.times.input_done,
            finished: n.cx.now,
            locality: t.locality,
            bytes_in: t.bytes_in,
            bytes_out: t.bytes_out,
            computed: t.times.computed,
            merged: t.times.merged,
            spills: t.counters.spills,
            file_bytes_read: t.counters.file_read,
            file_bytes_written: t.counters.file_written,
            cpu: t.counters.cpu,
        })));
        self.workers.reduce_ended(&n.cx, t.worker, task);
        self.attempt_ended(n, report);
    }

    /// Handles the end of an attempt at its worker: its slot or container is free, and the master
    /// will get a report.
    pub fn attempt_ended(&mut self, n: &mut Nodes, report: Report) {
        let worker = report.worker;
        self.free_slot(n, worker, report.kind);
        if n.cx.config.framework == Framework::Yarn {
            if let Some(report) = self.yarn.tell_master(&mut n.cx, report) {
                self.task_reported(n, report);
            }
        } else {
            self.workers.ended(&mut n.cx, report);
        }
        if n.cx.config.control.out_of_band_heartbeat && !self.finished {
            self.send_heartbeat(n, worker);
        }
    }

    /// Handles the report of a finished task at the master.
    pub fn task_reported(&mut self, n: &mut Nodes, report: Report) {
        let Report { worker, job, index: task, kind, written_offset, failed, took } = report;
        if !n.tasks.jobs.runs(job) {
            return; // the job failed before the report arrived
        }
        self.scheduler.finished(kind, job);
        self.speculation.over((job, kind, task), worker);
        if failed.is_some() {
            self.failure_reported(n, report);
            return;
        }
        if self.speculation.won(&n.cx, &report) {
            self.kill_others(n, &report);
        }
        let reduces = n.cx.spec(job).reduces;
        let state = n.tasks.jobs.get(job);
        match kind {
            TaskKind::Map => {
                state.maps_done += 1;
                state.longest_map = state.longest_map.max(took);
                if reduces > 0 {
                    let in_parts = n.cx.config.coarse.fetches.is_some();
                    state.outputs.add(task, worker, written_offset, in_parts);
                    self.tell_soon(n, job);
                    self.poll_again(n, job);
                }
            }
            TaskKind::Reduce => state.reduces_done += 1,
        }
        if n.tasks.jobs.get(job).is_through(n.cx.spec(job)) {
            n.cx.wake_in(n.cx.config.control.job_cleanup, Timer::Cleanup(job));
        } else if n.cx.config.framework == Framework::Mr1 {
            self.offer_reduces(n, job);
        }
    }

    /// Schedules the next heartbeat of workers with reduces of the job, if heartbeats are not sent
    /// as messages. Does so only when enough maps have finished that a reduce can fetch its next
    /// part.
    fn tell_soon(&mut self, n: &mut Nodes, job: u32) {
        let maps = n.cx.spec(job).maps;
        let state = n.tasks.jobs.get(job);
        let known = state.outputs.reported();
        if known % state.outputs.part_maps == 0 || known >= maps {
            for &worker in &state.reducers {
                self.workers.beat_soon(&mut n.cx, worker);
            }
        }
    }

    /// Handles the end of a stand-alone HDFS client of a job, which has read `read` bytes and
    /// written `written` bytes.
    pub fn client_through(
        &mut self,
        n: &mut Nodes,
        job: u32,
        started: Time,
        (read, written): (u64, u64),
    ) {
        n.tasks.jobs.count_client(job, read, written);
        let state = n.tasks.jobs.get(job);
        state.started.get_or_insert(started);
        state.maps_done += 1;
        if state.maps_done == n.cx.spec(job).maps {
            self.job_over(n, job, None);
        }
    }

    /// Handles the end of a job's commit at the master: the job ends, or on YARN its application
    /// master unregisters.
    pub fn committed(&mut self, n: &mut Nodes, job: u32) {
        match n.cx.config.framework {
            _ if !n.tasks.jobs.runs(job) => {}
            Framework::Mr1 => self.job_over(n, job, None),
            Framework::Yarn => self.yarn.unregister(&mut n.cx, job),
        }
    }

    /// Ends a finished or failed job: writes its record and removes its state. `failed`: reason of
    /// the failure, `None` for a finished job.
    pub fn job_over(&mut self, n: &mut Nodes, job: u32, failed: Option<&'static str>) {
        let state = n.tasks.jobs.table[job as usize].take().expect("a job ends once");
        self.speculation.forget(job);
        let spec = n.cx.spec(job);
        let record = JobRecord {
            job,
            name: spec.name.clone(),
            kind: spec.kind,
            class: n.cx.config.class,
            submitted: spec.submit,
            started: state.started.unwrap_or(n.cx.now),
            finished: n.cx.now,
            maps: spec.maps,
            reduces: spec.reduces,
            input_bytes: spec.bytes.input,
            shuffle_bytes: spec.bytes.shuffle,
            shuffle_local_bytes: state.shuffle_local_bytes,
            output_bytes: spec.bytes.output,
            failed,
            counters: state.counters,
        };
        n.cx.out.push(Action::Job(Box::new(record)));
        self.done += 1;
        self.finish_if_done(n);
    }

    fn finish_if_done(&mut self, n: &mut Nodes) {
        if self.done as usize == n.tasks.jobs.table.len() {
            self.finished = true;
            n.cx.close_where(|_| true);
            n.cx.out.push(Action::Finished);
        }
    }

    /// Schedules the next check for workers whose heartbeats are missing.
    pub fn look_later(&self, n: &mut Nodes) {
        n.cx.wake_in(Span(n.cx.config.failures.expiry.0 / 3), Timer::Look);
    }
}
