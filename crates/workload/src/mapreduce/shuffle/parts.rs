//! A reduce's input in parts instead of single map outputs: what an approximate run fetches.
//!
//! The outputs of `n` maps that are reported one after another are a part. It may be fetched when all
//! of them are reported, and comes from the worker of one of them, drawn at random: so every worker
//! sends in proportion to what it has, and `parallel_copies` parts are on their way at once as single
//! outputs would be. n is maps / `coarse.fetches`, or less where the reduce's memory divided by its
//! parallel copies holds less; at least 1. All parts together are exactly the reduce's share.

use super::super::config::{JobSpec, MapReduceConfig};
use super::super::job::Job;
use super::super::memory::{Held, Memory};
use super::super::shares::share;
use super::{Fetching, Source};
use eastwest_engine::random::Stream;
use serde::{Deserialize, Serialize};

/// Parts of a reduce's input. They take the place of workers among its sources.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parts {
    /// Maps of the job.
    maps: u32,
    /// Maps of a part; the last one may have fewer.
    each: u32,
    /// Parts that may be fetched, or were.
    there: u32,
    /// The worker that each part comes from, once it is asked for.
    from: Vec<u32>,
}

/// A part that is going to be fetched.
pub struct Part {
    /// Where it comes from.
    pub worker: u32,
    /// Its bytes.
    pub bytes: u64,
    /// What the worker's machine had written before that output of it which it was drawn for.
    pub mark: u64,
}

/// Maps of a part of the input of a job's reduces.
pub fn part_maps(spec: &JobSpec, config: &MapReduceConfig) -> u32 {
    let Some(parts) = config.coarse.fetches else { return 1 };
    let memory = Memory::new(&config.shuffle, &config.sort);
    let most = memory.share_of(config.shuffle.parallel_copies);
    let output = spec.bytes.shuffle / (u64::from(spec.maps) * u64::from(spec.reduces.max(1)));
    let fit = u32::try_from(most / output.max(1)).unwrap_or(u32::MAX);
    spec.maps.div_ceil(parts.max(1)).min(fit).max(1)
}

impl Parts {
    /// Numbers of the first map of a part and of that after its last one, in the order of reports.
    fn range(&self, part: u32) -> (u32, u32) {
        let first = part * self.each;
        (first, first.saturating_add(self.each).min(self.maps))
    }

    /// Maps of a part.
    pub fn count(&self, part: u32) -> u32 {
        let (first, end) = self.range(part);
        end - first
    }

    /// Where a part that was asked for comes from.
    pub fn worker(&self, part: u32) -> u32 {
        self.from[part as usize]
    }

    /// Bytes of a part of a reduce's input.
    fn bytes(&self, part: u32, input: u64) -> u64 {
        let up_to = |maps: u32| u128::from(input) * u128::from(maps) / u128::from(self.maps);
        let (first, end) = self.range(part);
        (up_to(end) - up_to(first)) as u64
    }
}

impl Fetching {
    /// Nothing known, nothing fetched of so many maps in parts of so many; `order` draws the next
    /// part and where it comes from.
    pub fn in_parts((maps, each): (u32, u32), order: Stream, memory: Memory) -> Fetching {
        let parts = maps.div_ceil(each);
        let mut fetching = Fetching::new(0, order, memory);
        fetching.parts = Some(Parts { maps, each, there: 0, from: vec![u32::MAX; parts as usize] });
        fetching
    }

    /// So many maps are reported: what parts are complete may be fetched.
    pub(super) fn parts_known(&mut self, known: u32) {
        let Some(parts) = &mut self.parts else { return };
        let all = parts.from.len() as u32;
        let there = if known >= parts.maps { all } else { known / parts.each };
        for part in parts.there..there {
            self.sources.entry(part).or_default().known = 1;
            self.ready.push(part);
        }
        parts.there = parts.there.max(there);
    }

    /// Takes a part to be fetched by a reduce of a job, and finds a place for it.
    pub(super) fn take_part(
        &mut self,
        part: u32,
        (spec, reduce): (&JobSpec, u32),
        job: &Job,
    ) -> Part {
        let parts = self.parts.as_mut().expect("it fetches in parts");
        let (first, count) = (parts.range(part).0, parts.count(part));
        let drawn = (first + self.order.below(u64::from(count)) as u32) as usize;
        let worker = job.finished_on[drawn];
        parts.from[part as usize] = worker;
        let bytes = parts.bytes(part, share(spec.bytes.shuffle, spec.reduces, reduce));
        let s = self.sources.entry(part).or_default();
        (s.taken, s.bytes, s.answered) = (1, bytes, false);
        s.asking.push(0);
        let mut held = Held::default();
        self.memory.reserve_part(bytes, count, &mut held);
        s.held = held;
        Part { worker, bytes, mark: job.marks[drawn] }
    }

    /// The worker a source is on.
    pub(super) fn worker_of(&self, source: u32) -> u32 {
        self.parts.as_ref().map_or(source, |parts| parts.worker(source))
    }

    /// Map outputs that a source has delivered.
    pub(super) fn outputs_of(&mut self, source: u32) -> u32 {
        let asked = self.sources.entry(source).or_default().asking.drain(..).count() as u32;
        self.parts.as_ref().map_or(asked, |parts| parts.count(source))
    }
}

impl Source {
    /// A part that could not be fetched may be fetched again.
    pub(super) fn forget_part(&mut self) {
        *self = Source { known: 1, ..Source::default() };
    }
}
