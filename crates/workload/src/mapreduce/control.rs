//! The control plane: life of a job, heartbeats of workers, answers with tasks.
//!
//! A worker sends a heartbeat every `heartbeat`, the first at a seeded random phase, over one
//! persistent connection to the master. It reports the tasks that have finished since the last one
//! and how many slots were free when it was sent. The answer carries new tasks and, for each reduce
//! running on the worker, how many of its job's maps have finished; both take effect when it
//! arrives. A heartbeat that is due while an answer is outstanding leaves when the answer is there.

use super::config::{Framework, JobSpec};
use super::connections::Use;
use super::failure::Cause;
use super::job::{Job, Output};
use super::scheduler::index;
use super::shuffle::part_maps;
use super::yarn::Containers;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Purpose, Side, Span, TaskKind, TaskRecord, Time};
use serde::{Deserialize, Serialize};

/// A task that has finished, as a heartbeat reports it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where it ran.
    pub worker: u32,
    /// Its job.
    pub job: u32,
    /// Its number within job and kind.
    pub index: u32,
    /// Map or reduce.
    pub kind: TaskKind,
    /// What its worker's machine had written before its output.
    pub mark: u64,
    /// Why it has failed, if it has.
    pub failed: Option<Cause>,
    /// How long it ran.
    pub took: Span,
}

/// A worker: what it knows, and what is on the way between it and the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Worker {
    /// Where it is.
    pub host: HostId,
    conn: ConnId,
    /// Free map and reduce slots.
    pub free: [u32; 2],
    /// Free slots when the last heartbeat was sent.
    pub free_sent: [u32; 2],
    /// Containers on YARN.
    pub containers: Containers,
    /// Finished since the last heartbeat.
    pub finished: Vec<Report>,
    /// Reported by the heartbeat on its way.
    pub reported: Vec<Report>,
    /// (job, map, worker) of outputs its reduces could not fetch.
    pub fetch_failures: Vec<(u32, u32, u32)>,
    /// When the master last heard of it.
    pub heard: Time,
    /// The master has given it up.
    pub lost: bool,
    /// The namenode has given its datanode up.
    pub dead: bool,
    /// Tasks in the answer on its way.
    pub assigned: Vec<u32>,
    /// In the answer on its way: finished maps each reduce may know of.
    pub map_events: Vec<(u32, u32)>,
    /// Reduces given to this worker and not finished.
    pub reduces: Vec<u32>,
    next_heartbeat: Time,
    /// A wake-up for the next heartbeat is due.
    armed: bool,
    /// A heartbeat was sent and its answer has not arrived.
    pub waiting: bool,
    /// Send a heartbeat when the answer has arrived.
    overdue: bool,
}

impl Worker {
    /// A worker with free slots for maps and reduces.
    pub fn new(host: HostId, slots: [u32; 2]) -> Worker {
        Worker {
            host,
            conn: ConnId(u32::MAX),
            free: slots,
            free_sent: slots,
            containers: Containers::default(),
            finished: Vec::new(),
            reported: Vec::new(),
            fetch_failures: Vec::new(),
            heard: Time::ZERO,
            lost: false,
            dead: false,
            assigned: Vec::new(),
            map_events: Vec::new(),
            reduces: Vec::new(),
            next_heartbeat: Time::ZERO,
            armed: false,
            waiting: false,
            overdue: false,
        }
    }
}

impl MapReduce {
    pub(super) fn begin(&mut self, now: Time, out: &mut Vec<Action>) {
        let mut phase = Stream::new(self.seed, "mapreduce/heartbeat");
        let messages = if self.beats.is_some() { 0 } else { self.workers.len() };
        for i in 0..messages {
            let purpose = Use::Heartbeat { worker: i as u32 };
            let ends = (self.workers[i].host, self.master);
            let conn = self.conns.open(purpose, ends, self.config.control_class, out);
            let w = &mut self.workers[i];
            w.conn = conn;
            w.next_heartbeat = now + phase.within(self.config.control.heartbeat);
            w.armed = true;
            out.push(Timer::Heartbeat(i as u32).at(w.next_heartbeat));
        }
        if !self.config.coarse.is_on() {
            self.begin_looking(now, out);
        }
        self.begin_speculating(now, out);
        self.submit(now, out);
        self.finish_if_done(out);
    }

    /// Submits the jobs that are due and asks to be woken for the next.
    pub(super) fn submit(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some(job) = self.config.jobs.get(self.submitted as usize) {
            if job.submit > now {
                out.push(Timer::Submit.at(job.submit));
                return;
            }
            out.push(Timer::Setup(self.submitted).at(now + self.config.control.job_setup));
            self.submitted += 1;
        }
    }

    /// A job is set up: its maps can be given out.
    pub(super) fn admit(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let mut stream = self.stream("placement", job, 0);
        let spec = &self.config.jobs[job as usize];
        let clients = spec.clients;
        let copies = self.config.hdfs.replication;
        let mut state = Job::new(spec, &self.racks, copies, &mut stream);
        for (map, replicas) in self.blocks.moved_of(job) {
            state.maps.moved(map, replicas, &self.racks);
        }
        let maps = spec.maps;
        state.part_maps = part_maps(spec, &self.config);
        self.jobs[job as usize] = Some(Box::new(state));
        if let Some(clients) = clients {
            self.start_clients(now, job, clients, out);
            return;
        }
        if self.config.framework == Framework::Yarn {
            self.submit_application(job);
            return;
        }
        self.scheduler.offer(TaskKind::Map, job, maps);
        self.offer_reduces(job);
    }

    /// Lets reduces be given out once enough maps have finished.
    fn offer_reduces(&mut self, job: u32) {
        let JobSpec { maps, reduces, .. } = self.config.jobs[job as usize];
        let needed = (self.config.control.slowstart * f64::from(maps)).ceil() as u32;
        let state = self.job(job);
        if reduces > state.reduces_asked && state.maps_done >= needed {
            state.reduces_asked = reduces;
            self.scheduler.offer(TaskKind::Reduce, job, reduces);
        }
    }

    pub(super) fn heartbeat_due(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        if self.beats.is_some() {
            self.beat(now, worker, out);
            return;
        }
        let w = &mut self.workers[worker as usize];
        w.armed = false;
        if now < w.next_heartbeat {
            // One was sent out of band meanwhile.
            w.armed = true;
            out.push(Timer::Heartbeat(worker).at(w.next_heartbeat));
        } else {
            self.heartbeat_soon(now, worker, out);
        }
    }

    /// Sends a heartbeat now, or as soon as the outstanding answer has arrived.
    fn heartbeat_soon(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let w = &mut self.workers[worker as usize];
        if w.waiting {
            w.overdue = true;
            return;
        }
        w.waiting = true;
        w.reported = std::mem::take(&mut w.finished);
        w.free_sent = w.free;
        for &task in &w.assigned {
            // of an answer that was lost: they come with the next
            w.free_sent[index(self.tasks.get(task).kind)] -= 1;
        }
        w.containers.report();
        let bytes = self.config.control.heartbeat_bytes;
        out.push(control_message(w.conn, Side::Client, u64::from(bytes), 0, None));
        w.next_heartbeat = now + self.config.control.heartbeat;
        if !w.armed {
            w.armed = true;
            out.push(Timer::Heartbeat(worker).at(w.next_heartbeat));
        }
    }

    /// At the master: takes in the reports and answers with tasks.
    pub(super) fn heartbeat_arrived(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        self.heard(now, worker, out);
        let w = &mut self.workers[worker as usize];
        let (reported, failures) =
            (std::mem::take(&mut w.reported), std::mem::take(&mut w.fetch_failures));
        for report in reported {
            self.task_reported(now, report, out);
        }
        for failure in failures {
            self.fetch_failure_reported(now, failure, out);
        }
        if self.finished {
            return;
        }
        match self.config.framework {
            Framework::Mr1 => {
                self.assign_maps(now, worker);
                self.assign_reduces(worker);
            }
            Framework::Yarn => self.fill_node(now, worker, out),
        }
        let events = self.tell_of_maps(worker);
        if let Some(delay) = self.beat_delay() {
            self.answer_beat(now, worker, delay, out);
            return;
        }
        let control = &self.config.control;
        let w = &self.workers[worker as usize];
        let bytes = u64::from(control.answer_bytes)
            + u64::from(control.assignment_bytes) * w.assigned.len() as u64
            + u64::from(control.map_event_bytes) * events;
        out.push(control_message(w.conn, Side::Server, bytes, 0, None));
    }

    /// At the application master: a task tells that it is done.
    pub(super) fn report_arrived(&mut self, now: Time, report: u32, out: &mut Vec<Action>) {
        let report = self.reports.remove(report);
        self.task_reported(now, report, out);
    }

    /// At the master: a task has finished.
    fn task_reported(&mut self, now: Time, report: Report, out: &mut Vec<Action>) {
        let Report { worker, job, index: task, kind, mark, failed, took } = report;
        if self.jobs[job as usize].is_none() {
            return; // it has failed meanwhile
        }
        self.scheduler.finished(kind, job);
        self.speculation.over((job, kind, task), worker);
        if failed.is_some() {
            self.failure_reported(now, report, out);
            return;
        }
        self.copy_won(&report, out);
        let JobSpec { maps, reduces, .. } = self.config.jobs[job as usize];
        let parts = self.config.coarse.fetches.is_some();
        let state = self.job(job);
        match kind {
            TaskKind::Map => {
                state.maps_done += 1;
                state.longest_map = state.longest_map.max(took);
                if reduces > 0 {
                    state.finished_on.push(worker);
                    if parts {
                        state.marks.push(mark);
                    } else {
                        let output = Output { map: task, mark, lost: false };
                        state.outputs.entry(worker).or_default().push(output);
                        state.map_at.insert(task, worker);
                    }
                    self.tell_soon(now, job, out);
                }
            }
            TaskKind::Reduce => state.reduces_done += 1,
        }
        let state = self.job(job);
        let again = state.finished_on.len() > maps as usize;
        if again && kind == TaskKind::Map && self.config.framework == Framework::Yarn {
            self.poll_again(now, job, out);
        }
        let state = self.job(job);
        if (state.maps_done, state.reduces_done) == (maps, reduces) {
            out.push(Timer::Cleanup(job).at(now + self.config.control.job_cleanup));
        } else if self.config.framework == Framework::Mr1 {
            self.offer_reduces(job);
        }
    }

    /// Where heartbeats are no messages: workers with reduces of the job are to hear of one more
    /// finished map, if that makes them fetch.
    fn tell_soon(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        let maps = self.spec(job).maps;
        let state = self.job(job);
        let known = state.finished_on.len() as u32;
        if known % state.part_maps == 0 || known >= maps {
            let reducers = std::mem::take(&mut state.reducers);
            for &worker in &reducers {
                self.beat_soon(now, worker, out);
            }
            self.job(job).reducers = reducers;
        }
    }

    /// Puts into the answer how many maps every reduce on the worker may know of; returns how many
    /// of them are news.
    fn tell_of_maps(&mut self, worker: u32) -> u64 {
        let mut news = 0;
        let w = &mut self.workers[worker as usize];
        for &task in &w.reduces {
            let t = self.tasks.get(task);
            let job = self.jobs[t.job as usize].as_ref().expect("the job runs");
            let known = job.finished_on.len() as u32;
            if let Some(fetching) = &mut t.fetching {
                let fresh = known - std::mem::replace(&mut fetching.told, known);
                if fresh > 0 {
                    news += u64::from(fresh);
                    w.map_events.push((task, known));
                }
            }
        }
        news
    }

    /// At the worker: starts the tasks of the answer and tells its reduces of finished maps.
    pub(super) fn answer_arrived(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let w = &mut self.workers[worker as usize];
        w.waiting = false;
        let assigned = std::mem::take(&mut w.assigned);
        let events = std::mem::take(&mut w.map_events);
        for task in assigned {
            let t = self.tasks.get(task);
            t.assigned = now;
            let kind = t.kind;
            self.workers[worker as usize].free[index(kind)] -= 1;
            self.launch(now, task, out);
        }
        self.slots_changed(worker);
        for (task, known) in events {
            self.maps_known(now, task, known, out);
        }
        if std::mem::take(&mut self.workers[worker as usize].overdue) {
            self.heartbeat_soon(now, worker, out);
        }
    }

    /// At the worker: a task is through.
    pub(super) fn task_finished(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        if self.is_to_fail(task) {
            self.attempt_failed(now, task, Cause::Itself, out);
            return;
        }
        if self.is_beaten(task) {
            let t = self.kill_attempt(task, out);
            self.free_dropped(&t);
            return;
        }
        let mut t = self.tasks.remove(task);
        self.keep_file(now, (t.job, t.index), std::mem::take(&mut t.written), out);
        self.count_done(&t);
        let mark = self.hardware.mark(t.worker).saturating_sub(t.bytes_out);
        let (worker, host) = (t.worker, self.host(t.worker));
        self.job(t.job).shuffle_local_bytes += t.shuffle_local;
        let (job, index, kind) = (t.job, t.index, t.kind);
        let took = now.since(t.assigned);
        let report = Report { worker, job, index, kind, mark, failed: None, took };
        out.push(Action::Task(Box::new(TaskRecord {
            job: t.job,
            task: t.index,
            kind: t.kind,
            host,
            assigned: t.assigned,
            started: t.started,
            input_done: t.input_done,
            finished: now,
            locality: t.locality,
            bytes_in: t.bytes_in,
            bytes_out: t.bytes_out,
            computed: t.computed,
            merged: t.merged,
            spills: t.counters.spills,
            file_bytes_read: t.counters.file_read,
            file_bytes_written: t.counters.file_written,
            cpu: t.counters.cpu,
        })));
        self.workers[worker as usize].reduces.retain(|&r| r != task);
        self.attempt_ended(now, report, out);
    }

    /// At the worker: an attempt has ended, its slot or container is free, and its master will be told.
    pub(super) fn attempt_ended(&mut self, now: Time, report: Report, out: &mut Vec<Action>) {
        let Report { worker, job, kind, .. } = report;
        self.free_slot(worker, (job, kind));
        if self.config.framework == Framework::Yarn {
            let report = self.reports.add(report);
            self.tell_master(now, report, out);
        } else {
            self.workers[worker as usize].finished.push(report);
            self.beat_soon(now, worker, out);
        }
        if self.config.control.out_of_band_heartbeat && !self.finished {
            self.heartbeat_soon(now, worker, out);
        }
    }

    /// The connection to the master is gone: the worker opens another, and reports again what may not
    /// have arrived.
    pub(super) fn heartbeat_lost(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let purpose = Use::Heartbeat { worker };
        let ends = (self.host(worker), self.master);
        let conn = self.conns.open(purpose, ends, self.config.control_class, out);
        let w = &mut self.workers[worker as usize];
        w.conn = conn;
        w.waiting = false;
        w.overdue = false;
        let mut unheard = std::mem::take(&mut w.reported);
        unheard.append(&mut w.finished);
        w.finished = unheard;
        if !w.armed {
            w.armed = true;
            w.next_heartbeat = now + self.config.control.heartbeat;
            out.push(Timer::Heartbeat(worker).at(w.next_heartbeat));
        }
    }

    /// A job is committed.
    pub(super) fn committed(&mut self, now: Time, job: u32, out: &mut Vec<Action>) {
        match self.config.framework {
            _ if self.jobs[job as usize].is_none() => {}
            Framework::Mr1 => self.job_over(now, job, None, out),
            Framework::Yarn => self.unregister(job, out),
        }
    }

    pub(super) fn finish_if_done(&mut self, out: &mut Vec<Action>) {
        if self.done as usize == self.jobs.len() {
            self.finished = true;
            self.conns.close_all(out);
            out.push(Action::Finished);
        }
    }
}

/// Bytes of files or map outputs, with what goes over the wire beside them: a row in the flow table.
pub fn data_message(
    (conn, from): (ConnId, Side),
    (payload, header): (u64, u32),
    purpose: Purpose,
    job: Option<u32>,
) -> Action {
    Action::Send { conn, from, payload, header, tag: 0, purpose, job, record: true }
}

/// A small message of the framework: no row in the flow table.
pub fn control_message(
    conn: ConnId,
    from: Side,
    payload: u64,
    tag: u64,
    job: Option<u32>,
) -> Action {
    let purpose = Purpose::Control;
    Action::Send { conn, from, payload, header: 0, tag, purpose, job, record: false }
}
