//! Waiting maps of a job, with lists by worker and by rack so that a map near a worker is found
//! without a search of all maps, as in Hadoop's JobInProgress. An assigned map stays in a list
//! until it is the last entry, and is then removed. Only workers and racks with a split have a
//! list, so that ten thousand small jobs on two thousand workers need little memory.

use super::racks::Racks;
use eastwest_types::Locality;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Waiting maps of one job, and the workers with replicas of their splits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitingMaps {
    /// Workers with replicas of all splits: `copies` entries for map 0, then for map 1, and so on;
    /// lost replicas ([`LOST`]) last within a map. Empty for a job without input.
    replicas: Vec<u32>,
    /// Number of entries of `replicas` for each map; 0 for a job without input.
    copies: usize,
    /// Size of a split in bytes, rounded down.
    split_bytes: u64,
    given: Vec<bool>,
    /// Maps with a replica of their split on a worker, by worker; the last entry is assigned next.
    by_worker: BTreeMap<u32, Vec<u32>>,
    /// Maps with a replica of their split in a rack, by rack; the last entry is assigned next.
    by_rack: BTreeMap<u32, Vec<u32>>,
    /// Smallest number of a map that may be waiting; all maps with smaller numbers are assigned.
    next: u32,
    left: u32,
}

/// Entry in the list of replicas that means a lost replica.
const LOST: u32 = u32::MAX;

/// Removes assigned maps from the end of a list. Returns the last entry that is left, which is a
/// waiting map; `None` if none is left. `given`: whether a map is assigned, by map.
fn last_waiting(list: Option<&mut Vec<u32>>, given: &[bool]) -> Option<u32> {
    let list = list?;
    while let Some(&m) = list.last() {
        if !given[m as usize] {
            return Some(m);
        }
        list.pop();
    }
    None
}

impl WaitingMaps {
    /// Returns the state of `maps` waiting maps, which read `input` bytes together. `replicas`
    /// lists `copies` workers for map 0, then for map 1, and so on; `copies` is 0 for a job without
    /// input.
    pub fn new(
        (maps, input): (u32, u64),
        replicas: Vec<u32>,
        copies: usize,
        racks: &Racks,
    ) -> WaitingMaps {
        assert_eq!(replicas.len(), maps as usize * copies);
        let mut waiting = WaitingMaps {
            replicas,
            copies,
            split_bytes: input / u64::from(maps.max(1)),
            given: vec![false; maps as usize],
            by_worker: BTreeMap::new(),
            by_rack: BTreeMap::new(),
            next: 0,
            left: maps,
        };
        (0..maps).rev().for_each(|m| waiting.list(m, racks));
        waiting
    }

    fn list(&mut self, map: u32, racks: &Racks) {
        let first = map as usize * self.copies;
        for i in first..first + replicas_in(&self.replicas[first..][..self.copies]) {
            let w = self.replicas[i];
            self.by_worker.entry(w).or_default().push(map);
            let rack = self.by_rack.entry(racks.of(w)).or_default();
            if rack.last() != Some(&map) {
                rack.push(map);
            }
        }
    }

    /// Returns the number of maps of the job that wait for assignment.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Returns the workers with a replica of a map's split.
    pub fn replicas(&self, map: u32) -> &[u32] {
        let held = &self.replicas[map as usize * self.copies..][..self.copies];
        &held[..replicas_in(held)]
    }

    /// Sets the workers with a replica of a map's split to `to`, at most `copies` workers.
    pub fn moved(&mut self, map: u32, to: &[u32], racks: &Racks) {
        let before = self.replicas(map).to_vec();
        let held = &mut self.replicas[map as usize * self.copies..][..self.copies];
        held.fill(LOST);
        held[..to.len()].copy_from_slice(to);
        let rack_of = |all: &[u32], rack| all.iter().any(|&w| racks.of(w) == rack);
        for &w in before.iter().filter(|w| !to.contains(w)) {
            unlist(&mut self.by_worker, w, map);
            if !rack_of(to, racks.of(w)) {
                unlist(&mut self.by_rack, racks.of(w), map);
            }
        }
        for &w in to.iter().filter(|w| !before.contains(w)) {
            self.by_worker.entry(w).or_default().push(map);
            if !rack_of(&before, racks.of(w)) {
                self.by_rack.entry(racks.of(w)).or_default().push(map);
            }
        }
    }

    /// Returns the size of a split of the job in bytes, rounded down.
    pub fn split_bytes(&self) -> u64 {
        self.split_bytes
    }

    /// Whether the job has input, so that its maps read splits.
    pub fn reads(&self) -> bool {
        self.copies > 0
    }

    /// Returns the waiting map nearest to a worker, with its locality: a map with its split on the
    /// worker, otherwise in the worker's rack, otherwise the first waiting map; `None` if no map
    /// waits.
    pub fn nearest(&mut self, worker: u32, rack: u32) -> Option<(u32, Locality)> {
        let given = &self.given;
        if let Some(m) = last_waiting(self.by_worker.get_mut(&worker), given) {
            return Some((m, Locality::Node));
        }
        if let Some(m) = last_waiting(self.by_rack.get_mut(&rack), given) {
            return Some((m, Locality::Rack));
        }
        self.next = (self.next..given.len() as u32).find(|&m| !given[m as usize])?;
        Some((self.next, if self.reads() { Locality::Remote } else { Locality::None }))
    }

    /// Returns at most `most` waiting maps that have a replica of their split on a worker, in the
    /// order of assignment.
    pub fn on_worker(&self, worker: u32, most: usize) -> impl Iterator<Item = u32> + '_ {
        self.waiting_of(self.by_worker.get(&worker), most)
    }

    /// Returns at most `most` waiting maps that have a replica of their split in a rack, in the
    /// order of assignment.
    pub fn in_rack(&self, rack: u32, most: usize) -> impl Iterator<Item = u32> + '_ {
        self.waiting_of(self.by_rack.get(&rack), most)
    }

    fn waiting_of<'a>(
        &'a self,
        list: Option<&'a Vec<u32>>,
        most: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        let waiting = list.into_iter().flatten().rev().copied();
        waiting.filter(|&m| !self.given[m as usize]).take(most)
    }

    /// Returns at most `most` waiting maps, in the order of their numbers.
    pub fn first(&self, most: usize) -> impl Iterator<Item = u32> + '_ {
        (self.next..self.given.len() as u32).filter(|&m| !self.given[m as usize]).take(most)
    }

    /// Returns the locality of a map's split for a worker: on the worker, in its rack, elsewhere,
    /// or no input.
    pub fn locality(&self, map: u32, worker: u32, racks: &Racks) -> Locality {
        let held = self.replicas(map);
        if !self.reads() {
            Locality::None
        } else if held.contains(&worker) {
            Locality::Node
        } else if held.iter().any(|&w| racks.of(w) == racks.of(worker)) {
            Locality::Rack
        } else {
            Locality::Remote
        }
    }

    /// Marks a waiting map as assigned.
    pub fn take(&mut self, map: u32) {
        let was = std::mem::replace(&mut self.given[map as usize], true);
        assert!(!was, "a map is given out once");
        self.left -= 1;
    }

    /// Makes an assigned map wait again; workers with its split get it first.
    pub fn put_back(&mut self, map: u32, racks: &Racks) {
        let was = std::mem::replace(&mut self.given[map as usize], false);
        assert!(was, "only what was given out comes back");
        self.left += 1;
        self.next = self.next.min(map);
        self.list(map, racks);
    }
}

/// Returns the number of replicas in `held`, the list of a split, before the first entry [`LOST`].
fn replicas_in(held: &[u32]) -> usize {
    held.iter().position(|&w| w == LOST).unwrap_or(held.len())
}

fn unlist(lists: &mut BTreeMap<u32, Vec<u32>>, of: u32, map: u32) {
    if let Some(list) = lists.get_mut(&of) {
        list.retain(|&m| m != map);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_engine::random::Stream;

    fn sixty(copies: usize) -> (WaitingMaps, Racks) {
        let racks = Racks::new(&[0, 0, 1, 1, 2, 2]);
        let mut stream = Stream::new(3, "t");
        let place = |_| racks.place(None, copies as u32, &mut stream);
        let replicas = (0..60).flat_map(place).collect();
        (WaitingMaps::new((60, 600), replicas, copies, &racks), racks)
    }

    fn drain(waiting: &mut WaitingMaps, racks: &Racks, worker: u32) -> Vec<Locality> {
        let mut seen = Vec::new();
        while let Some((m, locality)) = waiting.nearest(worker, racks.of(worker)) {
            assert_eq!(waiting.locality(m, worker, racks), locality);
            waiting.take(m);
            seen.push(locality);
        }
        seen
    }

    #[test]
    fn near_splits_go_first_and_every_map_once() {
        let (mut waiting, racks) = sixty(2);
        let seen = drain(&mut waiting, &racks, 3);
        assert_eq!((seen.len(), waiting.left()), (60, 0));
        assert!(seen.is_sorted() && seen[0] == Locality::Node && seen[59] == Locality::Remote);
        let (mut waiting, racks) = sixty(0);
        assert_eq!(drain(&mut waiting, &racks, 3), [Locality::None; 60]);
    }

    #[test]
    fn what_comes_back_is_given_out_again_and_once() {
        let (mut waiting, racks) = sixty(3);
        let (first, _) = waiting.nearest(0, 0).unwrap();
        waiting.take(first);
        waiting.put_back(first, &racks);
        assert_eq!(waiting.nearest(0, 0).unwrap().0, first);
        drain(&mut waiting, &racks, 5);
        waiting.put_back(7, &racks);
        waiting.put_back(4, &racks);
        assert_eq!(waiting.first(9).collect::<Vec<_>>(), [4, 7]);
        assert_eq!(drain(&mut waiting, &racks, 1).len(), 2);
        assert_eq!(waiting.left(), 0);
    }

    #[test]
    fn a_split_that_has_moved_is_near_where_it_is_now() {
        let (mut waiting, racks) = sixty(2);
        for m in 0..60 {
            waiting.moved(m, if m == 7 { &[2] } else { &[] }, &racks);
        }
        assert_eq!(waiting.replicas(7), [2]);
        assert_eq!(waiting.nearest(2, 1), Some((7, Locality::Node)));
        assert_eq!(waiting.nearest(3, 1), Some((7, Locality::Rack)));
        assert_eq!(waiting.nearest(0, 0), Some((0, Locality::Remote)));
        assert_eq!(waiting.locality(0, 0, &racks), Locality::Remote, "lost, not without input");
        waiting.moved(0, &[4, 5], &racks);
        assert_eq!(waiting.nearest(5, 2), Some((0, Locality::Node)));
        assert_eq!(drain(&mut waiting, &racks, 2).len(), 60);
    }

    #[test]
    fn lists_of_workers_and_racks_hold_what_waits() {
        let (mut waiting, racks) = sixty(2);
        for m in (0..60).step_by(3) {
            waiting.take(m);
        }
        for worker in 0..6 {
            let listed: Vec<u32> = waiting.on_worker(worker, 100).collect();
            let held = |m: &u32| m % 3 != 0 && waiting.replicas(*m).contains(&worker);
            assert_eq!(listed, (0..60).filter(held).collect::<Vec<_>>());
            assert_eq!(waiting.on_worker(worker, 2).count(), 2);
        }
        let near = |m: &u32| m % 3 != 0 && waiting.replicas(*m).iter().any(|&w| racks.of(w) == 1);
        assert_eq!(
            waiting.in_rack(1, 100).collect::<Vec<_>>(),
            (0..60).filter(near).collect::<Vec<_>>()
        );
    }
}
