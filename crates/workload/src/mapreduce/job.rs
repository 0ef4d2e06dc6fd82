//! What the master knows of a running job: its splits, which tasks wait, where map outputs are.

use super::config::JobSpec;
use super::hdfs::Racks;
use super::shares::{partition, share};
use super::waiting::WaitingMaps;
use super::yarn::Master;
use eastwest_engine::random::Stream;
use eastwest_types::{JobCounters, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Output of a finished map.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Output {
    /// The map.
    pub map: u32,
    /// What its worker's machine had written before it.
    pub mark: u64,
    /// Its map runs again: nobody asks for it any more.
    pub lost: bool,
}

/// A job that can have running tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Maps not given out yet, and where all splits are.
    pub maps: WaitingMaps,
    /// Maps given out so far.
    pub maps_given: u32,
    /// Reduces that are given out or done.
    pub reduces_given: u32,
    /// The first reduce that was never given out.
    pub next_reduce: u32,
    /// Reduces that wait again after an attempt has ended without success.
    pub reduces_back: Vec<u32>,
    /// Failed attempts by kind and task.
    pub failures: BTreeMap<(usize, u32), u32>,
    /// Of every map that is done and has reduces, where its output is; empty where outputs are
    /// fetched in parts.
    pub map_at: BTreeMap<u32, u32>,
    /// Reports of reduces that could not fetch a map's output.
    pub fetch_failures: BTreeMap<u32, u32>,

    /// Reduces that may be given out.
    pub reduces_asked: u32,
    /// Its application master, on YARN while it runs.
    pub master: Option<Master>,
    /// Application masters that were lost.
    pub master_failures: u32,
    /// Whether that has called the resource manager.
    pub registered: bool,
    /// Maps that were reported to have finished.
    pub maps_done: u32,
    /// Reduces that were reported to have finished.
    pub reduces_done: u32,
    /// Worker of every finished map in the order of the reports.
    pub finished_on: Vec<u32>,
    /// Of each of these, what its machine had written before its output; only where outputs are
    /// fetched in parts.
    pub marks: Vec<u64>,
    /// Maps of a part of a reduce's input.
    pub part_maps: u32,
    /// Workers its reduces were given to, where heartbeats are no messages.
    pub reducers: Vec<u32>,
    /// Outputs of each worker that has some, in the order of the reports; empty where they are
    /// fetched in parts.
    pub outputs: BTreeMap<u32, Vec<Output>>,
    /// When its first task started.
    pub started: Option<Time>,
    /// Shuffle bytes that stayed on their worker.
    pub shuffle_local_bytes: u64,
    /// What Hadoop would count of it.
    pub counters: JobCounters,
    /// The longest run of a map that is done.
    pub longest_map: Span,
}

impl Job {
    /// A job all of whose tasks wait. Its splits are placed by `stream`.
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
            map_at: BTreeMap::new(),
            fetch_failures: BTreeMap::new(),
            reduces_asked: 0,
            master: None,
            registered: false,
            master_failures: 0,
            maps_done: 0,
            reduces_done: 0,
            finished_on: Vec::new(),
            marks: Vec::new(),
            part_maps: 1,
            reducers: Vec::new(),
            outputs: BTreeMap::new(),
            started: None,
            shuffle_local_bytes: 0,
            counters: JobCounters::default(),
            longest_map: Span::ZERO,
        }
    }
}

/// Bytes of single tasks, from the bytes of their job.
impl JobSpec {
    /// Read by a map.
    pub fn split_bytes(&self, map: u32) -> u64 {
        share(self.bytes.input, self.maps, map)
    }
    /// Left by a map for all reduces.
    pub fn spill_bytes(&self, map: u32) -> u64 {
        share(self.bytes.shuffle, self.maps, map)
    }
    /// Put out by a map, before a combiner.
    pub fn collected_bytes(&self, map: u32) -> u64 {
        let all = self.uncombined.unwrap_or(self.bytes.shuffle);
        share(all, self.maps, map).max(self.spill_bytes(map))
    }
    /// Fetched by a reduce from a map.
    pub fn fetch_bytes(&self, map: u32, reduce: u32) -> u64 {
        partition(self.bytes.shuffle, (self.maps, map), (self.reduces, reduce))
    }
    /// Written by a task: by reduces, or by maps if there are none.
    pub fn written_bytes(&self, task: u32) -> u64 {
        let writers = if self.reduces > 0 { self.reduces } else { self.maps };
        share(self.bytes.output, writers, task)
    }
}
