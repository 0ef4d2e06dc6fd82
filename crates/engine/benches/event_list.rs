//! Benchmark of event lists: time of one step of the event loop for several data structures.
//!
//! The load models the links of scenario S1 and of a fabric ten times as large. Every event source
//! is a link; its event in the list is its next packet arrival. After an arrival, the link gets its
//! next arrival about one packet time later (12 µs at 1 Gbit/s, 1.2 µs at 10 Gbit/s), or it becomes
//! idle and another link that was idle gets a packet. Some gaps are much longer. Times are whole
//! nanoseconds, so that ties occur. Before the measurement, an assertion checks that all lists
//! yield the events in one order, ties included. Results and conclusions:
//! docs/decisions/0003-event-list.md.

use criterion::{BenchmarkId, Criterion, Throughput};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::Stream;
use eastwest_engine::tournament::Tournament;
use eastwest_types::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::time::Duration;

const SEED: u64 = 7;
const STEPS: u64 = 10_000;

/// Sizes of the two fabrics: (number of links, number of those links with 10 Gbit/s). The links
/// with 10 Gbit/s have the highest numbers; all others have 1 Gbit/s.
const SHAPES: [(usize, usize); 2] = [(339, 16), (3_843, 640)];

/// Operations of an event list that the event loop uses.
trait EventList {
    fn new(sources: usize) -> Self;
    /// Returns key and source of the earliest event.
    fn winner(&mut self) -> (Key, u32);
    /// Replaces the earliest event, which belongs to `source`, by the next event of this source;
    /// [`Key::NEVER`] if the source has no further event.
    fn replace_winner(&mut self, source: u32, key: Key);
    /// Adds an event of a source that has no event in the list.
    fn wake(&mut self, source: u32, key: Key);
}

/// Tie rule of [`Tournament`] for events with equal keys: the event with the smaller rank (a hash
/// of key and source) goes first; if ranks are equal too, the one with the smaller source number.
#[derive(Clone, Copy)]
struct Ties(u32);

/// Number of bits of a rank, the hash that orders events with equal keys.
const RANK_BITS: u32 = 8;

impl Ties {
    fn new(sources: usize) -> Ties {
        Ties(sources.next_power_of_two().ilog2())
    }

    /// Returns the rank of the event of `source`: among events with equal keys the smallest rank
    /// goes first.
    #[inline]
    fn rank(self, key: Key, source: u32) -> u64 {
        let x = (key.0 ^ SEED).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let y = (x ^ x >> 32 ^ u64::from(source)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let hash = (y ^ y >> 32).wrapping_mul(0x94d0_49bb_1331_11eb) >> (64 - RANK_BITS);
        hash << self.0 | u64::from(source)
    }

    /// Returns key, rank and source in one word, which lists compare as one number. Unlike in
    /// [`Tournament`], keys in words count from time zero, so that only some seconds of simulated
    /// time fit.
    #[inline]
    fn word(self, key: Key, source: u32) -> u64 {
        key.0 << (RANK_BITS + self.0) | self.rank(key, source)
    }

    #[inline]
    fn unpack(self, word: u64) -> (Key, u32) {
        (Key(word >> (RANK_BITS + self.0)), (word & ((1 << self.0) - 1)) as u32)
    }
}

impl EventList for Tournament {
    fn new(sources: usize) -> Tournament {
        Tournament::new(sources, SEED)
    }
    #[inline]
    fn winner(&mut self) -> (Key, u32) {
        Tournament::winner(self)
    }
    #[inline]
    fn replace_winner(&mut self, source: u32, key: Key) {
        self.set(source, key);
    }
    #[inline]
    fn wake(&mut self, source: u32, key: Key) {
        self.set_sooner(source, key);
    }
}

/// Winner tree whose nodes are pairs (key, source). A match compares two pairs with branches, and
/// computes ranks only for equal keys.
struct PairTournament {
    nodes: Vec<(Key, u32)>,
    ties: Ties,
}

impl EventList for PairTournament {
    fn new(sources: usize) -> PairTournament {
        let leaves = sources.next_power_of_two();
        let node = |i: usize| (Key::NEVER, (i % leaves) as u32);
        PairTournament { nodes: (0..2 * leaves).map(node).collect(), ties: Ties::new(sources) }
    }
    #[inline]
    fn winner(&mut self) -> (Key, u32) {
        self.nodes[1]
    }
    #[inline]
    fn replace_winner(&mut self, source: u32, key: Key) {
        let mut best = (key, source);
        let mut node = self.nodes.len() / 2 + source as usize;
        self.nodes[node] = best;
        while node > 1 {
            let other = self.nodes[node ^ 1];
            let tie = || self.ties.rank(best.0, other.1) < self.ties.rank(best.0, best.1);
            if other.0 < best.0 || other.0 == best.0 && tie() {
                best = other;
            }
            node >>= 1;
            self.nodes[node] = best;
        }
    }
    #[inline]
    fn wake(&mut self, source: u32, key: Key) {
        self.replace_winner(source, key);
    }
}

/// Winner tree whose nodes are words: node `i` has the children `2i` and `2i + 1`, and the root is
/// node 1.
struct BinaryTournament {
    nodes: Vec<u64>,
    leaves: usize,
    ties: Ties,
}

impl EventList for BinaryTournament {
    fn new(sources: usize) -> BinaryTournament {
        let leaves = sources.next_power_of_two();
        let nodes = vec![u64::MAX; 2 * leaves];
        BinaryTournament { nodes, leaves, ties: Ties::new(sources) }
    }
    #[inline]
    fn winner(&mut self) -> (Key, u32) {
        self.ties.unpack(self.nodes[1])
    }
    #[inline]
    fn replace_winner(&mut self, source: u32, key: Key) {
        let mut word = if key == Key::NEVER { u64::MAX } else { self.ties.word(key, source) };
        let mut node = self.leaves + source as usize;
        self.nodes[node] = word;
        while node > 1 {
            // SAFETY: `node` is an index into the nodes, and its sibling differs from it only in
            // the last bit; the number of nodes is even.
            #[allow(unsafe_code)]
            unsafe {
                word = word.min(*self.nodes.get_unchecked(node ^ 1));
                node >>= 1;
                *self.nodes.get_unchecked_mut(node) = word;
            }
        }
    }
    #[inline]
    fn wake(&mut self, source: u32, key: Key) {
        let word = self.ties.word(key, source);
        let mut node = self.leaves + source as usize;
        self.nodes[node] = word;
        while node > 1 {
            node >>= 1;
            if self.nodes[node] <= word {
                return;
            }
            self.nodes[node] = word;
        }
    }
}

/// Binary heap of the standard library.
struct StdHeap {
    heap: BinaryHeap<Reverse<u64>>,
    ties: Ties,
}

impl EventList for StdHeap {
    fn new(sources: usize) -> StdHeap {
        StdHeap { heap: BinaryHeap::with_capacity(sources), ties: Ties::new(sources) }
    }
    #[inline]
    fn winner(&mut self) -> (Key, u32) {
        self.ties.unpack(self.heap.peek().expect("there are events").0)
    }
    #[inline]
    fn replace_winner(&mut self, source: u32, key: Key) {
        let mut top = self.heap.peek_mut().expect("there are events");
        if key == Key::NEVER {
            PeekMut::pop(top);
        } else {
            *top = Reverse(self.ties.word(key, source));
        }
    }
    #[inline]
    fn wake(&mut self, source: u32, key: Key) {
        self.heap.push(Reverse(self.ties.word(key, source)));
    }
}

/// Heap of words in which every node has four children.
struct FourHeap {
    heap: Vec<u64>,
    ties: Ties,
}

impl FourHeap {
    /// Returns the index of the smallest of up to four sibling nodes that begin at index `first`;
    /// `None` if `first` is beyond the end of the heap.
    #[inline]
    fn least(&self, first: usize) -> Option<usize> {
        let children = self.heap.get(first..)?;
        match children.first_chunk::<4>() {
            Some(c) => {
                let low = usize::from(c[1] < c[0]);
                let high = 2 + usize::from(c[3] < c[2]);
                Some(first + if c[high] < c[low] { high } else { low })
            }
            None => (first..self.heap.len()).min_by_key(|&child| self.heap[child]),
        }
    }

    #[inline]
    fn sink(&mut self, entry: u64) {
        let mut place = 0;
        while let Some(child) = self.least(4 * place + 1).filter(|&c| self.heap[c] < entry) {
            self.heap[place] = self.heap[child];
            place = child;
        }
        self.heap[place] = entry;
    }
}

impl EventList for FourHeap {
    fn new(sources: usize) -> FourHeap {
        FourHeap { heap: Vec::with_capacity(sources), ties: Ties::new(sources) }
    }
    #[inline]
    fn winner(&mut self) -> (Key, u32) {
        self.ties.unpack(self.heap[0])
    }
    #[inline]
    fn replace_winner(&mut self, source: u32, key: Key) {
        if key != Key::NEVER {
            self.sink(self.ties.word(key, source));
        } else if let Some(last) = self.heap.pop().filter(|_| !self.heap.is_empty()) {
            self.sink(last);
        }
    }
    #[inline]
    fn wake(&mut self, source: u32, key: Key) {
        let entry = self.ties.word(key, source);
        let mut place = self.heap.len();
        self.heap.push(entry);
        while place > 0 && entry < self.heap[(place - 1) / 4] {
            self.heap[place] = self.heap[(place - 1) / 4];
            place = (place - 1) / 4;
        }
        self.heap[place] = entry;
    }
}

/// Calendar queue: slots of fixed width with about two events each, a bitmap of the slots in use,
/// and a heap for events later than one turn of the wheel. `winner` moves the earliest entry of a
/// slot to the end of this slot, where removing it is cheap.
struct Wheel {
    slots: Vec<Vec<u64>>,
    filled: Vec<u64>,
    far: BinaryHeap<Reverse<u64>>,
    /// Number of the current slot, counted from time zero over all turns of the wheel.
    now: u64,
    width_bits: u32,
    ties: Ties,
}

impl Wheel {
    #[inline]
    fn insert(&mut self, entry: u64) {
        let number = entry >> self.width_bits;
        if number - self.now >= self.slots.len() as u64 {
            self.far.push(Reverse(entry));
            return;
        }
        let slot = number as usize & (self.slots.len() - 1);
        self.slots[slot].push(entry);
        self.filled[slot / 64] |= 1 << (slot % 64);
    }

    /// Returns the index of the first slot with events, searched from the current slot around the
    /// wheel; `None` if all slots are empty.
    #[inline]
    fn first_filled(&self) -> Option<usize> {
        let start = self.now as usize & (self.slots.len() - 1);
        let words = self.filled.len();
        let ahead = self.filled[start / 64] & (!0 << (start % 64));
        if ahead != 0 {
            return Some(start / 64 * 64 + ahead.trailing_zeros() as usize);
        }
        (1..=words)
            .map(|w| (start / 64 + w) & (words - 1))
            .find(|&w| self.filled[w] != 0)
            .map(|w| w * 64 + self.filled[w].trailing_zeros() as usize)
    }
}

impl EventList for Wheel {
    fn new(sources: usize) -> Wheel {
        let slots = 2 * sources.next_power_of_two();
        let ties = Ties::new(sources);
        let width = ties.word(Key::new(Time(24_000_000 / sources as u64), Class::Departure), 0);
        Wheel {
            slots: vec![Vec::new(); slots],
            filled: vec![0; slots / 64],
            far: BinaryHeap::new(),
            now: 0,
            width_bits: width.ilog2(),
            ties,
        }
    }
    #[inline]
    fn winner(&mut self) -> (Key, u32) {
        let turn = self.slots.len();
        let slot = match self.first_filled() {
            Some(slot) => slot,
            None => {
                self.now = self.far.peek().expect("there are events").0 >> self.width_bits;
                self.now as usize & (turn - 1)
            }
        };
        self.now += (slot.wrapping_sub(self.now as usize) & (turn - 1)) as u64;
        while let Some(&Reverse(entry)) = self.far.peek() {
            if (entry >> self.width_bits) - self.now >= turn as u64 {
                break;
            }
            self.far.pop();
            self.insert(entry);
        }
        let entries = &mut self.slots[slot];
        let last = entries.len() - 1;
        let least = (0..=last).min_by_key(|&i| entries[i]).expect("the slot is in use");
        entries.swap(least, last);
        self.ties.unpack(entries[last])
    }
    #[inline]
    fn replace_winner(&mut self, source: u32, key: Key) {
        let slot = self.now as usize & (self.slots.len() - 1);
        self.slots[slot].pop();
        if self.slots[slot].is_empty() {
            self.filled[slot / 64] &= !(1 << (slot % 64));
        }
        if key != Key::NEVER {
            self.insert(self.ties.word(key, source));
        }
    }
    #[inline]
    fn wake(&mut self, source: u32, key: Key) {
        self.insert(self.ties.word(key, source));
    }
}

/// Random numbers that decide how links behave (gaps between arrivals, idle times). They are drawn
/// before the measurement and are equal for all lists.
struct Load {
    draws: Vec<u32>,
    next: usize,
    idle: Vec<u32>,
    first_fast: u32,
}

impl Load {
    /// Returns the load and a list with the first arrivals of two thirds of the links; the others
    /// are idle.
    fn start<L: EventList>(shape: (usize, usize)) -> (Load, L) {
        let (sources, fast) = shape;
        let mut random = Stream::new(1, "load");
        let mut load = Load {
            draws: (0..1 << 16).map(|_| random.next_u64() as u32).collect(),
            next: 0,
            idle: (0..sources as u32).filter(|s| s % 3 == 0).collect(),
            first_fast: (sources - fast) as u32,
        };
        let mut list = L::new(sources);
        for source in (0..sources as u32).filter(|s| s % 3 > 0) {
            let draw = load.draw();
            list.wake(source, load.after(Time::ZERO, source, draw));
        }
        (load, list)
    }

    #[inline]
    fn draw(&mut self) -> u32 {
        self.next = (self.next + 1) & (self.draws.len() - 1);
        self.draws[self.next]
    }

    /// Returns the key of the next arrival at link `source` after time `now`: 0.5 to 1.5 packet
    /// times later, or 100 µs later for one packet in 1,024.
    #[inline]
    fn after(&self, now: Time, source: u32, draw: u32) -> Key {
        let packet_ns = if source < self.first_fast { 12_000 } else { 1_200 };
        let ns = match draw >> 22 {
            0 => 100_000,
            _ => packet_ns / 2 + u64::from(draw & 0xffff) * packet_ns / 0x1_0000,
        };
        Key::new(now + Span::from_ns(ns), Class::Arrival)
    }

    /// Executes one event and returns it. With probability 1/8 the link of the event becomes idle
    /// and an idle link gets a packet.
    #[inline]
    fn step<L: EventList>(&mut self, list: &mut L) -> (Key, u32) {
        let (key, source) = list.winner();
        let draw = self.draw();
        if draw >> 16 & 7 != 0 {
            list.replace_winner(source, self.after(key.time(), source, draw));
        } else {
            list.replace_winner(source, Key::NEVER);
            let place = draw as usize % self.idle.len();
            let woken = std::mem::replace(&mut self.idle[place], source);
            list.wake(woken, self.after(key.time(), woken, draw));
        }
        (key, source)
    }
}

/// Returns the first 300,000 events that a list yields, to compare lists with each other. The
/// function is not inlined, so that a profiler shows each list separately.
#[inline(never)]
fn order<L: EventList>(shape: (usize, usize)) -> Vec<(Key, u32)> {
    let (mut load, mut list) = Load::start::<L>(shape);
    (0..300_000).map(|_| load.step(&mut list)).collect()
}

fn check(shape: (usize, usize)) {
    let ours = order::<Tournament>(shape);
    assert!(ours.windows(2).all(|w| w[0].0 <= w[1].0), "out of order");
    let ties = ours.windows(2).filter(|w| w[0].0 == w[1].0).count();
    assert!(ties > 1_000, "only {ties} ties");
    assert!(order::<BinaryTournament>(shape) == ours, "binary tree");
    assert!(order::<PairTournament>(shape) == ours, "pairs");
    assert!(order::<StdHeap>(shape) == ours, "binary heap");
    assert!(order::<FourHeap>(shape) == ours, "4-ary heap");
    assert!(order::<Wheel>(shape) == ours, "wheel");
}

fn measure<L: EventList>(criterion: &mut Criterion, name: &str, shape: (usize, usize)) {
    let mut group = criterion.benchmark_group("event_list");
    group.throughput(Throughput::Elements(STEPS));
    let (mut load, mut list) = Load::start::<L>(shape);
    group.bench_function(BenchmarkId::new(name, shape.0), |b| {
        b.iter(|| (0..STEPS).fold(0, |sum, _| sum ^ load.step(&mut list).0.0));
    });
    assert!(
        list.winner().0.0.leading_zeros() > RANK_BITS + Ties::new(shape.0).0,
        "words have run over"
    );
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
        .configure_from_args();
    for shape in SHAPES {
        check(shape);
        measure::<Tournament>(&mut criterion, "tournament, 4-ary words (ours)", shape);
        measure::<BinaryTournament>(&mut criterion, "tournament, binary words", shape);
        measure::<PairTournament>(&mut criterion, "tournament, pairs", shape);
        measure::<StdHeap>(&mut criterion, "binary heap", shape);
        measure::<FourHeap>(&mut criterion, "4-ary heap", shape);
        measure::<Wheel>(&mut criterion, "wheel", shape);
    }
    criterion.final_summary();
}
