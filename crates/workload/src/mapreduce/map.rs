//! A map task: read a split, compute, spill for the reduces; or compute and write the output.
//!
//! As in Hadoop's MapTask the output collects in a buffer of `io.sort.mb`. When the part
//! `spill.percent` of it is filled, a spill begins in the background: sort on a core, then write.
//! The map function goes on until the buffer is full and then waits for the spill. At the end the
//! rest is spilled; several spills are merged in passes of `io.sort.factor` files, of which the last
//! writes the output. A record takes `record_meta_bytes` of the buffer beside its own bytes.
//!
//! The function runs in pieces, from one of these moments to the next; in each, reading the local
//! split and computing overlap. A remote split streams in while the function runs: the function is
//! through when it has computed and the last byte is there, whichever is later. Departures: with the
//! default of `sort_rate` sort and spill are inside the measured `map_rate` and only the write takes
//! time of its own; records have one size. A combiner leaves the same part of every spill, so that
//! merges find nothing more to combine, and takes no time beside that of the sort.

use super::config::{JobSpec, SortConfig};
use super::connections::Use;
use super::control::{control_message, data_message};
use super::failure::Cause;
use super::hardware::Work;
use super::merge;
use super::namenode::Caller;
use super::task::{Stage, Step};
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::{ConnId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};

/// A map between its first byte and its last spill. Positions count bytes of output, before a
/// combiner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mapping {
    input: u64,
    output: u64,
    /// What a combiner leaves of it, at most as much.
    kept: u64,
    /// Whether the split is read from the worker's disks.
    local: bool,
    /// Output of the pieces that are through.
    at: u64,
    /// Output when the running piece is through.
    to: u64,
    /// Output handed to spills.
    spilled: u64,
    /// A spill runs.
    spilling: bool,
    /// Parts of it that are not through.
    spill_parts: u32,
    /// The running spill has been sorted.
    sorted: bool,
    /// Bytes the running spill writes.
    spill: u64,
    /// The function waits for the running spill.
    stalled: bool,
    /// The function is through.
    through: bool,
    /// What the machine had written when the first spill began.
    mark: u64,
}

/// Output bytes after which a spill begins, and what still fits while it runs.
fn buffer(sort: &SortConfig) -> (u64, u64) {
    let record = u64::from(sort.record_bytes);
    let held = |bytes: u64| {
        let all = record + u64::from(sort.record_meta_bytes);
        (u128::from(bytes) * u128::from(record) / u128::from(all)) as u64
    };
    let soft = (sort.buffer_bytes as f64 * sort.spill_fraction) as u64;
    let soft = soft.min(sort.buffer_bytes);
    (held(soft).max(1), held(sort.buffer_bytes - soft))
}

impl Mapping {
    /// Input read when so much of some output is there.
    fn read_at(&self, position: u64) -> u64 {
        (u128::from(self.input) * u128::from(position) / u128::from(self.output)) as u64
    }

    /// What a combiner leaves of the output up to here.
    fn kept_at(&self, position: u64) -> u64 {
        let kept = u128::from(self.kept) * u128::from(position);
        (kept / u128::from(self.output.max(1))) as u64
    }

    /// How far the function is when such a part of the running piece is done.
    pub fn done(&self, piece: f64) -> f64 {
        if self.through || self.output == 0 {
            return if self.through { 1.0 } else { piece };
        }
        (self.at as f64 + (self.to - self.at) as f64 * piece) / self.output as f64
    }

    /// Where the piece from here ends.
    fn next_stop(&self, (soft, spare): (u64, u64)) -> u64 {
        let trigger = self.spilled.saturating_add(soft);
        let full = if self.spilling { self.spilled.saturating_add(spare) } else { u64::MAX };
        self.output.min(trigger).min(full)
    }
}

impl MapReduce {
    pub(super) fn map_start(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (worker, split) = (t.worker, t.bytes_in);
        t.input_done = now;
        t.stage = Stage::Locating;
        if split == 0 || self.config.hdfs.namenode_time.is_none() {
            self.split_located(now, task, out);
            return;
        }
        let call = self.namenode_session(Caller::Split { task }, self.host(worker));
        self.ask_namenode(now, call, out);
    }

    /// It is known where the split is: reading and computing begin.
    pub(super) fn split_located(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (job, map, worker, split) = (t.job, t.index, t.worker, t.bytes_in);
        let holder = if split == 0 { Some(worker) } else { self.choose_holder(task) };
        let Some(holder) = holder else {
            self.seek_later(now, task, out);
            return;
        };
        let local = holder == worker;
        if !local {
            self.ask_for_split(now, (task, holder), out);
        }
        let spec = &self.config.jobs[job as usize];
        if spec.reduces == 0 {
            self.produce_map_output(now, task, local, out);
            return;
        }
        let (output, kept) = (spec.collected_bytes(map), spec.spill_bytes(map));
        let t = self.tasks.get(task);
        t.bytes_out = kept;
        t.counters.collected = output;
        t.stage = Stage::Mapping(Box::new(Mapping {
            input: split,
            output,
            kept,
            local,
            at: 0,
            to: 0,
            spilled: 0,
            spilling: false,
            spill_parts: 0,
            sorted: false,
            spill: 0,
            stalled: false,
            through: false,
            mark: 0,
        }));
        self.next_piece(now, task, out);
    }

    /// The replica of its split that a map reads: the nearest that has not failed it.
    fn choose_holder(&mut self, task: u32) -> Option<u32> {
        let t = self.tasks.get(task);
        let (job, map, worker) = (t.job, t.index, t.worker);
        let avoid = t.avoid.clone();
        let mut stream = self.stream("replica", job, map);
        let state = self.jobs[job as usize].as_ref().expect("the job runs");
        let mut replicas = state.maps.replicas(map).to_vec();
        replicas.retain(|w| !avoid.contains(w));
        (!replicas.is_empty()).then(|| self.racks.nearest(worker, &replicas, &mut stream))
    }

    fn ask_for_split(&mut self, now: Time, (task, holder): (u32, u32), out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (job, worker) = (t.job, t.worker);
        t.input_left = 1;
        let ends = (self.host(worker), self.host(holder));
        let purpose = Use::Split { task, holder };
        let conn = self.conns.open(purpose, ends, self.config.class, out);
        if self.config.coarse.blocks {
            self.send_split(now, task, holder, conn, out);
            return;
        }
        let request = u64::from(self.config.hdfs.read_request_bytes);
        out.push(control_message(conn, Side::Client, request, 0, Some(job)));
    }

    /// The connection to a datanode is gone: the map reads its split from another replica, from the
    /// beginning (DFSInputStream's dead nodes).
    pub(super) fn split_lost(
        &mut self,
        now: Time,
        (task, holder): (u32, u32),
        out: &mut Vec<Action>,
    ) {
        self.tasks.get(task).avoid.push(holder);
        self.read_elsewhere(now, task, out);
    }

    fn read_elsewhere(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        match self.choose_holder(task) {
            Some(next) if next == self.tasks.get(task).worker => {
                // copied here meanwhile
                let t = self.tasks.get(task);
                t.input_left = 1;
                let (bytes, round) = (t.bytes_in, t.sought);
                let what = Work::Split { task, holder: next, round };
                self.hardware.read(now, next, bytes, what, out);
            }
            Some(next) => self.ask_for_split(now, (task, next), out),
            None => self.seek_later(now, task, out),
        }
    }

    /// No replica is left: the map looks again later, also at those that have failed it, and fails
    /// after `acquire_failures` times (DFSInputStream.refetchLocations; BlockMissingException).
    fn seek_later(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let recovery = &self.config.hdfs.recovery;
        let (most, base) = (recovery.acquire_failures, recovery.retry_window);
        let t = self.tasks.get(task);
        let (job, map, times) = (t.job, t.index, t.sought);
        t.sought += 1;
        t.avoid.clear();
        if times >= most {
            self.attempt_failed(now, task, Cause::Missing, out);
            return;
        }
        let window = Span(base.0.saturating_mul(u64::from(times) + 1));
        let drawn = self.stream(&format!("seek/{times}"), job, map).within(window);
        out.push(Timer::Seek(task).at(now + base * u64::from(times) + drawn));
    }

    /// A map looks again for a replica of its split.
    pub(super) fn seek_split(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        match self.tasks.get(task).stage {
            Stage::Locating => self.split_located(now, task, out),
            _ => self.read_elsewhere(now, task, out),
        }
    }

    /// A datanode has read a split for a map, unless the map has turned to another one.
    pub(super) fn split_read(
        &mut self,
        now: Time,
        (task, holder, round): (u32, u32, u32),
        out: &mut Vec<Action>,
    ) {
        let t = self.tasks.get(task);
        if t.sought == round && !t.avoid.contains(&holder) {
            self.split_part(now, task, out);
        }
    }

    /// At the holder of a replica: the request has arrived. The datanode reads while it sends.
    pub(super) fn send_split(
        &mut self,
        now: Time,
        task: u32,
        holder: u32,
        conn: ConnId,
        out: &mut Vec<Action>,
    ) {
        let t = self.tasks.get(task);
        let (job, bytes, round) = (t.job, t.bytes_in, t.sought);
        if self.config.node.disks.is_some() {
            t.input_left += 1;
            self.hardware.read(now, holder, bytes, Work::Split { task, holder, round }, out);
        }
        let framing = self.config.hdfs.read_framing(bytes);
        let ends = (conn, Side::Server);
        out.push(data_message(ends, (bytes, framing), Purpose::MapInput, Some(job)));
    }

    /// The last byte of a remote split is there, or the datanode has read it.
    pub(super) fn split_part(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        t.input_left -= 1;
        if t.input_left > 0 {
            return;
        }
        t.input_done = now;
        match &t.stage {
            Stage::Mapping(m) if m.through => self.map_function_done(now, task, out),
            Stage::Mapping(_) => {}
            Stage::Producing(_) => self.input_complete(now, task, out),
            stage => unreachable!("a split arrives while its map runs, not in {stage:?}"),
        }
    }

    fn mapping(&mut self, task: u32) -> &mut Mapping {
        match &mut self.tasks.get(task).stage {
            Stage::Mapping(m) => m,
            stage => unreachable!("the map function does not run in {stage:?}"),
        }
    }

    /// Runs the map function to the next moment at which something else happens.
    fn next_piece(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let sizes = buffer(&self.config.sort);
        let rate = self.config.costs.map_rate;
        let m = self.mapping(task);
        m.to = m.next_stop(sizes);
        let input = if m.output == 0 { m.input } else { m.read_at(m.to) - m.read_at(m.at) };
        let work = if m.input == 0 { m.to - m.at } else { input };
        let read = if m.local { input } else { 0 };
        self.step(now, task, Step { cpu: rate.time_for(work), read, write: 0 }, out);
    }

    /// A piece of the map function is through.
    pub(super) fn piece_mapped(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let soft = buffer(&self.config.sort).0;
        let t = self.tasks.get(task);
        let Stage::Mapping(m) = &mut t.stage else { unreachable!("a piece of a running map") };
        m.at = m.to;
        if m.at == m.output {
            m.through = true;
            if t.input_left == 0 {
                self.map_function_done(now, task, out);
            }
        } else if m.spilling {
            m.stalled = true;
        } else {
            if m.at == m.spilled + soft {
                self.spill(now, task, soft, out);
            }
            self.next_piece(now, task, out);
        }
    }

    /// Begins to spill so much of the buffer.
    fn spill(&mut self, now: Time, task: u32, bytes: u64, out: &mut Vec<Action>) {
        let worker = self.tasks.get(task).worker;
        let mark = self.hardware.mark(worker);
        let sort = self.config.costs.sort_rate;
        let m = self.mapping(task);
        if m.spilled == 0 {
            m.mark = mark;
        }
        let before = m.kept_at(m.spilled);
        m.spilled += bytes;
        let written = m.kept_at(m.spilled) - before;
        (m.spill, m.spilling) = (written, true);
        m.sorted = sort.is_none();
        let step = match sort {
            Some(rate) => Step { cpu: rate.time_for(bytes), ..Step::default() },
            None => Step { write: written, ..Step::default() },
        };
        let counters = &mut self.tasks.get(task).counters;
        counters.spills += 1;
        counters.file_written += written;
        let parts = self.begin_parts(now, task, step, Work::Spill(task), out);
        self.mapping(task).spill_parts = parts;
    }

    /// A part of a spill is through.
    pub(super) fn spill_part(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let soft = buffer(&self.config.sort).0;
        let m = self.mapping(task);
        m.spill_parts -= 1;
        if m.spill_parts > 0 {
            return;
        }
        if !m.sorted {
            m.sorted = true;
            let step = Step { write: m.spill, ..Step::default() };
            let parts = self.begin_parts(now, task, step, Work::Spill(task), out);
            self.mapping(task).spill_parts = parts;
            return;
        }
        m.spilling = false;
        if m.through {
            if self.tasks.get(task).input_left == 0 {
                self.flush_buffer(now, task, out);
            }
        } else if std::mem::take(&mut m.stalled) {
            if m.at == m.spilled + soft {
                self.spill(now, task, soft, out);
            }
            self.next_piece(now, task, out);
        }
    }

    /// The map function has seen all of its input.
    fn map_function_done(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        self.tasks.get(task).computed = now;
        if !self.mapping(task).spilling {
            self.flush_buffer(now, task, out);
        }
    }

    /// Spills what is left in the buffer; when nothing is, merges the spills.
    fn flush_buffer(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let m = self.mapping(task);
        let left = m.output - m.spilled;
        if left > 0 {
            let soft = buffer(&self.config.sort).0;
            self.spill(now, task, left.min(soft), out);
            return;
        }
        self.merge_spills(now, task, out);
    }

    /// Merges several spills into the output; one is the output as it is.
    fn merge_spills(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let (soft, factor) = (buffer(&self.config.sort).0, self.config.sort.factor);
        let m = self.mapping(task);
        let (kept, mark) = (m.kept, m.mark);
        // Up to where each spill but the last one reached.
        let ends: Vec<u64> = (1..m.output.div_ceil(soft)).map(|n| m.kept_at(n * soft)).collect();
        let t = self.tasks.get(task);
        let worker = t.worker;
        t.stage = Stage::MergingSpills;
        let mut step = Step::default();
        if !ends.is_empty() {
            let starts = [0].into_iter().chain(ends.iter().copied());
            let ends = ends.iter().copied().chain([kept]);
            let mut files: Vec<u64> = starts.zip(ends).map(|(from, to)| to - from).collect();
            let bytes = merge::passes(&mut files, factor) + kept;
            t.counters.file_read += bytes;
            t.counters.file_written += bytes;
            let cached = self.hardware.in_memory(worker, mark);
            let cpu = self.config.costs.merge_rate.map_or(Span::ZERO, |r| r.time_for(bytes));
            step = Step { cpu, read: if cached { 0 } else { bytes }, write: bytes };
        }
        self.step(now, task, step, out);
    }
}

impl JobSpec {
    /// What a map computes on: its split, or without input what it puts out.
    pub(super) fn map_work(&self, map: u32) -> u64 {
        match self.bytes.input {
            0 if self.reduces > 0 => self.collected_bytes(map),
            0 => self.written_bytes(map),
            _ => self.split_bytes(map),
        }
    }
}
