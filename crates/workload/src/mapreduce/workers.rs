//! Workers: their slots, and their heartbeats to the master.
//!
//! A worker sends a heartbeat every `heartbeat`, the first at a seeded random phase, over one
//! persistent connection to the master. The heartbeat reports the tasks that have finished since
//! the last one, the free slots at its departure, and how many finished maps each fetching reduce on
//! the worker knows. The answer contains new tasks and, for each of these reduces, the number of
//! finished maps of its job; both take effect when the answer arrives. A heartbeat that is due while an answer is outstanding is sent when the answer
//! has arrived.
//!
//! The state of a worker is in two structures: [`Tracker`] on the worker (Hadoop's TaskTracker), and
//! [`Status`] at the master (TaskTrackerStatus in the JobTracker). They exchange only messages.

use super::coarse_heartbeats::CoarseHeartbeats;
use super::config::MapReduceConfig;
use super::connections::Use;
use super::content::{Answer, Content, Heartbeat, KnownMaps};
use super::context::Context;
use super::report::Report;
use super::scheduler::index;
use super::tasks::Tasks;
use super::timer::Timer;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Side, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// State of a worker on its own host: slots, reports, and its connection to the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tracker {
    conn: ConnId,
    /// Numbers of free map slots and free reduce slots.
    free: [u32; 2],
    /// Reports of attempts that ended since the last heartbeat.
    finished: Vec<Report>,
    /// Map outputs that reduces on this worker could not fetch since the last heartbeat, as (job,
    /// map, worker that stores the output).
    fetch_failures: Vec<(u32, u32, u32)>,
    /// Numbers of the reduces that run on this worker.
    reduces: Vec<u32>,
    next_heartbeat: Time,
    /// Whether a wake-up for the worker's next heartbeat is scheduled.
    armed: bool,
    /// Whether a heartbeat is sent and not answered yet.
    waiting: bool,
    /// Whether the next heartbeat must be sent as soon as the outstanding answer has arrived.
    overdue: bool,
}

impl Tracker {
    /// Returns the state of a worker on which all map and reduce slots (`slots`) are free.
    fn new(slots: [u32; 2]) -> Tracker {
        Tracker {
            conn: ConnId(u32::MAX),
            free: slots,
            finished: Vec::new(),
            fetch_failures: Vec::new(),
            reduces: Vec::new(),
            next_heartbeat: Time::ZERO,
            armed: false,
            waiting: false,
            overdue: false,
        }
    }

    /// Returns the content of a heartbeat that departs now. Its reports are not sent again.
    fn heartbeat(&mut self, tasks: &Tasks) -> Heartbeat {
        let knows = |&task: &u32| {
            let t = tasks.attempts.find(task)?;
            Some(KnownMaps { task, job: t.job, maps: t.fetching.as_ref()?.known })
        };
        Heartbeat {
            free: self.free,
            reports: std::mem::take(&mut self.finished),
            fetch_failures: std::mem::take(&mut self.fetch_failures),
            fetching: self.reduces.iter().filter_map(knows).collect(),
        }
    }

    /// Schedules a wake-up for the next heartbeat, unless one is scheduled already.
    fn arm(&mut self, cx: &mut Context, worker: u32) {
        if !std::mem::replace(&mut self.armed, true) {
            cx.wake(self.next_heartbeat, Timer::Heartbeat(worker));
        }
    }
}

/// State of a worker as the master knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Status {
    /// Numbers of free map and reduce slots at the departure of the last heartbeat.
    free: [u32; 2],
    /// Connection over which the worker's last heartbeat arrived; `None` if it was no message.
    conn: Option<ConnId>,
    /// Time at which the worker's last heartbeat arrived.
    heard: Time,
    /// Whether the master has declared the worker lost.
    lost: bool,
    /// Content of the next answer to the worker.
    next: Answer,
}

/// State of all workers, by worker number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workers {
    trackers: Vec<Tracker>,
    status: Vec<Status>,
    /// State of heartbeats that are not sent as messages (approximate runs); `None` if heartbeats
    /// are messages.
    pub beats: Option<CoarseHeartbeats>,
}

impl Workers {
    /// Returns the state of `workers` workers whose slots are all free.
    pub fn new(config: &MapReduceConfig, workers: usize, seed: u64) -> Workers {
        let slots = [config.map_slots, config.reduce_slots];
        let (conn, heard, lost) = (None, Time::ZERO, false);
        let status = Status { free: slots, conn, heard, lost, next: Answer::default() };
        Workers {
            trackers: vec![Tracker::new(slots); workers],
            status: vec![status; workers],
            beats: CoarseHeartbeats::new(config, workers, seed),
        }
    }

    /// Returns the state of a worker on its own host.
    fn tracker(&mut self, cx: &Context, worker: u32) -> &mut Tracker {
        cx.here.may_use(cx.host(worker));
        &mut self.trackers[worker as usize]
    }

    /// Returns the state of a worker at the master.
    fn status(&mut self, cx: &Context, worker: u32) -> &mut Status {
        cx.here.may_use(cx.master);
        &mut self.status[worker as usize]
    }

    /// Returns the number of free slots of a kind that a worker had when it sent its last
    /// heartbeat.
    pub fn free(&self, worker: u32, kind: TaskKind) -> u32 {
        self.status[worker as usize].free[index(kind)]
    }

    /// Whether a worker waits for the answer to a heartbeat.
    pub fn waits(&self, worker: u32) -> bool {
        self.trackers[worker as usize].waiting
    }

    /// Opens the connections of all workers to the master and schedules their first heartbeats.
    /// Does nothing if heartbeats are not sent as messages.
    pub fn begin(&mut self, cx: &mut Context) {
        if self.beats.is_some() {
            return;
        }
        let mut phase = Stream::new(cx.seed, "mapreduce/heartbeat");
        for (worker, w) in (0..).zip(&mut self.trackers) {
            let ends = (cx.host(worker), cx.master);
            w.conn = cx.open_control(Use::Heartbeat { worker }, ends);
            w.next_heartbeat = cx.now + phase.within(cx.config.control.heartbeat);
            w.arm(cx, worker);
        }
    }

    /// Handles a wake-up for a worker's heartbeat. Returns false if a heartbeat was sent since the
    /// wake-up was scheduled, so that none is due now.
    pub fn is_due(&mut self, cx: &mut Context, worker: u32) -> bool {
        let w = self.tracker(cx, worker);
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
    pub fn send_heartbeat(&mut self, cx: &mut Context, tasks: &Tasks, worker: u32) -> bool {
        let w = self.tracker(cx, worker);
        if w.waiting {
            w.overdue = true;
            return false;
        }
        w.waiting = true;
        let content = Content::Heartbeat(w.heartbeat(tasks));
        let bytes = cx.config.control.heartbeat_bytes;
        cx.tell_content((w.conn, Side::Client), bytes, content, None);
        w.next_heartbeat = cx.now + cx.config.control.heartbeat;
        w.arm(cx, worker);
        true
    }

    /// Returns a heartbeat that arrives at the master now and was not sent as a message. `None` if
    /// a heartbeat of this worker was already processed at this time.
    pub fn beat(&mut self, cx: &Context, tasks: &Tasks, worker: u32) -> Option<Heartbeat> {
        self.beats.as_mut()?.arrived(worker);
        let fresh = self.status(cx, worker).heard < cx.now;
        fresh.then(|| self.tracker(cx, worker).heartbeat(tasks))
    }

    /// Handles a heartbeat of a worker at the master; `free` are the free map and reduce slots in
    /// the heartbeat, `conn` is its connection (`None` if it was no message).
    pub fn heard(&mut self, cx: &Context, worker: u32, conn: Option<ConnId>, free: [u32; 2]) {
        let s = self.status(cx, worker);
        (s.heard, s.lost, s.conn, s.free) = (cx.now, false, conn, free);
        if conn.is_some() {
            for &(_, kind) in &s.next.launches {
                // tasks of a lost answer, which are sent again with the next answer
                s.free[index(kind)] -= 1;
            }
        }
    }

    /// Adds a task to the next answer to a worker's heartbeat.
    pub fn assign(&mut self, cx: &Context, worker: u32, task: u32, kind: TaskKind) {
        self.status(cx, worker).next.launches.push((task, kind));
    }

    /// Sends the answer to a heartbeat from the master. It contains the number of finished maps for
    /// every reduce that has new ones: the reduces `fetching` of the heartbeat, and those that the
    /// answer assigns.
    pub fn answer(&mut self, cx: &mut Context, tasks: &Tasks, worker: u32, fetching: &[KnownMaps]) {
        let s = self.status(cx, worker);
        let assigned = s.next.launches.iter().filter(|(_, kind)| *kind == TaskKind::Reduce);
        let assigned = assigned.filter_map(|&(task, _)| {
            Some(KnownMaps { task, job: tasks.attempts.find(task)?.job, maps: 0 })
        });
        let mut news = 0;
        for KnownMaps { task, job, maps } in fetching.iter().copied().chain(assigned) {
            let known = tasks.jobs.reported(job);
            if known > maps {
                news += u64::from(known - maps);
                s.next.map_events.push((task, known));
            }
        }
        let Some(conn) = s.conn else {
            let effect = !s.next.launches.is_empty() || !s.next.map_events.is_empty();
            if let Some(beats) = self.beats.as_ref().filter(|_| effect) {
                cx.wake_in(beats.delay(), Timer::Answer(worker));
            }
            return;
        };
        let answer = self.take_answer(cx, worker);
        let control = &cx.config.control;
        let bytes = u64::from(control.answer_bytes)
            + u64::from(control.assignment_bytes) * answer.launches.len() as u64
            + u64::from(control.map_event_bytes) * news;
        cx.tell_content((conn, Side::Server), bytes, Content::Answer(answer), None);
    }

    /// Removes and returns the content of the next answer to a worker.
    pub fn take_answer(&mut self, cx: &Context, worker: u32) -> Answer {
        std::mem::take(&mut self.status(cx, worker).next)
    }

    /// Handles an answer at the worker: starts its tasks and informs its reduces of finished maps.
    /// Returns whether a heartbeat has waited for this answer and must be sent now.
    pub fn answered(
        &mut self,
        cx: &mut Context,
        tasks: &mut Tasks,
        worker: u32,
        answer: Answer,
    ) -> bool {
        let w = self.tracker(cx, worker);
        w.waiting = false;
        for (task, kind) in answer.launches {
            tasks.attempts.get(task).times.assigned = cx.now;
            w.free[index(kind)] -= 1;
            if kind == TaskKind::Reduce {
                w.reduces.push(task);
            }
            tasks.launch(cx, task);
        }
        let overdue = std::mem::take(&mut w.overdue);
        self.slots_changed(worker);
        for (task, known) in answer.map_events {
            // the reduce may have been killed since the departure of the heartbeat
            if tasks.attempts.find(task).is_some() {
                tasks.maps_known(cx, task, known);
            }
        }
        overdue
    }

    /// Updates the heartbeats that are not sent as messages after a change of a worker's free
    /// slots.
    fn slots_changed(&mut self, worker: u32) {
        if let Some(beats) = &mut self.beats {
            beats.slots_changed(worker, self.trackers[worker as usize].free);
        }
    }

    /// Frees a slot of a worker for tasks of a kind.
    pub fn free_slot(&mut self, cx: &Context, worker: u32, kind: TaskKind) {
        self.tracker(cx, worker).free[index(kind)] += 1;
        self.slots_changed(worker);
    }

    /// Handles the end of an attempt at its worker; the next heartbeat reports it.
    pub fn ended(&mut self, cx: &mut Context, report: Report) {
        let worker = report.worker;
        self.tracker(cx, worker).finished.push(report);
        self.beat_soon(cx, worker);
    }

    /// Handles a failed fetch of a reduce on a worker; the next heartbeat reports it. `output`:
    /// job, map, worker that stores the output.
    pub fn fetch_failed(&mut self, cx: &Context, worker: u32, output: (u32, u32, u32)) {
        self.tracker(cx, worker).fetch_failures.push(output);
    }

    /// Schedules the worker's next heartbeat, if heartbeats are not sent as messages.
    pub fn beat_soon(&mut self, cx: &mut Context, worker: u32) {
        if let Some(beats) = &mut self.beats {
            beats.soon(cx, worker);
        }
    }

    /// Removes a finished reduce from the worker's list of running reduces.
    pub fn reduce_ended(&mut self, cx: &Context, worker: u32, task: u32) {
        self.tracker(cx, worker).reduces.retain(|&of| of != task);
    }

    /// Removes a killed attempt from its worker and from the answers that have not arrived.
    pub fn forget(&mut self, cx: &mut Context, worker: u32, task: u32) {
        self.reduce_ended(cx, worker, task);
        self.status(cx, worker).next.forget(task);
        self.in_flight(cx, worker, |content| {
            if let Content::Answer(answer) = content {
                answer.forget(task);
            }
        });
    }

    /// Applies `change` to the contents of the heartbeat and of the answer of a worker that are in
    /// the network.
    fn in_flight(&mut self, cx: &mut Context, worker: u32, change: impl FnMut(&mut Content)) {
        if self.beats.is_none() {
            let conn = self.tracker(cx, worker).conn;
            cx.conns.contents(conn).for_each(change);
        }
    }

    /// Opens a new connection to the master after the loss of the old connection. The reports and
    /// tasks of the messages `lost`, which have not arrived, are sent again.
    pub fn connection_lost(
        &mut self,
        cx: &mut Context,
        worker: u32,
        lost: impl Iterator<Item = Content>,
    ) {
        let ends = (cx.host(worker), cx.master);
        let conn = cx.open_control(Use::Heartbeat { worker }, ends);
        for content in lost {
            match content {
                Content::Heartbeat(heartbeat) => {
                    let w = self.tracker(cx, worker);
                    w.finished.splice(0..0, heartbeat.reports);
                    w.fetch_failures.splice(0..0, heartbeat.fetch_failures);
                }
                Content::Answer(answer) => {
                    self.status(cx, worker).next.launches.splice(0..0, answer.launches);
                }
            }
        }
        let w = self.tracker(cx, worker);
        w.conn = conn;
        w.waiting = false;
        w.overdue = false;
        if !w.armed {
            w.next_heartbeat = cx.now + cx.config.control.heartbeat;
            w.arm(cx, worker);
        }
    }

    /// Whether the master declares a worker lost now, because its heartbeats are missing.
    pub fn expires(&mut self, cx: &Context, worker: u32) -> bool {
        let expiry = cx.config.failures.expiry;
        let s = self.status(cx, worker);
        cx.now.since(s.heard) >= expiry && !std::mem::replace(&mut s.lost, true)
    }

    /// Marks all slots of a lost worker as free, for its return. Returns the reports of ended
    /// attempts that the master has not received.
    pub fn lose(&mut self, cx: &mut Context, worker: u32) -> Vec<Report> {
        let slots = [cx.config.map_slots, cx.config.reduce_slots];
        self.status(cx, worker).free = slots;
        let mut unheard = Vec::new();
        self.in_flight(cx, worker, |content| {
            if let Content::Heartbeat(heartbeat) = content {
                unheard.append(&mut heartbeat.reports);
                heartbeat.fetch_failures.clear();
                heartbeat.free = slots;
            }
        });
        let w = self.tracker(cx, worker);
        unheard.append(&mut w.finished);
        w.fetch_failures.clear();
        w.free = slots;
        unheard
    }
}
