//! Workers: their slots, and their heartbeats to the master.
//!
//! A worker sends a heartbeat every `heartbeat`, the first at a seeded random phase, over one
//! persistent connection to the master. The heartbeat reports the tasks that have finished since
//! the last one, and the free slots at its departure. The answer contains new tasks and, for each
//! reduce running on the worker, the number of finished maps of its job; both take effect when the
//! answer arrives. A heartbeat that is due while an answer is outstanding is sent when the answer
//! has arrived.

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

/// State of a worker, and of its messages to and from the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Worker {
    conn: ConnId,
    /// Numbers of free map slots and free reduce slots of the worker.
    free: [u32; 2],
    /// Numbers of free map and reduce slots at the departure of the last heartbeat, as the master
    /// knows them.
    pub free_sent: [u32; 2],
    /// Reports of attempts that ended since the last heartbeat.
    finished: Vec<Report>,
    /// Reports in the heartbeat that is now in the network.
    reported: Vec<Report>,
    /// Map outputs that reduces on this worker could not fetch, as (job, map, worker that stores
    /// the output).
    pub fetch_failures: Vec<(u32, u32, u32)>,
    /// Time at which the worker's last heartbeat arrived at the master.
    heard: Time,
    /// Whether the master has declared the worker lost.
    lost: bool,
    /// Tasks in the answer that is now in the network, as (task, kind).
    assigned: Vec<(u32, TaskKind)>,
    /// Numbers of finished maps in the answer that is now in the network, each as (reduce, number
    /// of finished maps).
    map_events: Vec<(u32, u32)>,
    /// Numbers of the reduces that are assigned to this worker and not finished.
    reduces: Vec<u32>,
    next_heartbeat: Time,
    /// Whether a wake-up for the worker's next heartbeat is scheduled.
    armed: bool,
    /// Whether a heartbeat is sent and not answered yet.
    waiting: bool,
    /// Whether the next heartbeat must be sent as soon as the outstanding answer has arrived.
    overdue: bool,
}

impl Worker {
    /// Returns the state of a worker on which all map and reduce slots (`slots`) are free.
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

    /// Removes and returns the reports of ended attempts that the master has not received and will
    /// not receive.
    fn take_unheard(&mut self) -> Vec<Report> {
        let mut unheard = std::mem::take(&mut self.reported);
        unheard.append(&mut self.finished);
        unheard
    }

    /// Schedules a wake-up for the next heartbeat, unless one is scheduled already.
    fn arm(&mut self, cx: &mut Context, worker: u32) {
        if !std::mem::replace(&mut self.armed, true) {
            cx.wake(self.next_heartbeat, Timer::Heartbeat(worker));
        }
    }
}

/// State of all workers, by worker number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workers {
    table: Vec<Worker>,
    /// State of heartbeats that are not sent as messages (approximate runs); `None` if heartbeats
    /// are messages.
    pub beats: Option<CoarseHeartbeats>,
}

impl Workers {
    /// Returns the state of `workers` workers whose slots are all free.
    pub fn new(config: &MapReduceConfig, workers: usize, seed: u64) -> Workers {
        let worker = Worker::new([config.map_slots, config.reduce_slots]);
        Workers {
            table: vec![worker; workers],
            beats: CoarseHeartbeats::new(config, workers, seed),
        }
    }

    /// Returns a mutable reference to the state of a worker.
    pub fn get(&mut self, worker: u32) -> &mut Worker {
        &mut self.table[worker as usize]
    }

    /// Returns the number of free slots of a kind that a worker had when it sent its last
    /// heartbeat.
    pub fn free_sent(&self, worker: u32, kind: TaskKind) -> u32 {
        self.table[worker as usize].free_sent[index(kind)]
    }

    /// Whether a worker waits for the answer to a heartbeat.
    pub fn waits(&self, worker: u32) -> bool {
        self.table[worker as usize].waiting
    }

    /// Opens the connections of all workers to the master and schedules their first heartbeats.
    /// Does nothing if heartbeats are not sent as messages.
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

    /// Handles a wake-up for a worker's heartbeat. Returns false if a heartbeat was sent since the
    /// wake-up was scheduled, so that none is due now.
    pub fn is_due(&mut self, cx: &mut Context, worker: u32) -> bool {
        let w = self.get(worker);
        w.armed = false;
        let due = cx.now >= w.next_heartbeat;
        if !due {
            // A heartbeat was sent out of band since this wake-up was scheduled.
            w.arm(cx, worker);
        }
        due
    }

    /// Sends a heartbeat now, or marks it to be sent when the outstanding answer has arrived.
    /// Returns whether it was sent now.
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
            // tasks of a lost answer, which are sent again with the next answer
            w.free_sent[index(kind)] -= 1;
        }
        cx.tell(w.conn, Side::Client, cx.config.control.heartbeat_bytes, 0, None);
        w.next_heartbeat = cx.now + cx.config.control.heartbeat;
        w.arm(cx, worker);
        true
    }

    /// Handles at the master a heartbeat that was not sent as a message. Returns whether it must be
    /// processed: false if a heartbeat of this worker was already processed at this time.
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

    /// Handles a heartbeat of a worker at the master. Returns the reports of ended attempts, and
    /// the map outputs that could not be fetched as (job, map, worker that stores the output).
    pub fn heard(&mut self, cx: &Context, worker: u32) -> (Vec<Report>, Vec<(u32, u32, u32)>) {
        let w = self.get(worker);
        (w.heard, w.lost) = (cx.now, false);
        (std::mem::take(&mut w.reported), std::mem::take(&mut w.fetch_failures))
    }

    /// Adds a task to the next answer to a worker's heartbeat.
    pub fn assign(&mut self, worker: u32, task: u32, kind: TaskKind) {
        let w = self.get(worker);
        w.assigned.push((task, kind));
        if kind == TaskKind::Reduce {
            w.reduces.push(task);
        }
    }

    /// Sends the answer to a heartbeat from the master, with the number of finished maps for every
    /// reduce on the worker.
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

    /// Adds the number of finished maps for every reduce on the worker to the answer. Returns the
    /// number of these maps that are new to the reduces.
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

    /// Handles an answer at the worker: starts its tasks and informs its reduces of finished maps.
    /// Returns whether a heartbeat has waited for this answer and must be sent now.
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

    /// Updates the heartbeats that are not sent as messages after a change of a worker's free
    /// slots.
    fn slots_changed(&mut self, worker: u32) {
        if let Some(beats) = &mut self.beats {
            beats.slots_changed(worker, self.table[worker as usize].free);
        }
    }

    /// Frees a slot of a worker for tasks of a kind.
    pub fn free_slot(&mut self, worker: u32, kind: TaskKind) {
        self.get(worker).free[index(kind)] += 1;
        self.slots_changed(worker);
    }

    /// Handles the end of an attempt at its worker; the next heartbeat reports it.
    pub fn ended(&mut self, cx: &mut Context, report: Report) {
        let worker = report.worker;
        self.get(worker).finished.push(report);
        self.beat_soon(cx, worker);
    }

    /// Schedules the worker's next heartbeat, if heartbeats are not sent as messages.
    pub fn beat_soon(&mut self, cx: &mut Context, worker: u32) {
        if let Some(beats) = &mut self.beats {
            beats.soon(cx, worker);
        }
    }

    /// Removes a finished reduce from the worker's list of running reduces.
    pub fn reduce_ended(&mut self, worker: u32, task: u32) {
        self.get(worker).reduces.retain(|&of| of != task);
    }

    /// Removes a killed attempt from its worker and from the answer in the network.
    pub fn forget(&mut self, worker: u32, task: u32) {
        let w = self.get(worker);
        w.assigned.retain(|&(of, _)| of != task);
        w.reduces.retain(|&of| of != task);
        w.map_events.retain(|&(of, _)| of != task);
    }

    /// Opens a new connection to the master after the loss of the old connection. Reports that may
    /// not have arrived are sent again with the next heartbeat.
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

    /// Whether the master declares a worker lost now, because its heartbeats are missing.
    pub fn expires(&mut self, cx: &Context, worker: u32) -> bool {
        let expiry = cx.config.failures.expiry;
        let w = self.get(worker);
        cx.now.since(w.heard) >= expiry && !std::mem::replace(&mut w.lost, true)
    }

    /// Marks all slots of a lost worker as free, for its return. Returns the reports of ended
    /// attempts that the master has not received.
    pub fn lose(&mut self, cx: &Context, worker: u32) -> Vec<Report> {
        let w = self.get(worker);
        w.free = [cx.config.map_slots, cx.config.reduce_slots];
        w.free_sent = w.free;
        w.fetch_failures.clear();
        w.take_unheard()
    }
}
