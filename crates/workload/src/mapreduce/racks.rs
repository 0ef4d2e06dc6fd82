//! Placement of HDFS replicas, and the replica that a task reads.
//!
//! The default policy of HDFS (Shvachko et al. 2010, section 5): the first replica on the writer,
//! or anywhere if the writer stores nothing; the second in another rack; the third in the rack of
//! the second; further replicas anywhere. No worker gets two replicas of one block. If a rack has
//! no free worker (one rack only, or a rack of one worker), any worker is used instead. Differences
//! from Hadoop: disks are never full; the load of datanodes is ignored, and also the limit of
//! replicas per rack, which applies from the fourth replica on.

use eastwest_engine::random::Stream;
use eastwest_types::Locality;
use serde::{Deserialize, Serialize};

/// Workers grouped by rack, for uniform draws of a worker inside or outside a rack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Racks {
    /// Rack of each worker, by worker number; racks are numbered from 0 without gaps.
    rack_of: Vec<u32>,
    /// Worker numbers sorted by rack.
    sorted: Vec<u32>,
    /// Index in `sorted` of the first worker of each rack, followed by the length of `sorted`.
    starts: Vec<usize>,
}

impl Racks {
    /// Returns the racks of a cluster; `switch_of` gives the edge switch of every worker.
    pub fn new(switch_of: &[u32]) -> Racks {
        let mut switches = switch_of.to_vec();
        switches.sort_unstable();
        switches.dedup();
        let number = |s: &u32| switches.binary_search(s).expect("every switch is listed") as u32;
        let rack_of: Vec<u32> = switch_of.iter().map(number).collect();
        let mut sorted: Vec<u32> = (0..rack_of.len() as u32).collect();
        sorted.sort_by_key(|&w| rack_of[w as usize]);
        let mut starts = vec![0; switches.len() + 1];
        for &r in &rack_of {
            starts[r as usize + 1] += 1;
        }
        for r in 0..switches.len() {
            starts[r + 1] += starts[r];
        }
        Racks { rack_of, sorted, starts }
    }

    /// Returns the number of racks that contain workers.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of workers in all racks.
    pub fn workers(&self) -> usize {
        self.rack_of.len()
    }

    /// Returns the number of the rack of a worker, from 0.
    pub fn of(&self, worker: u32) -> u32 {
        self.rack_of[worker as usize]
    }

    /// Draws a worker of the cluster for which `usable` returns true and which is not in `taken`;
    /// `None` if there is none.
    fn anywhere(
        &self,
        taken: &[u32],
        usable: &impl Fn(u32) -> bool,
        stream: &mut Stream,
    ) -> Option<u32> {
        draw(&self.sorted, |w| usable(w) && !taken.contains(&w), stream)
    }

    /// Draws a worker of `rack` for which `usable` returns true and which is not in `taken`; `None`
    /// if there is none.
    fn in_rack(
        &self,
        rack: u32,
        taken: &[u32],
        usable: &impl Fn(u32) -> bool,
        stream: &mut Stream,
    ) -> Option<u32> {
        let all = &self.sorted[self.starts[rack as usize]..self.starts[rack as usize + 1]];
        draw(all, |w| usable(w) && !taken.contains(&w), stream)
    }

    /// Draws a worker outside `rack` for which `usable` returns true and which is not in `taken`;
    /// `None` if there is none.
    fn outside(
        &self,
        rack: u32,
        taken: &[u32],
        usable: &impl Fn(u32) -> bool,
        stream: &mut Stream,
    ) -> Option<u32> {
        let (a, b) = (self.starts[rack as usize], self.starts[rack as usize + 1]);
        let others = self.sorted.len() - (b - a);
        let at = |i: usize| self.sorted[if i < a { i } else { i + b - a }];
        draw_of(others, at, |w| usable(w) && !taken.contains(&w), stream)
    }

    /// Returns the workers that store a block with `replicas` replicas, or all workers if there are
    /// fewer workers than replicas. `writer` is the worker that writes the block; `None` if the
    /// writer stores no data.
    pub fn place(&self, writer: Option<u32>, replicas: u32, stream: &mut Stream) -> Vec<u32> {
        self.place_on(writer, replicas, &|_| true, stream)
    }

    /// Returns the workers that store a block with `replicas` replicas, like `place`, but excludes
    /// workers for which `usable` returns false. The list is shorter if too few workers are left.
    /// The worker `writer`, if given, is always included.
    pub fn place_on(
        &self,
        writer: Option<u32>,
        replicas: u32,
        usable: &impl Fn(u32) -> bool,
        stream: &mut Stream,
    ) -> Vec<u32> {
        let mut targets = Vec::with_capacity(replicas as usize);
        for i in 0..replicas {
            let target = match i {
                0 => writer,
                1 => self.outside(self.of(targets[0]), &targets, usable, stream),
                2 => self.in_rack(self.of(targets[1]), &targets, usable, stream),
                _ => None,
            };
            match target.or_else(|| self.anywhere(&targets, usable, stream)) {
                Some(target) => targets.push(target),
                None => break,
            }
        }
        targets
    }

    /// Returns the worker for one more replica of a block, which is copied from `source`: in
    /// another rack if all replicas are in the rack of the source; in the rack of the source if
    /// there are two replicas in different racks; otherwise, or if that rack has no usable worker,
    /// anywhere. Returns `None` if no worker is usable.
    pub fn place_another(
        &self,
        replicas: &[u32],
        source: u32,
        usable: &impl Fn(u32) -> bool,
        stream: &mut Stream,
    ) -> Option<u32> {
        let rack = self.of(source);
        let near = if replicas.iter().all(|&w| self.of(w) == rack) {
            self.outside(rack, replicas, usable, stream)
        } else if replicas.len() == 2 {
            self.in_rack(rack, replicas, usable, stream)
        } else {
            None
        };
        near.or_else(|| self.anywhere(replicas, usable, stream))
    }

    /// Returns the worker whose replica a client reads, and the locality of this replica. `reader`
    /// is the client's worker; `None` if the client runs on no worker and therefore has no rack.
    pub fn nearest_to(
        &self,
        reader: Option<u32>,
        replicas: &[u32],
        stream: &mut Stream,
    ) -> (u32, Locality) {
        let Some(reader) = reader else {
            return (replicas[stream.below(replicas.len() as u64) as usize], Locality::Remote);
        };
        let holder = self.nearest(reader, replicas, stream);
        let locality = if holder == reader {
            Locality::Node
        } else if self.of(holder) == self.of(reader) {
            Locality::Rack
        } else {
            Locality::Remote
        };
        (holder, locality)
    }

    /// Returns the worker whose replica the worker `reader` reads: its own replica, otherwise a
    /// replica in its rack, otherwise any replica.
    pub fn nearest(&self, reader: u32, replicas: &[u32], stream: &mut Stream) -> u32 {
        if replicas.contains(&reader) {
            return reader;
        }
        let near: Vec<u32> =
            replicas.iter().copied().filter(|&w| self.of(w) == self.of(reader)).collect();
        let from = if near.is_empty() { replicas } else { &near[..] };
        from[stream.below(from.len() as u64) as usize]
    }
}

/// Returns a uniformly drawn member of `workers` for which `may` returns true; `None` if there is
/// none.
fn draw(workers: &[u32], may: impl Fn(u32) -> bool, stream: &mut Stream) -> Option<u32> {
    draw_of(workers.len(), |i| workers[i], may, stream)
}

/// Returns a uniformly drawn worker for which `may` returns true; `at` maps an index below `count`
/// to a worker. Draws until an allowed worker is found, because usually most are allowed.
fn draw_of(
    count: usize,
    at: impl Fn(usize) -> u32,
    may: impl Fn(u32) -> bool,
    stream: &mut Stream,
) -> Option<u32> {
    if !(0..count).any(|i| may(at(i))) {
        return None;
    }
    loop {
        let w = at(stream.below(count as u64) as usize);
        if may(w) {
            return Some(w);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct(targets: &[u32]) -> bool {
        let mut t = targets.to_vec();
        t.sort_unstable();
        t.dedup();
        t.len() == targets.len()
    }

    #[test]
    fn replicas_follow_the_rack_policy() {
        let racks = Racks::new(&[7, 3, 7, 3, 7, 9, 9]);
        let mut stream = Stream::new(1, "t");
        for n in 1..=7 {
            for writer in [None, Some(0), Some(5)] {
                for _ in 0..50 {
                    let t = racks.place(writer, n, &mut stream);
                    assert_eq!(t.len(), n as usize);
                    assert!(distinct(&t), "{t:?}");
                    assert!(writer.is_none_or(|w| t[0] == w));
                    if n >= 2 {
                        assert_ne!(racks.of(t[0]), racks.of(t[1]));
                    }
                    if n >= 3 {
                        assert_eq!(racks.of(t[1]), racks.of(t[2]));
                    }
                }
            }
        }
    }

    #[test]
    fn one_rack_and_racks_of_one_still_place_all_replicas() {
        let mut stream = Stream::new(1, "t");
        for switches in [&[1u32, 1, 1][..], &[1, 2, 3], &[1, 1, 2]] {
            for _ in 0..50 {
                let t = Racks::new(switches).place(Some(0), 3, &mut stream);
                assert!(t[0] == 0 && distinct(&t) && t.len() == 3);
            }
        }
    }

    #[test]
    fn workers_that_cannot_be_used_get_nothing() {
        let racks = Racks::new(&[7, 3, 7, 3, 7, 9, 9]);
        let mut stream = Stream::new(1, "t");
        for _ in 0..50 {
            let t = racks.place_on(Some(0), 3, &|w| w != 1 && w != 5 && w != 6, &mut stream);
            assert_eq!(t[1], 3, "the only one that is left in another rack");
            assert!(t.len() == 3 && distinct(&t) && [2, 4].contains(&t[2]));
            assert_eq!(racks.place_on(Some(0), 3, &|w| w == 4, &mut stream), [0, 4]);
            assert!(racks.place_on(None, 3, &|_| false, &mut stream).is_empty());
        }
    }

    #[test]
    fn one_more_replica_keeps_to_two_racks() {
        let racks = Racks::new(&[0, 0, 0, 1, 1, 2]);
        let mut stream = Stream::new(1, "t");
        let mut another = |held: &[u32], source, dead: u32| {
            racks.place_another(held, source, &|w| w != dead, &mut stream)
        };
        for _ in 0..50 {
            assert!([3, 4, 5].contains(&another(&[0], 0, 9).unwrap()));
            assert!([3, 4, 5].contains(&another(&[0, 2], 2, 9).unwrap()));
            assert_eq!(another(&[0, 3], 3, 9), Some(4));
            assert!([1, 2].contains(&another(&[0, 3], 0, 9).unwrap()));
            assert_ne!(another(&[0, 3], 3, 4).unwrap(), 4);
            assert_eq!(another(&[0, 1, 2, 3, 4], 0, 5), None);
        }
    }

    #[test]
    fn second_replicas_are_uniform_over_other_racks() {
        let racks = Racks::new(&[0, 1, 0, 1, 2]);
        let mut stream = Stream::new(1, "t");
        let mut seen = [0; 5];
        for _ in 0..3000 {
            seen[racks.place(Some(3), 2, &mut stream)[1] as usize] += 1;
        }
        assert_eq!((seen[1], seen[3]), (0, 0));
        assert!([0, 2, 4].iter().all(|&w| (880..1120).contains(&seen[w])), "{seen:?}");
    }

    #[test]
    fn readers_prefer_near_replicas() {
        let racks = Racks::new(&[0, 0, 0, 1, 1]);
        let mut stream = Stream::new(1, "t");
        let mut far = [0; 5];
        for _ in 0..100 {
            assert_eq!(racks.nearest(1, &[0, 1, 3], &mut stream), 1);
            assert_eq!(racks.nearest(4, &[0, 1, 3], &mut stream), 3);
            far[racks.nearest(4, &[0, 1, 2], &mut stream) as usize] += 1;
        }
        assert!(far[..3].iter().all(|&n| n > 10), "{far:?}");
    }
}
