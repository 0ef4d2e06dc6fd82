//! What the master knows of a running job: its splits, which tasks wait, where map outputs are.

use super::config::JobSpec;
use super::hdfs::Racks;
use super::shares::{partition, share};
use eastwest_engine::random::Stream;
use eastwest_types::{Locality, Time};

/// Maps not given out yet, found by node and by rack without looking at every map, as Hadoop's
/// JobInProgress does. Lists keep maps that were since given out elsewhere until they come up.
#[derive(Clone, Debug)]
struct WaitingMaps {
    given: Vec<bool>,
    /// Maps with a replica on each worker, the first map last.
    by_worker: Vec<Vec<u32>>,
    /// Maps with a replica in each rack, the first map last.
    by_rack: Vec<Vec<u32>>,
    /// No map below this one waits.
    next: u32,
    left: u32,
}

/// The last entry of a list that has not been given out.
fn pop_waiting(list: &mut Vec<u32>, given: &[bool]) -> Option<u32> {
    while let Some(m) = list.pop() {
        if !given[m as usize] {
            return Some(m);
        }
    }
    None
}

/// A job that can have running tasks.
#[derive(Clone, Debug)]
pub struct Job {
    /// Replicas of all splits, `copies` workers each; empty for a job that reads nothing.
    replicas: Vec<u32>,
    copies: usize,
    waiting: WaitingMaps,
    /// Reduces given out so far.
    pub reduces_given: u32,
    /// Whether reduces may be given out.
    pub reduces_offered: bool,
    /// Maps that were reported to have finished.
    pub maps_done: u32,
    /// Reduces that were reported to have finished.
    pub reduces_done: u32,
    /// Worker of every finished map in the order of the reports.
    pub finished_on: Vec<u32>,
    /// Finished maps of every worker in the order of the reports.
    pub outputs: Vec<Vec<u32>>,
    /// When its first task started.
    pub started: Option<Time>,
    /// Shuffle bytes that stayed on their worker.
    pub shuffle_local_bytes: u64,
}

impl Job {
    /// A job all of whose tasks wait. Its splits are placed by `stream`.
    pub fn new(
        spec: &JobSpec,
        racks: &Racks,
        workers: usize,
        copies: u32,
        stream: &mut Stream,
    ) -> Job {
        let copies = if spec.bytes.input > 0 { copies } else { 0 };
        let mut waiting = WaitingMaps {
            given: vec![false; spec.maps as usize],
            by_worker: vec![Vec::new(); workers],
            by_rack: vec![Vec::new(); racks.count()],
            next: 0,
            left: spec.maps,
        };
        let mut replicas = Vec::with_capacity(spec.maps as usize * copies as usize);
        for _ in 0..spec.maps {
            replicas.extend(racks.place(None, copies, stream));
        }
        for m in (0..spec.maps).rev() {
            let at = m as usize * copies as usize;
            for &w in &replicas[at..at + copies as usize] {
                waiting.by_worker[w as usize].push(m);
                let rack = &mut waiting.by_rack[racks.of(w) as usize];
                if rack.last() != Some(&m) {
                    rack.push(m);
                }
            }
        }
        Job {
            replicas,
            copies: copies as usize,
            waiting,
            reduces_given: 0,
            reduces_offered: false,
            maps_done: 0,
            reduces_done: 0,
            finished_on: Vec::new(),
            outputs: if spec.reduces > 0 { vec![Vec::new(); workers] } else { Vec::new() },
            started: None,
            shuffle_local_bytes: 0,
        }
    }

    /// Maps not given out yet.
    pub fn maps_waiting(&self) -> u32 {
        self.waiting.left
    }

    /// Workers that hold a map's split.
    pub fn replicas(&self, map: u32) -> &[u32] {
        &self.replicas[map as usize * self.copies..][..self.copies]
    }

    /// Gives out a map to a worker of a rack: one with its split there, else in the rack, else the
    /// first of all.
    pub fn take_map(&mut self, worker: u32, rack: u32) -> Option<(u32, Locality)> {
        let w = &mut self.waiting;
        let near = pop_waiting(&mut w.by_worker[worker as usize], &w.given)
            .map(|m| (m, Locality::Node))
            .or_else(|| {
                let m = pop_waiting(&mut w.by_rack[rack as usize], &w.given)?;
                Some((m, Locality::Rack))
            });
        let taken = near.or_else(|| {
            let waits = |m: &u32| !w.given[*m as usize];
            w.next = (w.next..w.given.len() as u32).find(waits)?;
            Some((w.next, if self.copies == 0 { Locality::None } else { Locality::Remote }))
        })?;
        w.given[taken.0 as usize] = true;
        w.left -= 1;
        Some(taken)
    }
}

/// Bytes of single tasks, from the bytes of their job.
impl JobSpec {
    /// Read by a map.
    pub fn split_bytes(&self, map: u32) -> u64 {
        share(self.bytes.input, self.maps, map)
    }
    /// Spilled by a map for all reduces.
    pub fn spill_bytes(&self, map: u32) -> u64 {
        share(self.bytes.shuffle, self.maps, map)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapreduce::config::JobBytes;

    fn job(input: u64, maps: u32, copies: u32) -> (Job, Racks) {
        let racks = Racks::new(&[0, 0, 1, 1, 2, 2]);
        let bytes = JobBytes { input, shuffle: 1, output: 0 };
        let spec = JobSpec::fixed("j", "trace", Time::ZERO, bytes, maps, 1);
        (Job::new(&spec, &racks, 6, copies, &mut Stream::new(3, "t")), racks)
    }

    #[test]
    fn near_splits_go_first_and_every_map_once() {
        let (mut job, racks) = job(1000, 60, 2);
        let mut seen = [false; 60];
        let mut last = Locality::Node;
        while let Some((m, locality)) = job.take_map(3, 1) {
            let held = job.replicas(m);
            let expected = if held.contains(&3) {
                Locality::Node
            } else if held.iter().any(|&w| racks.of(w) == 1) {
                Locality::Rack
            } else {
                Locality::Remote
            };
            assert_eq!(locality, expected);
            let order =
                |l| [Locality::Node, Locality::Rack, Locality::Remote].iter().position(|&x| x == l);
            assert!(order(last) <= order(locality), "{last:?} before {locality:?}");
            last = locality;
            assert!(!std::mem::replace(&mut seen[m as usize], true));
        }
        assert!(seen.iter().all(|&s| s) && job.maps_waiting() == 0);
        assert_eq!(last, Locality::Remote);
    }

    #[test]
    fn maps_without_input_have_no_place() {
        let (mut job, _) = job(0, 3, 2);
        assert_eq!(job.take_map(0, 0), Some((0, Locality::None)));
        assert_eq!(job.take_map(5, 2), Some((1, Locality::None)));
        assert!(job.replicas(2).is_empty());
    }
}
