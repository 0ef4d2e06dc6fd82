//! Parts of a reduce's input, which an approximate run fetches instead of single map outputs.
//!
//! The outputs of `n` maps that are reported one after another form a part. A part can be fetched
//! when all its outputs are reported, and is sent by the worker of one of them, drawn at random. So
//! every worker sends in proportion to its outputs, and `parallel_copies` parts are in flight at
//! once, like single outputs. n is maps / `coarse.fetches`, or less so that a part fits into the
//! reduce's memory divided by its parallel copies; at least 1. All parts together are exactly the
//! input of the reduce.

use crate::mapreduce::config::{JobSpec, MapReduceConfig};
use crate::mapreduce::memory::Memory;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Parts of a reduce's input, which an approximate run fetches: each part consists of the outputs
/// of several maps that finished one after another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parts {
    /// Number of maps of the job, whose outputs are divided into parts.
    maps: u32,
    /// Number of maps whose outputs form a part; the last part may have fewer.
    each: u32,
    /// Number of parts whose maps are all reported, so that the part can be fetched or was fetched.
    there: u32,
    /// Worker that sends each part; `u32::MAX` until the part is requested.
    from: Vec<u32>,
}

/// Returns the number of maps whose outputs form a part of the input of a job's reduces; 1 if the
/// run is not approximate.
pub fn part_maps(spec: &JobSpec, config: &MapReduceConfig) -> u32 {
    let Some(parts) = config.coarse.fetches else { return 1 };
    let memory = Memory::new(&config.shuffle, &config.sort);
    let most = memory.share_of(config.shuffle.parallel_copies);
    let output = spec.bytes.shuffle / (u64::from(spec.maps) * u64::from(spec.reduces.max(1)));
    let fit = u32::try_from(most / output.max(1)).unwrap_or(u32::MAX);
    spec.maps.div_ceil(parts.max(1)).min(fit).max(1)
}

impl Parts {
    /// Returns the parts of a job with `maps` maps, each of `each` maps; none can be fetched yet.
    pub fn new(maps: u32, each: u32) -> Parts {
        Parts { maps, each, there: 0, from: vec![u32::MAX; maps.div_ceil(each) as usize] }
    }

    /// Records that `known` maps are reported as finished. Returns the numbers of the parts that
    /// can be fetched from now on.
    pub fn complete(&mut self, known: u32) -> Range<u32> {
        let all = self.from.len() as u32;
        let there = if known >= self.maps { all } else { known / self.each };
        let before = self.there;
        self.there = before.max(there);
        before..self.there
    }

    /// Requests a part from the worker of one of its maps: map number `drawn` (from 0) of the part.
    /// `finished_on` lists the worker of each finished map of the job, in the order of reports.
    /// Returns the worker, and the index of the map in this list.
    pub fn ask(&mut self, part: u32, drawn: u64, finished_on: &[u32]) -> (u32, usize) {
        let number = self.range(part).0 as usize + drawn as usize;
        self.from[part as usize] = finished_on[number];
        (finished_on[number], number)
    }

    /// Returns the range of maps of a part, in the order of reports: index of the first map, and
    /// index after the last one.
    fn range(&self, part: u32) -> (u32, u32) {
        let first = part * self.each;
        (first, first.saturating_add(self.each).min(self.maps))
    }

    /// Returns the number of maps whose outputs form a part.
    pub fn count(&self, part: u32) -> u32 {
        let (first, end) = self.range(part);
        end - first
    }

    /// Returns the worker that sends a part, which must have been requested.
    pub fn worker(&self, part: u32) -> u32 {
        self.from[part as usize]
    }

    /// Returns the bytes of a part of a reduce's input, which has `input` bytes in total.
    pub fn bytes(&self, part: u32, input: u64) -> u64 {
        let up_to = |maps: u32| u128::from(input) * u128::from(maps) / u128::from(self.maps);
        let (first, end) = self.range(part);
        (up_to(end) - up_to(first)) as u64
    }
}
