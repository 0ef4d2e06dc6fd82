//! State of a running job at the master: replicas of its splits, waiting tasks, and the workers
//! that have its map outputs.

use super::config::JobSpec;
use super::racks::Racks;
use super::scheduler::Jobs;
use super::shares::{partition, share};
use super::waiting::WaitingMaps;
use eastwest_engine::random::Stream;
use eastwest_types::{JobCounters, Span, TaskKind, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Output of a finished map, stored on a worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Output {
    /// Number of the map within its job.
    pub map: u32,
    /// Bytes that the worker's machine had written to files before this output; tells whether the
    /// output is still in the page cache.
    pub written_offset: u64,
    /// Whether this output is lost: its map runs again, and reduces do not request it any more.
    pub lost: bool,
}

/// Outputs of the finished maps of a job, with the workers that store them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outputs {
    /// Worker of every finished map, in the order in which the maps were reported.
    pub finished_on: Vec<u32>,
    /// Bytes that the worker's machine had written to files before the output of each finished map,
    /// in the order of `finished_on`. Empty unless outputs are fetched in parts.
    pub written_offsets: Vec<u64>,
    /// Number of maps whose outputs form one part of a reduce's input, in approximate runs that
    /// fetch parts.
    pub part_maps: u32,
    /// Outputs stored on each worker, by worker, in the order of reports. Empty if outputs are
    /// fetched in parts.
    by_worker: BTreeMap<u32, Vec<Output>>,
    /// Worker that stores the output of a finished map, by map. Empty if outputs are fetched in
    /// parts.
    at: BTreeMap<u32, u32>,
    /// Number of reports of reduces that could not fetch a map's output, by map.
    failures: BTreeMap<u32, u32>,
}

impl Outputs {
    /// Adds the output of a finished map. `written_offset`: number of bytes that the worker's
    /// machine had written to files before this output; `in_parts`: whether reduces fetch outputs
    /// in parts, as in approximate runs.
    pub fn add(&mut self, map: u32, worker: u32, written_offset: u64, in_parts: bool) {
        self.finished_on.push(worker);
        if in_parts {
            self.written_offsets.push(written_offset);
        } else {
            let output = Output { map, written_offset, lost: false };
            self.by_worker.entry(worker).or_default().push(output);
            self.at.insert(map, worker);
        }
    }

    /// Returns the number of maps reported as finished; a map that has run twice counts twice.
    pub fn reported(&self) -> u32 {
        self.finished_on.len() as u32
    }

    /// Returns the outputs of finished maps that a worker stores; the worker must store at least
    /// one.
    pub fn on(&self, worker: u32) -> &[Output] {
        &self.by_worker[&worker]
    }

    /// Returns the numbers of the maps whose output a worker stores.
    pub fn maps_on(&self, worker: u32) -> Vec<u32> {
        self.at.iter().filter(|&(_, &at)| at == worker).map(|(&map, _)| map).collect()
    }

    /// Returns the worker that stores a map's output, and the index of the output in the worker's
    /// list; `None` if the map is not finished or its output is lost.
    pub fn place(&self, map: u32) -> Option<(u32, u32)> {
        let &worker = self.at.get(&map)?;
        let made = self.on(worker).iter().rposition(|o| o.map == map && !o.lost);
        Some((worker, made.expect("its worker lists it") as u32))
    }

    /// Counts a reduce's report that it could not fetch a map's output from the worker `from`.
    /// Returns the number of reports for this output, or `None` if the worker does not store the
    /// output any more.
    pub fn failed(&mut self, map: u32, from: u32) -> Option<u32> {
        if self.at.get(&map) != Some(&from) {
            return None;
        }
        let reports = self.failures.entry(map).or_default();
        *reports += 1;
        Some(*reports)
    }

    /// Marks the output of a map as lost. Returns false if the map had no output.
    pub fn lose(&mut self, map: u32) -> bool {
        self.failures.remove(&map);
        let Some(worker) = self.at.remove(&map) else { return false };
        let outputs = self.by_worker.get_mut(&worker).expect("it lists the output");
        outputs.iter_mut().filter(|o| o.map == map).for_each(|o| o.lost = true);
        true
    }
}

/// State of a running job at the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Maps that are not assigned yet, and the replicas of all splits.
    pub maps: WaitingMaps,
    /// Number of maps of the job that are assigned or finished.
    pub maps_given: u32,
    /// Number of reduces of the job that are assigned or finished.
    pub reduces_given: u32,
    /// Number of the first reduce that was never assigned; reduces are assigned in the order of
    /// their numbers.
    next_reduce: u32,
    /// Reduces that wait for assignment again after a failed or killed attempt.
    reduces_back: Vec<u32>,
    /// Number of failed attempts of each task, by (kind of task as in `index`, task).
    pub failures: BTreeMap<(usize, u32), u32>,
    /// Outputs of finished maps, with the workers that store them.
    pub outputs: Outputs,
    /// Number of reduces that were offered to the scheduler so far; includes assigned reduces.
    pub reduces_asked: u32,
    /// Number of maps of the job that were reported as finished.
    pub maps_done: u32,
    /// Number of reduces of the job that were reported as finished.
    pub reduces_done: u32,
    /// Workers to which reduces of the job are assigned, one entry for each reduce in order of
    /// assignment; used only if heartbeats are not sent as messages.
    pub reducers: Vec<u32>,
    /// Start time of the job's first task; `None` before it.
    pub started: Option<Time>,
    /// Shuffle bytes that reduces have fetched from map outputs on their own worker.
    pub shuffle_local_bytes: u64,
    /// Counters of the job, with the meaning of Hadoop's counters.
    pub counters: JobCounters,
    /// Longest run time of a successful map attempt of the job.
    pub longest_map: Span,
}

impl Job {
    /// Returns the state of a job whose tasks all wait for assignment. `stream` chooses the workers
    /// with the `copies` replicas of each split.
    pub fn new(spec: &JobSpec, racks: &Racks, copies: u32, stream: &mut Stream) -> Job {
        let copies = if spec.bytes.input > 0 { copies } else { 0 };
        let mut replicas = Vec::with_capacity(spec.maps as usize * copies as usize);
        for _ in 0..spec.maps {
            replicas.extend(racks.place(None, copies, stream));
        }
        Job {
            maps: WaitingMaps::new((spec.maps, spec.bytes.input), replicas, copies as usize, racks),
            maps_given: 0,
            reduces_given: 0,
            next_reduce: 0,
            reduces_back: Vec::new(),
            failures: BTreeMap::new(),
            outputs: Outputs::default(),
            reduces_asked: 0,
            maps_done: 0,
            reduces_done: 0,
            reducers: Vec::new(),
            started: None,
            shuffle_local_bytes: 0,
            counters: JobCounters::default(),
            longest_map: Span::ZERO,
        }
    }

    /// Whether all tasks of the job are finished.
    pub fn is_through(&self, spec: &JobSpec) -> bool {
        (self.maps_done, self.reduces_done) == (spec.maps, spec.reduces)
    }

    /// Returns the next reduce to assign, and marks it as assigned.
    pub fn give_reduce(&mut self) -> u32 {
        self.reduces_given += 1;
        self.reduces_back.pop().unwrap_or_else(|| {
            self.next_reduce += 1;
            self.next_reduce - 1
        })
    }

    /// Makes an assigned task wait for assignment again.
    pub fn take_back(&mut self, kind: TaskKind, task: u32, racks: &Racks) {
        match kind {
            TaskKind::Map => {
                self.maps.put_back(task, racks);
                self.maps_given -= 1;
            }
            TaskKind::Reduce => {
                self.reduces_back.push(task);
                self.reduces_given -= 1;
            }
        }
    }
}

/// State of all jobs, by job number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobTable {
    /// State of each job; `None` for jobs that have not begun or have ended.
    pub table: Vec<Option<Box<Job>>>,
}

impl JobTable {
    /// Returns a table for `jobs` jobs, none of which has begun.
    pub fn new(jobs: usize) -> JobTable {
        JobTable { table: vec![None; jobs] }
    }

    /// Returns a mutable reference to the state of a running job.
    pub fn get(&mut self, job: u32) -> &mut Job {
        self.find(job).expect("the job runs")
    }

    /// Returns the state of a running job.
    pub fn running(&self, job: u32) -> &Job {
        self.table[job as usize].as_ref().expect("the job runs")
    }

    /// Returns the state of a job, or `None` if the job is not running.
    pub fn find(&mut self, job: u32) -> Option<&mut Job> {
        self.table[job as usize].as_deref_mut()
    }

    /// Returns the number of maps of a job that were reported as finished; 0 if the job is not
    /// running.
    pub fn reported(&self, job: u32) -> u32 {
        self.table[job as usize].as_ref().map_or(0, |state| state.outputs.reported())
    }

    /// Whether a job is running.
    pub fn runs(&self, job: u32) -> bool {
        self.table[job as usize].is_some()
    }

    /// Stores the workers that now have a replica of a split, if the split's job is running.
    pub fn split_moved(&mut self, job: u32, map: u32, replicas: &[u32], racks: &Racks) {
        if let Some(state) = self.find(job) {
            state.maps.moved(map, replicas, racks);
        }
    }
}

impl Jobs for JobTable {
    fn maps(&mut self, job: u32) -> &mut WaitingMaps {
        &mut self.get(job).maps
    }
}

/// Bytes of single tasks, derived from the total bytes of their job.
impl JobSpec {
    /// Returns the input bytes of a map.
    pub fn split_bytes(&self, map: u32) -> u64 {
        share(self.bytes.input, self.maps, map)
    }
    /// Returns the output bytes of a map for all reduces together, after a combiner.
    pub fn spill_bytes(&self, map: u32) -> u64 {
        share(self.bytes.shuffle, self.maps, map)
    }
    /// Returns the output bytes of a map for all reduces together, before a combiner.
    pub fn collected_bytes(&self, map: u32) -> u64 {
        let all = self.uncombined.unwrap_or(self.bytes.shuffle);
        share(all, self.maps, map).max(self.spill_bytes(map))
    }
    /// Returns the bytes that a reduce fetches from a map.
    pub fn fetch_bytes(&self, map: u32, reduce: u32) -> u64 {
        partition(self.bytes.shuffle, (self.maps, map), (self.reduces, reduce))
    }
    /// Returns the bytes that a task writes to HDFS: a reduce, or a map if the job has no reduces.
    pub fn written_bytes(&self, task: u32) -> u64 {
        let writers = if self.reduces > 0 { self.reduces } else { self.maps };
        share(self.bytes.output, writers, task)
    }
    /// Returns the bytes on which a map function works: its split, or its output if the job has no
    /// input.
    pub fn map_work(&self, map: u32) -> u64 {
        match self.bytes.input {
            0 if self.reduces > 0 => self.collected_bytes(map),
            0 => self.written_bytes(map),
            _ => self.split_bytes(map),
        }
    }
}
