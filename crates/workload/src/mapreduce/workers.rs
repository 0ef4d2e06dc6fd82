//! Workers: their slots, and the heartbeats between them and the master.
//!
//! A worker sends a heartbeat every `heartbeat`, the first at a seeded random phase, over one
//! persistent connection to the master. It reports the tasks that have finished since the last one
//! and how many slots were free when it was sent. The answer carries new tasks and, for each reduce
//! running on the worker, how many of its job's maps have finished; both take effect when it
//! arrives. A heartbeat that is due while an answer is outstanding leaves when the answer is there.

use super::coarse_heartbeats::CoarseHeartbeats;
use super::config::MapReduceConfig;
use super::connections::Use;
use super::context::Context;
use super::report::Report;
use super::scheduler::index;
use super::tasks::Tasks;
use super::timer::Timer;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Side, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// A worker: what it knows, and what is on the way between it and the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Worker {
    conn: ConnId,
    /// Free map and reduce slots.
    free: [u32; 2],
    /// Free slots when the last heartbeat was sent.
    pub free_sent: [u32; 2],
    /// Finished since the last heartbeat.
    finished: Vec<Report>,
    /// Reported by the heartbeat on its way.
    reported: Vec<Report>,
    /// (job, map, worker) of outputs its reduces could not fetch.
    pub fetch_failures: Vec<(u32, u32, u32)>,
    /// When the master last heard of it.
    heard: Time,
    /// The master has given it up.
    lost: bool,
    /// Tasks in the answer on its way.
    assigned: Vec<(u32, TaskKind)>,
    /// In the answer on its way: finished maps each reduce may know of.
    map_events: Vec<(u32, u32)>,
    /// Reduces given to this worker and not finished.
    reduces: Vec<u32>,
    next_heartbeat: Time,
    /// A wake-up for the next heartbeat is due.
    armed: bool,
    /// A heartbeat was sent and its answer has not arrived.
    waiting: bool,
    /// Send a heartbeat when the answer has arrived.
    overdue: bool,
}

impl Worker {
    /// A worker with free slots for maps and reduces.
    fn new(slots: [u32; 2]) -> Worker {
        Worker {
            conn: ConnId(u32::MAX),
            free: slots,
            free_sent: slots,
            finished: Vec::new(),
            reported: Vec::new(),
            fetch_failures: Vec::new(),
            heard: Time::ZERO,
            lost: false,
            assigned: Vec::new(),
            map_events: Vec::new(),
            reduces: Vec::new(),
            next_heartbeat: Time::ZERO,
            armed: false,
            waiting: false,
            overdue: false,
        }
    }

    /// Reports that the master has not heard, and will not.
    fn take_unheard(&mut self) -> Vec<Report> {
        let mut unheard = std::mem::take(&mut self.reported);
        unheard.append(&mut self.finished);
        unheard
    }

    /// Asks for a wake-up for the next heartbeat, unless one is due.
    fn arm(&mut self, cx: &mut Context, worker: u32) {
        if !std::mem::replace(&mut self.armed, true) {
            cx.wake(self.next_heartbeat, Timer::Heartbeat(worker));
        }
    }
}

/// All workers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workers {
    table: Vec<Worker>,
    /// Heartbeats, where they are no messages.
    pub beats: Option<CoarseHeartbeats>,
}

impl Workers {
    /// Returns `workers` workers whose slots are all free.
    pub fn new(config: &MapReduceConfig, workers: usize, seed: u64) -> Workers {
        let worker = Worker::new([config.map_slots, config.reduce_slots]);
        Workers {
            table: vec![worker; workers],
            beats: CoarseHeartbeats::new(config, workers, seed),
        }
    }

    /// One of them.
    pub fn get(&mut self, worker: u32) -> &mut Worker {
        &mut self.table[worker as usize]
    }

    /// Free slots of a worker when its last heartbeat was sent.
    pub fn free_sent(&self, worker: u32, kind: TaskKind) -> u32 {
        self.table[worker as usize].free_sent[index(kind)]
    }

    /// Whether a worker awaits the answer to a heartbeat.
    pub fn waits(&self, worker: u32) -> bool {
        self.table[worker as usize].waiting
    }

    /// Opens the connections to the master and asks to be woken for the first heartbeats.
    pub fn begin(&mut self, cx: &mut Context) {
        if self.beats.is_some() {
            return;
        }
        let mut phase = Stream::new(cx.seed, "mapreduce/heartbeat");
        for (worker, w) in (0..).zip(&mut self.table) {
            let ends = (cx.host(worker), cx.master);
            w.conn = cx.open_control(Use::Heartbeat { worker }, ends);
            w.next_heartbeat = cx.now + phase.within(cx.config.control.heartbeat);
            w.arm(cx, worker);
        }
    }

    /// A wake-up for a worker's heartbeat has come: whether it is time for one.
    pub fn is_due(&mut self, cx: &mut Context, worker: u32) -> bool {
        let w = self.get(worker);
        w.armed = false;
        let due = cx.now >= w.next_heartbeat;
        if !due {
            // One was sent out of band meanwhile.
            w.arm(cx, worker);
        }
        due
    }

    /// Sends a heartbeat now, or as soon as the outstanding answer has arrived. Returns whether it
    /// was sent.
    pub fn send_heartbeat(&mut self, cx: &mut Context, worker: u32) -> bool {
        let w = self.get(worker);
        if w.waiting {
            w.overdue = true;
            return false;
        }
        w.waiting = true;
        w.reported = std::mem::take(&mut w.finished);
        w.free_sent = w.free;
        for &(_, kind) in &w.assigned {
            // of an answer that was lost: they come with the next
            w.free_sent[index(kind)] -= 1;
        }
        cx.tell(w.conn, Side::Client, cx.config.control.heartbeat_bytes, 0, None);
        w.next_heartbeat = cx.now + cx.config.control.heartbeat;
        w.arm(cx, worker);
        true
    }

    /// At the master: a heartbeat that is no message has arrived. Returns whether it is to be looked
    /// at: one was looked at just now otherwise.
    pub fn beat(&mut self, cx: &Context, worker: u32) -> bool {
        let Some(beats) = &mut self.beats else { return false };
        beats.arrived(worker);
        let w = self.get(worker);
        let fresh = w.heard < cx.now;
        if fresh {
            w.reported = std::mem::take(&mut w.finished);
            w.free_sent = w.free;
        }
        fresh
    }

    /// At the master: a worker is heard of. Returns what it reports: attempts that have ended, and
    /// outputs that could not be fetched.
    pub fn heard(&mut self, cx: &Context, worker: u32) -> (Vec<Report>, Vec<(u32, u32, u32)>) {
        let w = self.get(worker);
        (w.heard, w.lost) = (cx.now, false);
        (std::mem::take(&mut w.reported), std::mem::take(&mut w.fetch_failures))
    }

    /// Puts a task into the answer to a worker.
    pub fn assign(&mut self, worker: u32, task: u32, kind: TaskKind) {
        let w = self.get(worker);
        w.assigned.push((task, kind));
        if kind == TaskKind::Reduce {
            w.reduces.push(task);
        }
    }

    /// At the master: the answer to a heartbeat leaves, with how many maps every reduce on the worker
    /// may know of.
    pub fn answer(&mut self, cx: &mut Context, tasks: &mut Tasks, worker: u32) {
        let news = self.tell_of_maps(tasks, worker);
        let w = &self.table[worker as usize];
        if let Some(beats) = &self.beats {
            if !w.assigned.is_empty() || !w.map_events.is_empty() {
                cx.wake_in(beats.delay(), Timer::Answer(worker));
            }
            return;
        }
        let control = &cx.config.control;
        let bytes = u64::from(control.answer_bytes)
            + u64::from(control.assignment_bytes) * w.assigned.len() as u64
            + u64::from(control.map_event_bytes) * news;
        cx.tell(w.conn, Side::Server, bytes, 0, None);
    }

    /// Puts into the answer how many maps every reduce on the worker may know of; returns how many
    /// of them are news.
    fn tell_of_maps(&mut self, tasks: &mut Tasks, worker: u32) -> u64 {
        let mut news = 0;
        let w = self.get(worker);
        for &task in &w.reduces {
            let t = tasks.attempts.get(task);
            let known = tasks.jobs.running(t.job).outputs.reported();
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

    /// At the worker: starts the tasks of the answer and tells its reduces of finished maps. Returns
    /// whether a heartbeat is overdue.
    pub fn answered(&mut self, cx: &mut Context, tasks: &mut Tasks, worker: u32) -> bool {
        let w = self.get(worker);
        w.waiting = false;
        let assigned = std::mem::take(&mut w.assigned);
        let events = std::mem::take(&mut w.map_events);
        for (task, kind) in assigned {
            tasks.attempts.get(task).times.assigned = cx.now;
            self.get(worker).free[index(kind)] -= 1;
            tasks.launch(cx, task);
        }
        self.slots_changed(worker);
        for (task, known) in events {
            tasks.maps_known(cx, task, known);
        }
        std::mem::take(&mut self.get(worker).overdue)
    }

    /// A worker's free slots have changed.
    fn slots_changed(&mut self, worker: u32) {
        if let Some(beats) = &mut self.beats {
            beats.slots_changed(worker, self.table[worker as usize].free);
        }
    }

    /// Frees a slot.
    pub fn free_slot(&mut self, worker: u32, kind: TaskKind) {
        self.get(worker).free[index(kind)] += 1;
        self.slots_changed(worker);
    }

    /// At the worker: an attempt has ended, which the next heartbeat tells.
    pub fn ended(&mut self, cx: &mut Context, report: Report) {
        let worker = report.worker;
        self.get(worker).finished.push(report);
        self.beat_soon(cx, worker);
    }

    /// Where heartbeats are no messages: the worker's next one matters.
    pub fn beat_soon(&mut self, cx: &mut Context, worker: u32) {
        if let Some(beats) = &mut self.beats {
            beats.soon(cx, worker);
        }
    }

    /// A reduce is through.
    pub fn reduce_ended(&mut self, worker: u32, task: u32) {
        self.get(worker).reduces.retain(|&of| of != task);
    }

    /// An attempt was taken off its worker.
    pub fn forget(&mut self, worker: u32, task: u32) {
        let w = self.get(worker);
        w.assigned.retain(|&(of, _)| of != task);
        w.reduces.retain(|&of| of != task);
        w.map_events.retain(|&(of, _)| of != task);
    }

    /// The connection to the master is gone: the worker opens another, and reports again what may not
    /// have arrived.
    pub fn connection_lost(&mut self, cx: &mut Context, worker: u32) {
        let ends = (cx.host(worker), cx.master);
        let conn = cx.open_control(Use::Heartbeat { worker }, ends);
        let w = self.get(worker);
        w.conn = conn;
        w.waiting = false;
        w.overdue = false;
        w.finished = w.take_unheard();
        if !w.armed {
            w.next_heartbeat = cx.now + cx.config.control.heartbeat;
            w.arm(cx, worker);
        }
    }

    /// Whether a worker has not been heard of for so long that the master gives it up now.
    pub fn expires(&mut self, cx: &Context, worker: u32) -> bool {
        let expiry = cx.config.failures.expiry;
        let w = self.get(worker);
        cx.now.since(w.heard) >= expiry && !std::mem::replace(&mut w.lost, true)
    }

    /// A worker is lost: all its slots are free when it is heard of again. Returns what it has not
    /// reported.
    pub fn lose(&mut self, cx: &Context, worker: u32) -> Vec<Report> {
        let w = self.get(worker);
        w.free = [cx.config.map_slots, cx.config.reduce_slots];
        w.free_sent = w.free;
        w.fetch_failures.clear();
        w.take_unheard()
    }
}
