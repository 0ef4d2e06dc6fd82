//! Machines: the cores, disks and page caches that the tasks and datanodes of workers share.
//!
//! Cores and disks are shared evenly ([`super::resource`]). A disk serves a single stream at its
//! sequential rates. If there are more streams than disks, each stream transfers `run_bytes`
//! between two seeks. Streams are not bound to one of several disks, as if Hadoop's round robin
//! over its folders always found an idle disk.
//!
//! The page cache has two rules. First, data written on a machine is read from memory until more
//! than `cache_bytes` have been written after it. Second, a writer continues at once while dirty
//! data is at most `dirty_bytes`; flushers, one per disk, write `run_bytes` at a time to disk
//! (`vm.dirty_ratio`). Above this limit writers wait in order. A machine with a different speed
//! takes 1 / speed as long for all work of cores and disks. Simplifications: splits of HDFS are
//! always read from disk; read data is not cached; copying in memory takes no time.

use super::config::{MapReduceConfig, NodeConfig};
use super::dedicated::Dedicated;
use super::resource::Shared;
use super::timer::Timer;
use super::work::{Step, Work};
use crate::protocol::Action;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A machine with its cores, disks and page cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Machine {
    cores: Shared<Work>,
    disks: Shared<Work>,
    /// Bytes written to files on this machine since the start of the run.
    written: u64,
    /// Bytes that are in the page cache and not yet on disk (dirty).
    dirty: u64,
    /// Speed of the machine in millionths of the usual speed.
    speed: u64,
    /// Dirty bytes that are being written to disk now.
    flushing: u64,
    flushers: u32,
    /// Writers that wait until `dirty_bytes` allows more dirty data: bytes to write, and the work
    /// to report.
    waiting: VecDeque<(u64, Work)>,
}

/// Usual speed of a machine in millionths, the unit of `Machine::speed`.
const USUAL: u64 = 1_000_000;

impl Machine {
    /// Returns the duration on this machine of work that takes `work` on a machine of usual speed.
    fn lasts(&self, work: Span) -> Span {
        let picoseconds = u128::from(work.0) * u128::from(USUAL) / u128::from(self.speed);
        Span(u64::try_from(picoseconds).unwrap_or(u64::MAX))
    }
}

/// State of all machines of the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hardware {
    config: NodeConfig,
    machines: Vec<Machine>,
    /// Running work, if the run uses the simpler model of [`Dedicated`]; `None` if it uses the
    /// cores and disks of `machines`.
    alone: Option<Dedicated>,
}

impl Hardware {
    /// Returns idle machines for `workers` workers; `speeds` lists the workers with a different
    /// speed, each with its factor.
    pub fn new(config: &MapReduceConfig, workers: usize, speeds: &[(u32, f64)]) -> Hardware {
        let alone = Dedicated::new(config);
        let config = config.node.clone();
        let run = config.read_rate.time_for(config.run_bytes);
        let machine = Machine {
            cores: Shared::new(config.cores, run, Span::ZERO),
            disks: Shared::new(config.disks, run, config.seek),
            written: 0,
            dirty: 0,
            speed: USUAL,
            flushing: 0,
            flushers: 0,
            waiting: VecDeque::new(),
        };
        let machines = workers.div_ceil(config.workers_per_machine as usize);
        let mut machines = vec![machine; machines];
        let mut own = vec![None; machines.len()];
        for &(worker, speed) in speeds {
            let number = (worker / config.workers_per_machine) as usize;
            let speed = ((speed * USUAL as f64) as u64).max(1);
            own[number] = Some(own[number].map_or(speed, |other: u64| other.min(speed)));
        }
        for (machine, speed) in machines.iter_mut().zip(own) {
            machine.speed = speed.unwrap_or(USUAL);
        }
        Hardware { machines, config, alone }
    }

    fn number(&self, worker: u32) -> usize {
        (worker / self.config.workers_per_machine) as usize
    }

    fn machine(&mut self, worker: u32) -> (u32, &mut Machine) {
        let number = self.number(worker);
        (number as u32, &mut self.machines[number])
    }

    /// Starts work on the cores of a worker's machine. `work`: CPU time at the usual speed; `what`:
    /// the work's purpose, by which its end is handled.
    pub fn compute(
        &mut self,
        now: Time,
        worker: u32,
        work: Span,
        what: Work,
        out: &mut Vec<Action>,
    ) {
        if self.works_alone(now, worker, work, what, out) {
            return;
        }
        let (number, machine) = self.machine(worker);
        machine.cores.start(now, machine.lasts(work), what);
        arm(&mut machine.cores, Timer::Cores(number), out);
    }

    /// Starts work with the purpose `what` on a dedicated core or disk and returns true; starts
    /// nothing and returns false if the run does not use [`Dedicated`].
    fn works_alone(
        &mut self,
        now: Time,
        worker: u32,
        work: Span,
        what: Work,
        out: &mut Vec<Action>,
    ) -> bool {
        let lasts = self.machine(worker).1.lasts(work);
        let Some(alone) = &mut self.alone else { return false };
        alone.start(now + lasts, what, out);
        true
    }

    /// Removes finished work on a dedicated core or disk, given its slot in the table of running
    /// work. Returns its purpose.
    pub fn ended_alone(&mut self, place: u32) -> Work {
        self.alone.as_mut().expect("it was started so").ended(place)
    }

    /// Starts all parts of a step as one piece of work, if the run uses [`Dedicated`]. Returns the
    /// duration of the step's disk read; `None` if the run does not use [`Dedicated`], so that
    /// nothing was started.
    pub fn step_alone(
        &mut self,
        now: Time,
        worker: u32,
        step: Step,
        what: Work,
        out: &mut Vec<Action>,
    ) -> Option<Span> {
        self.alone.as_ref()?;
        let (read, write) = (self.config.read_rate, self.config.write_rate);
        let (read, write) = (read.time_for(step.read), write.time_for(step.write));
        let machine = self.machine(worker).1;
        machine.written += step.write;
        let lasts = machine.lasts(read);
        self.works_alone(now, worker, step.cpu.max(read).max(write), what, out);
        Some(lasts)
    }

    /// Starts a read of `bytes` bytes from the disks of a worker's machine. `what`: purpose of the
    /// read, by which its end is handled.
    pub fn read(&mut self, now: Time, worker: u32, bytes: u64, what: Work, out: &mut Vec<Action>) {
        let work = self.config.read_rate.time_for(bytes);
        self.use_disk(now, worker, work, what, out);
    }

    fn use_disk(&mut self, now: Time, worker: u32, work: Span, what: Work, out: &mut Vec<Action>) {
        if self.works_alone(now, worker, work, what, out) {
            return;
        }
        let (number, machine) = self.machine(worker);
        machine.disks.start(now, machine.lasts(work), what);
        arm(&mut machine.disks, Timer::Disks(number), out);
    }

    /// Starts the write of `bytes` bytes of a file. Returns true if the page cache accepts the
    /// data, so that the writer continues at once; false if the write ends later, with an event for
    /// the purpose `what`.
    pub fn write(
        &mut self,
        now: Time,
        worker: u32,
        bytes: u64,
        what: Work,
        out: &mut Vec<Action>,
    ) -> bool {
        let most = self.config.dirty_bytes;
        if bytes == 0 {
            return true;
        }
        if most == 0 {
            let work = self.config.write_rate.time_for(bytes);
            self.machine(worker).1.written += bytes;
            self.use_disk(now, worker, work, what, out);
            return false;
        }
        let (number, machine) = self.machine(worker);
        let room = machine.dirty <= most && machine.waiting.is_empty();
        if room {
            machine.dirty += bytes;
            machine.written += bytes;
        } else {
            machine.waiting.push_back((bytes, what));
        }
        self.flush(now, number, out);
        room
    }

    /// Starts to store a chunk of a block at a datanode. Returns true if the chunk can be
    /// acknowledged at once, as always if each stream has its own disk; false if the write ends
    /// later, with an event for the purpose `what`.
    pub fn store(
        &mut self,
        now: Time,
        worker: u32,
        bytes: u64,
        what: Work,
        out: &mut Vec<Action>,
    ) -> bool {
        self.config.disks.is_none() || self.write(now, worker, bytes, what, out)
    }

    /// Starts writes of dirty data to disk, at most one write (flusher) per disk at a time.
    fn flush(&mut self, now: Time, number: u32, out: &mut Vec<Action>) {
        let most = self.config.disks.unwrap_or(1);
        let (run, rate) = (self.config.run_bytes, self.config.write_rate);
        let machine = &mut self.machines[number as usize];
        while machine.flushers < most && machine.flushing < machine.dirty {
            let bytes = run.min(machine.dirty - machine.flushing);
            machine.flushing += bytes;
            machine.flushers += 1;
            let work = machine.lasts(rate.time_for(bytes));
            machine.disks.start(now, work, Work::Flush(bytes));
        }
        arm(&mut machine.disks, Timer::Disks(number), out);
    }

    /// Returns the finished fraction, from 0 to 1, of the running step of a task on a worker.
    pub fn step_done(&self, now: Time, worker: u32, task: u32) -> f64 {
        let machine = &self.machines[self.number(worker)];
        let its = |work: &Work| matches!(*work, Work::Step(t) | Work::Read(t) if t == task);
        let parts = [machine.cores.done(now, its), machine.disks.done(now, its)];
        parts.into_iter().flatten().fold(1.0, f64::min)
    }

    /// Returns the number of bytes that a worker's machine has written to files since the start of
    /// the run.
    pub fn written_offset(&self, worker: u32) -> u64 {
        self.machines[self.number(worker)].written
    }

    /// Whether data is still in the page cache of a worker's machine; `written_offset` is the
    /// number of bytes that the machine had written before the data.
    pub fn in_memory(&self, worker: u32, written_offset: u64) -> bool {
        let most = self.config.cache_bytes;
        let after = self.written_offset(worker) - written_offset;
        most.is_none_or(|most| after <= most)
    }

    /// Handles a wake-up for the cores of the machine `number`. Returns the work that has finished.
    pub fn cores_woken(&mut self, now: Time, number: u32, out: &mut Vec<Action>) -> Vec<Work> {
        let cores = &mut self.machines[number as usize].cores;
        ended(cores, Timer::Cores(number), now, out)
    }

    /// Handles a wake-up for the disks of the machine `number`. Returns the finished work,
    /// including writes that waited for dirty data to be flushed and are now accepted by the page
    /// cache.
    pub fn disks_woken(&mut self, now: Time, number: u32, out: &mut Vec<Action>) -> Vec<Work> {
        let most = self.config.dirty_bytes;
        let machine = &mut self.machines[number as usize];
        let mut done = ended(&mut machine.disks, Timer::Disks(number), now, out);
        let mut flushed = false;
        done.retain(|work| {
            let Work::Flush(bytes) = *work else { return true };
            machine.dirty -= bytes;
            machine.flushing -= bytes;
            machine.flushers -= 1;
            flushed = true;
            false
        });
        if flushed {
            while machine.dirty <= most {
                let Some((bytes, what)) = machine.waiting.pop_front() else { break };
                machine.dirty += bytes;
                machine.written += bytes;
                done.push(what);
            }
            self.flush(now, number, out);
        }
        done
    }

    /// Whether all machines are idle; dirty data may still be written to disk.
    #[cfg(test)]
    pub fn idle(&self) -> bool {
        if self.alone.as_ref().is_some_and(|alone| alone.len() > 0) {
            return false;
        }
        let flushing = |m: &Machine| m.flushers as usize;
        self.machines
            .iter()
            .all(|m| m.cores.len() == 0 && m.disks.len() == flushing(m) && m.waiting.is_empty())
    }
}

fn arm(shared: &mut Shared<Work>, timer: Timer, out: &mut Vec<Action>) {
    if let Some(due) = shared.arm() {
        out.push(timer.at(due));
    }
}

/// Returns the work on shared cores or disks that has finished until now, and schedules their next
/// wake-up.
fn ended(shared: &mut Shared<Work>, timer: Timer, now: Time, out: &mut Vec<Action>) -> Vec<Work> {
    let mut done = Vec::new();
    if shared.woken(now) {
        while let Some(work) = shared.finish(now) {
            done.push(work);
        }
        arm(shared, timer, out);
    }
    done
}
