//! A map task reads a split, computes, and spills its output for the reduces. In a job without
//! reduces it writes the output to HDFS instead.
//!
//! As in Hadoop's MapTask the output is collected in a buffer of `io.sort.mb`. When its fraction
//! `spill.percent` is full, a spill begins in the background: sort on a core, then write. The map
//! function continues until the buffer is full and then waits for the spill. At the end of the
//! function the rest of the buffer is spilled; several spills are merged in passes of
//! `io.sort.factor` files, the last of which writes the output. A record takes `record_meta_bytes`
//! of the buffer in addition to its own bytes.
//!
//! The function runs in pieces. A piece ends when a spill begins, when the buffer is full, or at
//! the end of the output. Within a piece, reading the local split and computing overlap. A remote
//! split arrives while the function runs: the function ends when it has computed and the last byte
//! has arrived, whichever is later. Differences from Hadoop: with the default of `sort_rate` sort
//! and spill are included in the measured `map_rate`, and only the write takes additional time;
//! records have one size. A combiner reduces every spill by the same factor, so that merges find
//! nothing more to combine; a combiner takes no time in addition to the sort.

use super::connections::Use;
use super::context::Context;
use super::hdfs::Hdfs;
use super::mapping::{Mapping, buffer};
use super::merge;
use super::namenode::Caller;
use super::note::Note;
use super::report::FailureCause;
use super::task::Stage;
use super::tasks::Tasks;
use super::timer::Timer;
use super::work::{Step, Work};
use eastwest_types::{ConnId, Purpose, Side, Span};

impl Tasks {
    pub fn map_start(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let t = self.attempts.get(task);
        let (worker, split) = (t.worker, t.bytes_in);
        t.times.input_done = cx.now;
        t.stage = Stage::Locating;
        if split == 0 || cx.config.hdfs.namenode_time.is_none() {
            self.split_located(cx, hdfs, task);
            return;
        }
        let call = hdfs.namenode.session(Caller::Split { task }, cx.host(worker));
        hdfs.namenode.ask(cx, call);
    }

    /// Starts a map's reading and computing, after the namenode has returned the datanodes with its
    /// split.
    pub fn split_located(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let t = self.attempts.get(task);
        let (job, map, worker, split) = (t.job, t.index, t.worker, t.bytes_in);
        let holder = if split == 0 { Some(worker) } else { self.choose_holder(cx, task) };
        let Some(holder) = holder else {
            self.seek_later(cx, task);
            return;
        };
        let local = holder == worker;
        if !local {
            self.ask_for_split(cx, (task, holder));
        }
        let spec = &cx.config.jobs[job as usize];
        if spec.reduces == 0 {
            self.produce_map_output(cx, hdfs, task, local);
            return;
        }
        let (output, kept) = (spec.collected_bytes(map), spec.spill_bytes(map));
        let t = self.attempts.get(task);
        t.bytes_out = kept;
        t.counters.collected = output;
        t.stage = Stage::Mapping(Box::new(Mapping::new(split, (output, kept), local)));
        self.next_piece(cx, task);
    }

    /// Returns the worker whose replica of the split a map reads: the nearest worker from which no
    /// read has failed; `None` if there is none.
    fn choose_holder(&mut self, cx: &Context, task: u32) -> Option<u32> {
        let t = self.attempts.get(task);
        let (job, map, worker) = (t.job, t.index, t.worker);
        let avoid = t.split.avoid.clone();
        let mut stream = cx.stream("replica", job, map);
        let state = self.jobs.running(job);
        let mut replicas = state.maps.replicas(map).to_vec();
        replicas.retain(|w| !avoid.contains(w));
        (!replicas.is_empty()).then(|| cx.racks.nearest(worker, &replicas, &mut stream))
    }

    fn ask_for_split(&mut self, cx: &mut Context, (task, holder): (u32, u32)) {
        let t = self.attempts.get(task);
        let (job, worker) = (t.job, t.worker);
        t.split.left = 1;
        let ends = (cx.host(worker), cx.host(holder));
        let purpose = Use::Split { task, holder };
        let conn = cx.open(purpose, ends);
        if cx.config.coarse.blocks {
            self.send_split(cx, task, holder, conn);
            return;
        }
        let request = u64::from(cx.config.hdfs.read_request_bytes);
        cx.tell(conn, Side::Client, request, 0, Some(job));
    }

    /// Handles the loss of the connection to a datanode: the map reads its split again from another
    /// replica (DFSInputStream's dead nodes).
    pub fn split_lost(&mut self, cx: &mut Context, (task, holder): (u32, u32)) {
        self.attempts.get(task).split.avoid.push(holder);
        self.read_elsewhere(cx, task);
    }

    fn read_elsewhere(&mut self, cx: &mut Context, task: u32) {
        match self.choose_holder(cx, task) {
            Some(next) if next == self.attempts.get(task).worker => {
                // the split may have been copied to this worker since the last read
                let t = self.attempts.get(task);
                t.split.left = 1;
                let (bytes, round) = (t.bytes_in, t.split.sought);
                let what = Work::Split { task, holder: next, round };
                cx.read(next, bytes, what);
            }
            Some(next) => self.ask_for_split(cx, (task, next)),
            None => self.seek_later(cx, task),
        }
    }

    /// Schedules another search for replicas of a split, after reads from all known replicas have
    /// failed; the new search may use failed replicas again. The map fails after `acquire_failures`
    /// searches (DFSInputStream.refetchLocations; BlockMissingException).
    fn seek_later(&mut self, cx: &mut Context, task: u32) {
        let recovery = &cx.config.hdfs.recovery;
        let (most, base) = (recovery.acquire_failures, recovery.retry_window);
        let t = self.attempts.get(task);
        let (job, map, times) = (t.job, t.index, t.split.sought);
        t.split.sought += 1;
        t.split.avoid.clear();
        if times >= most {
            cx.note(Note::AttemptFailed { task, cause: FailureCause::Missing });
            return;
        }
        let window = Span(base.0.saturating_mul(u64::from(times) + 1));
        let drawn = cx.stream(&format!("seek/{times}"), job, map).within(window);
        cx.wake_in(base * u64::from(times) + drawn, Timer::Seek(task));
    }

    /// Repeats the search for a replica of a map's split after a wait.
    pub fn seek_split(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        match self.attempts.get(task).stage {
            Stage::Locating => self.split_located(cx, hdfs, task),
            _ => self.read_elsewhere(cx, task),
        }
    }

    /// Handles the end of a datanode's disk read for a map; ignores it if the map has changed to
    /// another replica since then.
    pub fn split_read(
        &mut self,
        cx: &mut Context,
        hdfs: &mut Hdfs,
        (task, holder, round): (u32, u32, u32),
    ) {
        let t = self.attempts.get(task);
        if t.split.sought == round && !t.split.avoid.contains(&holder) {
            self.split_part(cx, hdfs, task);
        }
    }

    /// Handles a map's request for its split at the datanode `holder`, which sends the split and
    /// reads it from disk at the same time.
    pub fn send_split(&mut self, cx: &mut Context, task: u32, holder: u32, conn: ConnId) {
        let t = self.attempts.get(task);
        let (job, bytes, round) = (t.job, t.bytes_in, t.split.sought);
        if cx.config.node.disks.is_some() {
            t.split.left += 1;
            cx.read(holder, bytes, Work::Split { task, holder, round });
        }
        let framing = cx.config.hdfs.read_framing(bytes);
        let ends = (conn, Side::Server);
        cx.send(ends, (bytes, framing), Purpose::MapInput, Some(job));
    }

    /// Counts a finished part of the read of a remote split: the arrival of its last byte, or the
    /// datanode's disk read.
    pub fn split_part(&mut self, cx: &mut Context, hdfs: &mut Hdfs, task: u32) {
        let t = self.attempts.get(task);
        t.split.left -= 1;
        if t.split.left > 0 {
            return;
        }
        t.times.input_done = cx.now;
        match &t.stage {
            Stage::Mapping(m) if m.through => self.map_function_done(cx, task),
            Stage::Mapping(_) => {}
            Stage::Producing(_) => self.input_complete(cx, hdfs, task),
            stage => unreachable!("a split arrives while its map runs, not in {stage:?}"),
        }
    }

    fn mapping(&mut self, task: u32) -> &mut Mapping {
        match &mut self.attempts.get(task).stage {
            Stage::Mapping(m) => m,
            stage => unreachable!("the map function does not run in {stage:?}"),
        }
    }

    /// Starts the next piece of the map function, which ends when a spill begins, when the buffer
    /// is full, or at the end of the output.
    fn next_piece(&mut self, cx: &mut Context, task: u32) {
        let sizes = buffer(&cx.config.sort);
        let rate = cx.config.costs.map_rate;
        let m = self.mapping(task);
        m.to = m.next_stop(sizes);
        let input = if m.output == 0 { m.input } else { m.read_at(m.to) - m.read_at(m.at) };
        let work = if m.input == 0 { m.to - m.at } else { input };
        let read = if m.local { input } else { 0 };
        self.step(cx, task, Step { cpu: rate.time_for(work), read, write: 0 });
    }

    /// Handles the end of a piece of the map function: starts the next piece or a spill, waits for
    /// a spill, or ends the function.
    pub fn piece_mapped(&mut self, cx: &mut Context, task: u32) {
        let soft = buffer(&cx.config.sort).0;
        let t = self.attempts.get(task);
        let Stage::Mapping(m) = &mut t.stage else { unreachable!("a piece of a running map") };
        m.at = m.to;
        if m.at == m.output {
            m.through = true;
            if t.split.left == 0 {
                self.map_function_done(cx, task);
            }
        } else if m.spilling {
            m.stalled = true;
        } else {
            if m.at == m.spilled + soft {
                self.spill(cx, task, soft);
            }
            self.next_piece(cx, task);
        }
    }

    /// Begins to spill `bytes` bytes of the sort buffer to disk.
    fn spill(&mut self, cx: &mut Context, task: u32, bytes: u64) {
        let worker = self.attempts.get(task).worker;
        let written_offset = cx.hardware.written_offset(worker);
        let sort = cx.config.costs.sort_rate;
        let m = self.mapping(task);
        if m.spilled == 0 {
            m.written_offset = written_offset;
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
        let counters = &mut self.attempts.get(task).counters;
        counters.spills += 1;
        counters.file_written += written;
        let parts = self.begin_parts(cx, task, step, Work::Spill(task));
        self.mapping(task).spill_parts = parts;
    }

    /// Handles the end of one part (sort, write) of a map's running spill.
    pub fn spill_part(&mut self, cx: &mut Context, task: u32) {
        let soft = buffer(&cx.config.sort).0;
        let m = self.mapping(task);
        m.spill_parts -= 1;
        if m.spill_parts > 0 {
            return;
        }
        if !m.sorted {
            m.sorted = true;
            let step = Step { write: m.spill, ..Step::default() };
            let parts = self.begin_parts(cx, task, step, Work::Spill(task));
            self.mapping(task).spill_parts = parts;
            return;
        }
        m.spilling = false;
        if m.through {
            if self.attempts.get(task).split.left == 0 {
                self.flush_buffer(cx, task);
            }
        } else if std::mem::take(&mut m.stalled) {
            if m.at == m.spilled + soft {
                self.spill(cx, task, soft);
            }
            self.next_piece(cx, task);
        }
    }

    /// Handles the end of the map function: spills the rest of the buffer when no spill is running.
    fn map_function_done(&mut self, cx: &mut Context, task: u32) {
        self.attempts.get(task).times.computed = cx.now;
        if !self.mapping(task).spilling {
            self.flush_buffer(cx, task);
        }
    }

    /// Spills the rest of the sort buffer; if the buffer is empty, merges the spills.
    fn flush_buffer(&mut self, cx: &mut Context, task: u32) {
        let m = self.mapping(task);
        let left = m.output - m.spilled;
        if left > 0 {
            let soft = buffer(&cx.config.sort).0;
            self.spill(cx, task, left.min(soft));
            return;
        }
        self.merge_spills(cx, task);
    }

    /// Merges the spills of a map into its output; a single spill is already the output.
    fn merge_spills(&mut self, cx: &mut Context, task: u32) {
        let (soft, factor) = (buffer(&cx.config.sort).0, cx.config.sort.factor);
        let m = self.mapping(task);
        let (kept, written_offset) = (m.kept, m.written_offset);
        // Output bytes after a combiner at the end of each spill except the last one.
        let ends: Vec<u64> = (1..m.output.div_ceil(soft)).map(|n| m.kept_at(n * soft)).collect();
        let t = self.attempts.get(task);
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
            let cached = cx.hardware.in_memory(worker, written_offset);
            let cpu = cx.config.costs.merge_rate.map_or(Span::ZERO, |r| r.time_for(bytes));
            step = Step { cpu, read: if cached { 0 } else { bytes }, write: bytes };
        }
        self.step(cx, task, step);
    }
}
