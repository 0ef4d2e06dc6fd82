//! State shared by all parts of the simulated cluster: settings, hosts and racks of workers,
//! connections, machines, the time of the present event, and the actions that follow from it.

use super::config::{JobSpec, MapReduceConfig};
use super::connections::{Connections, Use};
use super::content::Content;
use super::hardware::Hardware;
use super::here::Here;
use super::note::Note;
use super::racks::Racks;
use super::timer::Timer;
use super::work::{Begun, Step, Work};
use crate::protocol::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// State shared by all parts of the simulated cluster: settings, hosts, connections, machines, and
/// the event that is being handled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Context {
    /// Settings of the cluster and its jobs.
    pub config: MapReduceConfig,
    /// Seed of the run, from which random streams are derived.
    pub seed: u64,
    /// Host of the namenode and the master.
    pub master: HostId,
    /// Host of each worker, by worker number.
    pub hosts: Vec<HostId>,
    /// Racks of the workers, for the placement of replicas.
    pub racks: Racks,
    /// Open connections of the cluster, with their purposes.
    pub conns: Connections,
    /// Cores, disks and page caches of the machines.
    pub hardware: Hardware,
    /// Whether every event so far was one that uses the state of one host only. False after a
    /// failure, and in runs that [`MapReduceConfig::acts_by_messages`] excludes.
    pub by_messages: bool,
    /// Simulated time of the event that is being handled.
    #[serde(skip)]
    pub now: Time,
    /// Host at which the present event takes place.
    #[serde(skip)]
    pub here: Here,
    /// Actions for the simulator that the present event has caused so far.
    #[serde(skip)]
    pub out: Vec<Action>,
    /// Notes that are not handled yet, in order: events that one part of the cluster reports to the
    /// parts above it, for example HDFS to the master.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

impl Context {
    /// Returns the settings of a job: its bytes, its numbers of tasks and its time of submission.
    pub fn spec(&self, job: u32) -> &JobSpec {
        &self.config.jobs[job as usize]
    }

    /// Returns the host of a worker.
    pub fn host(&self, worker: u32) -> HostId {
        self.hosts[worker as usize]
    }

    /// Returns the random stream for the decision named `what` (for example `placement`) of a task
    /// of a job. It is independent of all other streams.
    pub fn stream(&self, what: &str, job: u32, task: u32) -> Stream {
        Stream::new(self.seed, &format!("mapreduce/{what}/{job}/{task}"))
    }

    /// Records a failure: from now on, events may use the state of all hosts.
    pub fn failed(&mut self) {
        (self.by_messages, self.here) = (false, Here::Anywhere);
    }

    /// Adds a note: an event that a part of the cluster reports to the parts above it.
    pub fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Schedules a wake-up of `timer` at the time `at`.
    pub fn wake(&mut self, at: Time, timer: Timer) {
        self.out.push(timer.at(at));
    }

    /// Schedules a wake-up of `timer` after the duration `wait`.
    pub fn wake_in(&mut self, wait: Span, timer: Timer) {
        self.wake(self.now + wait, timer);
    }

    /// Opens a connection for `purpose` in the traffic class of data; `ends` are the connecting
    /// host and the accepting host.
    pub fn open(&mut self, purpose: Use, ends: (HostId, HostId)) -> ConnId {
        self.conns.open(purpose, ends, self.config.class, &mut self.out)
    }

    /// Opens a connection for `purpose` in the traffic class of control messages; `ends` are the
    /// connecting host and the accepting host.
    pub fn open_control(&mut self, purpose: Use, ends: (HostId, HostId)) -> ConnId {
        self.conns.open(purpose, ends, self.config.control_class, &mut self.out)
    }

    /// Closes a connection after all data is delivered.
    pub fn close(&mut self, conn: ConnId) {
        self.conns.close(conn, &mut self.out);
    }

    /// Aborts a connection; data in flight is lost.
    pub fn abort(&mut self, conn: ConnId) {
        self.conns.abort(conn, &mut self.out);
    }

    /// Closes all connections for whose purpose `ends` returns true.
    pub fn close_where(&mut self, ends: impl Fn(Use) -> bool) {
        self.conns.close_where(ends, &mut self.out);
    }

    /// Aborts all connections for whose purpose `ends` returns true.
    pub fn abort_where(&mut self, ends: impl Fn(Use) -> bool) {
        self.conns.abort_where(ends, &mut self.out);
    }

    /// Sends a small control message over a connection, without a row in the flow table.
    pub fn tell(
        &mut self,
        conn: ConnId,
        from: Side,
        payload: impl Into<u64>,
        tag: u64,
        job: Option<u32>,
    ) {
        let (payload, purpose) = (payload.into(), Purpose::Control);
        let (header, record) = (0, false);
        self.out.push(Action::Send { conn, from, payload, header, tag, purpose, job, record });
    }

    /// Sends a control message with a content, without a row in the flow table.
    pub fn tell_content(
        &mut self,
        (conn, from): (ConnId, Side),
        payload: impl Into<u64>,
        content: Content,
        job: Option<u32>,
    ) {
        self.conns.put(conn, from, content);
        self.tell(conn, from, payload, 0, job);
    }

    /// Sends bytes of a file or of map outputs with their framing over a connection, with a row in
    /// the flow table.
    pub fn send(
        &mut self,
        (conn, from): (ConnId, Side),
        (payload, header): (u64, u32),
        purpose: Purpose,
        job: Option<u32>,
    ) {
        let (tag, record) = (0, true);
        self.out.push(Action::Send { conn, from, payload, header, tag, purpose, job, record });
    }

    /// Starts work on the cores of a worker's machine. `work`: CPU time at the usual speed; `what`:
    /// the work's purpose, by which its end is handled.
    pub fn compute(&mut self, worker: u32, work: Span, what: Work) {
        self.hardware.compute(self.now, worker, work, what, &mut self.out);
    }

    /// Starts a read of `bytes` bytes from the disks of a worker's machine. `what`: purpose of the
    /// read, by which its end is handled.
    pub fn read(&mut self, worker: u32, bytes: u64, what: Work) {
        self.hardware.read(self.now, worker, bytes, what, &mut self.out);
    }

    /// Starts the write of `bytes` bytes of a file. Returns true if the page cache accepts the
    /// data, so that the writer continues at once; false if the write ends later, with an event for
    /// the purpose `what`.
    pub fn write(&mut self, worker: u32, bytes: u64, what: Work) -> bool {
        self.hardware.write(self.now, worker, bytes, what, &mut self.out)
    }

    /// Starts to store a chunk of a block at a datanode. Returns true if the chunk can be
    /// acknowledged at once; false if the write ends later, with an event for the purpose `what`.
    pub fn store(&mut self, worker: u32, bytes: u64, what: Work) -> bool {
        self.hardware.store(self.now, worker, bytes, what, &mut self.out)
    }

    /// Starts a step of a task on a worker: disk read, disk write and CPU work run in parallel as
    /// its parts, whose ends are reported with the purpose `what`. A step without any part still
    /// ends by a wake-up.
    pub fn begin_parts(&mut self, worker: u32, step: Step, what: Work) -> Begun {
        let (now, out) = (self.now, &mut self.out);
        if let Some(read) = self.hardware.step_alone(now, worker, step, what, out) {
            return Begun { parts: 1, read: (step.read > 0).then_some(read) };
        }
        let mut parts = 0;
        if step.read > 0 {
            let what = if let Work::Step(task) = what { Work::Read(task) } else { what };
            self.read(worker, step.read, what);
            parts += 1;
        }
        if step.write > 0 && !self.write(worker, step.write, what) {
            parts += 1;
        }
        if step.cpu > Span::ZERO || parts == 0 {
            self.compute(worker, step.cpu, what);
            parts += 1;
        }
        Begun { parts, read: None }
    }

    /// Returns the finished fraction, from 0 to 1, of the running step of a task on a worker.
    pub fn step_done(&self, worker: u32, task: u32) -> f64 {
        self.hardware.step_done(self.now, worker, task)
    }
}
